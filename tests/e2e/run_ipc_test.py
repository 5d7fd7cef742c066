"""capgate run: sockets of the host, a session bus, a display, netlink and time zones, in use."""

import contextlib
import os
import select
import socket
import subprocess
import unittest

import launch
from cases import quoted, service, started_by_root_and_user, stop
from run_cases import REFUSED, RunCase, adopt_orphans, allow, python

GREETING = "hello from the host"
X11_SOCKETS = "/tmp/.X11-unix"
CONNECT = """
import errno, socket, sys
try:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(sys.argv[1])
        print(client.recv(100).decode())
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def setUpModule():
    adopt_orphans()


class IpcCase(RunCase):
    def outside(self, command, **env):
        """The control: the same command without a sandbox, by the same user."""
        done = subprocess.run(command, env=self.environment(**env), capture_output=True, text=True,
                              preexec_fn=lambda: launch.become(self.uid), check=False, cwd="/",
                              timeout=launch.SECONDS)
        return done.stdout + done.stderr

    def listen(self, name, mode=0o600, owner=None):
        """A socket of the host that greets everyone who connects; its path."""
        path = os.path.join(self.work, name)
        stack = contextlib.ExitStack()
        stack.enter_context(service(socket.AF_UNIX, path))
        self.addCleanup(stack.close)
        who = self.uid if owner is None else owner
        os.chown(path, who, who)
        os.chmod(path, mode)
        return path

    def greeting(self, words, path):
        return self.output(words, python(CONNECT, path)).strip()


def unix(path):
    return f"ipc:connect:{quoted('unix:' + path)}"


@started_by_root_and_user
class UnixSocket(IpcCase):
    def test_the_declared_one_is_reached_and_its_sibling_is_not(self):
        path, sibling = self.listen("declared"), self.listen("sibling")
        for each in (path, sibling):
            self.assertEqual(self.outside(python(CONNECT, each)).strip(), GREETING)
        self.assertEqual(self.greeting(allow(unix(path)), path), GREETING)
        self.assertEqual(self.greeting(allow(unix(path)), sibling), "ENOENT")
        self.assertEqual(self.attempt(allow(unix(path)), f"os.listdir({self.work!r})"),
                         ["['declared']"])

    def test_without_the_capability_it_is_not_there(self):
        path = self.listen("declared")
        done = self.run_server([], python(CONNECT, path))
        self.assertEqual(done.stdout.decode().strip(), "EPERM", done.stderr.decode())
        self.assertEqual(self.greeting(allow("ipc:connect:self"), path), "ENOENT")

    def test_one_in_a_granted_directory_is_told(self):
        """Before ABI 9 Landlock has no right for it: then the report must not be silent."""
        path = self.listen("declared")
        words = allow(f"fs:read:{self.work}/**", "ipc:connect:self")
        if self.greeting(words, path) == GREETING:
            told = self.report(words, ["/usr/bin/true"])["notHeld"]
            self.assertTrue([line for line in told if "socket of the host" in line], told)

    def test_one_declared_in_a_granted_directory_is_reached(self):
        path = self.listen("declared")
        for action in ("read", "write"):
            words = allow(f"fs:{action}:{self.work}/**", unix(path))
            self.assertEqual(self.greeting(words, path), GREETING)

    def test_one_that_is_missing_is_a_refusal(self):
        missing = os.path.join(self.work, "missing")
        said = self.refusal(allow(unix(missing)))
        self.assertIn(f"cannot open {missing}: No such file", said)
        self.assertIn("help: ", said)
        self.assertFalse(os.path.lexists(missing))

    def test_a_file_is_no_socket(self):
        path = self.file("plain")
        self.assertIn(f"{path} is no socket", self.refusal(allow(unix(path))))

    def test_one_that_only_its_owner_may_use_stays_so(self):
        """A user gets no further than without us; root's grant is the owner's own right."""
        path = self.listen("private", 0o600, owner=54321)
        if self.uid == 0:
            self.assertEqual(self.greeting(allow(unix(path)), path), GREETING)
        else:
            self.assertEqual(self.outside(python(CONNECT, path)).strip(), "EACCES")
            self.assertEqual(self.greeting(allow(unix(path)), path), "EACCES")

    def test_it_can_be_neither_removed_nor_replaced(self):
        path = self.listen("declared")
        seen = self.attempt(allow(unix(path)), f"os.unlink({path!r})", f"os.chmod({path!r}, 0)",
                            f"os.rename({path!r}, {path + '2'!r})")
        for result in seen:
            self.assertIn(result, ("EROFS", "EACCES", "EPERM", "EBUSY"))
        self.assertEqual(self.outside(python(CONNECT, path)).strip(), GREETING)


@started_by_root_and_user
class OwnSockets(IpcCase):
    server = python("""
import socket
path = "/tmp/own"
with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
    listener.bind(path)
    listener.listen()
    client.connect(path)
    with listener.accept()[0] as other:
        other.sendall(b"to myself")
    print(client.recv(100).decode())
""")

    def test_a_server_talks_to_itself(self):
        before = sorted(os.listdir("/tmp"))
        self.assertEqual(self.output(allow("ipc:connect:self"), self.server), "to myself\n")
        self.assertNotIn("own", set(os.listdir("/tmp")) - set(before))

    def test_without_the_capability_there_are_no_unix_sockets(self):
        done = self.run_server([], self.server)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("PermissionError: [Errno 1]", done.stderr.decode())

    def test_names_without_a_file_do_not_lead_out(self):
        """Abstract sockets belong to the network namespace."""
        name = f"\0capgate-e2e-{os.getpid()}"
        code = ("import socket, sys\n"
                "with socket.socket(socket.AF_UNIX) as client:\n"
                "    try:\n"
                "        client.connect('\\0' + sys.argv[1])\n"
                "        print(client.recv(100).decode())\n"
                "    except ConnectionRefusedError:\n"
                "        print('nobody')\n")
        with service(socket.AF_UNIX, name):
            self.assertEqual(self.outside(python(code, name[1:])).strip(), GREETING)
            seen = self.output(allow("ipc:connect:self"), python(code, name[1:]))
        self.assertEqual(seen.strip(), "nobody")


# Whoever may connect at all; without it a bus talks to its own user alone.
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow user="*"/><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
GDBUS = ["/usr/bin/gdbus", "call", "--session", "--dest", "org.freedesktop.DBus", "--object-path",
         "/", "--method", "org.freedesktop.DBus.GetId"]
DBUS_SEND = ["/usr/bin/dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
             "org.freedesktop.DBus.GetId"]


@started_by_root_and_user
class SessionBus(IpcCase):
    def setUp(self):
        super().setUp()
        self.runtime = self.own(self.tree.directory("runtime"), 0o700)
        path = os.path.join(self.runtime, "bus")
        # The bus knows users by their names only: it gets a passwd file with one for the caller.
        passwd = self.tree.file("passwd", f"root:x:0:0::/:/bin/sh\nu:x:{self.uid}:0::/:/bin/sh\n")
        config = self.tree.file("bus.conf", BUS.format(path=path))
        start = ('mount --bind "$1" /etc/passwd && exec setpriv --reuid "$2" --regid "$2" '
                 '--clear-groups dbus-daemon --nofork --nopidfile --print-address=1 '
                 '--config-file="$3"')
        daemon = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", start, "sh", passwd, str(self.uid), config],
            env=self.environment(XDG_RUNTIME_DIR=self.runtime), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(stop, daemon)
        ready, _, _ = select.select([daemon.stdout], [], [], launch.SECONDS)
        self.assertTrue(ready, "dbus-daemon does not listen")
        self.address = f"unix:path={path}"
        self.assertIn(self.address, daemon.stdout.readline().decode())
        self.env = self.environment(XDG_RUNTIME_DIR=self.runtime)
        # The control, and what every answer must hold.
        answer = self.outside(GDBUS, DBUS_SESSION_BUS_ADDRESS=self.address)
        self.assertRegex(answer, "^\\('[0-9a-f]{32}',\\)$")
        self.bus = answer[2:34]

    def test_a_call_is_answered(self):
        if self.uid == 0:
            return self.assert_answered_or_refused(GDBUS)
        seen = self.output(allow("ipc:connect:dbus:session"), GDBUS, env=self.env)
        self.assertIn(self.bus, seen)

    def test_a_call_by_the_reference_library_is_answered(self):
        """libdbus names its user id to the bus, which compares it with the one it sees."""
        self.assertIn(self.bus, self.outside(DBUS_SEND, DBUS_SESSION_BUS_ADDRESS=self.address))
        if self.uid == 0:
            return self.assert_answered_or_refused(DBUS_SEND)
        seen = self.output(allow("ipc:connect:dbus:session"), DBUS_SEND, env=self.env)
        self.assertIn(self.bus, seen)

    def assert_answered_or_refused(self, command):
        """A bus hangs up on a user that has no account, as the one has that we take for root:
        that must be said before the server starts, not left to its puzzled library."""
        done = self.run_server(allow("ipc:connect:dbus:session"), command, env=self.env)
        said = done.stderr.decode()
        if done.returncode != 0:
            self.assertEqual(done.returncode, REFUSED, said)
            self.assertIn("help: ", said)
        else:
            self.assertIn(self.bus, done.stdout.decode())

    def test_without_the_capability_there_is_no_bus(self):
        env = {**self.env, "DBUS_SESSION_BUS_ADDRESS": self.address}
        for words in ([], allow("ipc:connect:self"), allow("env:read:DBUS_SESSION_BUS_ADDRESS")):
            done = self.run_server(words, GDBUS, env=env)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn(self.bus, done.stdout.decode())

    def test_nothing_else_of_the_runtime_directory_is_seen(self):
        self.tree.file("runtime/secret", "text")
        seen = self.attempt(allow("ipc:connect:dbus:session"), f"os.listdir({self.runtime!r})",
                            env=self.env)
        self.assertEqual(seen, ["['bus']"])


class SessionBusOfUser1000(SessionBusStartedByUser):  # made by the decorator above
    """The id that a server has inside: here every library agrees with the bus."""

    uid = 1000


@started_by_root_and_user
class NoBus(IpcCase):
    def test_a_missing_session_bus_is_a_refusal(self):
        for runtime in (self.work, None):
            said = self.refusal(allow("ipc:connect:dbus:session"),
                                env=self.environment(XDG_RUNTIME_DIR=runtime))
            self.assertIn("help: ", said)
            self.assertIn(f"{self.work}/bus" if runtime else "XDG_RUNTIME_DIR", said)

    def test_a_missing_system_bus_is_a_refusal(self):
        if os.path.exists("/run/dbus/system_bus_socket"):
            self.fail("this host runs a system bus: test it for real")
        said = self.refusal(allow("ipc:connect:dbus:system"))
        self.assertIn("/run/dbus/system_bus_socket", said)

    def test_a_missing_display_is_a_refusal(self):
        for display in (":4242", None, "elsewhere"):
            with self.subTest(display=display):
                said = self.refusal(allow("ipc:connect:x11"),
                                    env=self.environment(DISPLAY=display))
                self.assertIn("help: ", said)
                self.assertIn(f"{X11_SOCKETS}/X4242" if display == ":4242" else "DISPLAY", said)


def make_x11_directory():
    """Where displays listen; a server that is not root's cannot make it."""
    try:
        os.mkdir(X11_SOCKETS)
    except FileExistsError:
        return
    os.chmod(X11_SOCKETS, 0o1777)
    unittest.addModuleCleanup(os.rmdir, X11_SOCKETS)


@started_by_root_and_user
class Display(IpcCase):
    command = ["/usr/bin/xdpyinfo"]

    @classmethod
    def setUpClass(cls):
        make_x11_directory()
        server = subprocess.Popen(
            ["/usr/bin/Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "64x64x8"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: launch.become(cls.uid), env={}, cwd="/")

        def end():
            server.terminate()  # it removes its socket and its lock
            server.communicate()

        cls.addClassCleanup(end)
        ready, _, _ = select.select([server.stdout], [], [], launch.SECONDS)
        if not ready:
            raise TimeoutError("Xvfb names no display")
        cls.display = ":" + server.stdout.readline().decode().strip()

    def test_it_is_used(self):
        shown = f"name of display:    {self.display}"
        self.assertIn(shown, self.outside(self.command, DISPLAY=self.display))
        for display in (self.display, f"{self.display}.0"):
            seen = self.output(allow("ipc:connect:x11"), self.command,
                               env=self.environment(DISPLAY=display))
            self.assertIn("name of display:    " + display, seen)
            self.assertIn("dimensions:    64x64 pixels", seen)

    def test_without_the_capability_there_is_none(self):
        for words in ([], allow("env:read:DISPLAY"), allow("env:read:DISPLAY", "ipc:connect:self")):
            done = self.run_server(words, self.command, env=self.environment(DISPLAY=self.display))
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn("unable to open display", done.stderr.decode())

    def test_nothing_else_of_tmp_is_seen(self):
        seen = self.attempt(allow("ipc:connect:x11"), "os.listdir('/tmp')",
                            f"os.listdir({X11_SOCKETS!r})",
                            env=self.environment(DISPLAY=self.display))
        self.assertEqual(seen, ["['.X11-unix']", f"['X{self.display[1:]}']"])


@started_by_root_and_user
class Netlink(IpcCase):
    command = ["/usr/sbin/ip", "-oneline", "link"]

    def test_the_own_network_is_read(self):
        self.assertIn("lo:", self.outside(self.command))
        seen = self.output(allow("ipc:connect:netlink-route"), self.command)
        self.assertEqual([line.split(": ")[1] for line in seen.splitlines()], ["lo"])

    def test_without_the_capability_it_is_not(self):
        done = self.run_server([], self.command)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("Address family not supported", done.stderr.decode())

    def test_no_other_protocol_of_netlink(self):
        netlink = "__import__('socket').socket(16, 3, {})".format  # AF_NETLINK, SOCK_RAW
        audit, uevent, route = 9, 15, 0
        seen = self.attempt(allow("ipc:connect:netlink-route"),
                            *[f"{netlink(each)} and True" for each in (audit, uevent, route)])
        self.assertEqual(seen[2], "True")
        for result in seen[:2]:
            self.assertIn(result, ("EPERM", "EAFNOSUPPORT"))


@started_by_root_and_user
class TimeZone(IpcCase):
    """The zone files are part of /usr; which of them is the host's own says something of it."""

    def test_the_zone_of_the_host(self):
        code = ("import os, time\n"
                "print(os.path.realpath('/etc/localtime'), time.tzname, time.timezone)")
        outside = self.outside(python(code))
        self.assertIn("/usr/share/zoneinfo/", outside)
        self.assertEqual(self.output(allow("clock:tzdata"), python(code)), outside)

    def test_without_the_capability_it_is_not_known(self):
        self.assertEqual(self.attempt([], "os.lstat('/etc/localtime')"), ["ENOENT"])

    def test_every_zone_can_be_read(self):
        zone = "len(open('/usr/share/zoneinfo/Europe/Berlin', 'rb').read()) > 0"
        self.assertEqual(self.attempt(allow("clock:tzdata"), zone), ["True"])


NODE_SERVER = """
const http = require('http'), { Worker, isMainThread, parentPort } = require('worker_threads');
const code = "require('worker_threads').parentPort.postMessage(require('worker_threads').workerData * 2)";
const workers = [1, 2, 3].map((n) => new Promise((resolve, reject) => {
  const worker = new Worker(code, { eval: true, workerData: n });
  worker.on('message', resolve).on('error', reject);
}));
const server = http.createServer((request, response) => response.end('seen ' + request.url));
server.listen(0, '127.0.0.1', async () => {
  const sums = await Promise.all(workers);
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/path`);
  console.log(sums.join(), await answer.text());
  server.closeAllConnections();
  server.close();
});
"""


@started_by_root_and_user
class Node(IpcCase):
    def test_worker_threads_and_a_server_on_its_own_loopback(self):
        command = [launch.NODE, "-e", NODE_SERVER]
        self.assertEqual(self.outside(command), "2,4,6 seen /path\n")
        self.assertEqual(self.output([], command), "2,4,6 seen /path\n")

    def test_its_loopback_is_not_the_hosts(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            code = (f"require('net').connect({port}, '127.0.0.1')"
                    ".on('data', (data) => console.log(String(data)))"
                    ".on('error', (error) => console.log(error.code))")
            self.assertEqual(self.outside([launch.NODE, "-e", code]).strip(), GREETING)
            self.assertEqual(self.output([], [launch.NODE, "-e", code]).strip(), "ECONNREFUSED")


if __name__ == "__main__":
    unittest.main()
