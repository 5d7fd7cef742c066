"""bwrap: the base system is there, read-only, and shows nothing of the host's own."""

import os
import socket
import unittest

import launch
from cases import BwrapCase, quoted, service, started_by_root_and_user

CLONE_NEWUSER = 0x10000000


@started_by_root_and_user
class BaseSystem(BwrapCase):
    """What every sandbox has, and what none has."""

    def test_nothing_of_the_system_is_writable(self):
        places = ["/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/dev", "/home"]
        results = self.attempt([], *[("make_nameless", place) for place in places])
        self.assertEqual(dict(zip(places, results)), {place: "EROFS" for place in places})

    def test_no_file_of_the_system_can_be_changed(self):
        files = ["/etc/passwd", "/etc/resolv.conf", "/etc/ld.so.cache", "/usr/bin/env"]
        results = self.attempt([], *[("open_for_writing", file) for file in files])
        # Who does not own a file hears of its mode first, and of the mount only then.
        system = "EACCES" if self.uid else "EROFS"
        self.assertEqual(dict(zip(files, results)),
                         {"/etc/passwd": "EROFS", "/etc/resolv.conf": "EROFS",
                          "/etc/ld.so.cache": system, "/usr/bin/env": system})

    def test_the_root_holds_only_what_is_listed(self):
        (names,) = self.attempt([], ("names", "/"))
        self.assertEqual(names, ["bin", "dev", "etc", "home", "lib", "lib32", "lib64", "proc",
                                 "sbin", "tmp", "usr"])

    def test_secrets_and_identifiers_of_the_host_are_absent(self):
        absent = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/fstab",
                  "/etc/docker", "/sys", "/run", "/var", "/root", "/srv", "/mnt", "/boot", "/opt"]
        results = self.attempt([], *[("kind", path) for path in absent])
        self.assertEqual(dict(zip(absent, results)), {path: "ENOENT" for path in absent})

    def test_the_machine_id_and_the_names_are_not_the_hosts(self):
        results = self.attempt([], ("read", "/etc/machine-id"), ("read", "/etc/hostname"),
                               ("read", "/etc/passwd"), ("read", "/etc/hosts"))
        self.assertRegex(results[0], r"^[0-9a-f]{32}\n$")
        self.assertNotEqual(results[0], host_text("/etc/machine-id"))
        self.assertEqual(results[1], "capgate\n")
        self.assertNotIn("root:", results[2])
        self.assertNotIn(socket.gethostname(), results[3])

    def test_a_declared_file_of_etc_takes_the_place_of_the_generated_one(self):
        results = self.attempt(["fs:read:/etc/hosts"], ("read", "/etc/hosts"),
                               ("kind", "/etc/fstab"))
        self.assertEqual(results, [host_text("/etc/hosts"), "ENOENT"])

    def test_the_devices_work(self):
        results = self.attempt([], ("names", "/dev"), ("write", "/dev/null"), ("read", "/dev/null"),
                               ("write", "/dev/full"), ("kind", "/dev/fd"))
        self.assertEqual(results, [["fd", "full", "null", "random", "shm", "stderr", "stdin",
                                    "stdout", "urandom", "zero"], "done", "", "ENOSPC", "link"])

    def test_certificates_are_there_where_the_host_has_them(self):
        (names,) = self.attempt([], ("names", "/etc"))
        for name in ("ld.so.cache", "ssl", "passwd", "group", "nsswitch.conf", "resolv.conf"):
            self.assertIn(name, names)

    def test_no_file_of_the_kernel_is_writable(self):
        """Many need no capability, only root's uid, which the server has when root starts bwrap."""
        artifact = self.compile()
        open_proc = self.without(artifact, "--remount-ro", "/proc")
        (found,) = self.attempt_with(open_proc, ("writable_kernel_files",))
        self.assertEqual("/proc/sys/kernel/core_pattern" in found, self.uid == 0)
        (found,) = self.attempt_with(artifact, ("writable_kernel_files",))
        self.assertEqual(found, [])

    def test_a_nested_sandbox_writes_its_own_maps_but_no_file_of_the_kernel(self):
        artifact = self.compile("exec:spawn:uname?nestedSandbox=true",
                                options=("--program", launch.PYTHON))
        results = self.attempt_with(artifact, ("writable_kernel_files",),
                                    ("unshare", CLONE_NEWUSER),
                                    ("write", "/proc/self/uid_map", "1000 1000 1"))
        self.assertEqual(results, [[], "done", "done"])


@started_by_root_and_user
class Clock(BwrapCase):
    """clock:tzdata shows the time zone of the host, nothing else does."""

    def test_the_local_time_zone_needs_its_capability(self):
        if not os.path.exists("/etc/localtime"):
            self.skipTest("this host has no /etc/localtime")
        self.assertEqual(self.attempt([], ("kind", "/etc/localtime")), ["ENOENT"])
        results = self.attempt(["clock:tzdata"], ("kind", "/etc/localtime"),
                               ("kind", "/usr/share/zoneinfo"),
                               ("open_for_writing", "/etc/localtime"))
        # The kernel asks for the mode of the file first, which only root has passed.
        refusal = "EROFS" if self.uid == 0 else "EACCES"
        self.assertEqual(results, ["file", "directory", refusal])


@started_by_root_and_user
class UnixSockets(BwrapCase):
    """A service of the host is reached through exactly the declared socket."""

    def service_in_tree(self, name):
        path = self.tree.path(name)
        return path, service(socket.AF_UNIX, path)

    def test_a_declared_socket_works_and_its_sibling_is_absent(self):
        path, declared = self.service_in_tree("declared.sock")
        other_path, other = self.service_in_tree("other.sock")
        with declared, other:
            for each in (path, other_path):
                os.chmod(each, 0o777)
            greeting = "hello from the host"
            self.assertEqual(self.assert_open_outside(("connect_unix", path),
                                                      ("connect_unix", other_path)), [greeting] * 2)
            results = self.attempt(
                [f"ipc:connect:{quoted('unix:' + path)}"], ("connect_unix", path),
                ("connect_unix", other_path), ("names", self.tree.root), ("remove", path))
        self.assertEqual(results, [greeting, "ENOENT", ["declared.sock"], "EROFS"])

    def test_the_session_bus_is_found_where_the_user_has_it(self):
        path, bus = self.service_in_tree("bus")
        artifact = self.compile("ipc:connect:dbus:session",
                                options=("--set", f"XDG_RUNTIME_DIR={self.tree.root}"))
        with bus:
            os.chmod(path, 0o777)
            results = self.attempt_with(artifact, ("connect_unix", path), ("environment",))
        self.assertEqual(results[0], "hello from the host")
        self.assertEqual(results[1]["DBUS_SESSION_BUS_ADDRESS"], f"unix:path={path}")

    def test_netlink_needs_its_capability(self):
        attempt = ("make_socket", "AF_NETLINK", "SOCK_RAW")
        self.assertEqual(self.attempt(["ipc:connect:netlink-route"], attempt), ["done"])
        self.assertEqual(self.attempt(["ipc:connect:self"], attempt), ["EAFNOSUPPORT"])

    def test_without_a_grant_no_unix_socket_can_be_made(self):
        path, listening = self.service_in_tree("visible.sock")
        with listening:
            os.chmod(path, 0o777)
            self.assert_open_outside(("make_socket", "AF_UNIX"), ("connect_unix", path))
            results = self.attempt([f"fs:write:{self.tree.root}"], ("make_socket", "AF_UNIX"),
                                   ("connect_unix", path))
        self.assertEqual(results, ["EPERM", "EPERM"])


def host_text(path):
    """A file of the host, or nothing where there is none."""
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    unittest.main()
