"""capgate run: what a grant of files means inside, and what stays as it is on the host."""

import os
import subprocess
import unittest

from cases import quoted, started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python


def setUpModule():
    adopt_orphans()


class FilesCase(RunCase):
    def place(self, name):
        return os.path.join(self.work, name)

    def writing(self, name, text="new"):
        return f"open({self.place(name)!r}, 'w').write({text!r})"

    def reading(self, name):
        return f"open({self.place(name)!r}).read()"


@started_by_root_and_user
class Grants(FilesCase):
    def test_a_written_file_belongs_to_the_owner_of_the_grant(self):
        words = allow(f"fs:write:{self.work}/**")
        self.assertEqual(self.attempt(words, self.writing("made")), ["3"])
        info = os.stat(self.place("made"))
        self.assertEqual((info.st_uid, info.st_gid, info.st_mode & 0o777),
                         (self.uid, self.uid, 0o644))

    def test_a_file_alone_can_be_written(self):
        self.file("note", "old")
        self.file("other", "old")
        seen = self.attempt(allow(f"fs:write:{self.place('note')}"), self.writing("note"),
                            self.reading("other"), self.writing("made"))
        self.assertEqual(seen, ["3", "ENOENT", "EROFS"])
        self.assertEqual((self.text("note"), self.text("other")), ("new", "old"))

    def test_a_missing_file_to_be_written_is_made_for_the_caller_alone(self):
        missing = self.place("missing")
        words = allow(f"fs:write:{missing}")
        report = self.report(words, python(f"open({missing!r}, 'w').write('new')"))
        info = os.stat(missing)
        self.assertEqual((info.st_uid, info.st_mode & 0o777), (self.uid, 0o600))
        self.assertEqual(self.text("missing"), "new")
        self.assertIn(f"fs: {missing} was missing and has been made empty", report["notes"])

    def test_a_missing_directory_is_not_made(self):
        missing = self.place("missing")
        for capability in (f"fs:write:{missing}/**", f"fs:create:{missing}/**"):
            self.assertIn(missing, self.refusal(allow(capability)))
            self.assertFalse(os.path.lexists(missing), capability)

    def test_a_missing_file_to_be_read_is_not_made(self):
        self.refusal(allow(f"fs:read:{self.place('missing')}"))
        self.assertFalse(os.path.lexists(self.place("missing")))

    def test_a_pattern_stands_for_what_is_there_now(self):
        for name in ("a.md", "b.md", "c.txt", ".hidden.md"):
            self.file(name, name)
        os.symlink("c.txt", self.place("link.md"))
        words = allow(f"fs:read:{self.work}/*.md")
        seen = self.attempt(words, *[self.reading(name) for name in
                                     ("a.md", "b.md", "c.txt", ".hidden.md", "link.md")])
        self.assertEqual(seen, ["'a.md'", "'b.md'", "ENOENT", "ENOENT", "ENOENT"])
        report = self.report(words, ["/usr/bin/true"])
        self.assertTrue([note for note in report["notes"] if "link.md" in note], report["notes"])
        self.assertTrue([note for note in report["notes"] if "later ones are not covered" in note])

    def test_a_writable_pattern_writes_its_entries_only(self):
        self.file("a.md", "old")
        seen = self.attempt(allow(f"fs:write:{self.work}/*.md"), self.writing("a.md"),
                            self.writing("new.md"))
        self.assertEqual(seen, ["3", "EROFS"])
        self.assertEqual(os.listdir(self.work), ["a.md"])

    def test_a_writable_directory_in_a_readable_tree(self):
        for name in ("note", "in/note", "in/deep/note"):
            self.file(name, "old")
        words = allow(f"fs:read:{self.work}/**", f"fs:write:{self.work}/in/**")
        seen = self.attempt(words, self.reading("note"), self.writing("note"),
                            self.writing("made"), self.writing("in/note"),
                            self.writing("in/deep/note"), self.writing("in/made"))
        self.assertEqual(seen, ["'old'", "EROFS", "EROFS", "3", "3", "3"])
        self.assertEqual((self.text("note"), self.text("in/made")), ("old", "new"))

    def test_a_readable_directory_in_a_writable_tree_stays_writable(self):
        self.file("in/note", "old")
        words = allow(f"fs:write:{self.work}/**", f"fs:read:{self.work}/in/**")
        self.assertEqual(self.attempt(words, self.writing("in/note")), ["3"])

    def test_nothing_beside_a_grant_is_seen(self):
        self.file("in/note", "old")
        self.file("beside", "old")
        seen = self.attempt(allow(f"fs:read:{self.work}/in/**"), self.reading("beside"),
                            f"os.stat({self.tree.root + '/home'!r}).st_size >= 0",
                            f"os.listdir({self.home!r})")
        self.assertEqual(seen, ["ENOENT", "True", "[]"])

    def test_the_home_is_private_and_gone_afterwards(self):
        self.attempt([], f"open({self.home + '/note'!r}, 'w').write('x')")
        self.assertEqual(os.listdir(self.home), [])


@started_by_root_and_user
class Places(FilesCase):
    """Grants in places that mean something to the sandbox itself."""

    def assert_writable(self, directory, **options):
        """The server works in this directory, which exists on the host."""
        note = os.path.join(directory, "note")
        seen = self.attempt(allow(f"fs:write:{quoted(directory + '/**')}"),
                            f"open({note!r}, 'w').write('new')", "os.getcwd()", cwd=directory,
                            **options)
        self.assertEqual(seen, ["3", repr(directory)])
        with open(note, encoding="utf-8") as file:
            self.assertEqual(file.read(), "new")

    def test_inside_the_home(self):
        project = os.path.join(self.home, "projects/one")
        for path in (os.path.dirname(project), project):
            os.mkdir(path)
            self.own(path, 0o700)
        self.file("outside", "text")
        self.assert_writable(project)
        self.assertEqual(self.attempt(allow(f"fs:read:{project}/**"), f"os.listdir({self.home!r})"),
                         ["['projects']"])

    def test_inside_tmp(self):
        place = self.make_tree("/tmp")
        self.own(place.root, 0o700)
        self.assert_writable(place.root)
        seen = self.attempt(allow(f"fs:read:{place.root}/**"), "os.listdir('/tmp')")
        self.assertEqual(seen, [repr([os.path.basename(place.root)])])

    def test_with_an_odd_name(self):
        for name in ("with space", "quote'\"", "back\\slash", "näme", "-dash", "a,b:c"):
            directory = os.path.join(self.work, name)
            os.mkdir(directory)
            self.own(directory, 0o700)
            with self.subTest(name=name):
                self.assert_writable(directory)

    def test_a_file_of_the_system(self):
        seen = self.attempt(allow("fs:read:/etc/debian_version"),
                            "len(open('/etc/debian_version').read()) > 0")
        self.assertEqual(seen, ["True"])

    def test_a_directory_of_programs_shows_what_was_granted(self):
        words = allow("fs:read:/usr/bin/ls")
        seen = self.attempt(words, "len(open('/usr/bin/ls', 'rb').read()) > 0",
                            "open('/usr/bin/cp', 'rb')")
        self.assertEqual(seen, ["True", "ENOENT"])

    def test_what_the_caller_cannot_reach_is_not_given(self):
        secret = self.file("secret/note", "text")
        os.chown(secret, 54321, 54321)
        os.chmod(os.path.dirname(secret), 0o700)
        os.chown(os.path.dirname(secret), 54321, 54321)
        if self.uid != 0:
            self.assertIn("Permission denied", self.refusal(allow(f"fs:read:{secret}")))
        else:  # root can, and the owner of the grant is mapped
            self.assertEqual(self.attempt(allow(f"fs:read:{secret}"), self.reading("secret/note")),
                             ["'text'"])

    def test_other_owners_keep_their_other_bits_only(self):
        self.file("mine", "text")
        for name, mode in (("private", 0o600), ("public", 0o644)):
            os.chown(self.file(name, "text", mode), 54321, 54321)
        seen = self.attempt(allow(f"fs:write:{self.work}/**"), self.reading("mine"),
                            self.reading("private"), self.reading("public"),
                            self.writing("public"))
        self.assertEqual(seen, ["'text'", "EACCES", "'text'", "EACCES"])


@started_by_root_and_user
class Rights(FilesCase):
    """create adds and changes, delete removes, write does everything."""

    def setUp(self):
        super().setUp()
        self.file("note", "old")
        self.file("other", "old")

    def removing(self, name):
        return f"os.unlink({self.place(name)!r})"

    def renaming(self, name, to):
        return f"os.rename({self.place(name)!r}, {self.place(to)!r})"

    def test_create_adds_and_changes_and_removes_nothing(self):
        seen = self.attempt(allow(f"fs:create:{self.work}/**"), self.writing("made"),
                            self.writing("note"), self.removing("other"),
                            self.renaming("other", "moved"))
        self.assertEqual(seen, ["3", "3", "EACCES", "EACCES"])
        self.assertEqual(sorted(os.listdir(self.work)), ["made", "note", "other"])

    def test_delete_removes_and_neither_adds_nor_changes(self):
        seen = self.attempt(allow(f"fs:delete:{self.work}/**"), self.writing("made"),
                            self.writing("note"),
                            f"os.truncate({self.place('note')!r}, 0)", self.removing("other"))
        self.assertEqual(seen, ["EACCES", "EACCES", "EACCES", "None"])
        self.assertEqual((os.listdir(self.work), self.text("note")), (["note"], "old"))

    def test_write_does_everything(self):
        os.mkdir(self.place("in"))
        self.own(self.place("in"), 0o700)
        seen = self.attempt(allow(f"fs:write:{self.work}/**"), self.writing("made"),
                            self.writing("note"), self.renaming("note", "in/moved"),
                            self.removing("other"), f"os.mkdir({self.place('folder')!r})",
                            f"os.symlink('made', {self.place('link')!r})")
        self.assertEqual(seen, ["3", "3", "None", "None", "None", "None"])
        self.assertEqual(sorted(os.listdir(self.work)), ["folder", "in", "link", "made"])

    def test_read_changes_nothing(self):
        seen = self.attempt(allow(f"fs:read:{self.work}/**"), self.reading("note"),
                            self.writing("made"), self.writing("note"), self.removing("note"))
        self.assertEqual(seen, ["'old'", "EROFS", "EROFS", "EROFS"])


@started_by_root_and_user
class Protected(FilesCase):
    """Files that a program of the host runs or trusts later."""

    def setUp(self):
        super().setUp()
        self.words = allow(f"fs:write:{self.work}/**")

    def test_they_cannot_be_changed_where_they_exist(self):
        self.file(".git/hooks/pre-commit", "old")
        self.file(".envrc", "old")
        self.file(".git/index", "old")
        seen = self.attempt(self.words, self.writing(".git/hooks/pre-commit"),
                            self.writing(".git/hooks/post-commit"), self.writing(".envrc"),
                            self.writing(".git/index"), self.writing("note"),
                            self.reading(".envrc"))
        self.assertEqual(seen, ["EROFS", "EROFS", "EROFS", "3", "3", "'old'"])
        self.assertEqual(self.text(".git/hooks/pre-commit"), "old")
        self.assertEqual(os.listdir(self.place(".git/hooks")), ["pre-commit"])

    def test_neither_they_nor_what_holds_them_can_be_moved(self):
        self.file(".git/hooks/pre-commit", "old")
        self.file(".envrc", "old")
        self.file("plain", "old")
        move = "os.rename({!r}, {!r})".format
        seen = self.attempt(self.words, move(self.place(".git/hooks"), self.place(".git/a")),
                            move(self.place(".git"), self.place("b")),
                            move(self.place(".envrc"), self.place("c")),
                            f"os.unlink({self.place('.envrc')!r})",
                            move(self.place("plain"), self.place(".envrc")),
                            move(self.place("plain"), self.place("d")))
        self.assertEqual(seen, ["EBUSY", "EBUSY", "EBUSY", "EBUSY", "EBUSY", "None"])
        self.assertEqual(sorted(os.listdir(self.work)), [".envrc", ".git", "d"])

    def test_named_on_their_own_they_can_be_changed(self):
        self.file(".envrc", "old")
        words = self.words + allow(f"fs:write:{self.place('.envrc')}")
        self.assertEqual(self.attempt(words, self.writing(".envrc")), ["3"])

    def test_named_for_reading_they_can_be_read(self):
        self.file(".git/hooks/pre-commit", "old")
        words = self.words + allow(f"fs:read:{self.place('.git/hooks')}/**")
        self.assertEqual(self.attempt(words, self.reading(".git/hooks/pre-commit"),
                                      self.writing(".git/hooks/pre-commit"),
                                      self.writing(".git/hooks/post-commit")),
                         ["'old'", "EROFS", "EROFS"])

    def test_a_file_in_them_named_on_its_own_can_be_changed(self):
        self.file(".git/hooks/pre-commit", "old")
        words = self.words + allow(f"fs:write:{self.place('.git/hooks/pre-commit')}")
        self.assertEqual(self.attempt(words, self.writing(".git/hooks/pre-commit"),
                                      self.writing(".git/hooks/post-commit")), ["3", "EROFS"])

    def test_one_that_appeared_is_set_aside_and_told(self):
        done = self.run_server(self.words, python(
            f"open({self.place('.mcp.json')!r}, 'w')\nopen({self.place('plain')!r}, 'w')"))
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 0, said)
        self.assertIn(f"capgate: {self.place('.mcp.json')} appeared while the server ran", said)
        self.assertTrue(said.endswith("capgate: 1 set aside while the server ran:\n"
                                      f"  {self.place('.mcp.json')} is now .mcp.json.set-aside-1\n"), said)
        self.assertNotIn("plain", said)
        self.assertEqual(said.count("appeared"), 1, said)
        self.assertEqual(sorted(os.listdir(self.work)), [".mcp.json.set-aside-1", "plain"])

    def test_one_that_was_there_is_not_told(self):
        self.file(".mcp.json", "{}")
        done = self.run_server(self.words, ["/usr/bin/true"])
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_nothing_of_ours_appears_on_the_host(self):
        self.file(".git/hooks/pre-commit", "old")
        before = self.tree.snapshot()
        self.output(self.words, ["/usr/bin/true"])
        self.assertEqual(self.tree.snapshot(), before)

    def test_the_report_says_what_is_held_and_what_is_not(self):
        self.file(".envrc", "old")
        report = self.report(self.words, ["/usr/bin/true"])
        held = [each["guarantee"] for each in report["guarantees"]]
        self.assertIn(f"{self.place('.envrc')} cannot be changed or moved", held)
        told = [line for line in report["notHeld"] if "appears later" in line]
        self.assertEqual(len(told), 1)

    def test_a_protected_name_that_is_a_link_is_told(self):
        """It cannot be held, so the report must not be silent about it."""
        self.file("elsewhere", "old")
        os.symlink("elsewhere", self.place(".envrc"))
        report = self.report(self.words, ["/usr/bin/true"])
        told = [each for each in report["notes"] + report["notHeld"] if ".envrc" in each]
        self.assertTrue(told, report)


@started_by_root_and_user
class Hidden(FilesCase):
    """Files that usually hold secrets, at the root of a granted directory."""

    def setUp(self):
        super().setUp()
        self.words = allow(f"fs:write:{self.work}/**")

    def test_a_name_that_is_hidden_elsewhere_can_be_made_here(self):
        """Nothing was replaced, so the server goes on."""
        self.file(".env", "secret")
        other = self.own(self.tree.directory("other"), 0o700)
        with open(os.path.join(other, ".env.local"), "w", encoding="utf-8") as file:
            file.write("secret")
        made = os.path.join(other, ".env")
        # The end of its input is the time that capgate has to see what was made.
        server = python(f"import sys\nopen({made!r}, 'w').close()\nprint('made', flush=True)\n"
                        "sys.stdin.read()\n")
        process = self.start(self.words + allow(f"fs:write:{other}/**"), server)
        self.assertEqual(process.stdout.readline(), b"made\n")
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(1)
        process.stdin.close()
        self.assertEqual(process.wait(), 0)

    def test_one_that_is_a_link_is_told(self):
        self.file("elsewhere", "secret")
        os.symlink("elsewhere", self.place(".env"))
        report = self.report(self.words, ["/usr/bin/true"])
        told = [each for each in report["notes"] + report["notHeld"] if "/.env " in each]
        self.assertTrue(told, report)


if __name__ == "__main__":
    unittest.main()
