"""capgate run: a session bus and a display of the host, in use, or missing."""

import os
import select
import subprocess
import unittest

import launch
from cases import started_by_root_and_user, stop
from ipc_cases import IpcCase
from run_cases import REFUSED, adopt_orphans, allow

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
        if self.uid == 0:
            return self.assert_answered_or_refused(GDBUS)
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
                self.assertIn("message bus", said)  # whether it is there or not
            else:
                self.assertIn(f"{self.work}/bus" if runtime else "XDG_RUNTIME_DIR", said)

    def test_a_missing_system_bus_is_a_refusal(self):
        if os.path.exists("/run/dbus/system_bus_socket"):
            self.fail("this host runs a system bus: test it for real")
        said = self.refusal(allow("ipc:connect:dbus:system"))
        self.assertIn("message bus" if self.uid == 0 else "/run/dbus/system_bus_socket", said)

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
