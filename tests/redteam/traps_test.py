"""What an earlier run, the workspace or the caller's environment left for the next start.

The set-up reads and makes files of the host with the caller's rights. Nothing that a server could
have put in its way may lead it elsewhere, and no spelling of a path may lose a protection.
"""

import os
import shutil
import subprocess
import unittest

from redteam import (ORDINARY, READ_ONLY, REFUSED, Redteam, as_user, canary,
                     started_by_root_and_user)


class Traps(Redteam):

    def state(self):
        return {"XDG_STATE_HOME": self.tree.directory("state")}

    def trap(self, name, target):
        """A link that belongs to an ordinary user: those of root are trusted."""
        link = self.tree.link(name, target)
        os.chown(link, ORDINARY, ORDINARY, follow_symlinks=False)
        return link

    def run_inside(self, *attempts, allow=(), options=(), env=None):
        return self.finish(self.sandboxed([self.probe, "--direct", *attempts], allow, options),
                           env=env)


@started_by_root_and_user
class State(Traps):
    """The kept HOME of a profile, which a server can write between starts."""

    def test_05_a_link_in_a_kept_home_makes_nothing_elsewhere(self):
        victim = self.tree.directory("victim")
        self.tree.directory("home/projects/inner")
        self.tree.file("home/projects/file", "")
        link = os.path.join(self.home, "projects")
        profile = ["--profile", "kept"]
        planted = self.run_inside(f"symlink={victim},{link}", options=profile, env=self.state())
        self.assertIn(b"OPEN", planted.stdout, planted.stderr.decode())
        for grant in (f"fs:read:{link}/inner/**", f"fs:write:{link}/file"):
            with self.subTest(grant=grant):
                done = self.run_inside("ids", allow=[grant], options=profile, env=self.state())
                self.assertEqual(os.listdir(victim), [])
                self.assertEqual(done.returncode, REFUSED)

    def test_05_a_link_on_the_way_to_a_kept_home_is_not_followed(self):
        """Another server may have been given the directory that holds the profiles."""
        secret = canary()
        self.tree.file("victim/home/key", secret)
        self.tree.directory("state/capgate")
        self.trap("state/capgate/kept", self.tree.path("victim"))
        done = self.run_inside(f"read={self.home}/key", options=["--profile", "kept"],
                               env=self.state())
        self.assertNotIn(secret, done.stdout.decode())
        self.assertEqual(done.returncode, REFUSED, done.stderr.decode())

    def test_05_nothing_is_made_through_a_link_on_the_way_to_a_kept_home(self):
        victim = self.tree.directory("victim")
        self.tree.directory("state/capgate")
        self.trap("state/capgate/kept", victim)
        self.run_inside("ids", options=["--profile", "kept"], env=self.state())
        self.assertEqual(os.listdir(victim), [])


@started_by_root_and_user
class Grants(Traps):

    def test_05_a_missing_file_is_not_made_through_a_link(self):
        victim = self.tree.directory("victim")
        self.trap("work/sub", victim)
        self.refused(allow=[f"fs:write:{self.work}/sub/new"])
        self.assertEqual(os.listdir(victim), [])

    def test_16_leave_to_read_a_protected_path_is_no_leave_to_write_it(self):
        hooks = self.tree.directory("work/.git/hooks")
        config = self.tree.file("work/.git/config", "")
        for action in ("write", "read"):
            found = self.inside(f"create={hooks}/{action}", f"append={config}", allow=[
                f"fs:write:{self.work}", f"fs:{action}:{hooks}/**", f"fs:{action}:{config}"])
            if action == "write":
                self.assert_open(found)
            else:
                self.assert_shut(found, *READ_ONLY)


class Links(Redteam):
    """A link of root's on the way to the home directory, as some distributions have /home."""

    def setUp(self):
        super().setUp()
        self.tree.link("linked", "home")  # the test runs as root, who owns it
        self.secret = canary()
        self.file = self.tree.file("home/alice/.config/containers/auth.json", self.secret)

    def read(self, home, grant):
        env = {"HOME": self.tree.path(home)}
        words = [self.probe, "--direct", f"read={self.file}"]
        return self.finish(self.sandboxed(words, [f"fs:read:{self.tree.path(grant)}"]), env=env)

    def test_g17_credentials_stay_hidden_whatever_links_lead_to_them(self):
        for home in ("home/alice", "linked/alice"):
            for way in ("home/alice/.config", "linked/alice/.config"):
                with self.subTest(home=home, grant=way):
                    done = self.read(home, way)
                    self.assertEqual(done.stdout.decode(), f"read={self.file} OPEN\n", "empty")

    def test_g8_a_home_directory_is_refused_under_its_other_name(self):
        done = self.read("home/alice", "linked/alice/**")
        self.assertNotIn(self.secret, done.stdout.decode())
        self.assertEqual(done.returncode, REFUSED)


class Workspace(Redteam):

    def test_g17_secrets_beside_an_interpreter_are_hidden_without_any_grant(self):
        """A project whose directory is a Python environment."""
        secret = self.tree.file("project/.env", canary())
        self.tree.directory("project/lib")
        self.tree.directory("project/bin")
        python = shutil.copy("/usr/bin/python3", self.tree.path("project/bin/python3"))
        script = f"print('read', repr(open({secret!r}).read()))"
        for allow in ([f"fs:read:{self.work}"], []):
            with self.subTest(allow=allow):
                done = self.finish(self.sandboxed([python, "-c", script], allow))
                self.assertEqual(done.stdout, b"read ''\n", done.stderr.decode())

    def test_16_another_git_directory_is_set_aside(self):
        """.git/commondir makes git take its configuration, and so programs, from elsewhere."""
        subprocess.run(as_user(["git", "init", "-q", self.work], ORDINARY), check=True,
                       env=self.environment(), cwd="/")
        ran = self.tree.path("ran")
        script = ("import os\n"
                  f"os.chdir({self.work!r})\n"
                  "for name in ('objects', 'refs'): os.makedirs('evil/' + name)\n"
                  "open('evil/config', 'w').write("
                  f"'[core]\\nrepositoryformatversion=0\\nfsmonitor=\"echo>{ran};false\"\\n')\n"
                  "open('.git/commondir', 'w').write('../evil')\n")
        done = self.finish(self.sandboxed(["/usr/bin/python3", "-c", script],
                                          [f"fs:write:{self.work}"]))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn(".git/commondir appeared", done.stderr.decode())
        status = as_user(["git", "-C", self.work, "status"], ORDINARY)
        self.finish(status)
        self.assertFalse(os.path.exists(ran))
        aside = self.tree.path("work/.git/commondir.set-aside-1")
        os.rename(aside, self.tree.path("work/.git/commondir"))
        self.finish(status)
        self.assertTrue(os.path.exists(ran), "the control: git runs what it says")


class Environment(Redteam):
    """Variables of the caller that fill the holes of a plan."""

    def test_09_a_variable_that_names_itself_ends(self):
        for env, allow in (({"DISPLAY": ":${DISPLAY}"}, "ipc:connect:x11"),
                           ({"XDG_RUNTIME_DIR": "/a${XDG_RUNTIME_DIR}"},
                            "ipc:connect:dbus:session")):
            with self.subTest(env=env):
                self.refused(allow=[allow], env=env)

    def test_09_a_relative_runtime_directory_is_refused(self):
        listener = self.tree.path("work/sub/bus")
        self.tree.directory("work/sub")
        subprocess.run(as_user(["/usr/bin/python3", "-c",
                                "import socket, sys\n"
                                "socket.socket(socket.AF_UNIX).bind(sys.argv[1])", listener],
                               ORDINARY), check=True)
        self.refused(allow=["ipc:connect:dbus:session"], env={"XDG_RUNTIME_DIR": "sub"},
                     cwd=self.work)


if __name__ == "__main__":
    unittest.main()
