"""capgate-init forward: what its command cannot do, and what it cannot learn from the forwarder."""

import errno
import os
import select
import socket
import subprocess
import unittest

import inject
from redteam import REFUSED, Redteam, as_user, complete, launch, wait_until

INIT = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-init")
UNIX, INET = int(socket.AF_UNIX), int(socket.AF_INET)
STREAM, DATAGRAM, RAW, SEQUENCED = 1, 2, 3, 5
NON_BLOCKING = int(socket.SOCK_NONBLOCK)
# Families that an ordinary user can have outside.
OTHER_FAMILIES = [("inet", INET, STREAM, 0), ("inet, datagrams", INET, DATAGRAM, 0),
                  ("inet6", int(socket.AF_INET6), STREAM, 0),
                  ("netlink", int(socket.AF_NETLINK), RAW, 0)]
# Numbers of x86-64.
CLOSE, MMAP, SOCKET, KILL, SLEEPS = 3, 9, 41, 62, 230
MAX = (1 << 64) - 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Forwarder(Redteam):
    """As an ordinary user only: the forwarder makes no sandbox, and the probe refuses to be root."""

    def setUp(self):
        super().setUp()
        self.broker = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.broker.close)
        self.path = self.tree.path("egress.sock")
        self.broker.bind(self.path)
        os.chmod(self.path, 0o777)
        self.broker.listen()
        self.port = free_port()

    def words(self, command, *options):
        return as_user([INIT, "forward", "--socket", self.path, "--port", str(self.port), *options,
                        "--", *command], self.uid)

    def forwarded(self, attempts, *options):
        """The results of these attempts of a command behind the forwarder."""
        done = self.finish(self.words([self.probe, "--direct", *attempts], *options))
        return complete(done, attempts)

    def assert_refused(self, attempt, reason, *options):
        self.assert_open(self.outside(attempt))
        self.assert_shut(self.forwarded([attempt], *options), reason)
        # The options are what refuses it.
        self.assert_open(self.forwarded([attempt], "--unix-sockets"))

    # ---- Unix sockets -----------------------------------------------------------------------

    def test_no_unix_socket(self):
        for kind in (STREAM, DATAGRAM, SEQUENCED, DATAGRAM | NON_BLOCKING):
            self.assert_refused(f"socket={UNIX},{kind},0", "EPERM")

    def test_no_pair_that_can_be_turned_elsewhere(self):
        """The kernel makes datagram sockets of raw ones: both can be connected to any name."""
        for kind in (DATAGRAM, RAW, DATAGRAM | NON_BLOCKING, RAW | NON_BLOCKING):
            self.assert_refused(f"socketpair={UNIX},{kind}", "EPERM")

    def test_other_sockets_stay(self):
        self.assert_open(self.forwarded([f"socket={INET},{STREAM},0", f"socketpair={UNIX},{STREAM}",
                                         f"socketpair={UNIX},{SEQUENCED}", "thread", "fork"]))

    def test_no_io_uring(self):
        """It would make any socket, and no filter sees it."""
        (outside,) = self.outside("call=io_uring_setup")
        if outside.why == "ENOSYS":
            self.not_testable("this kernel has no io_uring")
        self.assert_shut(self.forwarded(["call=io_uring_setup"]), "ENOSYS")
        (allowed,) = self.forwarded(["call=io_uring_setup"], "--unix-sockets")
        self.assertNotEqual(allowed.why, "ENOSYS")

    # ---- other tables of system calls -------------------------------------------------------

    def test_no_other_table_of_calls(self):
        """Their numbers mean other calls, which the filter would take for its own."""
        for attempt in ("int80", "x32"):
            with self.subTest(attempt=attempt):
                self.assertNotEqual(self.outside(attempt)[0].why, "SIGSYS")
                self.assert_shut(self.forwarded([attempt]), "SIGSYS")

    # ---- processes --------------------------------------------------------------------------

    def test_no_processes_where_none_are_allowed(self):
        for attempt in ("fork", "vfork", "clone_process"):
            self.assert_refused(attempt, "EPERM", "--no-processes")
        (outside,) = self.outside("call=clone3")
        self.assertNotEqual(outside.why, "ENOSYS")
        self.assert_shut(self.forwarded(["call=clone3"], "--no-processes"), "ENOSYS")
        self.assert_open(self.forwarded(["thread"], "--no-processes"))

    def test_no_new_privileges(self):
        self.assertEqual(self.outside("status=NoNewPrivs")[0].detail, "0")
        self.assertEqual(self.forwarded(["status=NoNewPrivs"])[0].detail, "1")

    # ---- the forwarder itself ---------------------------------------------------------------

    def start_forwarder(self, *script):
        """A forwarder whose command said that it runs; the pid of the forwarder."""
        process = self.start(self.words(["/bin/sh", "-c", *script]))
        self.assertEqual(process.stdout.readline(), b"runs\n")
        return process

    def test_the_forwarder_keeps_none_of_the_commands_descriptors(self):
        """Whoever waits for the end of the command's output waits for the command alone."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        process = subprocess.Popen(
            self.words(["/bin/sh", "-c", f"exec {writer}>&-; echo runs; exec 1>&- 2>&-; read line"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            pass_fds=[writer], env=self.environment())
        self.addCleanup(process.communicate)
        os.close(writer)
        self.assertEqual(process.stdout.readline(), b"runs\n")
        os.set_blocking(reader, False)
        self.assertEqual(self.end_of(process.stdout), b"")
        self.assertEqual(self.end_of(process.stderr), b"")
        self.assertEqual(os.read(reader, 1), b"")
        self.assertIsNone(process.poll(), "the command still runs")

    def end_of(self, stream):
        """What comes to the end of a stream; fails if it does not end."""
        with subprocess.Popen(["timeout", "10", "cat"], stdin=stream, stdout=subprocess.PIPE) as cat:
            text = cat.stdout.read()
            self.assertEqual(cat.wait(), 0, "the stream has no end")
        return text

    def test_the_command_cannot_look_into_the_forwarder(self):
        """A forwarder of the same user: its memory belongs to nobody but root."""
        process = self.start_forwarder("echo runs; read line")
        pids = [process.pid, *children(process.pid)]
        owners = [os.stat(f"/proc/{pid}/mem").st_uid for pid in pids]
        self.assertEqual(owners[0], 0)
        self.assertEqual(owners[1], self.uid, "the control: the command's own memory")

    def test_the_command_ends_with_the_forwarder(self):
        process = self.start_forwarder("echo runs; read line")
        (command,) = children(process.pid)
        pidfd = os.pidfd_open(command)
        self.addCleanup(os.close, pidfd)
        process.kill()
        ready, _, _ = select.select([pidfd], [], [], 10)
        self.assertTrue(ready, "the command outlives its way out")

    # ---- a forwarder that was taken over ------------------------------------------------------

    def start_control(self):
        """A process of the same user that waits in a system call, without a filter."""
        process = self.start(as_user(["/bin/sh", "-c", "echo runs; exec sleep 60"], self.uid))
        self.assertEqual(process.stdout.readline(), b"runs\n")
        self.assertTrue(wait_until(lambda: waits_in(process.pid, SLEEPS)))
        return process

    def test_it_makes_sockets_of_one_family(self):
        """The calls are its own: they are put into the running forwarder."""
        if not inject.CAN_INJECT:
            self.not_testable("needs root and x86-64")
        control = self.start_control().pid
        forwarder = self.start_forwarder("echo runs; read line").pid
        for name, family, kind, protocol in OTHER_FAMILIES:
            with self.subTest(family=name):
                made = inject.call(control, SOCKET, family, kind, protocol)
                self.assertGreaterEqual(made, 0, "the control")
                self.assertEqual(inject.call(forwarder, SOCKET, family, kind, protocol),
                                 -errno.EPERM)
        own = inject.call(forwarder, SOCKET, UNIX, STREAM, 0)
        self.assertGreaterEqual(own, 0)
        self.assertEqual(inject.call(forwarder, CLOSE, own), 0)

    def test_it_starts_and_signals_nothing_else(self):
        if not inject.CAN_INJECT:
            self.not_testable("needs root and x86-64")
        control = self.start_control().pid
        forwarder = self.start_forwarder("echo runs; read line").pid
        (command,) = children(forwarder)
        self.assertEqual(inject.call(control, KILL, control, 0), 0, "the control")
        self.assertEqual(inject.call(forwarder, KILL, control, 0), -errno.EPERM)
        self.assertEqual(inject.call(forwarder, KILL, command, 0), 0)
        self.assertGreater(inject.call(control, MMAP, 0, 4096, 7, 0x22, -1 & MAX, 0), 0)
        self.assertEqual(inject.call(forwarder, MMAP, 0, 4096, 7, 0x22, -1 & MAX, 0), -errno.EPERM)

    def test_it_still_carries_bytes(self):
        process = self.start_forwarder("echo runs; read line")
        self.broker.accept()[0].close()  # it looked whether somebody is there
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            client.sendall(b"ping")
            broker, _ = self.broker.accept()
            with broker:
                self.assertEqual(broker.recv(4), b"ping")
                broker.sendall(b"pong")
                self.assertEqual(client.recv(4), b"pong")
        self.assertIsNone(process.poll())

    def test_it_does_not_start_without_a_broker(self):
        self.broker.close()
        done = self.finish(self.words(["/bin/echo", "runs"]))
        self.assertEqual((done.returncode, done.stdout), (REFUSED, b""))

    def test_it_listens_at_the_loopback_only(self):
        process = self.start_forwarder("echo runs; read line")
        found = subprocess.run(["cat", f"/proc/{process.pid}/net/tcp"], capture_output=True,
                               check=True, text=True).stdout
        here = [line.split()[1] for line in found.splitlines()
                if line.split()[1].endswith(f":{self.port:04X}") and line.split()[3] == "0A"]
        self.assertEqual(here, [f"0100007F:{self.port:04X}"])

    def test_variables_of_another_proxy_are_gone(self):
        env = {"HTTPS_PROXY": "http://192.0.2.1:1", "ALL_PROXY": "socks5://192.0.2.1:1",
               "no_proxy": "*"}
        done = self.finish(self.words(["/usr/bin/env"]), env=env)
        said = done.stdout.decode()
        self.assertNotIn("192.0.2.1", said)
        self.assertNotIn("no_proxy=*", said)
        self.assertIn(f"https_proxy=http://127.0.0.1:{self.port}", said)


def waits_in(pid, number):
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == str(number)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    unittest.main()
