"""capgate egress, and capgate-init forward in sandboxes that capgate did not make."""

import base64
import contextlib
import hashlib
import json
import os
import select
import signal
import socket
import stat
import time
import unittest

import launch
from cases import started_by_root_and_user
from egress_cases import Run, read_audit
from egress_service import BIG, CURL, PROXY, ServiceCase

# Connections through the proxy, all open at the same time: each asks, then each finishes.
MANY = ("import socket, sys\n"
        "port, count = sys.argv[1], int(sys.argv[2])\n"
        "all = [socket.create_connection(('127.0.0.1', 3128), 30) for _ in range(count)]\n"
        "for one in all: one.sendall(f'CONNECT localhost:{port} HTTP/1.1\\r\\n"
        "Host: localhost:{port}\\r\\n\\r\\n'.encode())\n"
        "good = 0\n"
        "for i, one in enumerate(all):\n"
        "    stream = one.makefile('rwb')\n"
        "    while stream.readline().strip(): pass\n"
        "    stream.write(b'%d\\n' % i); stream.flush()\n"
        "for i, one in enumerate(all):\n"
        "    good += one.recv(100) == b'%d\\n' % i\n"
        "print(good)\n")
# One connection: everything is sent, then finished, and only then an answer comes.
UPLOAD = ("import hashlib, os, socket, sys\n"
          "port = sys.argv[1]\n"
          "data = os.urandom(1 << 16) * 256\n"
          "one = socket.create_connection(('127.0.0.1', 3128), 30)\n"
          "one.sendall(f'CONNECT localhost:{port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())\n"
          "assert one.recv(100).startswith(b'HTTP/1.1 200'), 'refused'\n"
          "one.sendall(data)\n"
          "one.shutdown(socket.SHUT_WR)\n"
          "got = b''\n"
          "while part := one.recv(1000): got += part\n"
          "print(got.decode() == hashlib.sha256(data).hexdigest())\n")
ATTEMPTS = ("import os, socket\n"
            "def tell(what, attempt):\n"
            "    try: attempt(); print(what, 'yes')\n"
            "    except OSError as error: print(what, error.strerror)\n"
            "tell('unix', lambda: socket.socket(socket.AF_UNIX))\n"
            "tell('datagram pair', lambda: socket.socketpair(type=socket.SOCK_DGRAM))\n"
            "tell('stream pair', lambda: socket.socketpair())\n"
            "tell('inet', lambda: socket.socket())\n"
            "def spawn():\n"
            "    pid = os.fork()\n"
            "    if pid == 0: os._exit(0)\n"
            "    os.waitpid(pid, 0)\n"
            "tell('process', spawn)\n"
            "import threading\n"
            "thread = threading.Thread(target=lambda: print('thread yes')); thread.start()\n"
            "thread.join()\n"
            "tell('memory', lambda: open(f'/proc/{os.getppid()}/mem', 'rb'))\n"
            "tell('environment', lambda: open(f'/proc/{os.getppid()}/environ', 'rb'))\n")


@started_by_root_and_user
class Forwarding(ServiceCase):
    def setUp(self):
        super().setUp()
        self.service, self.said = self.serve()

    def test_what_it_says_and_leaves_beside_the_socket(self):
        self.assertEqual(self.said["listening"], f"unix:{self.socket}")
        self.assertEqual(self.said["audit"], self.audit)
        modes = {name: stat.S_IMODE(os.stat(path).st_mode) for name, path in (
            ("directory", self.directory), ("socket", self.socket),
            ("forwarder", self.said["forwarder"]))}
        self.assertEqual(modes, {"directory": 0o700, "socket": 0o600, "forwarder": 0o555})
        self.assertEqual(sorted(os.listdir(self.directory)), ["capgate-init", "egress.sock"])

    def test_curl_in_bwrap(self):
        """Each kind of proxy: what is declared passes, what is not is told with its capability."""
        wanted = f"net:connect:localhost:{self.other.port}"
        for words in (["-x", f"http://{PROXY}"], ["-p", "-x", f"http://{PROXY}"],
                      ["--socks5-hostname", PROXY]):
            with self.subTest(words=words):
                run = self.curl(*words, self.url(self.web))
                self.assertEqual((run.code, run.output), (0, "hello from the origin"), run)
                run = self.curl(*words, self.url(self.other))
                self.assertNotIn("hello", run.output, run)
        run = self.curl("-i", "-x", f"http://{PROXY}", self.url(self.other))
        self.assertRegex(run.output, r"^HTTP/1\.1 403 ")
        self.assertIn(wanted, run.output)
        ended = self.end(self.service)
        self.assertEqual(ended.code, 0, ended)
        for protocol in ("http-proxy", "connect", "socks5"):
            ended.assert_line(event="connect", verdict="allowed", port=self.web.port,
                              protocol=protocol)
            ended.assert_denied(event="connect", port=self.other.port, protocol=protocol,
                                remedy=wanted)

    def test_the_variables_are_enough(self):
        """In an unshared network whose loopback is down: the forwarder brings it up."""
        script = (f"curl -sS --max-time 10 --noproxy '' {self.url(self.web)}; echo; env | sort; "
                  "exit 3")
        env = {"ALL_PROXY": "socks5h://elsewhere:1", "http_proxy": "http://elsewhere:2",
               "KEPT": "yes"}
        run = self.run_words(self.unshared("sh", "-c", script), env=env)
        self.assertEqual(run.code, 3, run)
        lines = run.output.splitlines()
        self.assertEqual(lines[0], "hello from the origin", run)
        found = dict(line.split("=", 1) for line in lines[1:])
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            self.assertEqual(found[name], f"http://{PROXY}")
        for name in ("NO_PROXY", "no_proxy"):
            self.assertEqual(found[name], "localhost,127.0.0.1,::1")
        self.assertEqual((found["NODE_USE_ENV_PROXY"], found["KEPT"]), ("1", "yes"))
        self.assertNotIn("ALL_PROXY", found)

    def test_another_port(self):
        script = f'curl -sS --max-time 10 --noproxy "" {self.url(self.web)}; echo " $HTTP_PROXY"'
        run = self.run_words(self.bwrap("sh", "-c", script, options=["--port", "4000"]))
        self.assertEqual(run.output, "hello from the origin http://127.0.0.1:4000\n", run)

    def test_much_arrives_as_it_was_sent(self):
        script = (f"curl -sS --max-time 60 --noproxy '' {self.url(self.web, '/big')} | sha256sum")
        run = self.run_words(self.bwrap("sh", "-c", script))
        self.assertEqual(run.output.split()[:1], [hashlib.sha256(BIG).hexdigest()], run)

    def test_one_side_may_finish_before_the_other(self):
        run = self.python(UPLOAD, str(self.digest.port))
        self.assertEqual((run.code, run.output), (0, "True\n"), run)

    def test_two_hundred_at_once(self):
        run = self.python(MANY, str(self.echo.port), "200")
        self.assertEqual((run.code, run.output), (0, "200\n"), run)

    def test_what_the_command_cannot_do(self):
        run = self.python(ATTEMPTS)
        refused = "Operation not permitted"
        self.assertEqual(run.output.splitlines(), [
            f"unix {refused}", f"datagram pair {refused}", "stream pair yes", "inet yes",
            "process yes", "thread yes", "memory Permission denied",
            "environment Permission denied"], run)
        narrow = self.python(ATTEMPTS, options=["--no-processes"])
        self.assertIn(f"process {refused}\nthread yes\n", narrow.output, narrow)
        # The control: with the option, and without a forwarder.
        wide = self.python(ATTEMPTS, options=["--unix-sockets"])
        self.assertTrue(wide.output.startswith("unix yes\ndatagram pair yes\n"), wide)
        outside = self.run_words([launch.PYTHON, "-I", "-c", ATTEMPTS])
        self.assertTrue(outside.output.startswith("unix yes\ndatagram pair yes\n"), outside)

    def test_how_the_command_ends_is_passed_on(self):
        for words, code in ((["true"], 0), (["sh", "-c", "exit 42"], 42),
                            (["sh", "-c", "kill -TERM $$"], 143), (["absent-program"], 127),
                            (["/absent/program"], 127), (["/etc"], 126), (["/usr/bin"], 126)):
            with self.subTest(words=words):
                run = self.run_words(self.unshared(*words))
                self.assertEqual(run.code, code, run)

    def test_its_streams_are_the_commands_alone(self):
        """Whoever waits for the end of stdout waits for the command, which closed it."""
        process = self.popen(self.plain("sh", "-c", "exec >&- 2>&-; read line; exit 5"))
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.stderr.read(), b"")
        self.assertIsNone(process.poll())
        process.stdin.write(b"go\n")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(launch.SECONDS), 5)

    def test_signals_are_passed_on(self):
        script = "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
        process = self.popen(self.plain("sh", "-c", script))
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.terminate()
        self.assertEqual(process.wait(launch.SECONDS), 9)
        self.assertEqual(process.stdout.read(), b"told\n")

    def test_words_that_are_wrong(self):
        program = os.path.join(self.directory, "capgate-init")
        for words in ([], ["--port", "0", "--", "true"], ["--port", "70000", "--", "true"],
                      ["--port"], ["--else", "--", "true"],
                      ["--socket", "/absent.sock", "--", "true"],
                      ["--socket", "/" + 200 * "x", "--", "true"]):
            with self.subTest(words=words):
                run = self.run_words([program, "forward", *words])
                self.assertEqual((run.code, run.output), (125, ""), run)
                self.assertTrue(run.said.startswith("capgate-init: "), run)

    def test_another_broker_takes_over(self):
        (broker,) = children_of(self.service.pid)
        os.kill(broker, signal.SIGKILL)
        self.assertIn(b"another one takes over", self.service.stderr.readline())
        run = self.curl("-x", f"http://{PROXY}", self.url(self.web))
        self.assertEqual(run.output, "hello from the origin", run)
        self.assertEqual(self.end(self.service).code, 0)

    def test_the_end_waits_for_what_is_under_way(self):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(launch.SECONDS)
            client.connect(self.socket)
            place = f"localhost:{self.echo.port}"
            client.sendall(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())
            self.assertTrue(client.recv(1000).startswith(b"HTTP/1.1 200 "))
            self.service.terminate()
            wait_until(self, lambda: not is_served(self.socket))
            client.sendall(b"still there")
            self.assertEqual(client.recv(1000), b"still there")
        run = Run(self, launch.finish(self.service), self.audit)
        self.assertEqual(run.code, 0, run)
        run.assert_line(event="close", port=self.echo.port, reason="closed")
        run.assert_line(event="end")
        self.assertFalse(os.path.exists(self.directory), "what it made it has removed")


def wait_until(case, condition):
    end = time.monotonic() + launch.SECONDS
    while not condition():
        case.assertLess(time.monotonic(), end)
        time.sleep(0.01)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def is_served(path):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(path)
            return True
        except OSError:
            return False


@contextlib.contextmanager
def open_pidfd(pid):
    """A descriptor of a process, readable when the process has ended."""
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


@started_by_root_and_user
class Places(ServiceCase):
    def test_what_a_killed_one_left_is_replaced(self):
        first, _ = self.serve()
        (broker,) = children_of(first.pid)
        with open_pidfd(broker) as ended:
            first.kill()
            first.wait()
            # The kernel kills the broker only after that. Until then it holds the socket and the
            # log, and a second service is right to refuse.
            self.assertTrue(select.select([ended], [], [], launch.SECONDS)[0], "the broker lives on")
        self.assertEqual(sorted(os.listdir(self.directory)), ["capgate-init", "egress.sock"])
        second, _ = self.serve()
        run = self.curl("-x", f"http://{PROXY}", self.url(self.web))
        self.assertEqual(run.output, "hello from the origin", run)
        self.assertEqual(self.end(second).code, 0)
        self.assertEqual(os.listdir(self.directory), [], "it was there before, so it stays")

    def test_a_live_one_is_not(self):
        first, _ = self.serve()
        self.assertIn("another capgate egress", self.refused(code=6))
        self.assertTrue(is_served(self.socket))
        self.assertEqual(self.end(first).code, 0)

    def test_neither_is_anything_else(self):
        self.directory = self.tree.directory("service")
        os.chmod(self.directory, 0o755)
        os.chown(self.directory, self.uid, self.uid)
        with self.listening_socket(self.socket):
            self.assertIn("another program listens", self.refused(code=6))
        os.unlink(self.socket)
        with open(self.socket, "w", encoding="ascii") as file:
            file.write("kept")
        self.assertIn("no socket of yours", self.refused(code=6))
        self.assertEqual(self.tree.text("service/egress.sock"), "kept")

    def test_others_must_not_write_the_directory(self):
        self.directory = self.tree.directory("service")
        os.chown(self.directory, self.uid, self.uid)
        for mode in (0o777, 0o775, 0o722, 0o1777):
            os.chmod(self.directory, mode)
            self.assertIn("can write", self.refused(code=6), oct(mode))
        self.assertEqual(os.listdir(self.directory), [])

    def test_modes_for_other_users(self):
        service, said = self.serve("--socket-mode", "0666", "--no-forwarder")
        self.assertNotIn("forwarder", said)
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o666)
        self.assertEqual(stat.S_IMODE(os.stat(self.directory).st_mode), 0o711)
        self.assertEqual(os.listdir(self.directory), ["egress.sock"])
        self.assertEqual(self.end(service).code, 0)
        for mode in ("0777", "666x", "1666", "0644"):
            self.assertIn("--socket-mode", self.refused("--socket-mode", mode, code=2))

    def test_the_service_manager_is_told(self):
        path = self.tree.path("notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            os.chmod(path, 0o666)
            manager.settimeout(launch.SECONDS)
            service, _ = self.serve(env={"NOTIFY_SOCKET": path})
            self.assertEqual(manager.recv(1000), b"READY=1")
            self.assertEqual(self.end(service).code, 0)
            self.assertEqual(manager.recv(1000), b"STOPPING=1")

    def test_people_are_told_on_stderr(self):
        process = self.popen(self.words("--audit", self.audit))
        self.assertEqual(process.stderr.readline().decode(),
                         f"capgate: listening on unix:{self.socket}, log in {self.audit}\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(launch.finish(process).returncode, 0)


@started_by_root_and_user
class Ports(ServiceCase):
    def setUp(self):
        super().setUp()
        self.token_file = os.path.join(self.tree.directory("token"), "token")

    def serve_port(self):
        service, said = self.serve("--token-file", self.token_file, listen="tcp:127.0.0.1:0")
        self.assertRegex(said["listening"], r"^tcp:127\.0\.0\.1:\d+$")
        return service, said["listening"].removeprefix("tcp:")

    def ask(self, place, *words):
        return self.run_words([*CURL, *words, self.url(self.web)])

    def test_clients_show_the_token(self):
        service, place = self.serve_port()
        self.assertEqual(stat.S_IMODE(os.stat(self.token_file).st_mode), 0o600)
        with open(self.token_file, encoding="ascii") as file:
            token = file.read().strip()
        self.assertRegex(token, "^[0-9a-f]{64}$")
        for user in ("", "capgate:wrong@", f"other:{token}@", f"capgate:{token}x@"):
            run = self.ask(place, "-i", "-x", f"http://{user}{place}")
            self.assertRegex(run.output, r"^HTTP/1\.1 407 ", run)
            run = self.ask(place, "-p", "-x", f"http://{user}{place}")
            self.assertIn("407", run.said, run)
            run = self.ask(place, "-x", f"socks5h://{user}{place}")
            self.assertEqual((run.code, run.output), (97, ""), run)
        for scheme in ("http", "socks5h"):
            run = self.ask(place, "-x", f"{scheme}://capgate:{token}@{place}")
            self.assertEqual(run.output, "hello from the origin", run)
        ended = self.end(service)
        self.assertEqual(ended.code, 0, ended)
        self.assertEqual(len(ended.find(reason="no-token", verdict="denied")), 12, ended)
        seen = str(ended) + json.dumps(read_audit(self.audit))
        self.assertNotIn(token, seen)
        self.assertNotIn(base64.b64encode(f"capgate:{token}".encode()).decode(), seen)

    def test_the_token_of_a_file_that_is_there(self):
        with open(self.token_file, "w", encoding="ascii") as file:
            file.write("a-token-of-ones-own\n")
        os.chown(self.token_file, self.uid, self.uid)
        for mode in (0o644, 0o640, 0o604):
            os.chmod(self.token_file, mode)
            said = self.refused("--token-file", self.token_file, listen="tcp:127.0.0.1:0", code=6)
            self.assertIn("others than you", said)
        os.chmod(self.token_file, 0o600)
        service, place = self.serve_port()
        run = self.ask(place, "-x", f"http://capgate:a-token-of-ones-own@{place}")
        self.assertEqual(run.output, "hello from the origin", run)
        self.assertEqual(self.end(service).code, 0)
        with open(self.token_file, "w", encoding="ascii") as file:
            file.write("short")
        said = self.refused("--token-file", self.token_file, listen="tcp:127.0.0.1:0", code=6)
        self.assertIn("holds no token", said)

    def test_only_the_loopback(self):
        for place in ("0.0.0.0:3128", "10.0.0.1:3128", "[::]:3128", "localhost:3128", "3128",
                      "127.0.0.1", "127.0.0.1:99999", "example.com:80", "*:80"):
            self.refused("--token-file", self.token_file, listen=f"tcp:{place}", code=2)
        self.assertFalse(os.path.exists(self.token_file))
        self.assertIn("token", self.refused(listen="tcp:127.0.0.1:3128", code=2))
        for place in ("unix:", "unix:/tmp/", "http://127.0.0.1:1", ""):
            self.refused(listen=place, code=2)


    def test_beyond_the_loopback_on_request(self):
        """As in a pod: the token is root's, in a file that a link leads to and the group reads."""
        kept = os.path.join(self.tree.root, "kept-token")
        with open(kept, "w", encoding="ascii") as file:
            file.write("a-token-of-the-cluster\n")
        os.chown(kept, 0, self.uid)
        os.chmod(kept, 0o440 if self.uid else 0o400)
        os.symlink(kept, self.token_file)
        service, said = self.serve("--expose", "--token-file", self.token_file,
                                   listen="tcp:0.0.0.0:0")
        place = said["listening"].replace("tcp:0.0.0.0", "127.0.0.1")
        run = self.ask(place, "-x", f"http://capgate:a-token-of-the-cluster@{place}")
        self.assertEqual(run.output, "hello from the origin", run)
        self.assertRegex(self.ask(place, "-i", "-x", f"http://{place}").output, r"^HTTP/1\.1 407 ")
        self.assertEqual(self.end(service).code, 0)
        for place in ("localhost:0", "example.com:0", "*:0"):
            self.refused("--expose", "--token-file", self.token_file, listen=f"tcp:{place}", code=2)


@started_by_root_and_user
class Policies(ServiceCase):
    def spec(self, *rules, more=""):
        lines = "".join(f"  - {rule}\n" for rule in rules)
        return self.tree.file("egress.yaml", "capgateEgress: 1\nserver: e2e\npolicyHash: sha256:"
                              f"{'0a' * 32}\nrules:\n{lines}{more}")

    def test_a_spec_is_served(self):
        spec = self.spec(f"connect: localhost:{self.web.port}\n    blockPrivate: false",
                         more="listen: [8080]\npublicOnly: false\n")
        service, said = self.serve(policy=spec)
        self.assertEqual((said["server"], said["policyHash"]), ("e2e", "sha256:" + "0a" * 32))
        run = self.curl("-x", f"http://{PROXY}", self.url(self.web))
        self.assertEqual(run.output, "hello from the origin", run)
        run = self.curl("-x", f"http://{PROXY}", self.url(self.echo))
        self.assertIn("capgate: ", run.output)
        ended = self.end(service)
        ended.assert_line(verdict="allowed", at="egress.yaml:5:14")

    def test_mistakes_stand_where_they_are(self):
        for rule, where in (("connect: a..example.com:443", "egress.yaml:5:"),
                            ("{connect: 'a.example.com:443', later: 1}", "egress.yaml:5:36"),
                            ("{connect: 'a.example.com:443', methods: [GET]}", "egress.yaml:5:"),
                            ("connect: a.example.com:443?private=true", "egress.yaml:5:14")):
            said = self.refused(policy=self.spec(rule), code=4)
            self.assertIn(where, said)
        self.assertIn("--set", self.refused("--set", "A=b", code=2,
                                            policy=self.spec("connect: a.example.com:443")))

    def test_what_cannot_be_served(self):
        for capabilities, code, word in (
                (["fs:read:/srv/x"], 2, "no net:connect"),
                (["net:connect:a.example.com:443", "env:inject:TOKEN?to=a.example.com:443"], 4,
                 "capgate run"),
                (["net:connect:a.example.com:443?methods=GET"], 4, "methods")):
            policy = self.tree.file("no.json", json.dumps(launch.server(*capabilities)))
            done = launch.finish(self.popen(self.words(policy=policy)))
            self.assertEqual(done.returncode, code, done)
            self.assertIn(word, done.stderr.decode())
        self.assertFalse(os.path.exists(self.directory))
        done = launch.finish(self.popen(self.words(policy=self.tree.path("absent.json"))))
        self.assertEqual(done.returncode, 3, done)

    def test_without_a_log_nothing_is_served(self):
        closed = self.tree.directory("closed")
        os.chmod(closed, 0o555)
        path = os.path.join(closed, "audit.jsonl") if self.uid else "/proc/audit.jsonl"
        done = launch.finish(self.popen(self.words("--audit", path)))
        self.assertEqual(done.returncode, 6, done)
        self.assertIn("audit log", done.stderr.decode())
        self.assertFalse(os.path.exists(self.directory), "a refusal leaves nothing behind")


if __name__ == "__main__":
    unittest.main()
