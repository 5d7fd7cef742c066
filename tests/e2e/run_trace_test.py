"""capgate run --trace: each refused thing once, with the capability that allows it; only that."""

import os
import resource
import socket
import unittest

import launch
from cases import quoted, service, started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python

# Does each named thing twice and prints how it went. Nothing in it depends on being traced.
SERVER = """
import errno, os, socket, sys
def connect(family, address):
    with socket.socket(family) as client:
        client.settimeout(5)
        client.connect(address)
        return client.recv(100).decode()
def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitpid(child, 0)[1]
def listen():
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client.connect(listener.getsockname())
        return "own loopback"
path = lambda name: os.path.join(sys.argv[1], name)
things = {
    "read": lambda: open(path("note")).read(),
    "list": lambda: sorted(os.listdir(path("folder"))),
    "stat": lambda: os.stat(path("note")).st_size,
    "write": lambda: open(path("new"), "w").write("x"),
    "append": lambda: open(path("note"), "a").write("x"),
    "remove": lambda: os.unlink(path("note")),
    "mkdir": lambda: os.mkdir(path("made")),
    "missing": lambda: open(path("missing")).read(),
    "exec": lambda: os.execv("/usr/bin/id", ["id"]),
    "fork": fork,
    "net4": lambda: connect(socket.AF_INET, ("203.0.113.7", 443)),
    "net6": lambda: connect(socket.AF_INET6, ("2001:db8::7", 443)),
    "unix": lambda: connect(socket.AF_UNIX, path("socket")),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close(),
    "loopback": listen,
    "tmp": lambda: open("/tmp/own", "w").write("x"),
    "home": lambda: open(os.path.expanduser("~/own"), "w").write("x"),
    "proc": lambda: len(open("/proc/self/status").read()) > 0,
    "null": lambda: open("/dev/null", "w").write("x"),
    "library": lambda: len(os.listdir("/usr/lib")) > 0,
}
for name in sys.argv[2].split() * 2:
    try:
        print(name, things[name](), flush=True)
    except OSError as error:
        print(name, errno.errorcode[error.errno], flush=True)
"""
# What the interpreter itself looks for; it has a test of its own.
ZONE = "read /etc/localtime: "
PREFIX = "denied "
MOST_LINES = 10000


def setUpModule():
    adopt_orphans()


class TraceCase(RunCase):
    def setUp(self):
        super().setUp()
        self.note = self.file("note", "text")
        self.file("folder/inner", "text")

    def server(self, things):
        return python(SERVER, self.work, things)

    def trace(self, words, command):
        """The finished run and the lines of its trace."""
        path = os.path.join(self.own(self.tree.directory("traces"), 0o700), "trace")
        done = self.run_server([*words, "--trace", path], command)
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for line in lines:
            self.assertTrue(line.startswith(PREFIX), line)
        self.assertEqual(len(set(lines)), len(lines), lines)
        return done, [line.removeprefix(PREFIX) for line in lines]

    def denied(self, words, things):
        """What is traced of these things alone, and that the server saw what it sees untraced."""
        done, lines = self.trace(words, self.server(things))
        self.file("note", "text")  # as it was before
        plain = self.run_server(words, self.server(things))
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (plain.returncode, plain.stdout, plain.stderr))
        return [line for line in lines if not line.startswith(ZONE)]

    def listen(self):
        path = os.path.join(self.work, "socket")
        opened = service(socket.AF_UNIX, path)
        opened.__enter__()
        self.addCleanup(opened.__exit__, None, None, None)
        return self.own(path, 0o600)


@started_by_root_and_user
class Lines(TraceCase):
    def test_files(self):
        note, new = self.note, os.path.join(self.work, "new")
        for things, line in (
                ("read", f"read {note}: fs:read:{note}"),
                ("stat", f"read {note}: fs:read:{note}"),
                ("list", f"read {self.work}/folder: fs:read:{self.work}/folder"),
                ("write", f"write {new}: fs:write:{new}"),
                ("append", f"write {note}: fs:write:{note}")):
            with self.subTest(things=things):
                self.assertEqual(self.denied([], things), [line])

    def test_entries_of_directories(self):
        for things, path in (("remove", self.note), ("mkdir", os.path.join(self.work, "made"))):
            with self.subTest(things=things):
                lines = self.denied([], things)
                self.assertEqual(len(lines), 1, lines)
                self.assertRegex(lines[0], f"^write {path}: fs:write:{self.work}/")

    def test_programs(self):
        self.assertEqual(self.denied([], "exec"), ["run /usr/bin/id: exec:spawn:id"])
        self.assertEqual(self.denied([], "fork"), ["start a child process: exec:spawn:PROGRAM"])

    def test_the_network(self):
        self.assertEqual(self.denied([], "net4"),
                         ["connect 203.0.113.7:443: net:connect:203.0.113.7:443"])
        self.assertEqual(self.denied([], "net6"),
                         ["connect [2001:db8::7]:443: net:connect:[2001:db8::7]:443"])

    def test_sockets_of_the_host(self):
        path = self.listen()
        self.assertEqual(self.denied([], "unix"), ["socket a Unix socket: ipc:connect:self"])
        self.assertEqual(self.denied(allow("ipc:connect:self"), "unix"),
                         [f"connect {path}: ipc:connect:unix:{path}"])

    def test_netlink(self):
        lines = self.denied([], "netlink")
        self.assertEqual([line.rpartition(": ")[2] for line in lines],
                         ["ipc:connect:netlink-route"])

    def test_a_read_only_grant_is_told_as_such_when_written(self):
        words = allow(f"fs:read:{self.work}/**")
        self.assertEqual(self.denied(words, "read append"),
                         [f"write {self.note}: fs:write:{self.note}"])

    def test_in_the_order_in_which_they_happened(self):
        lines = self.denied([], "exec read net4")
        self.assertEqual([line.split()[0] for line in lines], ["run", "read", "connect"])

    def test_a_name_that_could_forge_a_line_is_escaped(self):
        name = "a\ndenied b"
        self.file(name, "text")
        code = f"try:\n    open({os.path.join(self.work, name)!r})\nexcept OSError: pass"
        _, lines = self.trace([], python(code))
        self.assertEqual(len([line for line in lines if "denied b" in line]), 1, lines)

    def test_nothing_for_what_is_granted_or_never_was_there(self):
        path = self.listen()
        words = allow(f"fs:write:{self.work}/**", "exec:spawn:id", "ipc:connect:netlink-route",
                      f"ipc:connect:{quoted('unix:' + path)}")
        things = ("read list stat write append missing fork unix netlink loopback tmp home proc "
                  "null library")
        self.assertEqual(self.denied(words, things), [])
        done = self.run_server(words, self.server(things))
        self.assertIn("unix hello from the host", done.stdout.decode())
        self.assertIn("fork 0", done.stdout.decode())
        self.assertEqual([line for line in done.stdout.decode().splitlines() if " E" in line],
                         ["missing ENOENT"] * 2)

    def test_nothing_of_the_sandbox_itself(self):
        things = "missing loopback tmp home proc null library"
        self.assertEqual(self.denied([], things), [])

    def test_a_server_that_is_refused_nothing_has_an_empty_trace(self):
        _, lines = self.trace([], ["/usr/bin/true"])
        self.assertEqual(lines, [])

    def test_an_interpreter_asks_for_the_time_zone_only(self):
        """/etc/localtime is a link, which no fs:read can name: it has a capability of its own."""
        done, lines = self.trace([], python("import time\nprint(time.gmtime(0).tm_year)"))
        self.assertEqual(done.stdout, b"1970\n")
        self.assertEqual([line.rpartition(": ")[2] for line in lines], ["clock:tzdata"])


@started_by_root_and_user
class Suggestions(TraceCase):
    def followed(self, thing):
        """What the server prints of a thing when the caller does as the trace says."""
        words, rounds = [], 0
        done, lines = self.trace(words, self.server(thing))
        while (lines := [line for line in lines if not line.startswith(ZONE)]) and rounds < 3:
            rounds += 1
            wanted = {line.rpartition(": ")[2] for line in lines} - {"exec:spawn:PROGRAM"}
            words += allow(*sorted(wanted))
            done, lines = self.trace(words, self.server(thing))
            self.assertEqual(done.returncode, 0, f"{words}: {done.stderr.decode()}")
        self.assertGreater(rounds, 0, "nothing was refused")
        self.assertEqual(lines, [], "still refused")
        return done.stdout.decode().splitlines()[0]

    def test_they_allow_what_was_refused(self):
        """Copied from the trace to the command line, until nothing is refused any more."""
        self.listen()
        for thing, result in (("read", "text"), ("list", "['inner']"), ("stat", "4"),
                              ("unix", "hello from the host"), ("netlink", "None"),
                              ("append", "1"), ("write", "1"), ("mkdir", "None"),
                              ("remove", "None")):
            with self.subTest(thing=thing):
                self.assertEqual(self.followed(thing), f"{thing} {result}")
        self.assertTrue(os.path.isdir(os.path.join(self.work, "made")))
        self.assertFalse(os.path.lexists(self.note))

    def test_they_allow_a_program(self):
        self.assertIn("uid=1000", self.followed("exec"))


@started_by_root_and_user
class Output(TraceCase):
    def test_a_dash_is_stderr(self):
        code = ("import sys\n"
                f"try:\n    open({self.note!r})\nexcept OSError: print('refused')\n"
                "print('own words', file=sys.stderr)")
        done = self.run_server(["--trace", "-"], python(code))
        said = done.stderr.decode().splitlines()
        self.assertEqual((done.returncode, done.stdout), (0, b"refused\n"))
        self.assertEqual(said.count(f"{PREFIX}read {self.note}: fs:read:{self.note}"), 1, said)
        self.assertIn("own words", said)

    def test_the_file_is_the_callers_alone_and_starts_empty(self):
        path = os.path.join(self.own(self.tree.directory("traces"), 0o700), "trace")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
        self.own(path, 0o600)
        self.trace([], ["/usr/bin/true"])
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "")
        os.unlink(path)
        self.trace([], ["/usr/bin/true"])
        info = os.stat(path)
        self.assertEqual((info.st_uid, info.st_mode & 0o777), (self.uid, 0o600))

    def test_one_that_cannot_be_written_is_a_refusal(self):
        said = self.refusal(["--trace", os.path.join(self.work, "none/trace")])
        self.assertIn("cannot write", said)
        self.assertIn("none/trace", said)

    def test_the_exit_status_is_the_servers(self):
        for code, status in (("raise SystemExit(7)", 7),
                             ("import os\nos.kill(os.getpid(), 15)", 128 + 15)):
            done, _ = self.trace([], python(code))
            self.assertEqual(done.returncode, status)


@started_by_root_and_user
class Work(TraceCase):
    """Each traced call costs about the same, however many there were before. What counts is
    processor time: a busy machine does not change it."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.own(self.tree.directory("traces"), 0o700), "trace")

    def cost(self, code, count):
        """The processor time of a traced server that makes so many calls, and the trace."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.output(["--trace", self.path], python(code, self.note, str(count)))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(self.path, encoding="utf-8") as file:
            return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                    file.read())

    def test_thousands_of_calls(self):
        code = ("import os, sys\n"
                "for number in range(int(sys.argv[2])):\n"
                "    try: os.stat(sys.argv[1])\n"
                "    except OSError: pass\n")
        few, _ = self.cost(code, 1000)
        many, trace = self.cost(code, 8000)
        self.assertLess(many / few, 36, "eight times as many; 64 is quadratic")
        self.assertEqual(trace.count(self.note + ":"), 1)

    def test_thousands_of_different_refusals_are_bounded(self):
        """A server cannot fill the caller's disk with them."""
        folder = self.tree.directory("names")
        code = ("import os, sys\n"
                "for number in range(int(sys.argv[2])):\n"
                f"    try: open('{folder}/' + str(number), 'w')\n"
                "    except OSError: pass\n")
        few, trace = self.cost(code, 1500)
        # And one for the time zone, which the interpreter asks for.
        self.assertEqual(len(trace.splitlines()), 1501)
        many, trace = self.cost(code, MOST_LINES + 500)
        self.assertLess(many / few, 28, "seven times as many; 49 is quadratic")
        self.assertEqual(len(trace.splitlines()), MOST_LINES)

    def test_many_threads_at_once(self):
        code = ("import os, sys, threading\n"
                "seen = []\n"
                "def work():\n"
                "    for _ in range(200):\n"
                "        try: os.stat(sys.argv[1])\n"
                "        except FileNotFoundError: seen.append(1)\n"
                "threads = [threading.Thread(target=work) for _ in range(16)]\n"
                "for each in threads: each.start()\n"
                "for each in threads: each.join()\n"
                "print(len(seen))")
        self.assertEqual(self.output(["--trace", "-"], python(code, self.note)), "3200\n")

    def test_a_node_server(self):
        code = ("const { Worker } = require('worker_threads');"
                "new Worker(\"require('worker_threads').parentPort.postMessage('worked')\","
                " { eval: true }).on('message', console.log)")
        plain = self.output([], [launch.NODE, "-e", code])
        self.assertEqual(plain, "worked\n")
        self.assertEqual(self.output(["--trace", "-"], [launch.NODE, "-e", code]), plain)


if __name__ == "__main__":
    unittest.main()
