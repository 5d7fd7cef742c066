"""A server changes neither what starts it nor what runs outside: clients' configurations, wrapped
files, capgate's own programs, and what providers of secrets run."""

import json
import os
import shutil
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from config_test import ConfigCase
from run_cases import PATH, adopt_orphans, allow

PROJECT_FILES = [".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".zed/settings.json",
                 ".codex/config.toml", ".gemini/settings.json", "opencode.json", "opencode.jsonc",
                 ".roo/mcp.json", ".kiro/settings/mcp.json", ".factory/mcp.json"]


def setUpModule():
    adopt_orphans()


def attacks(path):
    """Every way to give a file another text, or its name to another file."""
    other = os.path.dirname(path) + "/planted"
    return [f"open({path!r}, 'w').write('evil')", f"open({path!r}, 'r+').truncate(0)",
            f"os.unlink({path!r})", f"os.rename({path!r}, {path + '-'!r})",
            f"open({other!r}, 'w').write('evil') and os.rename({other!r}, {path!r})",
            f"os.chmod({path!r}, 0o777)",
            f"os.rename({os.path.dirname(path)!r}, {os.path.dirname(path) + '-'!r})"]


class KeptCase(ConfigCase):
    def put(self, name, text="{}", mode=0o600):
        """A file of the caller's below the tree."""
        path = os.path.join(self.tree.root, name)
        self.made(os.path.dirname(name))
        self.written(path, text)
        return self.own(path, mode)

    def outside(self, attempt):
        """The control: the same expression as the same user, in no sandbox."""
        done = subprocess.run([launch.PYTHON, "-I", "-S", "-c", f"import os\n{attempt}"],
                              preexec_fn=lambda: launch.become(self.uid), check=False,
                              capture_output=True, timeout=launch.SECONDS)
        return done.returncode == 0

    @staticmethod
    def bytes_of(path):
        with open(path, "rb") as file:
            return file.read()

    def assert_kept(self, words, *paths, **options):
        """None of the attacks on these files changes anything."""
        before = {path: (os.lstat(path).st_ino, os.path.realpath(path)) for path in paths}
        texts = {path: self.bytes_of(path) for path in paths}
        tries = [each for path in paths for each in attacks(path)]
        for attempt, result in zip(tries, self.attempt(words, *tries, **options)):
            self.assertIn(result, ("EROFS", "EACCES", "EBUSY", "EXDEV", "EPERM"), attempt)
        for path in paths:
            self.assertEqual((os.lstat(path).st_ino, os.path.realpath(path)), before[path])
            self.assertEqual(self.bytes_of(path), texts[path], path)

    def assert_written(self, words, path, **options):
        self.assertEqual(self.attempt(words, f"open({path!r}, 'w').write('evil')", **options), ["4"])


@started_by_root_and_user
class ClientFiles(KeptCase):
    """Of every client that wrap knows."""

    def test_those_of_a_project(self):
        paths = [self.put(f"work/{name}") for name in PROJECT_FILES]
        for path in paths:
            self.assertTrue(self.outside(f"open({path!r}, 'w').write('good')"), path)
        self.assert_kept(allow(f"fs:write:{self.work}/**"), *paths)
        self.assert_written(allow(f"fs:write:{self.work}/**"), self.put("work/settings.json"))

    def test_those_of_the_callers_directory_deeper_in_a_grant(self):
        path = self.put("work/deep/project/.gemini/settings.json")
        self.assert_kept(allow(f"fs:write:{self.work}/**"), path,
                         cwd=os.path.join(self.work, "deep/project"))

    def test_those_of_the_home_directory(self):
        paths = [self.put("home/.config/zed/settings.json"), self.put("home/.config/amp/settings.json"),
                 self.put("home/.config/Code/User/mcp.json"),
                 self.put("home/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
                          "cline_mcp_settings.json")]
        self.assert_kept(allow(f"fs:write:{self.home}/.config/zed/**",
                               f"fs:write:{self.home}/.config/amp/**",
                               f"fs:write:{self.home}/.config/Code/**"), *paths)

    def test_those_that_variables_name(self):
        paths = [self.put("work/cc/.claude.json"), self.put("work/cx/config.toml"),
                 self.put("work/xdg/zed/settings.json")]
        env = self.environment(CLAUDE_CONFIG_DIR=f"{self.work}/cc", CODEX_HOME=f"{self.work}/cx",
                               XDG_CONFIG_HOME=f"{self.work}/xdg")
        os.mkdir(f"{self.work}/xdg/capgate")
        self.own(f"{self.work}/xdg/capgate", 0o700)
        words = allow(f"fs:write:{self.work}/cc/**", f"fs:write:{self.work}/cx/**",
                      f"fs:write:{self.work}/xdg/zed/**")
        self.assert_kept(words, *paths, env=env)

    def test_links_and_what_they_lead_to(self):
        """Dotfiles that lie elsewhere: the link can be turned as little as its target changed."""
        real = self.put("work/dotfiles/zed.json")
        link = os.path.join(self.made("work/project/.zed"), "settings.json")
        os.symlink(real, link)
        os.lchown(link, self.uid, self.uid)
        words = allow(f"fs:write:{self.work}/**")
        cwd = os.path.join(self.work, "project")
        self.assert_kept(words, real, cwd=cwd)
        other = self.put("work/dotfiles/other.json")
        tries = [f"os.unlink({link!r})", f"os.rename({link!r}, {link + '-'!r})",
                 f"os.symlink({other!r}, {link + '+'!r}) or os.rename({link + '+'!r}, {link!r})"]
        self.assertEqual(self.attempt(words, *tries, cwd=cwd), ["EBUSY"] * 3)
        self.assertEqual(os.readlink(link), real)

    def test_an_inner_grant_does_not_uncover_it(self):
        path = self.put("work/.vscode/mcp.json")
        words = allow(f"fs:write:{self.work}/**", f"fs:write:{self.work}/.vscode/**")
        self.assert_kept(words, path, cwd=self.work)
        self.assert_written(words, self.put("work/.vscode/tasks.json"), cwd=self.work)

    def test_a_glob_does_not_name_it(self):
        path = self.put("work/opencode.json")
        other = self.put("work/other.json")
        for cwd in ("/", self.work):
            words = allow(f"fs:write:{self.work}/*.json")
            self.assertEqual(self.attempt(words, f"open({path!r}, 'w')", f"open({other!r}, 'w') and 1",
                                          cwd=cwd), ["EROFS", "1"])

    def test_one_that_is_not_wrapped_can_be_granted_by_name(self):
        path = self.put("work/.mcp.json")
        self.assert_written(allow(f"fs:write:{path}"), path, cwd=self.work)
        wrapped = {"mcpServers": {"x": {"command": launch.CAPGATE,
                                        "args": ["run", "--profile", "x", "--", "y"]}}}
        self.written(path, json.dumps(wrapped))
        said = self.refusal(allow(f"fs:write:{path}"), cwd=self.work)
        self.assertIn(f"{path} is read by an MCP client, which starts what it says, and the server "
                      "could write it: ", said)
        self.assertIn("\nhelp: grant another file", said)

    def test_one_that_is_not_there_is_told_when_it_appears(self):
        path = os.path.join(self.work, "deep/.gemini/settings.json")
        self.made("work/deep")
        done = self.run_server(allow(f"fs:write:{self.work}/**"), [
            launch.PYTHON, "-I", "-S", "-c",
            f"import os; os.mkdir({os.path.dirname(path)!r}); open({path!r}, 'w')"],
            cwd=os.path.join(self.work, "deep"))
        self.assertIn(path.encode(), done.stderr)

    def test_another_engine_refuses(self):
        if shutil.which("bwrap") is None:
            self.skipTest("bubblewrap is not installed")
        path = self.put("work/.mcp.json")
        said = self.refusal(["--engine", "bwrap", *allow(f"fs:write:{self.work}/**")], cwd=self.work)
        self.assertIn(f"{path} decides what runs outside of the sandbox", said)
        self.assertIn("leave --engine out", said)


@started_by_root_and_user
class Wrapped(KeptCase):
    """A file anywhere that was wrapped."""

    def wrap(self, command, path):
        done = self.capgate(command, path, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_is_read_only_until_it_is_unwrapped(self):
        text = json.dumps({"mcpServers": {"x": {"command": "/usr/bin/true", "args": []}}})
        path = self.put("work/deep/in/servers.json", text)
        words = allow(f"fs:write:{self.work}/**")
        self.assert_written(words, path)
        self.written(path, text)
        self.wrap("wrap", path)
        self.assertTrue(self.outside(f"open({path!r}, 'a').write(' ')"))
        self.assert_kept(words, path, path + ".capgate-backup")
        for grant in (path, os.path.dirname(path) + "/*.json"):
            with self.subTest(grant=grant):
                if grant == path:
                    self.assertIn("was wrapped: a client starts what it says",
                                  self.refusal(allow(f"fs:write:{grant}")))
                else:
                    self.assertEqual(self.attempt(allow(f"fs:write:{grant}"), f"open({path!r}, 'w')"),
                                     ["EROFS"])
        self.wrap("unwrap", path)
        self.assert_written(words, path)

    def test_where_that_is_noted_is_no_place_to_write(self):
        notes = self.made("home/.local/state/capgate/wrapped")
        said = self.refusal(allow(f"fs:write:{notes}/**"))
        self.assertIn(f"{notes} says which files are wrapped, and the server could write it", said)


@started_by_root_and_user
class OwnPrograms(KeptCase):
    def setUp(self):
        super().setUp()
        self.programs = self.made("work/tools/bin")
        for name in ("capgate", "capgate-broker", "capgate-broker-tls", "capgate-store", "capgate-unpack"):
            path = os.path.join(self.programs, name)
            shutil.copy(os.path.join(os.path.dirname(launch.CAPGATE), name), path)
            self.own(path, 0o755)

    def run_copy(self, *words):
        return subprocess.run([f"{self.programs}/capgate", "run", *words], env=self.environment(), cwd="/",
                              preexec_fn=lambda: launch.become(self.uid), check=False,
                              capture_output=True, timeout=launch.SECONDS, stdin=subprocess.DEVNULL)

    def test_they_are_read_only_in_a_grant(self):
        names = sorted(os.listdir(self.programs))
        before = {name: os.stat(f"{self.programs}/{name}").st_ino for name in names}
        code = ("import os, errno, sys\n"
                "for path in sys.argv[1:]:\n"
                "    for act in (lambda: open(path, 'r+b'), lambda: os.unlink(path),\n"
                "                lambda: os.rename(path, path + '-')):\n"
                "        try:\n"
                "            act()\n"
                "            print('done', path)\n"
                "        except OSError as error:\n"
                "            print(errno.errorcode[error.errno])\n"
                "open(os.path.dirname(sys.argv[1]) + '/other', 'w')\n")
        done = self.run_copy("--allow", f"fs:write:{self.work}/**", "--", launch.PYTHON, "-I", "-S", "-c",
                             code, *(f"{self.programs}/{name}" for name in names))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(set(done.stdout.decode().split()), {"EROFS", "EBUSY", "ETXTBSY"}, done.stdout)
        self.assertEqual({name: os.stat(f"{self.programs}/{name}").st_ino for name in names}, before)
        self.assertTrue(os.path.exists(f"{self.programs}/other"), "the grant itself holds")
        for name in names:
            path = f"{self.programs}/{name}"
            self.assertTrue(self.outside(f"os.rename({path!r}, {path + '-'!r})"), name)

    def test_one_that_is_missing_cannot_be_planted(self):
        os.unlink(f"{self.programs}/capgate-store")
        done = self.run_copy("--allow", f"fs:write:{self.work}/**", "--", "/usr/bin/true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"capgate-store is a program of capgate, and the server could write it", done.stderr)

    def test_none_can_be_granted_by_name(self):
        done = self.run_copy("--allow", f"fs:write:{self.programs}/capgate", "--", "/usr/bin/true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"is a program of capgate", done.stderr)


@started_by_root_and_user
class Providers(KeptCase):
    """What a cmd: runs outside, and reads there."""

    def setUp(self):
        super().setUp()
        self.tools = self.made("tools")
        self.grant = f"fs:write:{self.work}/**"
        self.assertEqual(self.said("cmd:/bin/echo x"), "")

    def script(self, name, text="#!/bin/sh\necho value\n"):
        return self.put(name, text, 0o755)

    def said(self, binding, **options):
        """The refusal; empty where the server starts."""
        words = ["--secret", f"TOKEN={binding}", *allow("env:inject:TOKEN", self.grant)]
        options.setdefault("cwd", self.work)
        done = self.run_server(words, ["/usr/bin/true"], **options)
        if done.returncode == 0:
            return ""
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn(b"TOKEN, and the server could write it: ", done.stderr)
        return done.stderr.decode()

    def test_arguments(self):
        script = self.script("work/get.sh")
        safe = self.script("tools/get.sh")
        self.put("work/key", "k")
        self.assertEqual(self.said(f"cmd:/bin/sh {safe}"), "")
        for binding in (f"cmd:/bin/sh {script}", "cmd:/bin/sh get.sh", "cmd:/bin/sh ./get.sh", "cmd:sh get.sh",
                        f"cmd:/bin/sh {safe} --key=key", f"cmd:/bin/sh {safe} @key",
                        "cmd:/bin/sh -c '. ./get.sh'", "cmd:/bin/sh -c 'cat key | head -1'",
                        f"cmd:/bin/sh {safe} {self.work}/none"):
            with self.subTest(binding=binding):
                self.assertIn("is an argument of what runs outside, for the secret TOKEN", self.said(binding))
        # Words that stand for no file are none.
        self.assertEqual(self.said(f"cmd:/bin/sh {safe} show github/token"), "")

    def test_relative_programs(self):
        self.script("work/get.sh")
        self.assertIn("./get.sh runs outside", self.said("cmd:./get.sh"))
        self.assertIn("../work/get.sh runs outside", self.said("cmd:../work/get.sh"))
        self.assertEqual(self.said(f"cmd:../tools/{os.path.basename(self.script('tools/get.sh'))}"), "")

    def test_programs_of_path(self):
        first, last = self.made("work/bin"), self.tools
        env = self.environment(PATH=f"{first}:{last}:{PATH}")
        self.script("tools/token")
        # It could be planted before the one that is meant.
        self.assertIn(f"{first}/token runs outside", self.said("cmd:token", env=env))
        env = self.environment(PATH=f"{last}:{first}:{PATH}")
        self.assertEqual(self.said("cmd:token", env=env), "")
        os.unlink(f"{last}/token")
        self.script("work/bin/token")
        self.assertIn(f"{first}/token runs outside", self.said("cmd:token", env=env))

    def test_interpreters(self):
        interpreter = self.put("work/sh", "")
        shutil.copy("/bin/sh", interpreter)
        self.own(interpreter, 0o755)
        script = self.script("tools/get.sh", f"#!{interpreter}\necho value\n")
        self.assertIn(f"{interpreter} runs outside", self.said(f"cmd:{script}"))
        env = self.environment(PATH=f"{self.work}:{PATH}")
        script = self.script("tools/by-env", "#!/usr/bin/env sh\necho value\n")
        self.assertIn(f"{interpreter} runs outside", self.said(f"cmd:{script}", env=env))
        self.assertEqual(self.said(f"cmd:{script}"), "")

    def test_those_of_another_server(self):
        script = self.script("work/get.sh")
        self.assertEqual(self.output(allow(self.grant), ["/bin/echo", "started"]), "started\n")
        self.user(other={"capabilities": [], "secrets": {"TOKEN": f"cmd:/bin/sh {script}"}})
        said = self.refusal(allow(self.grant))
        self.assertIn(f"{script} is an argument of what runs outside, for the secret TOKEN", said)


if __name__ == "__main__":
    unittest.main()
