"""How a server starts, talks and ends under `capgate run`, and that nothing stays behind."""

import json
import os
import signal
import socket
import unittest

from redteam import (CHILDREN, REFUSED, Redteam, as_user, canary, descendants, is_dead,
                     is_gone, launch, ORDINARY, started_by_root_and_user, wait_until)

REQUEST = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}\n'


@started_by_root_and_user
class Ends(Redteam):
    """The server's end is its own, and its status passes through."""

    def test_the_end_of_input_reaches_the_server(self):
        for argv in (as_user([self.probe, "--direct", "echo=5"], ORDINARY),
                     self.sandboxed([self.probe, "--direct", "echo=5"])):
            done = self.finish(argv, b"text")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (5, b"text", b""))

    def test_exit_statuses_pass_through(self):
        for status in (0, 3, 125, 255):
            done = self.finish(self.sandboxed([self.probe, "--direct", f"exit={status}"]))
            self.assertEqual(done.returncode, status)

    def test_a_signal_is_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1):
            done = self.finish(self.sandboxed([self.probe, "--direct", f"die={number.value}"]))
            self.assertEqual(done.returncode, 128 + number)

    def test_g13_a_handler_of_500_ms_completes(self):
        for start in (self.start_outside, self.start_inside):
            process = start("term_handler=500")
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.terminate()
            self.assertEqual(process.communicate(timeout=launch.SECONDS)[0], b"finished\n")
            self.assertEqual(process.returncode, 7)

    def test_g13_twelve_handlers_of_50_ms_complete(self):
        servers = [self.start_inside("term_handler=50") for _ in range(12)]
        for process in servers:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.terminate()
        for process in servers:
            self.assertEqual((process.communicate(timeout=launch.SECONDS)[0], process.returncode),
                             (b"finished\n", 7))

    def test_every_usual_signal_passes_on(self):
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            process = self.start_echo()
            process.send_signal(number)
            self.assertEqual(process.wait(timeout=launch.SECONDS), 128 + number)

    def test_a_server_that_ignores_everything_is_killed_after_the_grace(self):
        process = self.start_inside("stubborn", options=["--grace", "1"])
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.stdin.close()
        self.assertEqual(process.wait(timeout=launch.SECONDS), 128 + signal.SIGKILL)

    def test_without_a_grace_the_end_of_input_kills_nobody(self):
        process = self.start_inside("term_handler=0")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.stdin.close()
        self.assertFalse(wait_until(lambda: process.poll() is not None, 1.5))
        process.terminate()
        self.assertEqual(process.wait(timeout=launch.SECONDS), 7)

    def test_a_killed_supervisor_takes_a_stubborn_server_along(self):
        process = self.start_inside("stubborn")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        family = descendants(process.pid)
        self.assertGreaterEqual(len(family), 3)
        process.kill()
        self.assertTrue(wait_until(lambda: all(is_dead(pid) for pid in family[1:])), family)

    def test_a_killed_process_group_takes_everything_along(self):
        process = self.start_inside("stubborn", start_new_session=True)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        family = descendants(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: all(is_dead(pid) for pid in family[1:])), family)


class Streams(Redteam):
    """stdin and stdout are the server's alone."""

    def test_bytes_pass_unchanged(self):
        data = os.urandom(4 * 1024 ** 2)
        done = self.finish(self.sandboxed([self.probe, "--direct", "echo=0"]), data)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertTrue(done.stdout == data, "what came back differs")

    def test_no_further_descriptor_arrives(self):
        secret = self.tree.file("secret", canary())
        with open(secret, "rb") as file:
            own = file.fileno()
            (outside,) = self.outside("list=/proc/self/fd", pass_fds=[own])
            self.assertIn(str(own), outside.detail.split(","))
            (found,) = self.inside("list=/proc/self/fd", pass_fds=[own])
        # 3 is the one that reads the list.
        self.assertEqual(set(found.detail.strip(",").split(",")), {"0", "1", "2", "3"})

    def test_stderr_cannot_be_read_back(self):
        secret = canary()
        path = self.tree.file("log", secret + "\n")
        for start, leaks in ((self.start_outside, True), (self.start_inside, False)):
            with open(path, "ab") as log:
                process = start("read=/proc/self/fd/2", stderr=log)
                stdout = process.communicate(timeout=launch.SECONDS)[0].decode()
            self.assertEqual(secret in stdout, leaks, stdout)

    def test_standard_streams_of_other_kinds_are_refused(self):
        directory = os.open(self.work, os.O_RDONLY)
        self.addCleanup(os.close, directory)
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(datagram.close)
        for stream in (directory, datagram.fileno()):
            process = self.start_inside("ids", stdin=stream)
            self.assertEqual((process.communicate(timeout=launch.SECONDS)[0], process.returncode),
                             (b"", REFUSED))

    def test_an_unnamed_stream_socket_passes(self):
        ours, theirs = socket.socketpair()
        with ours:
            process = self.start_inside("echo=0", stdin=theirs, stdout=theirs)
            theirs.close()
            ours.sendall(b"hello")
            ours.shutdown(socket.SHUT_WR)
            self.assertEqual(ours.makefile("rb").read(), b"hello")
            self.assertEqual(process.wait(timeout=launch.SECONDS), 0)

    def test_signal_mask_and_dispositions_are_reset(self):
        def spoil():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGCHLD})
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            os.umask(0o077)

        fields = ["status=SigBlk", "status=SigIgn"]
        for result in self.outside(*fields, preexec_fn=spoil):
            self.assertNotEqual(int(result.detail, 16), 0)
        for result in self.inside(*fields, preexec_fn=spoil):
            self.assertEqual(int(result.detail, 16), 0, result)
        self.assertEqual(self.details("status=Umask", preexec_fn=spoil), ["0022"])


class Refusals(Redteam):
    """A client that hides stderr still learns the reason; nobody else hears anything."""

    def missing(self):
        return [f"fs:read:{self.tree.path('missing')}"]

    def test_nothing_is_on_stdout_where_stdin_is_no_pipe(self):
        for stream in (os.open(os.devnull, os.O_RDONLY), os.open(self.probe, os.O_RDONLY)):
            process = self.start_inside("ids", allow=self.missing(), stdin=stream)
            os.close(stream)
            stdout, stderr = process.communicate(timeout=launch.SECONDS)
            self.assertEqual((process.returncode, stdout), (REFUSED, b""))
            self.assertIn(self.tree.path("missing"), stderr.decode())

    def assert_answers(self, argv, status, said):
        done = self.finish(argv, b'{"jsonrpc":"2.0","method":"notifications/x"}\n' + REQUEST
                           + REQUEST.replace(b"7", b'"eight"'))
        self.assertEqual(done.returncode, status, done.stderr.decode())
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [7, "eight"])
        for answer in answers:
            self.assertEqual(answer["jsonrpc"], "2.0")
            self.assertFalse(-32768 <= answer["error"]["code"] <= -32000, answer)
            self.assertIn(said, json.dumps(answer["error"]))

    def test_each_request_is_answered_with_the_reason(self):
        path = self.tree.path("missing")
        self.assert_answers(self.sandboxed([self.probe, "ids"], self.missing()), REFUSED, path)

    def test_a_program_that_is_not_there_or_cannot_run(self):
        self.assert_answers(self.sandboxed([self.tree.path("nothing")]), 127, "nothing")
        plain = self.tree.file("plain", "text")
        self.assert_answers(self.sandboxed([plain]), 126, "plain")

    def test_a_line_that_is_no_request_is_not_answered(self):
        for line in (b"not json\n", b"[]\n", b'{"id":1}\n', b"\xff\xfe\n", b'{"jsonrpc":"2.0",'
                     b'"id":1,"result":{}}\n'):
            done = self.finish(self.sandboxed([self.probe, "ids"], self.missing()), line)
            self.assertEqual((done.returncode, done.stdout), (REFUSED, b""))

    def test_a_client_that_keeps_its_pipe_open_does_not_hold_it(self):
        process = self.start_inside("ids", allow=self.missing())
        self.assertEqual(process.wait(timeout=launch.SECONDS), REFUSED)


@started_by_root_and_user
class Leftovers(Redteam):
    """Mounts, control groups, temporary files and processes, on every way out."""

    PLACES = ["/tmp", "/var/tmp", "/run", "/dev/shm"]
    # Puts an empty directory on each place, with nothing in it but the tree of the test and the
    # programs, if they lie there: `mount --move` at last, since it hides what was there before.
    HOLD = """
        tree=$1 programs=$2 linked=$3; shift 3; set -e
        mkdir "$tree/held"
        for place in "$@"; do
          mount -n -t tmpfs -o mode=1777 held "$tree/held"
          for path in "$tree" "$programs" "$linked"; do case $path in "$place"/*)
            mkdir -p "$tree/held${path#$place}"
            mount -n --bind "$path" "$tree/held${path#$place}";;
          esac; done
          mount -n --move "$tree/held" "$place"
        done
        echo ready
        read line
    """

    def setUp(self):
        """A mount namespace that others on the machine, who may be at work, do not see."""
        super().setUp()
        self.started = []
        programs = [os.path.dirname(path) for path in (launch.CAPGATE,
                                                       os.path.realpath(launch.CAPGATE))]
        self.holder = self.start(["/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", self.HOLD,
                                  "sh", self.tree.root, *programs, *self.PLACES])
        said = self.holder.stdout.readline()
        self.assertEqual(said, b"ready\n", said or self.holder.stderr.read())

    def sandboxed(self, command, allow=(), options=()):
        return ["/usr/bin/nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--",
                *super().sandboxed(command, allow, options)]

    def start(self, argv, **more):
        process = super().start(argv, **more)
        self.started.append(process.pid)
        return process

    def traces(self):
        """What a launcher could leave behind on the host."""
        own = f"/proc/{self.holder.pid}"
        with open(f"{own}/mountinfo", encoding="utf-8") as file:
            found = {("mount", line.split()[4]) for line in file}
        for place in self.PLACES:
            found |= {("file", at, name) for at, directories, files in os.walk(f"{own}/root{place}")
                      for name in directories + files if self.tree.root not in at}
        for at, names, _ in os.walk("/sys/fs/cgroup"):
            found |= {("group", at, name) for name in names
                      if name in [f"capgate-{pid}" for pid in self.started]}
        return found

    def assert_nothing_stays(self, run):
        before = self.traces()
        family = run()
        stays = wait_until(lambda: not self.traces() - before)
        self.assertTrue(stays, self.traces() - before)
        self.assertTrue(wait_until(lambda: all(is_dead(pid) for pid in family)), family)

    def running(self, finish, *attempts, **more):
        def run():
            process = self.start_inside(*attempts, **more)
            self.assertEqual(process.stdout.readline(), b"ready\n")
            family = descendants(process.pid)
            finish(process)
            process.wait(timeout=launch.SECONDS)
            return family
        return run

    def test_after_the_servers_own_end(self):
        allow = [CHILDREN, f"fs:write:{self.work}", "limit:memory:256M"]
        self.assert_nothing_stays(self.running(lambda process: process.stdin.close(),
                                               "term_handler=0", options=["--grace", "1"],
                                               allow=allow))
        self.assertEqual(os.listdir(self.work), [])

    def test_after_a_signal(self):
        self.assert_nothing_stays(self.running(lambda process: process.terminate(),
                                               "term_handler=50"))

    def test_after_the_supervisor_was_killed(self):
        """Nobody is left to remove its control group: the next start does."""
        def run():
            family = self.running(lambda process: process.kill(), "stubborn")()
            self.assertTrue(wait_until(lambda: all(is_dead(pid) for pid in family)), family)
            self.assert_open(self.inside("ids"))
            return family
        self.assert_nothing_stays(run)

    def test_after_refusals(self):
        def run():
            missing = f"fs:read:{self.tree.path('missing')}"
            for command, allow, code in (
                    ([self.probe], [missing], 125), ([self.tree.path("nothing")], [], 127),
                    ([self.tree.file("plain", "text")], [], 126),
                    ([self.probe, "ids"], ["fs:read:relative"], 125)):
                done = self.finish(self.sandboxed(command, allow))
                self.assertEqual(done.returncode, code, done.stderr.decode())
                self.assertIn(b"capgate: " if allow[:1] != ["fs:read:relative"] else b"error[",
                              done.stderr)
            return []
        self.assert_nothing_stays(run)

    def test_the_launcher_reaps_what_it_started(self):
        process = self.start_echo()
        family = descendants(process.pid)
        launch.finish(process)
        self.assertTrue(all(is_gone(pid) for pid in family), family)


if __name__ == "__main__":
    unittest.main()
