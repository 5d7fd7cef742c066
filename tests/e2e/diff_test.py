"""capgate diff of git revisions. Everything else of the command: src/cli/diff_test.cc."""

import json
import os
import subprocess
import unittest

import launch
from cases import Case

SAME, USAGE, UNREADABLE, WIDENED = 0, 2, 3, 5

OLD = {"name": "server-github", "version": "1", "serverCapabilities": ["limit:memory:512M"], "tools": [
    {"name": "search", "capabilities": ["net:connect:api.github.com:443", "fs:read:${REPO}/**"]},
    {"name": "push", "capabilities": ["exec:spawn:git"]}]}
NEW = {"name": "server-github", "version": "2", "tools": [
    {"name": "search", "capabilities": ["net:connect:*.github.com:443", "fs:write:${REPO}/**",
                                        "exec:spawn:git"]},
    {"name": "pull", "capabilities": ["net:connect:api.github.com:443"]}]}


class Git(Case):
    def setUp(self):
        super().setUp()
        self.repository = self.tree.directory("repository")
        self.git("init", "-q", "-b", "main")
        self.write(OLD)
        self.commit()
        self.write(NEW)

    def git(self, *words):
        environment = {"PATH": os.defpath, "HOME": self.tree.root, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *words],
                       cwd=self.repository, env=environment, check=True, capture_output=True,
                       user=launch.ORDINARY, group=launch.ORDINARY, extra_groups=[])

    def write(self, value):
        self.tree.file("repository/sub/github.json", json.dumps(value))

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")

    def diff(self, *words, cwd=None, **environment):
        return launch.capgate("diff", *words, cwd=cwd or self.repository, user=launch.ORDINARY,
                              group=launch.ORDINARY, extra_groups=[],
                              env={"PATH": os.defpath, "HOME": self.tree.root, **environment})

    def test_compares_revisions(self):
        self.assertEqual(self.diff("main:sub/github.json", "sub/github.json").returncode, WIDENED)
        below = os.path.join(self.repository, "sub")
        self.assertEqual(self.diff("HEAD:./github.json", "github.json", cwd=below).returncode, WIDENED)
        self.assertEqual(self.diff("main:sub/github.json", ":sub/github.json").returncode, SAME)
        self.git("add", "-A")
        self.assertEqual(self.diff("main:sub/github.json", ":sub/github.json").returncode, WIDENED)
        self.commit()
        done = self.diff("main~1:sub/github.json", "main:sub/github.json", "--json")
        self.assertEqual(done.returncode, WIDENED, done.stderr)
        place = json.loads(done.stdout)["servers"][0]["changes"][0]["places"][0]
        self.assertEqual(place["source"], "main:sub/github.json")

    def test_what_is_not_there_is_a_clear_error(self):
        for word, part in (("main:other.json", "does not exist in 'main'"),
                           ("nobranch:sub/github.json", "nobranch"), ("main:sub", "")):
            done = self.diff(word, "sub/github.json")
            self.assertEqual((done.returncode, done.stdout), (UNREADABLE, ""))
            self.assertIn(part, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_word_is_never_an_option_of_git(self):
        done = self.diff("--batch:x", "sub/github.json")
        self.assertEqual(done.returncode, USAGE)
        done = self.diff("--", "--textconv:x", "sub/github.json")
        self.assertEqual(done.returncode, UNREADABLE)

    def test_a_hostile_repository_runs_nothing(self):
        trace = self.tree.path("ran")
        script = self.tree.file("script", f"#!/bin/sh\necho \"$0\" >> {trace}\ncat\n")
        os.chmod(script, 0o777)
        self.tree.file("repository/.gitattributes", "*.json filter=evil diff=evil textconv=evil\n")
        self.commit()
        for key in ("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy",
                    "core.askPass", "core.alternateRefsCommand", "diff.external", "filter.evil.smudge",
                    "filter.evil.clean", "filter.evil.process", "diff.evil.textconv",
                    "diff.evil.command", "pager.cat-file", "credential.helper", "gpg.program",
                    "alias.cat-file"):
            self.git("config", key, script)
        self.git("config", "core.hooksPath", self.tree.root)
        # An object that is missing would be fetched from a remote that is a program.
        self.git("config", "core.repositoryFormatVersion", "1")
        self.git("config", "extensions.partialClone", "evil")
        self.git("config", "remote.evil.promisor", "true")
        self.git("config", "remote.evil.url", self.repository)
        self.git("config", "remote.evil.uploadpack", script)
        self.git("update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},missing.json")
        self.remove_trace(trace)
        self.assertEqual(self.diff("HEAD:sub/github.json", "sub/github.json").returncode, SAME)
        self.assertEqual(self.diff(":missing.json", "sub/github.json").returncode, UNREADABLE)
        self.assertEqual(self.diff("HEAD:sub/github.json", "sub/github.json",
                                   GIT_EXTERNAL_DIFF=script, GIT_PAGER=script, PAGER=script,
                                   GIT_SSH_COMMAND=script, GIT_CONFIG_COUNT="1",
                                   GIT_CONFIG_KEY_0="core.pager", GIT_CONFIG_VALUE_0=script,
                                   GIT_EXEC_PATH=self.tree.root).returncode, SAME)
        self.assertFalse(os.path.exists(trace), "a program of the repository ran")

    def remove_trace(self, trace):
        if os.path.exists(trace):
            os.remove(trace)


if __name__ == "__main__":
    unittest.main()
