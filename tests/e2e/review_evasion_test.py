"""A pull request that tries to get past the GitHub Action, and files that must not stop it."""

import json
import os
import unittest

import launch
from review_action_test import ActionCase, RepositoryCase
from review_repository import Link, manifest

CONFIG = "servers:\n  github:\n    command: [server]\n    manifest: github.json\n"
WIDE = "net:connect:evil.example:443"


class Evasion(ActionCase):
    def check(self, before, after, code=5, words=None, **inputs):
        done = self.play(*self.pull_request(before, after), **inputs)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr + self.comment)
        self.assertIn(words or (WIDE if code == 5 else ""), self.comment)
        return done

    # ---- what cannot be read

    def test_a_variable_in_a_port_hides_nothing(self):
        port = "net:connect:api.example:${PORT}"
        self.check({"m.json": manifest(port)}, {"m.json": manifest(port, WIDE)}, 4, "cannot be compared")
        base, head = (self.repository.git("rev-parse", name).stdout.strip() for name in ("HEAD~1", "HEAD"))
        done = self.play(base, head, set="PORT=8443\n\nUNUSED=/x\n")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(WIDE, self.comment)
        for line in ("PORT", "port=1", "--json", "=1"):
            done = self.play(base, head, set=line)
            self.assertEqual(done.returncode, 2)
            self.assertIn("NAME=VALUE", done.stderr)

    def test_an_entry_that_leads_out_hides_no_other(self):
        for out in ("/etc/capgate/x.json", "~/a.json"):
            config = CONFIG + f"  out:\n    command: [x]\n    manifest: {out}\n"
            self.check({"capgate.yaml": config, "github.json": manifest()},
                       {"capgate.yaml": config.replace("github.json", "wide.json"), "wide.json": manifest(WIDE)},
                       4, "out")

    def test_a_new_manifest_with_a_mistake(self):
        self.check({"a.txt": ""}, {"new.json": manifest("fs:raed:/srv/**")}, 4, "fs:raed")

    def test_padding_hides_nothing(self):
        text = json.dumps(manifest(WIDE))
        self.check({"m.json": manifest()}, {"m.json": text + " " * (2 << 20)})
        self.check({"m.json": manifest()}, {"m.json": text + " " * (17 << 20)}, 4, "cannot be compared")

    def test_a_file_that_broke_and_other_files(self):
        self.check({"capgate.yaml": CONFIG, "github.json": manifest()}, {"capgate.yaml": "servers: [\n"}, 4,
                   "cannot be compared")
        self.check({"a.txt": ""}, {"capgate.lock": "{"}, 4, "cannot be compared")
        self.check({"mcp.json": {"servers": {"a": {"command": "npx", "args": ["x"]}}}, "api.yaml": "servers:\n- url: a\n"},
                   {"mcp.json": {"servers": {"a": {"command": "npx", "args": ["y"]}}}, "api.yaml": "servers:\n- url: b\n",
                    "new.json": {"tools": [{"name": "x"}]}, "big.bin": "\0" * (17 << 20), "x.yaml": "a: [\n"},
                   0, "No change")

    # ---- names

    def test_the_ending_does_not_decide(self):
        self.check({"gh.policy": manifest()}, {"gh.policy": manifest(WIDE)})
        self.check({"a.json": manifest()}, {"a.json": None, "a.txt": manifest(WIDE)})

    def test_a_manifest_from_another_directory_is_new(self):
        wide = manifest(WIDE)
        self.check({"examples/wide.json": wide, "servers/gh.json": manifest()},
                   {"examples/wide.json": None, "servers/gh.json": None, "servers/gh.yaml": wide})
        self.assertIn("### `servers/gh.yaml`", self.comment)

    def test_what_widens_stands_first(self):
        self.check({"a.json": manifest("exec:spawn:git"), "z.json": manifest()},
                   {"a.json": manifest(), "z.json": manifest(WIDE)})
        self.assertLess(self.comment.index("### `z.json`"), self.comment.index("### `a.json`"))

    def test_excuses_of_its_own_are_none(self):
        ignore = "ignore:\n  - {rule: NET_ANY, file: m.json, reason: why not, expires: 2999-01-01}\n"
        for name, before, after in (("its own", "ignore: []\n", ignore), ("broken", "ignore: []\n", "ignore: 5\n"),
                                    ("agreed on", ignore, None)):
            with self.subTest(name):
                self.check({"m.json": manifest(), ".capgate-ignore.yaml": before},
                           {"m.json": manifest("net:connect:*"), ".capgate-ignore.yaml": after}, words="net:connect:*")
                log = json.loads(self.read(self.outputs["sarif-file"]))
                found = [each for each in log["runs"][0]["results"] if each["ruleId"] == "NET_ANY"]
                self.assertEqual([bool(each.get("suppressions")) for each in found], [name == "agreed on"])

    def test_a_name_that_looks_like_a_revision(self):
        self.repository.write("github.json", manifest())
        base = self.repository.commit()
        self.repository.write("wide.json", manifest(WIDE))
        self.repository.write(f"{base}:github.json", Link("wide.json"))
        self.repository.write("github.json", manifest(WIDE))
        done = self.play(base, self.repository.commit())
        self.assertEqual(done.returncode, 5, done.stderr)
        heads = [line for line in self.comment.splitlines() if line.startswith("### ")]
        self.assertIn("### `github.json`", heads)

    def test_names_of_all_kinds(self):
        names = ["a b.json", "-rf.json", "a\nb.json", b"\xff\xfe.json", "$(touch x).json", "--if-policy", ":x.json",
                 "HEAD:x.json", "'\"\\.json"]
        base, head = self.pull_request({name: manifest() for name in names},
                                       {name: manifest(WIDE) for name in names})
        done = self.play(base, head)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(done.stdout.count("::error file="), len(names), done.stdout)
        self.assertEqual(sum(line.startswith("### `") for line in self.comment.splitlines()), len(names))
        self.assertFalse(os.path.exists(self.repository.path("x")))

    # ---- links

    def test_a_link_that_leads_elsewhere(self):
        files = {"narrow.json": manifest(), "wide.json": manifest(WIDE)}
        self.check({**files, "current.json": Link("narrow.json")}, {"current.json": Link("wide.json")})
        self.check({"current.json": Link("wide.json")}, {"current.json": Link("narrow.json")}, 0,
                   "nothing more is granted")
        self.check({"a\nb": Link("narrow.json")}, {"a\nb": Link("wide.json")})
        self.check({}, {"current.json": Link("/etc/passwd")}, 4, "leads out of the repository")
        self.check({}, {"current.json": None, "other": Link("nowhere"), "loop": Link("loop"), "up": Link("../../x")}, 0)
        self.check({}, {"other": Link("loop"), "up": Link("/etc/hostname")}, 0, "No change")

    def check_directory(self, after, **more):
        self.check({"v1/m.json": manifest(), "v1/same.json": manifest(), "v2/m.json": manifest(WIDE),
                    "v2/same.json": manifest(), "v2/other": "x", "current": Link("v1")}, after, **more)

    def test_a_link_to_another_directory(self):
        self.check_directory({"current": Link("v2")}, words="### `current/m.json`")
        self.assertNotIn("same.json", self.comment)
        self.check({}, {"current": Link("v1")}, 0, "nothing more is granted")

    def test_links_inside_of_linked_directories(self):
        self.check({"v1/sub/m.json": manifest(), "v2/real/m.json": manifest(WIDE), "v2/sub": Link("real"),
                    "v2/self": Link("."), "current": Link("v1")}, {"current": Link("v2")}, words="current/sub/m.json")

    def test_the_same_link_in_another_place(self):
        self.check({"a/d/m.json": Link("../m.json"), "b/d/m.json": Link("../m.json"), "a/m.json": manifest(),
                    "b/m.json": manifest(WIDE), "current": Link("a/d")}, {"current": Link("b/d")},
                   words="### `current/m.json`")

    def test_a_directory_that_becomes_a_link(self):
        self.check({"real/m.json": manifest(), "copy/m.json": manifest()},
                   {"real/m.json": None, "real": Link("copy")}, 0)

    # ---- a capgate.yaml

    def test_a_configuration_that_did_not_change_names_files_that_did(self):
        files = {"ops/capgate.yaml": CONFIG.replace("github.json", "../current/github.json"), "current": Link("v1"),
                 "v1/github.json": manifest(), "v2/github.json": manifest(WIDE)}
        self.check(files, {"current": Link("v2")}, words="### `ops/capgate.yaml`")
        self.check({}, {"current": Link("nowhere")}, 4, "ops/capgate.yaml")

    def test_what_was_unreadable_stays_so(self):
        config = CONFIG.replace("github.json", "/etc/capgate/x.json")
        self.check({"capgate.yaml": config, "a.txt": "a"}, {"a.txt": "b"}, 0, "No change")

    def test_a_submodule_is_not_read(self):
        self.repository.write("m.json", manifest())
        base = self.repository.commit()
        self.repository.git("update-index", "--add", "--cacheinfo", f"160000,{base},module")
        self.repository.write("link", Link("module"))
        self.repository.git("add", "link")
        self.repository.git("commit", "-q", "-m", "a module")
        done = self.play(base, self.repository.git("rev-parse", "HEAD").stdout.strip())
        self.assertEqual(done.returncode, 0, done.stderr)

    # ---- the switches, and what it needs

    def test_a_switch_is_true_or_false(self):
        base, head = self.pull_request({"m.json": manifest()}, {"m.json": manifest(WIDE)})
        for name in ("fail-on-widening", "comment"):
            for value in ("True", "no", "", "0", "false "):
                done = self.play(base, head, **{name: value})
                self.assertEqual(done.returncode, 2, (name, value))
                self.assertIn(f"{name} is true or false", done.stderr)

    def test_programs_that_are_missing(self):
        base, head = self.pull_request({"m.json": manifest(WIDE)}, {"m.json": manifest()})
        for missing in ("jq", "curl", "git"):
            place = self.directory(f"without-{missing}")
            for name in ("bash", "git", "jq", "curl", "sed", "grep", "head", "tr", "cat", "mktemp", "realpath", "wc",
                         "mkdir", "rm", "dirname", "env"):
                if name != missing:
                    os.symlink(f"/usr/bin/{name}", os.path.join(place, name))
            done = self.play(base, head, env={"PATH": place})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"there is no {missing}", done.stderr)
            done = self.play(base, head, env={"PATH": place}, comment="false")
            self.assertEqual(done.returncode, 0 if missing == "curl" else 2, done.stderr)

    def test_outside_of_a_repository(self):
        self.repository.directory = self.directory("elsewhere")
        done = self.play("a", "b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no repository of git", done.stderr)

    def test_a_new_branch(self):
        base, head = self.pull_request({"old.json": manifest()}, {"m.json": manifest(WIDE)})
        self.repository.git("update-ref", "refs/remotes/origin/trunk", base)
        zero = "0" * 40
        for branch, ref, old in (("trunk", "refs/heads/topic", False), ("", "refs/heads/topic", True),
                                 ("trunk", "refs/heads/trunk", True), ("none", "refs/heads/topic", True)):
            done = self.play(zero, head, event={"repository.default_branch": branch}, env={"GITHUB_REF": ref})
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("compared with", done.stderr)
            self.assertIn("Compared with nothing" if old else "Compared with the default branch", self.comment)
            self.assertEqual("`old.json`" in self.comment, old)

    # ---- what is said

    def test_the_comment_is_for_somebody_who_knows_nothing(self):
        self.check({"a.json": manifest(), "b.json": manifest()},
                   {"a.json": manifest(WIDE), "b.json": manifest("exec:spawn:git")})
        for words in ("An MCP server is a program", "This check stays red", "at `a.json:"):
            self.assertIn(words, self.comment)
        self.assertNotRegex(self.comment, "[0-9a-f]{40}")
        self.assertEqual(self.comment.count("What to do"), 1)
        self.assertEqual(self.comment.count("**Approve**"), 1)
        levels = [len(line) - len(line.lstrip("#")) for line in self.comment.splitlines() if line.startswith("#")]
        self.assertEqual(levels[:4], [2, 3, 4, 5])

    def test_what_to_do_is_said_once(self):
        self.check({"z/capgate.yaml": CONFIG, "z/github.json": manifest(), "z/copy.json": manifest(), "a.json": manifest(),
                    "old.json": manifest()},
                   {"z/capgate.yaml": CONFIG.replace("github.json", "copy.json"), "z/copy.json": manifest(WIDE),
                    "a.json": manifest(WIDE), "bad.json": manifest("fs:raed:/" + "x" * 300000), "old.json": None,
                    "b.json": manifest()}, 4)
        for words in ("**Approve**", "Each line under", "Something changed that is no permission", "another name now",
                      "must be mended", "This check stays red;"):
            self.assertEqual(self.comment.count(words), 1, words)
        self.assertNotIn("\n\n\n", self.comment)
        self.assertLess(len(self.comment), 60000)

    def test_what_is_no_permission_is_looked_at(self):
        other = "  notes:\n    command: [notes]\n    capabilities: []\n"
        self.check({"capgate.yaml": CONFIG + other, "github.json": manifest(), "copy.json": manifest()},
                   {"capgate.yaml": CONFIG.replace("github.json", "copy.json") + other}, 0,
                   "No permission changed, but something else did: look at it")
        self.assertNotIn("nothing here needs an approval", self.comment)
        self.assertNotIn("notes", self.comment, "a server that did not change")

    def test_another_program_is_no_small_thing(self):
        self.check({"capgate.yaml": CONFIG, "github.json": manifest()}, {"capgate.yaml": CONFIG.replace("[server]", "[evil]")},
                   words="Another program gets all permissions of the server")

    def test_findings_stand_beside_a_configuration_and_mistakes(self):
        self.check({"capgate.yaml": CONFIG, "github.json": manifest(), "bad.json": manifest()},
                   {"capgate.yaml": CONFIG.replace("[server]", "[x]"), "github.json": manifest("net:connect:*:443"),
                    "capgate.lock": {"schemaVersion": 1, "servers": []}, "bad.json": manifest("fs:raed:/x")},
                   4, "net:connect:*:443")
        log = json.loads(self.read(self.outputs["sarif-file"]))
        found = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                 for result in log["runs"][0]["results"]}
        self.assertEqual(found, {"github.json", "bad.json"})

    def test_a_comment_of_somebody_else_is_not_touched(self):
        foreign = {"id": 1, "body": "<!-- capgate review -->\nall is well", "user": {"login": "mallory", "type": "User"}}
        noise = [{"id": 1000 + i, "body": "x", "user": {"login": "a", "type": "User"}} for i in range(150)]
        self.api.comments = [dict(foreign), *noise]
        base, head = self.pull_request({"m.json": manifest()}, {"m.json": manifest(WIDE)})
        self.play(base, head)
        self.assertEqual(self.api.comments[0], foreign)
        self.assertEqual(self.api.comments[-1]["body"], self.comment)
        self.play(base, base)  # found again, on the second page
        self.assertEqual((len(self.api.comments), self.api.comments[-1]["body"]), (152, self.comment))
        self.api.login = "me"  # a person's token: its own comments, not a bot's
        self.play(base, head)
        self.play(base, base)
        self.assertEqual((len(self.api.comments), self.api.comments[-1]["body"]), (153, self.comment))


class AsRoot(RepositoryCase):
    """One case as root: git looks at who owns a repository."""
    uid = 0

    def test_a_staged_link_is_followed(self):
        self.repository.write("narrow.json", manifest())
        self.repository.write("dir/wide.json", manifest(WIDE))
        self.repository.write("current.json", Link("narrow.json"))
        self.repository.write("up", Link("dir"))
        self.repository.commit()
        self.repository.write("current.json", Link("up/../dir/wide.json"))
        self.repository.git("add", "-A")
        for new in (":current.json", ":./current.json", ":0:current.json", ":up/wide.json", ":./up/wide.json"):
            done = self.repository.run(launch.CAPGATE, "diff", "HEAD:current.json", new)
            self.assertEqual(done.returncode, 5, (new, done.stderr))
        for target in ("/etc/hostname", "../x", "nowhere", "current.json"):
            self.repository.write("current.json", Link(target))
            self.repository.git("add", "-A")
            done = self.repository.run(launch.CAPGATE, "diff", "HEAD:current.json", ":current.json")
            self.assertEqual(done.returncode, 3, (target, done.stdout))


if __name__ == "__main__":
    unittest.main()
