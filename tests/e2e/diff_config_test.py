"""capgate diff of two capgate.yaml."""

import json
import os
import resource
import subprocess
import unittest

import launch
from diff_sources import MISTAKES, SAME, UNREADABLE, WIDENED, Sources

CONFIG = """servers:
  github:
    command: [npx, -y, server-github]
    manifest: github.json
    secrets: {TOKEN: "cmd:pass show github"}
  notes:
    command: [notes-server]
    capabilities: ["fs:read:${DIR}/**"]
    variables: {DIR: /srv/notes}
  old:
    command: [old-server]
    sandbox: {network: ["api.example.com:443"], read: [~/data, docs], write: [], exec: false}
"""
GITHUB = {"name": "server-github", "version": "1", "tools": [
    {"name": "search", "capabilities": ["net:connect:api.github.com:443", "env:inject:TOKEN"]}]}


class Config(Sources):
    def setUp(self):
        super().setUp()
        self.tree.file("old/capgate.yaml", CONFIG)
        self.write("old/github.json", GITHUB)

    def changed(self, text, github=None):
        self.tree.file("new/capgate.yaml", text)
        self.write("new/github.json", github or GITHUB)
        code, said = self.said("old/capgate.yaml", "new/capgate.yaml")
        return code, said, {server["name"]: server for server in said["servers"]}

    def kinds(self, server):
        return [(each["kind"], each["capability"]) for each in server["changes"]]

    def test_the_same_elsewhere_is_no_change(self):
        code, said, servers = self.changed(CONFIG)
        self.assertEqual((code, said["changed"], list(servers)), (SAME, False, ["github", "notes", "old"]))

    def test_entries_are_what_they_stand_for(self):
        code, _, servers = self.changed(
            CONFIG.replace("DIR: /srv/notes", "DIR: /srv").replace("write: []", "write: [~/data]"),
            {**GITHUB, "serverCapabilities": ["net:connect:evil.example:443"]})
        self.assertEqual(code, WIDENED)
        self.assertEqual(self.kinds(servers["github"]), [("widened", "net:connect:evil.example:443")])
        self.assertEqual(servers["github"]["changes"][0]["places"][0]["source"], "new/github.json")
        self.assertEqual(self.kinds(servers["notes"]), [("widened", "fs:read:/srv/**")])
        self.assertEqual(self.kinds(servers["old"]), [("widened", "fs:write:${HOME}/data")])
        self.assertEqual(servers["old"]["changes"][0]["places"][0]["source"], "new/capgate.yaml")
        self.assertEqual(servers["old"]["changes"][0]["places"][0]["line"], 12)

    def test_a_block_is_its_capabilities(self):
        start = CONFIG.index("    sandbox:")
        code, said, servers = self.changed(
            CONFIG[:start] + '    capabilities: ["net:connect:api.example.com:443", '
            '"fs:read:${HOME}/data", "fs:read:${CONFIG_DIR}/docs"]\n')
        self.assertEqual((code, said["changed"]), (SAME, False), servers["old"])

    def test_seal_and_the_catalog(self):
        code, _, servers = self.changed(CONFIG.replace("    secrets:", "    seal: true\n    secrets:"))
        self.assertEqual((code, servers["github"]["changed"], servers["github"]["wider"]), (SAME, True, False))
        text = "servers:\n  git:\n    command: [a]\n    manifest: catalog:NAME\n"
        names = [entry["name"] for entry in json.loads(launch.capgate("catalog", "list", "--json").stdout)["entries"]]
        self.tree.file("one.yaml", text.replace("NAME", names[0]))
        self.assertEqual(self.said("one.yaml", "one.yaml")[1]["changed"], False)
        self.tree.file("none.yaml", text.replace("NAME", "no-such-entry"))
        self.assertEqual(self.diff("one.yaml", "none.yaml").returncode, UNREADABLE)

    def test_another_command_or_source_differs(self):
        code, said, servers = self.changed(
            CONFIG.replace("[notes-server]", "[evil, 'a b']").replace("cmd:pass show github", "env:OTHER"))
        self.assertEqual((code, said["changed"], said["wider"]), (WIDENED, True, True))
        [command] = servers["notes"]["parts"]
        self.assertEqual((command["kind"], command["part"], command["before"], command["after"]),
                         ("differs", "command", "notes-server", 'evil "a b"'))
        [secret] = servers["github"]["parts"]
        self.assertEqual((secret["kind"], secret["part"], secret["after"]), ("differs", "secrets", "TOKEN=env:OTHER"))
        done = self.diff("old/capgate.yaml", "new/capgate.yaml")
        self.assertIn('  ~ command: notes-server -> evil "a b"', done.stdout.splitlines())
        done = self.diff("old/capgate.yaml", "new/capgate.yaml", "--markdown")
        self.assertIn('`command: notes-server -> evil "a b"`', done.stdout)
        done = self.diff("old/capgate.yaml", "new/capgate.yaml", "--sarif")
        self.assertEqual(len(json.loads(done.stdout)["runs"][0]["results"]), 2)

    def check_wider(self, old, new, *expected):
        self.tree.file("a.yaml", f"servers: {{{old}}}\n")
        self.tree.file("b.yaml", f"servers: {{{new}}}\n")
        code, said = self.said("a.yaml", "b.yaml")
        self.assertEqual((code, said["wider"]), (WIDENED, True), said)
        parts = [(each["kind"], each["part"]) for server in said["servers"] for each in server["parts"]]
        self.assertLessEqual(set(expected), set(parts))

    def test_what_runs_outside_is_wider(self):
        server = 'gh: {command: [gh], capabilities: ["env:inject:TOKEN"], secrets: {TOKEN: "%s"}}'
        for old, new in (("env:TOKEN", "cmd:evil"), ("cmd:pass show a", "cmd:pass show b"), ("env:TOKEN", "file:/a"),
                         ("file:/a", "file:/b"), ("cmd:a", "cmd?ttl=60:a"), ("cmd:a", "file:/a")):
            with self.subTest(old=old, new=new):
                self.check_wider(server % old, server % new, ("widened", "secrets"))
        self.check_wider("gh: {command: [gh]}", 'gh: {command: [gh], secrets: {TOKEN: "cmd:evil"}}',
                         ("widened", "secrets"))
        self.check_wider("gh: {command: [gh]}", 'gh: {command: [gh], secrets: {TOKEN: "env:A"}}',
                         ("differs", "secrets"))

    def test_the_end_of_a_confinement_is_wider(self):
        self.check_wider("gh: {command: [gh], sandbox: {network: false}}",
                         "gh: {command: [gh], sandbox: {enabled: false, network: false}}", ("widened", "enabled"))
        self.check_wider("gh: {command: [gh]}", 'gh: {url: "https://evil.test/mcp"}', ("widened", "url"))
        for new in ("https://b.test/mcp", "https://a.test/mcp?key=other", "https://u@a.test/mcp"):
            self.check_wider('gh: {url: "https://a.test/mcp"}', f'gh: {{url: "{new}"}}', ("widened", "url"))
        self.check_wider('gh: {url: "https://a.test/mcp?key=hidden1"}', 'gh: {url: "https://a.test/mcp?key=hidden2"}',
                         ("widened", "url"))
        self.assertNotIn("hidden", self.diff("a.yaml", "b.yaml").stdout)
        self.assertEqual(self.diff("a.yaml", "a.yaml").returncode, SAME)

    def test_a_new_server_without_permissions(self):
        self.check_wider("a: {command: [x]}", 'a: {command: [x]}, b: {command: [y], secrets: {TOKEN: "cmd:evil"}}',
                         ("widened", "secrets"), ("told", "command"))
        self.check_wider("a: {command: [x]}", 'a: {command: [x]}, b: {url: "https://evil.test/"}', ("widened", "url"))
        self.tree.file("b.yaml", "servers: {a: {command: [x]}, b: {command: [y]}}\n")
        self.assertEqual(self.diff("a.yaml", "b.yaml").returncode, SAME)
        self.assertEqual(self.diff("b.yaml", "a.yaml").returncode, SAME)

    def test_what_ends_outside_is_told(self):
        self.tree.file("a.yaml", 'servers: {gh: {command: [gh], secrets: {TOKEN: "cmd:a"}, '
                                 'sandbox: {enabled: false, network: false}}}\n')
        self.tree.file("b.yaml", "servers: {gh: {command: [gh], sandbox: {network: false}}}\n")
        code, said = self.said("a.yaml", "b.yaml")
        self.assertEqual((code, [each[:2] for each in self.parts(said)]),
                         (SAME, [("told", "secrets"), ("told", "enabled")]))

    def test_a_server_that_is_new_or_gone(self):
        code, _, servers = self.changed(CONFIG.replace("  notes:", "  memos:"))
        self.assertEqual(code, WIDENED)
        self.assertEqual((servers["memos"]["presence"], servers["notes"]["presence"]), ("added", "removed"))
        self.assertEqual(servers["memos"]["parts"][0]["after"], "notes-server")
        self.tree.file("a.yaml", "servers: {a: {command: [x], capabilities: []}}\n")
        self.tree.file("b.yaml", "servers: {b: {command: [x], capabilities: []}}\n")
        self.assertEqual([each["presence"] for each in self.said("a.yaml", "b.yaml")[1]["servers"]],
                         ["removed", "added"])

    def test_an_address_is_shown_without_its_secrets(self):
        code, said, servers = self.changed("servers: {web: {url: \"https://user:secret@mcp.test/x?key=secret\"}}\n")
        self.assertEqual(servers["web"]["parts"][0]["after"], "https://***@mcp.test/x")
        self.assertNotIn("secret@", json.dumps(said))

    def test_what_cannot_be_read(self):
        self.tree.file("bad.yaml", "servers: {a: {manifest: none.json}}\n")
        done = self.diff("old/capgate.yaml", "bad.yaml")
        self.assertEqual(done.returncode, UNREADABLE)
        self.assertIn("bad.yaml: a: cannot read none.json", done.stderr)
        self.tree.file("stand.yaml", "servers: {a: {capabilities: [\"fs:read:/cgunboundroot0x0x0/**\"]}}\n")
        self.assertEqual(self.diff("old/capgate.yaml", "stand.yaml").returncode, MISTAKES)
        self.tree.file("odd.yaml", "servers: {a: {odd: 1}}\n")
        self.assertNotEqual(self.diff("old/capgate.yaml", "odd.yaml").returncode, SAME)

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


class Cost(Sources):
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
