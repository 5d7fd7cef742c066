"""Weaknesses G14, G16, G18, G19 of the earlier sandbox; the others stand with their attacks."""

import os
import stat
import unittest

from redteam import HIDDEN, READ_ONLY, Redteam, as_user, ORDINARY, started_by_root_and_user

HELPERS = ["bwrap", "newuidmap", "newgidmap", "unshare", "mount", "umount", "ip", "sh", "env",
           "capgate-init", "capgate-broker", "setpriv", "ldconfig"]


class Names(Redteam):
    """G14: name lookup has what it needs, made for the sandbox."""

    def test_g14_generated_files_are_there_and_are_not_links(self):
        for name in ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf"):
            (text,) = self.assert_open(self.inside(f"read=/etc/{name}"))
            self.assertNotEqual(text.detail, "", name)
            self.assert_shut(self.inside(f"readlink=/etc/{name}"), "EINVAL")
        self.assertRegex(self.details("read=/etc/passwd")[0], r":1000:1000:")


@started_by_root_and_user
class Grants(Redteam):
    """G16: reading and writing, files and directories and patterns are granted apart."""

    def test_g16_one_file_is_one_file(self):
        one, other = self.tree.file("work/one", "1"), self.tree.file("work/other", "2")
        self.assert_open(self.outside(f"read={one}", f"read={other}"))
        found = self.inside(f"read={one}", f"read={other}", f"append={one}",
                            f"create={self.work}/new", allow=[f"fs:read:{one}"])
        self.assert_open(found[:1])
        self.assert_shut(found[1:], *HIDDEN, *READ_ONLY)

    def test_g16_a_pattern_grants_its_matches(self):
        good, bad = self.tree.file("work/a.md", "1"), self.tree.file("work/a.txt", "2")
        found = self.inside(f"read={good}", f"read={bad}", allow=[f"fs:read:{self.work}/*.md"])
        self.assert_open(found[:1])
        self.assert_shut(found[1:], *HIDDEN)

    def test_g16_a_writable_child_of_a_readable_tree(self):
        out = self.tree.directory("work/out")
        found = self.inside(f"create={out}/new", f"create={self.work}/new",
                            allow=[f"fs:read:{self.work}/**", f"fs:write:{out}/**"])
        self.assert_open(found[:1])
        self.assert_shut(found[1:], *READ_ONLY)

    def test_g16_creating_is_not_removing(self):
        old = self.tree.file("work/old", "1")
        self.assert_open(self.outside(f"rename={old},{self.work}/x", f"rename={self.work}/x,{old}"))
        found = self.inside(f"create={self.work}/new", f"remove={old}",
                            f"rename={old},{self.work}/away", allow=[f"fs:create:{self.work}"])
        self.assert_open(found[:1])
        self.assert_shut(found[1:], *READ_ONLY)

    def test_g16_removing_is_not_creating(self):
        old = self.tree.file("work/old", "1")
        found = self.inside(f"append={old}", f"create={self.work}/new", f"remove={old}",
                            allow=[f"fs:delete:{self.work}"])
        self.assert_shut(found[:2], *READ_ONLY)
        self.assert_open(found[2:])


class Helpers(Redteam):
    """G18: no program is taken from PATH or from the current directory."""

    def test_g18_programs_planted_in_path_never_run(self):
        planted = self.tree.directory("planted")
        ran = self.tree.path("planted/ran")
        for name in HELPERS:
            path = self.tree.file(f"planted/{name}", f"#!/bin/sh\necho >{ran}\nexit 1\n")
            os.chmod(path, 0o755)
        env = {"PATH": f"{planted}:.:/usr/bin:/bin"}
        self.finish(as_user(["/usr/bin/env", "unshare"], ORDINARY), env=env)
        self.assertTrue(os.path.exists(ran), "the control")
        os.remove(ran)
        self.assert_open(self.inside("ids", env=env, cwd=planted))
        self.assertFalse(os.path.exists(ran))


class SpecialFiles(Redteam):
    """G19: what is of an unexpected kind is refused or hidden, never skipped."""

    def test_g19_special_files_cannot_be_granted_as_files(self):
        fifo = self.tree.path("fifo")
        os.mkfifo(fifo)
        os.chmod(fifo, 0o666)
        for path in (fifo, "/dev/null", "/dev/tty"):
            with self.subTest(path=path):
                self.assertIn(path, self.refused(allow=[f"fs:read:{path}"]))

    def test_g19_a_masked_name_of_another_kind(self):
        """.env as a pipe, a directory, a link: nothing can be read, and the host keeps it."""
        secret = self.tree.file("secret", "canary")

        def make_directory(path):
            os.mkdir(path)
            self.tree.file(os.path.relpath(path, self.tree.root) + "/inner", "canary")

        makers = {stat.S_IFIFO: os.mkfifo, stat.S_IFDIR: make_directory,
                  stat.S_IFLNK: lambda path: os.symlink(secret, path)}
        for kind, make in makers.items():
            with self.subTest(kind=kind):
                place = self.tree.directory(f"kind{kind}")
                path = os.path.join(place, ".env")
                make(path)
                attempt = f"read={path}/inner" if kind == stat.S_IFDIR else f"read={path}"
                if kind != stat.S_IFIFO:
                    (outside,) = self.outside(attempt)
                    self.assertEqual(outside.detail, "canary")
                (found,) = self.inside(attempt, allow=[f"fs:write:{place}"])
                # An empty file lies on a pipe and on a link, an empty directory on a directory.
                expected = "ENOENT" if kind == stat.S_IFDIR else ""
                self.assertEqual((found.why, found.detail), (expected, ""))
                self.assertEqual(stat.S_IFMT(os.lstat(path).st_mode), kind)


if __name__ == "__main__":
    unittest.main()
