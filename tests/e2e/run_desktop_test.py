"""capgate run: a session bus and a display of the host, in use, or missing."""

import ctypes
import os
import re
import select
import subprocess
import unittest
import unittest.mock

import launch
from cases import started_by_root_and_user, stop
from ipc_cases import IpcCase
from run_cases import adopt_orphans, allow

X11_SOCKETS = "/tmp/.X11-unix"


def setUpModule():
    adopt_orphans()


# Whoever may connect at all; without it a bus talks to its own user alone.
BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={path}</listen>
<policy context="default"><allow user="*"/><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
"""
BUS_OF_ROOT = ("capgate: a message bus does not know the user of a sandbox that root starts\n"
               "help: start capgate as the user whose bus it is\n")
CLONE_NEWNS = 0x20000
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
            return self.assert_root_is_refused(GDBUS)
        seen = self.output(allow("ipc:connect:dbus:session"), GDBUS, env=self.env)
        self.assertIn(self.bus, seen)

    def test_a_call_by_the_reference_library_is_answered(self):
        """libdbus names its user id to the bus, which compares it with the one it sees."""
        self.assertIn(self.bus, self.outside(DBUS_SEND, DBUS_SESSION_BUS_ADDRESS=self.address))
        if self.uid == 0:
            return self.assert_root_is_refused(DBUS_SEND)
        seen = self.output(allow("ipc:connect:dbus:session"), DBUS_SEND, env=self.env)
        self.assertIn(self.bus, seen)

    def assert_root_is_refused(self, command):
        """A bus hangs up on a user that has no account, as the one has that we take for root:
        that must be said before the server starts, not left to its puzzled library."""
        self.assertEqual(self.refusal(allow("ipc:connect:dbus:session"), command, env=self.env),
                         BUS_OF_ROOT)

    def test_without_the_capability_there_is_no_bus(self):
        env = {**self.env, "DBUS_SESSION_BUS_ADDRESS": self.address}
        for words in ([], allow("ipc:connect:self"), allow("env:read:DBUS_SESSION_BUS_ADDRESS")):
            done = self.run_server(words, GDBUS, env=env)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotIn(self.bus, done.stdout.decode())

    def test_nothing_else_of_the_runtime_directory_is_seen(self):
        if self.uid == 0:
            return self.assert_root_is_refused(GDBUS)
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
            if self.uid == 0:
                self.assertEqual(said, BUS_OF_ROOT)  # whether it is there or not
            else:
                self.assertIn(f"{self.work}/bus" if runtime else "XDG_RUNTIME_DIR", said)

    def test_a_missing_display_is_a_refusal(self):
        for display in (":4242", None, "elsewhere"):
            with self.subTest(display=display):
                said = self.refusal(allow("ipc:connect:x11"),
                                    env=self.environment(DISPLAY=display))
                self.assertIn("help: ", said)
                self.assertIn(f"{X11_SOCKETS}/X4242" if display == ":4242" else "DISPLAY", said)


def entering(pid, become):
    """For launch.become: first enters the mount namespace of this process."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(uid):
        with open(f"/proc/{pid}/ns/mnt", "rb") as file:
            if libc.setns(file.fileno(), CLONE_NEWNS) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        become(uid)

    return enter


@started_by_root_and_user
class SystemBus(IpcCase):
    """In a mount namespace with a /run of its own, so that the host may have a bus or none."""

    SOCKET = "/run/dbus/system_bus_socket"
    HOLD = ('mount -n -t tmpfs held /run && mkdir /run/dbus && mount -n --bind "$1" /etc/passwd && '
            'echo ready && read line')

    def setUp(self):
        super().setUp()
        passwd = self.tree.file("passwd", f"root:x:0:0::/:/bin/sh\nu:x:{self.uid}:0::/:/bin/sh\n")
        holder = self.popen(["unshare", "--mount", "sh", "-c", self.HOLD, "sh", passwd])
        self.assertEqual(holder.stdout.readline(), b"ready\n")
        entered = unittest.mock.patch.object(launch, "become", entering(holder.pid, launch.become))
        entered.start()
        self.addCleanup(entered.stop)

    def popen(self, words, **more):
        pipe = subprocess.PIPE
        process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", **more)
        self.addCleanup(stop, process)
        return process

    def start_bus(self):
        config = self.tree.file("bus.conf", BUS.format(path=self.SOCKET))
        # Only root can make a socket in /run: the control below is what the caller can do with it.
        daemon = self.popen(["dbus-daemon", "--nofork", "--nopidfile", "--print-address=1",
                             f"--config-file={config}"], preexec_fn=lambda: launch.become(0))
        self.assertIn(self.SOCKET, daemon.stdout.readline().decode())

    def test_a_missing_one_is_a_refusal(self):
        said = self.refusal(allow("ipc:connect:dbus:system"))
        if self.uid == 0:
            self.assertEqual(said, BUS_OF_ROOT)
        else:
            self.assertIn(self.SOCKET, said)
            self.assertIn("help: ", said)

    def test_a_call_is_answered(self):
        self.start_bus()
        call = [word.replace("--session", "--system") for word in DBUS_SEND]
        (bus,) = re.findall('string "([0-9a-f]{32})"', self.outside(call))
        if self.uid == 0:
            self.assertEqual(self.refusal(allow("ipc:connect:dbus:system"), call), BUS_OF_ROOT)
            return
        self.assertIn(bus, self.output(allow("ipc:connect:dbus:system"), call))
        done = self.run_server([], call)
        self.assertEqual((done.returncode, done.stdout), (1, b""), "without the capability")


def make_x11_directory():
    """Where displays listen; a server that is not root's cannot make it."""
    try:
        os.mkdir(X11_SOCKETS)
    except FileExistsError:
        return
    os.chmod(X11_SOCKETS, 0o1777)

    def remove():
        if not os.listdir(X11_SOCKETS):  # else somebody else uses it now
            os.rmdir(X11_SOCKETS)

    unittest.addModuleCleanup(remove)


@started_by_root_and_user
class Display(IpcCase):
    RESOURCES = ("x11",)  # the directory of its sockets has one name for all
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


if __name__ == "__main__":
    unittest.main()
