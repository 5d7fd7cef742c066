"""capgate diff: what a change lets a server do, from every source and in every format."""

import json
import os
import subprocess
import unittest

import launch
import pins
from cases import Case

SAME, USAGE, UNREADABLE, MISTAKES, WIDENED = 0, 2, 3, 4, 5
HOSTILE = "x` <img src=y> @octocat #12 | [a](http://evil.test) <!-- --> www.evil.test \u202egnp $z$"

OLD = {"name": "server-github", "version": "1", "serverCapabilities": ["limit:memory:512M"], "tools": [
    {"name": "search", "capabilities": ["net:connect:api.github.com:443", "fs:read:${REPO}/**"]},
    {"name": "push", "capabilities": ["exec:spawn:git"]}]}
NEW = {"name": "server-github", "version": "2", "tools": [
    {"name": "search", "capabilities": ["net:connect:*.github.com:443", "fs:write:${REPO}/**",
                                        "exec:spawn:git"]},
    {"name": "pull", "capabilities": ["net:connect:api.github.com:443"]}]}

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "diff")


class Diff(Case):
    def setUp(self):
        super().setUp()
        self.old = self.manifest("old.json", OLD)
        self.new = self.manifest("new.json", NEW)

    def manifest(self, name, value):
        return self.tree.file(name, json.dumps(value, ensure_ascii=False))

    def diff(self, *words, **options):
        options.setdefault("cwd", self.tree.root)
        return launch.capgate("diff", *words, **options)

    def changes(self, old, new, *words):
        done = self.diff(old, new, "--json", *words)
        return done.returncode, json.loads(done.stdout)

    def kinds(self, change):
        return [(each["kind"], each["capability"]) for each in change["changes"]]

    def test_says_what_widened_narrowed_and_moved(self):
        code, said = self.changes("old.json", "new.json")
        self.assertEqual(code, WIDENED)
        self.assertEqual((said["schemaVersion"], said["changed"], said["wider"], said["moved"]),
                         (1, True, True, True))
        self.assertEqual(said["unboundVariables"], ["REPO"])
        [server] = said["servers"]
        self.assertEqual(self.kinds(server), [
            ("widened", "fs:write:${REPO}/**"), ("widened", "net:connect:*.github.com:443"),
            ("widened", "limit:memory:512M")])
        tools = {tool["name"]: (tool["presence"], self.kinds(tool)) for tool in server["tools"]}
        self.assertEqual(tools["pull"], ("added", [("moved", "net:connect:api.github.com:443")]))
        self.assertEqual(tools["push"], ("removed", [("narrowed", "exec:spawn:git")]))
        self.assertIn(("moved", "exec:spawn:git"), tools["search"][1])
        [place] = server["changes"][0]["places"]
        self.assertEqual((place["source"], place["line"], place["tool"]), ("new.json", 1, "search"))

    def test_who_only_reads_is_not_blamed_for_a_write(self):
        def server(*patch):
            return {"name": "s", "version": "1", "tools": [
                {"name": "search", "capabilities": ["fs:read:/workspace/**"]},
                {"name": "patch", "capabilities": list(patch)}]}
        self.manifest("before.json", server())
        self.manifest("after.json", server("fs:write:/workspace/**"))
        _, said = self.changes("before.json", "after.json")
        [place] = said["servers"][0]["changes"][0]["places"]
        self.assertEqual(place["tool"], "patch")
        self.assertNotIn("search", self.diff("before.json", "after.json", "--markdown").stdout)
        words = launch.capgate("explain", "after.json", cwd=self.tree.root).stdout
        self.assertIn("fs:write:/workspace/**   for patch; search only reads\n", words)
        told = json.loads(launch.capgate("explain", "after.json", "--json", cwd=self.tree.root).stdout)
        self.assertEqual([each["capability"] for each in told["grants"][0]["origins"]],
                         ["fs:read:/workspace/**", "fs:write:/workspace/**"])

    def test_text_is_for_people(self):
        done = self.diff("old.json", "new.json")
        self.assertEqual(done.returncode, WIDENED)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:2], ['This change lets the server "server-github" do more', "Widened:"])
        self.assertIn("      before: fs:read:${REPO}/**", lines)
        self.assertIn("  pull (new)", lines)
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(done.stderr, "note: ${REPO} is compared by its name; --set REPO=VALUE binds it\n")

    def test_nothing_changes_where_only_the_text_does(self):
        self.tree.file("other.yaml", "tools:\n- capabilities: [exec:spawn:git]\n  name: push\n"
                       "- name: search\n  capabilities: ['fs:read:${REPO}/./**', NET, NET]\n"
                       "name: server-github\nversion: '9'\nserverCapabilities: [limit:memory:524288K]\n"
                       .replace("NET", "net:connect:API.github.com:443"))
        code, said = self.changes("old.json", "other.yaml")
        self.assertEqual((said["changed"], said["servers"][0]["changed"]), (False, False))
        self.assertEqual((code, said["servers"][0]["changes"], said["servers"][0]["tools"]), (SAME, [], []))

    def test_exit_codes(self):
        self.assertEqual(self.diff("new.json", "new.json").returncode, SAME)
        self.manifest("moved.json", {**OLD, "tools": OLD["tools"] + [
            {"name": "third", "capabilities": ["exec:spawn:git"]}]})
        self.assertEqual(self.diff("old.json", "moved.json").returncode, SAME)
        self.assertEqual(self.diff("old.json", "moved.json", "--strict").returncode, WIDENED)
        self.assertEqual(self.diff("old.json").returncode, USAGE)
        self.assertEqual(self.diff("-", "-", text=json.dumps(OLD)).returncode, USAGE)
        self.assertEqual(self.diff("old.json", "new.json", "--json", "--sarif").returncode, USAGE)
        self.assertEqual(self.diff("old.json", "new.json", "--set", "OTHER=/x").returncode, USAGE)
        self.assertEqual(self.diff("old.json", "missing.json").returncode, UNREADABLE)
        self.tree.file("bad.json", "{")
        self.assertEqual(self.diff("old.json", "bad.json").returncode, UNREADABLE)
        self.manifest("relative.json", launch.server("fs:read:x"))
        self.assertEqual(self.diff("old.json", "relative.json").returncode, MISTAKES)

    def test_a_variable_that_is_bound_is_compared_by_its_value(self):
        self.manifest("plain.json", {**OLD, "tools": [
            {"name": "search", "capabilities": ["net:connect:api.github.com:443", "fs:read:/srv/**"]},
            OLD["tools"][1]]})
        self.assertEqual(self.diff("old.json", "plain.json").returncode, WIDENED)
        self.assertEqual(self.diff("old.json", "plain.json", "--set", "REPO=/srv").returncode, SAME)

    def test_standard_input_and_nothing(self):
        done = self.diff("-", "new.json", "--json", text=json.dumps(NEW))
        self.assertEqual((done.returncode, json.loads(done.stdout)["wider"]), (SAME, False))
        code, said = self.changes("/dev/null", "new.json")
        self.assertEqual((code, said["servers"][0]["presence"]), (WIDENED, "added"))
        code, said = self.changes("new.json", "/dev/null")
        self.assertEqual((code, said["servers"][0]["presence"]), (SAME, "removed"))
        self.assertEqual({each["kind"] for each in said["servers"][0]["changes"]}, {"narrowed"})

    def one_tool(self, name, *capabilities):
        return self.manifest(name, {"name": "s", "version": "1", "tools": [
            {"name": "t", "capabilities": list(capabilities)}]})

    def test_a_limit_that_is_not_stated_is_the_default(self):
        self.one_tool("none.json")
        for limit, words in (("memory:64G", "use 64G of memory at most (before: 2G, the default)"),
                             ("pids:100000", "(before: 256, the default)"),
                             ("disk:100G", "(before: 256M, the default)"),
                             ("files:100000", "(before: 1024, the default)")):
            with self.subTest(limit=limit):
                self.one_tool("some.json", f"limit:{limit}")
                done = self.diff("none.json", "some.json")
                self.assertEqual(done.returncode, WIDENED)
                self.assertIn(words, done.stdout)
                self.assertEqual(self.diff("some.json", "none.json").returncode, 0)
        self.one_tool("some.json", "limit:memory:1G")
        self.assertEqual(self.diff("none.json", "some.json").returncode, 0)
        self.assertEqual(self.diff("some.json", "none.json").returncode, WIDENED)

    def test_a_server_that_is_gone_may_do_nothing_more(self):
        self.one_tool("some.json", "limit:memory:1G", "fs:read:/w")
        done = self.diff("some.json", "/dev/null")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("Widened", done.stdout)

    def test_a_variable_may_be_what_a_wider_grant_excludes(self):
        for wide, line, value in (("net:connect:*", "net:connect:${X}:443", "169.254.169.254"),
                                  ("fs:read:/srv/p/**", "fs:read:/srv/p/${X}", ".env"),
                                  ("fs:read:${X}/**", "fs:read:${X}/gh/**", "/home/me/.config")):
            with self.subTest(line=line):
                self.one_tool("wide.json", wide)
                self.one_tool("both.json", wide, line)
                self.assertEqual(self.diff("wide.json", "both.json").returncode, WIDENED)
                self.assertEqual(
                    self.diff("wide.json", "both.json", "--set", f"X={value}").returncode, WIDENED)
                self.assertEqual(self.diff("both.json", "wide.json").returncode, 0)
                code, said = self.changes("both.json", "both.json")
                self.assertEqual((code, said["changed"]), (0, False))

    def test_a_lock_has_several_servers(self):
        policy = ["exec:spawn:git", "fs:read:${REPO}/**", "limit:memory:512M",
                  "net:connect:api.github.com:443"]
        self.manifest("capgate.lock", pins.lock(
            pins.pin("other", policy=[]),
            pins.pin("server-github", policy=policy, serverCapabilities=["limit:memory:512M"], grants=[
                {"tool": "push", "capabilities": ["exec:spawn:git"]},
                {"tool": "search", "capabilities": ["fs:read:${REPO}/**",
                                                    "net:connect:api.github.com:443"]}])))
        code, said = self.changes("capgate.lock", "old.json")
        self.assertEqual((code, [server["name"] for server in said["servers"]]),
                         (SAME, ["other", "server-github"]))
        self.assertEqual((said["servers"][1]["changes"], said["servers"][1]["tools"]), ([], []))
        self.assertEqual(self.diff("capgate.lock", "new.json").returncode, WIDENED)

    def test_sarif_points_into_the_new_file(self):
        done = self.diff("old.json", "new.json", "--sarif")
        self.assertEqual(done.returncode, WIDENED)
        [run] = json.loads(done.stdout)["runs"]
        found = {result["message"]["text"].split("\n")[0].split(": ")[-1]: result for result in run["results"]}
        written = found["fs:write:${{REPO}}/**"]  # braces are doubled in a message of SARIF
        self.assertEqual((written["ruleId"], written["level"]), ("DIFF_WIDENED", "error"))
        self.assertEqual(written["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "new.json")
        self.assertIn("DIFF_LIMIT", {result["ruleId"] for result in run["results"]})

    def test_the_comment_of_a_pull_request(self):
        done = self.diff("old.json", "new.json", "--markdown")
        self.assertEqual(done.returncode, WIDENED)
        self.check_golden("wider.md", done.stdout)
        self.check_golden("less.md", self.diff("new.json", "old.json", "--markdown").stdout)
        self.check_golden("same.md", self.diff("new.json", "new.json", "--markdown").stdout)

    def check_golden(self, name, text):
        """CAPGATE_UPDATE_GOLDEN=1 writes them; then read the difference."""
        path = os.path.join(GOLDEN, name)
        if os.environ.get("CAPGATE_UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(text, file.read())

    def test_nothing_foreign_becomes_markup(self):
        self.manifest("hostile.json", {"name": HOSTILE, "version": "1", "tools": [
            {"name": HOSTILE, "capabilities": [f"assert:a:\"{HOSTILE}\"",
                                               "fs:read:\"/a`` <b> @me #1 | _x_ $y$\""]}]})
        for old, new in (("/dev/null", "hostile.json"), ("hostile.json", "/dev/null"),
                         ("hostile.json", "old.json")):
            comment = self.diff(old, new, "--markdown").stdout
            prose = self.without_code(comment.replace("<!-- capgate diff -->", ""))
            for markup in ("<img", "<b>", "<!--", "\u202e", "](", "http://", "www.evil"):
                self.assertNotIn(markup, prose)
            for sign in ("@octocat", "@me", "#12", "#1 "):
                self.assertNotIn(sign, prose)

    def without_code(self, text):
        """The comment without its code spans, as CommonMark finds them."""
        out, at = [], 0
        while at < len(text):
            run = len(text[at:]) - len(text[at:].lstrip("`"))
            if run == 0 or text[at - 1:at] == "\\":
                out.append(text[at])
                at += 1
                continue
            end = at + run
            while True:
                end = text.find("`" * run, end)
                self.assertNotEqual(end, -1, "a code span without an end")
                length = len(text[end:]) - len(text[end:].lstrip("`"))
                if length == run:
                    break
                end += length
            self.assertNotIn("\n", text[at:end])
            at = end + run
        return "".join(out)


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
