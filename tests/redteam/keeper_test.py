"""Attacks 15, 16: what a program of the host runs or believes later, in a directory that the server may
write. It stays as it is when the host replaces it, and what appears is set aside before it is run.
"""

import json
import os
import subprocess
import unittest

from redteam import ORDINARY, READ_ONLY, Redteam, as_user, canary, launch, started_by_root_and_user

GIT = "/usr/bin/git"
# Runs each line of its input as Python and says how that ended.
SERVER = """
import errno, os, subprocess, sys
os.chdir(sys.argv[1])
for line in sys.stdin:
    try:
        exec(line)
        print("done", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""


class KeeperCase(Redteam):
    def setUp(self):
        super().setUp()
        self.allow = [f"fs:write:{self.work}/**", "exec:spawn:git", "exec:spawn:sh"]

    def place(self, name):
        return os.path.join(self.work, name)

    def host(self, *words):
        """git of the host's user, in the granted directory."""
        env = self.environment() | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(as_user([GIT, "-C", self.work, "-c", "user.name=a", "-c", "user.email=a@b.c",
                                       *words], ORDINARY), env=env, cwd="/", check=True, capture_output=True)

    def serve(self, allow=None):
        command = [launch.PYTHON, "-I", "-c", SERVER, self.work]
        return self.start(self.sandboxed(command, self.allow if allow is None else allow))

    def ask(self, server, line):
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
        return server.stdout.readline().decode().strip()

    def said(self, server):
        return server.stderr.readline().decode()

    def finished(self, server):
        done = launch.finish(server)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stderr.decode()

    def assert_set_aside(self, server, path, why=""):
        """Said at once, with the way back."""
        aside = f"{path}.set-aside-1"
        what = f" with {why}" if why else ""
        self.assertEqual(self.said(server), f"capgate: {path} appeared{what} while the server ran, and "
                         f"programs of yours may run what it says: it is now {aside}\n")
        self.assertEqual(self.said(server),
                         f"help: look at it; to have it back: mv -n -- {aside} {path}\n")
        self.assertFalse(os.path.lexists(path))
        self.assertTrue(os.path.lexists(aside))


@started_by_root_and_user
class Replaced(KeeperCase):
    """A read-only entry that the host replaces while the server runs."""

    def setUp(self):
        super().setUp()
        self.host("init", "-q")

    def assert_read_only_again(self, server, path):
        self.assertEqual(self.said(server),
                         f"capgate: {path} was replaced on the host; it is read-only again\n")
        self.assertIn(self.ask(server, f"open({path!r}, 'a').write('x')"), READ_ONLY)

    def test_git_config(self):
        config = self.place(".git/config")
        self.assert_open(self.outside(f"append={config}"))
        server = self.serve()
        self.assertIn(self.ask(server, "open('.git/config', 'a')"), READ_ONLY)
        for name in ("one", "two", "three"):
            self.host("config", "user.name", name)
            self.assert_read_only_again(server, config)
        self.assertIn(self.ask(server, "os.rename('.git', 'away')"), ("EBUSY",))
        self.assertEqual(self.finished(server), "")

    def test_a_checkout_that_touches_envrc(self):
        with open(self.place(".envrc"), "w", encoding="utf-8") as file:
            file.write("one")
        os.chown(self.place(".envrc"), ORDINARY, ORDINARY)
        self.host("add", ".envrc")
        self.host("commit", "-qm", "one")
        self.host("commit", "-qm", "two", "--allow-empty")
        self.host("checkout", "-q", "-b", "other")
        with open(self.place(".envrc"), "w", encoding="utf-8") as file:
            file.write("two")
        self.host("commit", "-qam", "three")
        server = self.serve()
        self.assertIn(self.ask(server, "open('.envrc', 'a')"), READ_ONLY)
        self.host("checkout", "-q", "-")
        self.assert_read_only_again(server, self.place(".envrc"))
        self.assertEqual(self.finished(server), "")


@started_by_root_and_user
class Appears(KeeperCase):
    """A name that was not there."""

    def test_it_is_set_aside_at_once_and_told_again_at_the_end(self):
        names = [".mcp.json", ".envrc", ".vscode", ".claude/settings.json", ".github/workflows",
                 ".cursor/mcp.json"]
        server = self.serve()
        for name in names:
            made = f"os.makedirs({name!r})" if "." not in os.path.basename(name)[1:] and name != ".envrc" \
                else f"os.makedirs({os.path.dirname(name) or '.'!r}, exist_ok=True); open({name!r}, 'w')"
            self.assertEqual(self.ask(server, made), "done", name)
            self.assert_set_aside(server, self.place(name))
        last = self.finished(server)
        self.assertIn(f"capgate: {len(names)} set aside while the server ran:\n", last)
        for name in names:
            self.assertIn(f"  {self.place(name)} is now {os.path.basename(name)}.set-aside-1\n", last)

    def test_also_when_the_server_ends_at_once(self):
        done = self.finish(self.sandboxed([launch.PYTHON, "-I", "-c",
                                           f"open({self.place('.mcp.json')!r}, 'w')"], self.allow))
        self.assertIn(".mcp.json appeared", done.stderr.decode())
        self.assertEqual(os.listdir(self.work), [".mcp.json.set-aside-1"])

    def test_nothing_is_overwritten(self):
        kept = self.tree.file("work/.mcp.json.set-aside-1", "precious")
        server = self.serve()
        self.ask(server, "open('.mcp.json', 'w')")
        self.assertIn("it is now " + self.place(".mcp.json.set-aside-2"), self.said(server))
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_one_that_is_moved_or_linked_into_place(self):
        server = self.serve()
        for line in ("open('x', 'w'); os.rename('x', '.envrc')",
                     "os.symlink('/etc/passwd', '.mcp.json')",
                     "open('y', 'w'); os.link('y', '.npmrc')",
                     "os.mkdir('d'); open('d/tasks.json', 'w'); os.rename('d', '.vscode')"):
            self.assertEqual(self.ask(server, line), "done", line)
        for name in (".envrc", ".mcp.json", ".npmrc", ".vscode"):
            self.assert_set_aside(server, self.place(name))

    def test_what_the_manifest_names_is_left(self):
        server = self.serve([*self.allow, f"fs:write:{self.work}/.mcp.json"])
        self.assertEqual(self.ask(server, "open('.mcp.json', 'w').write('x')"), "done")
        self.assertEqual(self.ask(server, "open('.envrc', 'w')"), "done")
        self.assert_set_aside(server, self.place(".envrc"))
        self.assertTrue(os.path.exists(self.place(".mcp.json")))

    def test_in_a_directory_that_was_there(self):
        self.tree.directory("work/sub/deep")
        server = self.serve()
        self.ask(server, "open('sub/deep/.envrc', 'w')")
        self.assert_set_aside(server, self.place("sub/deep/.envrc"))


@started_by_root_and_user
class Repositories(KeeperCase):
    """git init and git clone are ordinary work; what git would run is not."""

    def make(self, server, name="new"):
        line = f"subprocess.run([{GIT!r}, 'init', '-q', {name!r}], check=True)"
        self.assertEqual(self.ask(server, line), "done")

    def runs_when_used(self, repository, mark):
        """The control: whether git of the host runs what the repository says."""
        subprocess.run(as_user([GIT, "-C", repository, "status"], ORDINARY), cwd="/", check=False,
                       capture_output=True, env=self.environment())
        return os.path.exists(mark)

    def test_init_and_clone_succeed_and_nothing_is_set_aside(self):
        self.tree.directory("work/origin")
        server = self.serve()
        self.make(server, "origin")
        lines = ["open('origin/file', 'w').write('x')",
                 f"git = [{GIT!r}, '-c', 'user.name=a', '-c', 'user.email=a@b.c']",
                 "subprocess.run([*git, '-C', 'origin', 'add', 'file'], check=True)",
                 "subprocess.run([*git, '-C', 'origin', 'commit', '-qm', 'x'], check=True)",
                 "subprocess.run([*git, 'clone', '-q', 'origin', 'copy'], check=True)",
                 "subprocess.run([*git, '-C', 'copy', 'remote', 'add', 'x', 'https://example.com/x'], check=True)",
                 "subprocess.run([*git, '-C', 'copy', 'checkout', '-q', '-b', 'y'], check=True)"]
        for line in lines:
            self.assertEqual(self.ask(server, line), "done", line)
        self.assertEqual(self.finished(server), "")
        self.assertEqual(sorted(os.listdir(self.place("copy"))), [".git", "file"])

    def test_a_setting_that_runs_a_program(self):
        mark = self.tree.path(canary())
        server = self.serve()
        self.make(server)
        line = (f"subprocess.run([{GIT!r}, '-C', 'new', 'config', 'core.fsmonitor', 'touch {mark};false'],"
                " check=True)")
        self.assertEqual(self.ask(server, line), "done")
        config = self.place("new/.git/config")
        self.assert_set_aside(server, config, "core.fsmonitor")
        self.assertFalse(self.runs_when_used(self.place("new"), mark))
        os.rename(config + ".set-aside-1", config)
        # The keeper is still there, and takes it away again; so the control is run without one.
        self.assertIn("appeared", self.said(server))
        self.finished(server)
        os.rename(config + ".set-aside-2", config) if os.path.exists(config + ".set-aside-2") else \
            os.rename(config + ".set-aside-1", config)
        self.assertTrue(self.runs_when_used(self.place("new"), mark), "the control")

    def test_a_hook(self):
        server = self.serve()
        self.make(server)
        for line in ("open('new/.git/hooks/pre-commit', 'w').write('x')",
                     "os.chmod('new/.git/hooks/pre-commit', 0o755)"):
            self.assertEqual(self.ask(server, line), "done")
        self.assert_set_aside(server, self.place("new/.git/hooks/pre-commit"))

    def test_git_directories_by_another_way(self):
        server = self.serve()
        self.make(server)
        for line, name in (("open('.git', 'w').write('gitdir: new/.git')", ".git"),
                           ("os.makedirs('new/.git/modules/a'); open('new/.git/modules/a/commondir', 'w')",
                            "new/.git/modules/a/commondir"),
                           ("open('new/.git/config.worktree', 'w').write('[core]\\npager = x')",
                            "new/.git/config.worktree")):
            self.assertEqual(self.ask(server, line), "done", line)
            path = self.place(name)
            self.assertIn(f"capgate: {path} appeared", self.said(server))
            self.assertIn("help: ", self.said(server))
            self.assertFalse(os.path.lexists(path), name)


@started_by_root_and_user
class Held(KeeperCase):
    """Names are found by their whole path, at any depth that the walk reaches."""

    def assert_held(self, path, allow):
        self.assert_open(self.outside(f"append={path}"))
        self.assert_shut(self.inside(f"append={path}", allow=allow), *READ_ONLY)
        above = os.path.dirname(path)
        if above not in [each.split(":", 2)[2].removesuffix("/**") for each in allow]:
            self.assert_shut(self.inside(f"rename={above},{above}.away", allow=allow), *READ_ONLY, "EBUSY",
                             "EXDEV")

    def test_a_work_tree_whose_git_is_a_file(self):
        path = self.tree.file("work/.git", "gitdir: /nowhere\n")
        self.assert_open(self.outside(f"append={path}"))
        self.assert_shut(self.inside(f"append={path}", allow=[f"fs:write:{self.work}/**"]), *READ_ONLY)

    def test_submodules_and_work_trees(self):
        for name in ("modules/a/config", "modules/a/b/hooks/pre-commit", "worktrees/x/commondir"):
            path = self.tree.file(f"work/.git/{name}", "")
            self.assert_held(path, [f"fs:write:{self.work}/**"])

    def test_grants_that_begin_inside(self):
        for grant, name in ((".git", "config"), (".git", "hooks/pre-commit"),
                            (".git/modules", "a/config"), (".github", "workflows/x.yml"),
                            (".claude", "settings.json")):
            with self.subTest(grant=grant, name=name):
                path = self.tree.file(f"work/{grant}/{name}", "")
                self.assert_held(path, [f"fs:write:{self.work}/{grant}/**"])

    def test_deeper_projects(self):
        for name in ("a/.envrc", "a/b/.vscode/tasks.json", "a/b/c/.git/hooks/x"):
            path = self.tree.file(f"work/{name}", "")
            self.assert_held(path, [f"fs:write:{self.work}/**"])

    def test_a_weaker_grant_above_takes_nothing_away(self):
        path = self.tree.file("work/project/.envrc", "")
        for weaker in ("create", "delete"):
            self.assert_held(path, [f"fs:{weaker}:{self.work}/**", f"fs:write:{self.work}/project/**"])

    def test_what_is_too_deep_is_said(self):
        deep = "/".join("d" for _ in range(100))
        self.tree.file(f"work/{deep}/.envrc", "")
        where = os.path.join(self.home, "report")
        done = self.finish(self.sandboxed([self.probe, "ids"], [f"fs:write:{self.work}/**"],
                                          ["--report", where]))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(where, encoding="utf-8") as file:
            report = json.load(file)
        told = [line for line in report["notHeld"] if "not looked at" in line]
        self.assertEqual(len(told), 1, report["notHeld"])
        self.assertIn(f"{self.work}/d/", told[0])


if __name__ == "__main__":
    unittest.main()
