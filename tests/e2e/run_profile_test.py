"""capgate run --profile: a HOME that is kept from run to run, and stays the server's alone."""

import os
import socket
import stat
import unittest

import launch
from cases import quoted, service, started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python


def setUpModule():
    adopt_orphans()


class ProfileCase(RunCase):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.home, ".local/state")

    def kept(self, name="one"):
        return os.path.join(self.state, "capgate", name, "home")

    def in_home(self, name):
        return os.path.join(self.home, name)

    def writing(self, name, text="kept"):
        return f"open({self.in_home(name)!r}, 'w').write({text!r})"

    def reading(self, name):
        return f"open({self.in_home(name)!r}).read()"

    def in_profile(self, *attempts, name="one", words=(), **options):
        return self.attempt(["--profile", name, *words], *attempts, **options)

    def directory(self, path):
        """A directory of the caller's on the host, with its parents."""
        at = self.tree.root
        for part in os.path.relpath(path, self.tree.root).split("/"):
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.own(at, 0o700)
        return path


@started_by_root_and_user
class Home(ProfileCase):
    def test_it_is_kept_from_run_to_run(self):
        self.assertEqual(self.in_profile(self.writing("note")), ["4"])
        self.assertEqual(self.in_profile(self.reading("note"), "os.environ['HOME']"),
                         ["'kept'", repr(self.home)])
        # The control: without a profile nothing is.
        self.assertEqual(self.attempt([], self.reading("note"), self.writing("other")),
                         ["ENOENT", "4"])
        self.assertEqual(self.attempt([], self.reading("other")), ["ENOENT"])

    def test_it_lies_in_the_state_directory_for_the_caller_alone(self):
        self.in_profile(self.writing("note"))
        at = self.kept()
        with open(os.path.join(at, "note"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "kept")
        self.assertEqual(os.stat(os.path.join(at, "note")).st_uid, self.uid)
        while at != self.home:
            info = os.lstat(at)
            self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode)), (self.uid, 0o700), at)
            at = os.path.dirname(at)
        self.assertEqual(os.listdir(self.home), [".local"])

    def test_two_profiles_are_apart(self):
        self.in_profile(self.writing("note"))
        seen = self.in_profile(self.reading("note"), f"os.listdir({self.home!r})",
                               f"open({self.kept() + '/note'!r})", name="two")
        self.assertEqual(seen, ["ENOENT", "[]", "ENOENT"])

    def test_the_home_of_the_caller_is_not_in_it(self):
        with open(self.own_file(self.in_home("mine")), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")
        self.assertEqual(self.in_profile(self.reading("mine"), f"os.listdir({self.home!r})"),
                         ["ENOENT", "[]"])

    def own_file(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        return self.own(path, 0o600)

    def test_the_state_directory_can_be_chosen(self):
        chosen = self.own(self.tree.directory("chosen"), 0o700)
        env = self.environment(XDG_STATE_HOME=chosen)
        self.in_profile(self.writing("note"), env=env)
        self.assertEqual(os.listdir(f"{chosen}/capgate/one/home"), ["note"])
        self.assertFalse(os.path.lexists(self.state))
        self.assertEqual(self.in_profile(self.reading("note"), env=env), ["'kept'"])

    def test_a_relative_state_directory_is_none(self):
        """As the specification of these variables wants it."""
        self.in_profile(self.writing("note"), env=self.environment(XDG_STATE_HOME="here"))
        self.assertEqual(os.listdir(self.kept()), ["note"])

    def test_one_that_cannot_be_made_is_a_refusal(self):
        env = self.environment(XDG_STATE_HOME="/proc/nowhere")
        said = self.refusal(["--profile", "one"], env=env)
        self.assertIn("cannot make /proc/nowhere", said)
        self.assertIn("XDG_STATE_HOME", said)

    def test_a_name_is_one_plain_word(self):
        for name in ("", ".", "..", "a/b", "../a", "a b", "a\n", "ä", "a" * 65):
            with self.subTest(name=name):
                self.assertIn("--profile cannot be", self.refusal(["--profile", name]))
        self.assertEqual(os.listdir(self.home), [])
        for name in ("a" * 64, "a.b-c_D9", "..."):
            with self.subTest(name=name):
                self.assertEqual(self.in_profile(self.writing("note"), name=name), ["4"])
                self.assertEqual(os.listdir(self.kept(name)), ["note"])

    def test_two_runs_at_once_share_it(self):
        listing = python(f"import sys, os\nsys.stdin.read()\nprint(os.listdir({self.home!r}))")
        first = self.start(["--profile", "one"], listing)
        self.in_profile(self.writing("note"))
        self.assertEqual(launch.finish(first).stdout.decode(), "['note']\n")

    def test_a_dry_run_makes_nothing(self):
        before = self.tree.snapshot()
        self.dry_run(["--profile", "one"], ["/usr/bin/true"])
        self.assertEqual(self.tree.snapshot(), before)


@started_by_root_and_user
class GrantsInIt(ProfileCase):
    def setUp(self):
        super().setUp()
        self.project = self.directory(self.in_home("projects/one"))
        self.words = allow(f"fs:write:{self.project}/**")

    def test_they_are_mounted(self):
        for _ in range(2):  # the second time everything is there already
            seen = self.in_profile(self.writing("projects/one/note"), self.writing("own"),
                                   words=self.words)
            self.assertEqual(seen, ["4", "4"])
        self.assertEqual(os.listdir(self.project), ["note"])
        self.assertEqual(sorted(os.listdir(self.kept())), ["own", "projects"])
        self.assertEqual(os.listdir(self.kept() + "/projects/one"), [])
        # Without the grant the place is there, and empty.
        self.assertEqual(self.in_profile(f"os.listdir({self.project!r})", self.reading("own")),
                         ["[]", "'kept'"])

    def test_a_single_file_is_mounted(self):
        path = os.path.join(self.home, "settings")
        with open(path, "w", encoding="utf-8") as file:
            file.write("mine")
        self.own(path, 0o600)
        seen = self.in_profile(self.reading("settings"), self.writing("settings"),
                               words=allow(f"fs:read:{path}"))
        self.assertEqual(seen, ["'mine'", "EROFS"])

    def test_a_script_below_home_is_mounted(self):
        script = os.path.join(self.project, "server.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!{launch.PYTHON}\nprint('started')\n")
        self.own(script, 0o700)
        for words in ([], ["--profile", "one"], ["--profile", "one"]):
            self.assertEqual(self.output(words, [script]), "started\n")

    def test_a_socket_below_home_is_mounted(self):
        path = self.in_home("service")
        client = ("import socket, sys\n"
                  "with socket.socket(socket.AF_UNIX) as client:\n"
                  "    client.connect(sys.argv[1])\n"
                  "    print(client.recv(100).decode())\n")
        words = allow(f"ipc:connect:{quoted('unix:' + path)}")
        with service(socket.AF_UNIX, path):
            self.own(path, 0o600)
            for each in (words, ["--profile", "one", *words], ["--profile", "one", *words]):
                self.assertEqual(self.output(each, python(client, path)), "hello from the host\n")

    def assert_leads_nowhere(self, plant):
        """A server leaves something in its HOME where the next run mounts a grant."""
        victim = self.own(self.tree.directory("victim"), 0o700)
        self.assertEqual(self.in_profile(plant.format(victim=victim)), ["None"])
        done = self.run_server(["--profile", "one", *self.words], ["/usr/bin/true"])
        self.assertEqual(os.listdir(victim), [])
        self.assertEqual(os.listdir(self.project), [])
        if done.returncode != 0:
            self.assertEqual(done.returncode, 125)
            self.assertIn("projects", done.stderr.decode())

    def test_a_link_that_the_server_left_leads_nowhere(self):
        self.assert_leads_nowhere(f"os.symlink('{{victim}}', {self.in_home('projects')!r})")

    def test_a_link_at_the_place_itself_leads_nowhere(self):
        self.assert_leads_nowhere(f"[os.mkdir({self.in_home('projects')!r}), "
                                  f"os.symlink('{{victim}}', {self.project!r})][1]")

    def test_a_file_that_the_server_left_is_a_refusal(self):
        self.in_profile(self.writing("projects"))
        said = self.refusal(["--profile", "one", *self.words])
        self.assertIn(self.project, said)


if __name__ == "__main__":
    unittest.main()
