"""capgate diff of the capgate.yaml of git revisions, and its cost. The rest: src/cli/diff_config_test.cc."""

import json
import os
import resource
import subprocess
import unittest

import launch
from cases import Case

SAME, UNREADABLE, WIDENED = 0, 3, 5

CONFIG = """servers:
  github:
    command: [npx, -y, server-github]
    manifest: github.json
    secrets: {TOKEN: "cmd:pass show github"}
"""
GITHUB = {"name": "server-github", "version": "1", "tools": [
    {"name": "search", "capabilities": ["net:connect:api.github.com:443", "env:inject:TOKEN"]}]}


class DiffCase(Case):
    def write(self, name, value):
        return self.tree.file(name, json.dumps(value))

    def diff(self, *words, **options):
        return launch.capgate("diff", *words, cwd=self.tree.root, **options)


class Revisions(DiffCase):
    def setUp(self):
        super().setUp()
        self.tree.file("old/capgate.yaml", CONFIG)
        self.write("old/github.json", GITHUB)

    def git(self, *words):
        environment = {"PATH": os.defpath, "HOME": self.tree.root, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *words],
                       cwd=self.tree.root, env=environment, check=True, capture_output=True)

    def start_repository(self):
        os.chown(self.tree.root, os.getuid(), os.getgid())
        self.git("init", "-q", "-b", "main")

    def test_a_revision_has_its_own_manifests(self):
        environment = {"PATH": os.defpath, "HOME": self.tree.root}
        self.start_repository()
        self.tree.file("old/sub/capgate.yaml", "servers: {up: {manifest: ../github.json}}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")
        self.write("old/github.json", {**GITHUB, "serverCapabilities": ["net:connect:evil.example:443"]})
        for word in ("main:old/capgate.yaml", "HEAD:./old/capgate.yaml", ":old/capgate.yaml"):
            done = self.diff(word, "old/capgate.yaml", "--json", env=environment)
            self.assertEqual(done.returncode, WIDENED, done.stderr)
            [place] = json.loads(done.stdout)["servers"][0]["changes"][0]["places"]
            self.assertEqual(place["source"], "old/github.json")
            self.assertEqual(self.diff(word, "main:old/capgate.yaml", env=environment).returncode, SAME)
        below = self.diff("main:old/sub/capgate.yaml", "old/sub/capgate.yaml", env=environment)
        self.assertEqual(below.returncode, WIDENED, below.stderr)
        self.tree.file("old/out.yaml", "servers: {a: {manifest: /etc/hostname}}\n")
        self.git("add", "-A")
        done = self.diff(":old/out.yaml", "old/capgate.yaml", env=environment)
        self.assertEqual(done.returncode, UNREADABLE)
        self.assertIn("no file of the same revision", done.stderr)

    def test_a_colon_means_git(self):
        environment = {"PATH": os.defpath, "HOME": self.tree.root}
        self.start_repository()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")
        wide = {**GITHUB, "serverCapabilities": ["net:connect:evil.example:443"]}
        self.write("main:old/github.json", wide)
        self.write("x:y.json", wide)
        done = self.diff("main:old/github.json", "./x:y.json", env=environment)
        self.assertEqual(done.returncode, WIDENED, done.stderr)
        self.assertEqual(self.diff("./main:old/github.json", "./x:y.json", env=environment).returncode, SAME)
        done = self.diff("x:y.json", "./x:y.json", env=environment)
        self.assertEqual(done.returncode, UNREADABLE)
        self.assertIn("help: for the file of that name write ./x:y.json", done.stderr)
        self.assertNotIn("help", self.diff("z:y.json", "./x:y.json", env=environment).stderr)

    def test_links_of_a_revision_are_followed(self):
        environment = {"PATH": os.defpath, "HOME": self.tree.root}
        self.start_repository()
        self.write("v2/github.json", {**GITHUB, "serverCapabilities": ["net:connect:evil.example:443"]})
        self.write("v2/sub/other.json", GITHUB)
        root = self.tree.root
        for target, name in (("old/github.json", "one.json"), ("v2", "current"), ("v2/sub", "deep"),
                             ("/etc/hostname", "out"), ("nothing", "dangling"), ("circle", "circle"), ("v2", "a\nb")):
            os.symlink(target, f"{root}/{name}")
        for name in ("current/github.json", "deep/../github.json"):
            self.tree.file(f"{name[:4]}.yaml", f"servers: {{github: {{manifest: {name}}}}}\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")
        for name in ("one.json", "current/sub/other.json", "deep/other.json", "a\nb/sub/other.json"):
            for revision in ("main:", "HEAD:./", ":", ":./"):
                done = self.diff("old/github.json", revision + name, env=environment)
                self.assertEqual(done.returncode, SAME, (revision, name, done.stderr))
        for name in ("curr.yaml", "deep.yaml"):
            for revision in ("main:", ":"):
                done = self.diff("old/github.json", revision + name, "--json", env=environment)
                self.assertEqual(done.returncode, WIDENED, (revision, name, done.stderr))
                self.assertIn("evil.example", done.stdout)
        for name, words in (("out", "leads out of the repository: /etc/hostname"), ("dangling", "link to nothing"),
                            ("circle", "circle"), ("old", "no file")):
            done = self.diff("old/github.json", f"main:{name}", env=environment)
            self.assertEqual(done.returncode, UNREADABLE)
            self.assertIn(words, done.stderr)
            self.assertEqual(self.diff("--if-policy", "/dev/null", f"main:{name}", env=environment).returncode, SAME)
            self.assertEqual(self.diff("--if-policy", "main:old/github.json", f"main:{name}", env=environment).returncode,
                             UNREADABLE)

    def test_a_large_file_of_a_revision(self):
        environment = {"PATH": os.defpath, "HOME": self.tree.root}
        self.start_repository()
        for name, size in (("padded", 2 << 20), ("huge", 17 << 20)):
            self.tree.file(f"{name}.json", json.dumps(GITHUB) + " " * size)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a change")
        for revision in ("main:", ":"):
            self.assertEqual(self.diff(revision + "padded.json", "old/github.json", env=environment).returncode, SAME)
            done = self.diff(revision + "huge.json", "old/github.json", env=environment)
            self.assertEqual(done.returncode, UNREADABLE)
            self.assertIn("the limit is", done.stderr)


class Cost(DiffCase):
    def seconds(self, count):
        """Of the processor, which others that are busy do not add to; the least of three."""
        for name, more in (("old.yaml", ""), ("new.yaml", ', "exec:spawn:git"')):
            lines = [f'  s{i}:\n    command: [node, x]\n    capabilities: ["fs:read:/w/{i}"{more}]\n'
                     for i in range(count)]
            self.tree.file(name, "servers:\n" + "".join(lines))
        times = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.assertEqual(self.diff("old.yaml", "new.yaml").returncode, 5)
            times.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        return min(times)

    def test_many_entries_cost_about_as_much_more(self):
        self.assertLess(self.seconds(4000) / self.seconds(500), 36, "eight times as many")


if __name__ == "__main__":
    unittest.main()
