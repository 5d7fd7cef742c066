"""bwrap: a server sees and changes the declared files, and no others."""

import os
import unittest

from cases import BwrapCase, quoted, started_by_root_and_user


@started_by_root_and_user
class Grants(BwrapCase):
    """What a grant opens, and what lies beside it."""

    def test_a_file_is_granted_without_its_directory(self):
        granted = self.tree.file("d/a.txt", "granted")
        sibling = self.tree.file("d/b.txt", "not granted")
        self.assert_open_outside(("read", sibling))
        results = self.attempt([f"fs:read:{granted}"],
                               ("read", granted), ("read", sibling), ("names", self.tree.path("d")))
        self.assertEqual(results, ["granted", "ENOENT", ["a.txt"]])

    def test_a_read_grant_is_read_only(self):
        granted = self.tree.file("d/a.txt", "granted")
        new = self.tree.path("d/new.txt")
        self.assert_open_outside(("write", new), ("remove", new))
        results = self.attempt([f"fs:read:{self.tree.path('d')}"], ("read", granted),
                               ("write", granted), ("write", new), ("remove", granted))
        self.assertEqual(results, ["granted", "EROFS", "EROFS", "EROFS"])
        self.assertEqual(self.tree.text("d/a.txt"), "granted")

    def test_a_directory_is_granted_without_its_siblings(self):
        inner = self.tree.file("d/granted/deep/a.txt", "granted")
        sibling = self.tree.file("d/other/b.txt", "not granted")
        self.assert_open_outside(("read", sibling))
        results = self.attempt([f"fs:read:{self.tree.path('d/granted')}"],
                               ("read", inner), ("read", sibling), ("names", self.tree.path("d")))
        self.assertEqual(results, ["granted", "ENOENT", ["granted"]])

    def test_a_write_reaches_the_host(self):
        granted = self.tree.directory("out")
        results = self.attempt([f"fs:write:{granted}/**"], ("write", f"{granted}/new.txt"))
        self.assertEqual(results, ["done"])
        self.assertEqual(self.tree.text("out/new.txt"), "written")

    def test_a_writable_file_does_not_make_its_directory_writable(self):
        granted = self.tree.file("d/a.txt", "old")
        sibling = self.tree.file("d/b.txt", "old")
        new = self.tree.path("d/new.txt")
        results = self.attempt([f"fs:write:{granted}"],
                               ("write", granted), ("write", sibling), ("write", new))
        self.assertEqual(results, ["done", "EROFS", "EROFS"])
        self.assertEqual(self.tree.text("d/a.txt"), "written")
        self.assertEqual(self.tree.text("d/b.txt"), "old")

    def test_a_writable_child_does_not_widen_a_read_only_tree(self):
        """D1: one grant never widens another."""
        child = self.tree.directory("t/data/sub")
        sibling = self.tree.file("t/data/other.txt", "old")
        self.assert_open_outside(("write", sibling, "old"))
        results = self.attempt(
            [f"fs:read:{self.tree.path('t')}/**", f"fs:write:{child}"],
            ("write", f"{child}/new.txt"), ("read", sibling), ("write", sibling),
            ("write", self.tree.path("t/data/new.txt")), ("write", self.tree.path("t/new.txt")))
        self.assertEqual(results, ["done", "old", "EROFS", "EROFS", "EROFS"])
        self.assertEqual(self.tree.text("t/data/sub/new.txt"), "written")

    def test_dots_in_a_name_do_not_open_its_directory(self):
        """D2: a name with a dot is what it is, file or directory."""
        key = self.tree.file("u/.ssh/authorized_keys", "key")
        self.tree.file("u/project.git/config", "config")
        self.tree.file("u/v1.2/app", "app")
        self.tree.file("u/hosts.allow", "hosts")
        self.assert_open_outside(("read", key), ("write", key, "key"))
        capabilities = [f"fs:write:{self.tree.path('u/project.git')}",
                        f"fs:read:{self.tree.path('u/v1.2')}/**",
                        f"fs:read:{self.tree.path('u/hosts.allow')}"]
        results = self.attempt(
            capabilities, ("names", self.tree.path("u")), ("read", key), ("write", key),
            ("write", self.tree.path("u/new.txt")),
            ("write", self.tree.path("u/project.git/new.txt")),
            ("read", self.tree.path("u/v1.2/app")), ("read", self.tree.path("u/hosts.allow")))
        self.assertEqual(results, [["hosts.allow", "project.git", "v1.2"], "ENOENT", "ENOENT",
                                   "EROFS", "done", "app", "hosts"])

    def test_without_a_grant_nothing_of_the_tree_is_there(self):
        file = self.tree.file("a.txt", "not granted")
        self.assert_open_outside(("read", file))
        results = self.attempt([], ("read", file), ("names", "/var"), ("names", "/home"))
        self.assertEqual(results, ["ENOENT", "ENOENT", ["user"]])


@started_by_root_and_user
class MissingPaths(BwrapCase):
    """D7: what is promised exists, or nothing starts and nothing is made."""

    def assert_is_refused_and_made_nowhere(self, missing, *capabilities):
        before = self.tree.snapshot()
        self.assert_refuses_to_start(self.compile(*capabilities), missing)
        self.assertEqual(self.tree.snapshot(), before)

    def test_a_missing_path_is_named(self):
        missing = self.tree.path("missing")
        for scope in (missing, f"{missing}/**", f"{missing}/deeper"):
            for action in ("read", "write"):
                with self.subTest(scope=scope, action=action):
                    self.assert_is_refused_and_made_nowhere(missing, f"fs:{action}:{scope}")

    def test_a_missing_child_of_a_granted_tree_is_named(self):
        tree = self.tree.directory("t")
        self.assert_is_refused_and_made_nowhere(
            f"{tree}/missing", f"fs:read:{tree}/**", f"fs:write:{tree}/missing")

    def test_a_missing_socket_is_named(self):
        missing = self.tree.path("missing.sock")
        self.assert_is_refused_and_made_nowhere(
            missing, f"ipc:connect:{quoted('unix:' + missing)}")

    def test_a_missing_program_is_named(self):
        artifact = self.compile("exec:spawn:no-such-program",
                                options=("--program", "/usr/bin/python3.11"))
        self.assert_refuses_to_start(artifact, "/usr/bin/no-such-program")


@started_by_root_and_user
class PrivatePlaces(BwrapCase):
    """/tmp, /dev/shm and HOME are the sandbox's own."""

    def test_tmp_is_private_and_writable(self):
        host = self.make_tree("/tmp")
        file = host.file("a.txt", "of the host")
        own = host.path("own.txt")  # the same directory is made again, in the private /tmp
        self.assert_open_outside(("read", file))
        results = self.attempt(["fs:write:/tmp/**"], ("names", "/tmp"), ("read", file),
                               ("make_directory", host.root), ("write", own), ("read", own))
        self.assertEqual(results, [[], "ENOENT", "done", "done", "written"])
        self.assertEqual(list(host.snapshot()), [file])

    def test_a_granted_path_below_tmp_lies_on_top(self):
        """D18: /tmp stays private although one path below it is the host's."""
        host = self.make_tree("/tmp")
        host.file("granted/a.txt", "granted")
        sibling = host.file("b.txt", "not granted")
        granted = host.path("granted")
        results = self.attempt(
            [f"fs:write:{granted}"], ("read", f"{granted}/a.txt"), ("write", f"{granted}/new.txt"),
            ("read", sibling), ("make_nameless", "/tmp"), ("names", "/tmp"))
        self.assertEqual(results, ["granted", "done", "ENOENT", "done",
                                   [os.path.basename(host.root)]])
        self.assertEqual(host.text("granted/new.txt"), "written")
        self.assertEqual(sorted(host.snapshot()), sorted([sibling, granted, f"{granted}/a.txt",
                                                          f"{granted}/new.txt"]))

    def test_home_is_private_and_writable(self):
        home = self.tree.directory("home")
        self.tree.file("home/.profile", "of the host")
        artifact = self.compile(options=("--set", f"HOME={home}"))
        results = self.attempt_with(artifact, ("names", home), ("write", f"{home}/new.txt"),
                                    ("environment",))
        self.assertEqual(results[:2], [[], "done"])
        self.assertEqual(results[2]["HOME"], home)
        self.assertEqual(self.tree.snapshot().keys(), {home, f"{home}/.profile"})

    def test_the_disk_limit_bounds_every_private_place(self):
        megabyte = 1 << 20
        for place in ("/tmp", "/dev/shm", "/home/user"):
            with self.subTest(place=place):
                results = self.attempt(
                    ["limit:disk:4M"], ("fill", place, 3 * megabyte), ("fill", place, 5 * megabyte))
                self.assertEqual(results, ["done", "ENOSPC"])

    def test_without_a_disk_limit_there_is_a_default(self):
        places = [("capacity", place) for place in ("/tmp", "/dev/shm", "/home/user")]
        self.assertEqual(self.attempt([], *places), [256 << 20] * 3)


@started_by_root_and_user
class SymbolicLinks(BwrapCase):
    """A link opens nothing, except one that is itself the granted path: bwrap follows that."""

    def test_a_link_out_of_a_grant_leads_nowhere(self):
        secret = self.tree.file("outside/secret.txt", "secret")
        self.tree.directory("granted")
        link = self.tree.link("granted/link", secret)
        relative = self.tree.link("granted/relative", "../outside/secret.txt")
        self.assert_open_outside(("read", link), ("read", relative), ("write", link, "secret"))
        results = self.attempt([f"fs:write:{self.tree.path('granted')}"], ("read", link),
                               ("read", relative), ("write", link), ("write", relative))
        self.assertEqual(results, ["ENOENT", "ENOENT", "ENOENT", "ENOENT"])
        self.assertEqual(self.tree.text("outside/secret.txt"), "secret")

    def test_a_granted_link_is_followed_and_the_artifact_says_so(self):
        self.tree.file("real/a.txt", "granted through a link")
        self.tree.file("other/b.txt", "not granted")
        link = self.tree.link("link", self.tree.path("real"))
        artifact = self.compile(f"fs:read:{link}")
        results = self.attempt_with(artifact, ("read", f"{link}/a.txt"), ("kind", link),
                                    ("names", self.tree.root))
        self.assertEqual(results, ["granted through a link", "directory", ["link"]])
        self.assertIn("fs: bwrap follows symbolic links in granted paths", artifact["notes"])


@started_by_root_and_user
class Names(BwrapCase):
    """A name is one word of argv, whatever is in it."""

    def test_unusual_names_are_granted_exactly(self):
        for name in ("with space", "a:b", "a,b", "a=b,readonly", "'single'", 'dou"ble', "--bind",
                     "back\\slash", "-", "--", "$1", "`id`", "#hash", "äöü", "日本語",
                     "a;b|c&d", "q?uestion", "%s%n", "~", "..."):
            with self.subTest(name=name):
                granted = self.tree.file(f"d/{name}/a.txt", name)
                self.tree.file("d/sibling/b.txt", "not granted")
                scope = quoted(self.tree.path(f"d/{name}"))
                results = self.attempt([f"fs:read:{scope}"], ("read", granted),
                                       ("write", granted), ("names", self.tree.path("d")))
                self.assertEqual(results, [name, "EROFS", [name]])

    def test_control_characters_are_refused(self):
        for name in ("new\nline", "tab\there", "nul\0", "escape\x1b", "trailing "):
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, "CAP_FS_PATH"):
                self.compile(f"fs:read:{quoted(self.tree.path(name))}")

    def test_a_value_of_a_variable_cannot_become_an_option(self):
        artifact = self.compile("env:inject:TOKEN")
        value = "--bind\n/ / x"
        results = self.attempt_with(artifact, ("environment",), values={"TOKEN": value})
        self.assertEqual(results[0]["TOKEN"], value)


@started_by_root_and_user
class SetIdBits(BwrapCase):
    """Nothing that is planted in a writable grant can give rights away on the host."""

    def test_setuid_and_setgid_bits_are_refused(self):
        """Attack 17: nosuid inside does not help outside."""
        grant = self.tree.directory("grant")
        attempts = [("make_with_mode", f"{grant}/u", 0o4755),
                    ("make_with_mode", f"{grant}/g", 0o2755),
                    ("open_with_mode", f"{grant}/o", 0o4755),
                    ("make_directory", f"{grant}/d", 0o2777)]
        outside = self.assert_open_outside(*attempts)
        self.assertEqual(outside, ["0o4755", "0o2755", "0o4755", "done"])
        for name in ("u", "g", "o"):
            self.assert_open_outside(("remove", f"{grant}/{name}"))
        results = self.attempt([f"fs:write:{grant}"],
                               *attempts[:3], ("make_directory", f"{grant}/e", 0o2777),
                               ("make_with_mode", f"{grant}/plain", 0o755))
        self.assertEqual(results, ["EPERM", "EPERM", "EPERM", "EPERM", "0o755"])

    def test_no_device_can_be_made(self):
        grant = self.tree.directory("grant")
        self.assert_open_outside(("make_device", f"{grant}/outside"))
        results = self.attempt([f"fs:write:{grant}"], ("make_device", f"{grant}/inside"))
        self.assertEqual(results, ["EPERM"])

    def test_every_mount_ignores_setuid_bits_and_devices(self):
        grant = self.tree.directory("grant")
        devices = {f"/dev/{name}" for name in ("full", "null", "random", "urandom", "zero")}
        (seen,) = self.attempt([f"fs:write:{grant}"], ("mounts",))
        self.assertIn(grant, [path for path, _ in seen])
        for path, options in seen:
            self.assertIn("nosuid", options, path)
            if path not in devices:
                self.assertIn("nodev", options, path)


if __name__ == "__main__":
    unittest.main()
