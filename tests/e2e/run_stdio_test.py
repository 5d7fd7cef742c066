"""capgate run: which descriptors a server may inherit, and what a waiting client is told."""

import json
import os
import pty
import socket
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import NOT_FOUND, REFUSED, RunCase, adopt_orphans, allow, python

# JSON-RPC keeps these codes for itself.
RESERVED = range(-32768, -31999)
MISSING = "/no/such/file"


def setUpModule():
    adopt_orphans()


def request(number, method="initialize"):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {}}) + "\n"


NOTIFICATION = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"


@started_by_root_and_user
class Descriptors(RunCase):
    READ = python("import os; os.write(1, os.read(0, 5))")

    def passed(self, **streams):
        """The output of a server that repeats what it is told first."""
        process = self.start([], self.READ, **streams)
        done = launch.finish(process, None)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def test_a_file_passes(self):
        with open(self.file("note", "hello"), "rb") as file:
            self.assertEqual(self.passed(stdin=file), b"hello")

    def test_null_passes(self):
        self.assertEqual(self.passed(stdin=subprocess.DEVNULL), b"")

    def test_a_terminal_passes(self):
        outer, inner = pty.openpty()
        self.addCleanup(os.close, outer)
        os.write(outer, b"hello\n")
        try:
            self.assertEqual(self.passed(stdin=inner), b"hello")
        finally:
            os.close(inner)

    def test_an_unnamed_socket_passes(self):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(b"hello")
            process = self.start([], self.READ, stdin=theirs, stdout=theirs)
            self.assertEqual(process.wait(launch.SECONDS), 0)
            self.assertEqual(ours.recv(5), b"hello")

    def assert_refused(self, name, **streams):
        process = self.start([], ["/usr/bin/true"], **streams)
        done = launch.finish(process, None)
        said = done.stderr.decode() if done.stderr is not None else ""
        self.assertEqual(done.returncode, REFUSED, said)
        if streams.get("stderr") is None:
            self.assertIn(name, said)
            self.assertRegex(said, r"(?m)^help: ")

    def test_a_directory_is_refused(self):
        directory = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, directory)
        self.assert_refused("standard input", stdin=directory)
        self.assert_refused("standard output", stdin=subprocess.DEVNULL, stdout=directory)
        self.assert_refused("standard error", stdin=subprocess.DEVNULL, stderr=directory)

    def test_a_listening_socket_is_refused(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.join(self.work, "socket"))
            listener.listen()
            self.assert_refused("standard input", stdin=listener)

    def test_a_connection_accepted_at_a_name_is_refused(self):
        path = os.path.join(self.work, "socket")
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.bind(path)
            listener.listen()
            client.connect(path)
            with listener.accept()[0] as accepted:
                client.shutdown(socket.SHUT_WR)
                self.assert_refused("standard input", stdin=accepted)

    def test_a_network_socket_is_refused(self):
        with socket.socket(socket.AF_INET) as unconnected:
            self.assert_refused("standard input", stdin=unconnected)

    def test_a_socket_that_is_not_connected_is_refused(self):
        with socket.socket(socket.AF_UNIX) as unconnected:
            self.assert_refused("standard input", stdin=unconnected)

    def test_a_closed_descriptor_is_refused(self):
        done = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" <&-', "sh", launch.CAPGATE, "run", "--", "/usr/bin/true"],
            capture_output=True, check=False, timeout=launch.SECONDS, env=self.environment(),
            preexec_fn=lambda: launch.become(self.uid))
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        self.assertIn(b"standard input", done.stderr)

    def test_no_other_descriptor_reaches_the_server(self):
        with open(self.file("secret", "text"), "rb") as secret:
            process = self.start([], python("import os; print(os.listdir('/proc/self/fd'))"),
                                 pass_fds=[secret.fileno()])
            done = launch.finish(process)
        # The fourth is the listing itself.
        self.assertEqual(done.stdout.decode(), "['0', '1', '2', '3']\n", done.stderr.decode())


@started_by_root_and_user
class Answers(RunCase):
    """MCP clients hide stderr, so a refusal is told to those who ask."""

    def answers(self, words, sent, command=("/usr/bin/true",), code=REFUSED, **options):
        done = self.run_server(words, list(command), stdin=sent.encode(), **options)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertNotEqual(done.stderr, b"")
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def assert_tells(self, answer, number, reason):
        self.assertEqual((answer["jsonrpc"], answer["id"]), ("2.0", number))
        self.assertNotIn(answer["error"]["code"], RESERVED)
        self.assertIsInstance(answer["error"]["code"], int)
        self.assertIn(reason, answer["error"]["message"])
        self.assertNotEqual(answer["error"]["data"]["remedy"], "")

    def test_every_request_is_answered_and_nothing_else(self):
        sent = request(1) + NOTIFICATION + request("a\"b") + "no json\n\n" + request(2.5)
        answers = self.answers(allow(f"fs:read:{MISSING}"), sent)
        self.assertEqual(len(answers), 3)
        for answer, number in zip(answers, (1, "a\"b", 2.5)):
            self.assert_tells(answer, number, MISSING)

    def test_a_notification_alone_is_not_answered(self):
        self.assertEqual(self.answers(allow(f"fs:read:{MISSING}"), NOTIFICATION), [])

    def test_a_command_that_is_not_found(self):
        answers = self.answers([], request(1), ["no-such-command"], NOT_FOUND)
        self.assertEqual(len(answers), 1)
        self.assert_tells(answers[0], 1, "no-such-command")

    def test_a_step_that_failed(self):
        env = self.environment(CAPGATE_FAIL_STEP="landlock")
        answers = self.answers([], request(1), env=env)
        self.assertEqual(len(answers), 1)
        self.assert_tells(answers[0], 1, "landlock")

    def test_a_capability_with_a_mistake(self):
        answers = self.answers(allow("fs:read:relative"), request(1))
        self.assertEqual(len(answers), 1)
        self.assert_tells(answers[0], 1, "absolute")

    def test_a_manifest_that_is_missing(self):
        answers = self.answers(["-m", "/no/such/manifest.json"], request(1))
        self.assertEqual(len(answers), 1)
        self.assert_tells(answers[0], 1, "/no/such/manifest.json")

    def test_an_option_with_a_mistake(self):
        answers = self.answers(["--grace", "soon"], request(1))
        self.assertEqual(len(answers), 1)
        self.assert_tells(answers[0], 1, "--grace")

    def test_who_asks_after_the_refusal_is_answered_and_not_waited_for_long(self):
        process = self.start(allow(f"fs:read:{MISSING}"), ["/usr/bin/true"])
        self.assertIn(MISSING.encode(), process.stderr.readline())
        process.stdin.write(request(7).encode())
        process.stdin.flush()
        self.assert_tells(json.loads(process.stdout.readline()), 7, MISSING)
        # The client keeps its end open and says nothing more: capgate waits for 2 s, and must not
        # wait for the client's end.
        self.assertEqual(process.wait(launch.SECONDS), REFUSED)

    def test_a_socket_is_answered_too(self):
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = self.start(allow(f"fs:read:{MISSING}"), ["/usr/bin/true"],
                                     stdin=theirs, stdout=theirs)
            ours.sendall(request(1).encode())
            ours.shutdown(socket.SHUT_WR)
            self.assert_tells(json.loads(ours.makefile().readline()), 1, MISSING)
            self.assertEqual(process.wait(launch.SECONDS), REFUSED)

    def test_a_file_is_not_answered(self):
        with open(self.file("requests", request(1)), "rb") as file:
            process = self.start(allow(f"fs:read:{MISSING}"), ["/usr/bin/true"], stdin=file)
            self.assertEqual(launch.finish(process, None).stdout, b"")

    def test_a_server_that_runs_is_not_disturbed(self):
        done = self.run_server([], ["/usr/bin/cat"], stdin=request(1).encode())
        self.assertEqual(done.stdout.decode(), request(1))


if __name__ == "__main__":
    unittest.main()
