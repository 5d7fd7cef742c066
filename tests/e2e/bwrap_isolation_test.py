"""bwrap: a server has no rights, no terminal, no network, and sees no process but its own."""

import os
import select
import socket
import subprocess
import unittest

import launch
from cases import BwrapCase, probe, service, started_by_root_and_user, stop

CLONE_NEWUSER = 0x10000000
ENVIRONMENT = {"HOME": "/home/user", "LANG": "C.UTF-8", "TMPDIR": "/tmp", "PWD": "/home/user",
               "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
CANARY = "canary-5f0c1d6e"


@started_by_root_and_user
class Identity(BwrapCase):
    """Whoever starts it, the server is an unprivileged user."""

    def test_the_server_is_an_unprivileged_user_without_capabilities(self):
        fields = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]
        none = "0" * 16
        results = self.attempt([], *[("status", field) for field in fields])
        self.assertEqual(results, [none] * 5 + ["1", "2"])

    def test_the_server_has_the_ids_of_the_sandbox(self):
        results = self.attempt([], ("ids",), ("hostname",), ("user",))
        self.assertEqual(results, [[[1000] * 3, [1000] * 3, []], "capgate",
                                   ["user", "/home/user", "user"]])

    def test_every_namespace_is_its_own(self):
        (outside,) = self.assert_open_outside(("namespaces",))
        (inside,) = self.attempt([], ("namespaces",))
        self.assertEqual(inside.keys(), outside.keys())
        shared = {name for name in inside if inside[name] == outside[name]}
        self.assertEqual(shared, {"time", "time_for_children"})  # bwrap makes none

    def test_without_its_filter_nothing_starts(self):
        artifact = self.compile()
        others = [entry for entry in artifact["fds"] if entry["purpose"] != "seccomp"]
        self.assertEqual(len(others), len(artifact["fds"]) - 1)
        self.assert_refuses_to_start({**artifact, "fds": others}, "seccomp")

    def test_no_user_namespace_can_be_made(self):
        self.assert_open_outside(("unshare", CLONE_NEWUSER))
        self.assertEqual(self.attempt([], ("unshare", CLONE_NEWUSER)), ["EPERM"])

    def test_the_kernel_refuses_a_user_namespace_too(self):
        """Two locks: without the filter, the limit of --disable-userns still holds."""
        unfiltered = self.without(self.compile(), "--seccomp", "3")
        self.assertEqual(self.attempt_with(unfiltered, ("unshare", CLONE_NEWUSER)), ["ENOSPC"])

    def test_the_server_has_no_terminal(self):
        results = self.attempt([], ("leads_its_session",), ("kind", "/dev/tty"),
                               ("kind", "/dev/pts"), ("kind", "/dev/ptmx"))
        self.assertEqual(results, [True, "ENOENT", "ENOENT", "ENOENT"])

    def test_terminal_input_cannot_be_pushed(self):
        """Standard input is no terminal: outside the kernel says so, inside the filter answers."""
        outside = launch.run_outside(probe(("push_terminal_input",)))
        self.assertEqual(outside.stdout, b'["ENOTTY"]\n')
        self.assertEqual(self.attempt([], ("push_terminal_input",)), ["EPERM"])


@started_by_root_and_user
class Environment(BwrapCase):
    """Cleared, then the declared names, and nowhere to be seen by others."""

    def test_no_variable_of_the_launcher_arrives_in_any_process(self):
        env = {"CANARY": CANARY, "AWS_SECRET_ACCESS_KEY": CANARY, "LD_LIBRARY_PATH": CANARY}
        outside = launch.run_outside(probe(("environments",), ("environment",)), env=env)
        self.assertNotEqual(outside.stdout.count(CANARY.encode()), 0)
        results = self.attempt_with(self.compile(), ("environments",), ("environment",), env=env)
        self.assertEqual(results[1], ENVIRONMENT)
        self.assertNotIn(CANARY, results[0])
        self.assertIn("LANG=C.UTF-8", results[0])

    def test_declared_variables_arrive_and_others_do_not(self):
        artifact = self.compile("env:inject:TOKEN", "env:read:MODE")
        values = {"TOKEN": "with = and spaces", "MODE": "", "OTHER": CANARY}
        (seen,) = self.attempt_with(artifact, ("environment",), values=values, env=values)
        self.assertEqual(seen, {**ENVIRONMENT, "TOKEN": "with = and spaces", "MODE": ""})

    def test_a_value_stands_in_no_command_line(self):
        artifact = self.compile("env:inject:TOKEN")
        command = ["/usr/bin/busybox", "sh", "-c", 'echo "$TOKEN"; read wait']
        process = self.start(artifact, command, values={"TOKEN": CANARY})
        self.assertEqual(process.stdout.readline().decode(), f"{CANARY}\n")
        words = b""
        for pid in [process.pid, *descendants(process.pid)]:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words += file.read()
        self.assertIn(b"--clearenv", words)
        self.assertNotIn(CANARY.encode(), words)

    def test_only_the_standard_descriptors_are_open(self):
        artifact = self.compile("env:inject:TOKEN")
        results = self.attempt_with(artifact, ("descriptors",), values={"TOKEN": "x"})
        self.assertEqual(results, [[0, 1, 2]])


@started_by_root_and_user
class Processes(BwrapCase):
    """The sandbox's processes see, signal and outlive nobody outside."""

    def start_victim(self):
        victim = launch.start(["/usr/bin/sleep", "60"], {"fds": []}, uid=launch.ORDINARY)
        self.addCleanup(stop, victim)
        return victim

    def test_only_the_sandbox_is_visible(self):
        (outside,) = self.assert_open_outside(("processes",))
        self.assertIn(os.getpid(), outside)
        self.assertEqual(self.attempt([], ("processes",)), [[1]])

    def test_a_process_of_the_host_cannot_be_signalled(self):
        victim = self.start_victim()
        self.assertEqual(self.attempt([], ("kill", victim.pid)), ["ESRCH"])
        self.assertIsNone(victim.poll())
        self.assert_open_outside(("kill", victim.pid))
        self.assertEqual(victim.wait(timeout=launch.SECONDS), -15)

    def test_a_detached_grandchild_dies_with_bwrap(self):
        """G12: it has left the session, but not the pid namespace."""
        artifact = self.compile("exec:spawn:setsid", "exec:spawn:sleep",
                                options=("--program", "/usr/bin/busybox"))
        script = "/usr/bin/setsid /usr/bin/sleep 60 & echo started; read wait"
        process = self.start(artifact, ["/usr/bin/busybox", "sh", "-c", script])
        self.assertEqual(process.stdout.readline(), b"started\n")
        process.kill()
        # The grandchild holds the pipe: its end is the end of the last process.
        readable, _, _ = select.select([process.stdout], [], [], launch.SECONDS)
        self.assertTrue(readable)
        self.assertEqual(process.stdout.read(), b"")


@started_by_root_and_user
class Network(BwrapCase):
    """No packet leaves, and no service of the host can be reached."""

    def test_loopback_is_the_only_interface(self):
        self.assertEqual(self.attempt([], ("interfaces",)), [["lo"]])

    def test_a_service_on_the_hosts_loopback_cannot_be_reached(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (host, port):
            self.assertEqual(self.assert_open_outside(("connect", host, port)),
                             ["hello from the host"])
            self.assertEqual(self.attempt([], ("connect", host, port)), ["ECONNREFUSED"])

    def test_there_is_no_way_out(self):
        results = self.attempt([], ("connect", "192.0.2.1", 443),
                               ("send_datagram", "192.0.2.1", 53))
        self.assertEqual(results, ["ENETUNREACH", "ENETUNREACH"])

    def test_other_families_cannot_be_made(self):
        self.assert_open_outside(("make_socket", "AF_NETLINK", "SOCK_RAW"))
        results = self.attempt([], ("make_socket", "AF_NETLINK", "SOCK_RAW"),
                               ("make_socket", "AF_INET"), ("make_socket", "AF_INET6"))
        self.assertEqual(results, ["EAFNOSUPPORT", "done", "done"])

    def test_an_abstract_socket_of_the_host_cannot_be_reached(self):
        name = f"capgate-e2e-{os.getpid()}"
        with service(socket.AF_UNIX, f"\0{name}"):
            self.assertEqual(self.assert_open_outside(("connect_unix", f"@{name}")),
                             ["hello from the host"])
            self.assertEqual(self.attempt([], ("connect_unix", f"@{name}")), ["EPERM"])
            self.assertEqual(self.attempt(["ipc:connect:self"], ("connect_unix", f"@{name}")),
                             ["ECONNREFUSED"])


def descendants(pid):
    """The processes below a process, nearest first."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    return children + [below for child in children for below in descendants(child)]


if __name__ == "__main__":
    unittest.main()
