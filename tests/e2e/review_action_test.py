"""The GitHub Action, the hooks for pre-commit and the textconv of git, each by what really runs them."""

import http.server
import json
import os
import re
import subprocess
import threading
import unittest

import yaml

import launch
from cases import Case
from review_repository import Link, Repository, manifest

ACTION = os.path.join(launch.ROOT, "action.yml")


class Comments(http.server.BaseHTTPRequestHandler):
    """As much of the API of issues as the Action uses."""

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append((self.command, self.path, self.headers.get("Authorization")))
        if self.command == "GET" and self.path == "/user":
            if self.server.login is None:  # the job's own token is nobody's
                return self.answer(403, {"message": "Resource not accessible by integration"})
            return self.answer(200, {"login": self.server.login})
        if self.command == "GET":
            page = int(re.search(r"[?&]page=(\d+)", self.path)[1])
            return self.answer(200, self.server.comments[100 * page - 100:100 * page])
        text = json.loads(body)["body"]
        if self.command == "POST":
            login = self.server.login or "github-actions[bot]"
            self.server.comments.append({"id": 100 + len(self.server.comments), "body": text, "user": {
                "login": login, "type": "User" if self.server.login else "Bot"}})
            return self.answer(201, self.server.comments[-1])
        number = int(self.path.rsplit("/", 1)[1])
        for comment in self.server.comments:
            if comment["id"] == number:
                comment["body"] = text
        return self.answer(200, {})

    do_GET = do_POST = do_PATCH = handle_any

    def answer(self, code, value):
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class RepositoryCase(Case):
    uid = launch.ORDINARY

    def setUp(self):
        super().setUp()
        os.chmod(self.tree.root, 0o755)
        self.repository = Repository(self.directory("repository"), self.uid)

    def directory(self, name):
        path = self.tree.directory(name)
        os.chown(path, self.uid, self.uid)
        os.chmod(path, 0o700)
        return path


class ActionCase(RepositoryCase):
    runs = 0

    def setUp(self):
        super().setUp()
        self.api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Comments)
        self.api.comments, self.api.seen, self.api.login = [], [], None
        thread = threading.Thread(target=self.api.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.api.server_close)
        self.addCleanup(self.api.shutdown)

    def play(self, base, head, event=None, env=None, **inputs):
        """The step of action.yml, as GitHub's runner carries out a composite action."""
        event = {"pull_request.number": "7", "repository.default_branch": "main", **(event or {})}
        with open(ACTION, encoding="utf-8") as file:
            action = yaml.safe_load(file)
        known = {name: each.get("default", "") for name, each in action["inputs"].items()}
        self.assertLessEqual(set(inputs), set(known))
        known.update({"base": base, "head": head, "capgate": launch.CAPGATE, "token": "t0ken",
                      **inputs})
        [step] = action["runs"]["steps"]

        def value(text):
            text = re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda m: known[m[1]], text)
            return re.sub(r"\$\{\{ github\.event\.([a-z._]+) \}\}", lambda m: event[m[1]], text)

        self.runs += 1
        temporary = self.directory(f"runner{self.runs}")
        more, env = env or {}, {name: value(text) for name, text in step["env"].items()}
        self.assertNotIn("${{", "".join(env.values()))
        env.update({"GITHUB_ACTION_PATH": launch.ROOT, "RUNNER_TEMP": temporary,
                    "GITHUB_OUTPUT": f"{temporary}/output", "GITHUB_STEP_SUMMARY": f"{temporary}/summary",
                    "GITHUB_REPOSITORY": "owner/name",
                    "GITHUB_API_URL": f"http://127.0.0.1:{self.api.server_port}", **more})
        done = self.repository.run("/bin/bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
                                   step["run"], env=env)
        self.outputs, self.comment, self.summary = {}, "", ""
        if not os.path.exists(env["GITHUB_OUTPUT"]):  # it could not be tried
            self.assertEqual(done.returncode, 2, done.stderr)
            return done
        with open(env["GITHUB_OUTPUT"], encoding="utf-8") as file:
            self.outputs = dict(line.rstrip("\n").split("=", 1) for line in file)
        with open(self.outputs["comment-file"], encoding="utf-8") as file:
            self.comment = file.read()
        self.summary = self.read(env["GITHUB_STEP_SUMMARY"])
        return done

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            return file.read()

    def pull_request(self, before, after):
        """Commits of two states of files by name; None removes one."""
        commits = []
        for state in (before, after):
            for name, value in state.items():
                if value is None:
                    self.repository.git("rm", "-q", "-r", "--", os.fsdecode(name))
                else:
                    self.repository.write(name, value)
            commits.append(self.repository.commit())
        return commits


class Action(ActionCase):
    def test_a_pull_request_that_widens_fails_with_a_comment_for_people(self):
        base, head = self.pull_request(
            {"servers/github.json": manifest()},
            {"servers/github.json": manifest("net:connect:evil.example:443",
                                             "env:inject:GITHUB_TOKEN")})
        done = self.play(base, head)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(self.outputs["widened"], "true")
        for wanted in ("lets an MCP server do more than before", "servers/github.json",
                       "server-github", "connect to evil.example on port 443",
                       "`net:connect:evil.example:443`", "search_code", "GITHUB_TOKEN"):
            self.assertIn(wanted, self.comment)
        self.assertNotIn("fs:write:/workspace", self.comment, "what did not change is not shown")
        self.assertEqual([each["body"] for each in self.api.comments], [self.comment])
        self.assertEqual({each[2] for each in self.api.seen}, {"Bearer t0ken"})
        self.assertNotIn("t0ken", done.stdout + done.stderr)
        self.assertIn("::error file=servers/github.json::", done.stdout)
        self.assertIn("evil.example", self.summary)

    def test_a_second_run_replaces_the_comment(self):
        base, head = self.pull_request({"github.json": manifest()},
                                       {"github.json": manifest("exec:spawn:git")})
        self.play(base, head)
        self.repository.write("github.json", manifest())
        self.assertEqual(self.play(base, self.repository.commit()).returncode, 0)
        self.assertEqual(len(self.api.comments), 1)
        self.assertIn("No change of what MCP servers may do", self.api.comments[0]["body"])

    def test_what_narrows_passes_and_is_told(self):
        base, head = self.pull_request({"github.json": manifest("exec:spawn:git")},
                                       {"github.json": manifest()})
        done = self.play(base, head)
        self.assertEqual((done.returncode, self.outputs["widened"]), (0, "false"), done.stderr)
        self.assertIn("nothing more is granted", self.comment)
        self.assertIn("exec:spawn:git", self.comment)

    def test_order_spelling_and_other_files_are_no_change(self):
        same = manifest()
        same["tools"].reverse()
        same["tools"][1]["capabilities"] = ["net:connect:API.github.com:443",
                                            "fs:read:/workspace//./**"]
        base, head = self.pull_request(
            {"github.json": manifest(), "package.json": {"name": "x"}, "data.yaml": "a: 1\n"},
            {"github.json": same, "package.json": {"name": "y"}, "data.yaml": "a: [\n"})
        done = self.play(base, head)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No change", self.comment)

    def test_new_removed_and_renamed_manifests(self):
        base, head = self.pull_request(
            {"old.json": manifest(), "moved.json": manifest(name="moved")},
            {"old.json": None, "moved.json": None, "renamed.json": manifest(name="moved")})
        self.assertEqual(self.play(base, head).returncode, 0)
        self.assertIn("### `renamed.json`\n\nIt was `moved.json` before", self.comment)
        self.repository.write("new.json", manifest(name="new"))
        done = self.play(head, self.repository.commit())
        self.assertEqual(done.returncode, 5, "everything that a new server may do is more")
        self.assertIn("`fs:write:/workspace/**`", self.comment)

    def test_a_manifest_that_breaks_fails(self):
        base, head = self.pull_request({"github.json": manifest()}, {"github.json": "{\"name\": \n"})
        done = self.play(base, head)
        self.assertEqual(done.returncode, 4)
        self.assertIn("cannot be compared", self.comment)

    def test_paths_say_which_files_count(self):
        base, head = self.pull_request(
            {"a/m.json": manifest(), "b/m.json": manifest()},
            {"a/m.json": manifest("exec:spawn:a"), "b/m.json": manifest("exec:spawn:b")})
        self.assertEqual(self.play(base, head, paths="a/\n").returncode, 5)
        self.assertIn("exec:spawn:a", self.comment)
        self.assertNotIn("exec:spawn:b", self.comment)

    def test_it_can_tell_without_failing(self):
        base, head = self.pull_request({"github.json": manifest()},
                                       {"github.json": manifest("exec:spawn:git")})
        done = self.play(base, head, **{"fail-on-widening": "false", "comment": "false"})
        self.assertEqual((done.returncode, self.outputs["widened"]), (0, "true"))
        self.assertEqual(self.api.seen, [])

    def test_a_capgate_yaml_is_what_its_manifests_say(self):
        config = "servers:\n  github:\n    command: [server]\n    manifest: github.json\n"
        base, head = self.pull_request(
            {"ops/capgate.yaml": config, "ops/github.json": manifest()},
            {"ops/capgate.yaml": config.replace("[server]", "[other]").replace("github.json", "wide.json"),
             "ops/wide.json": manifest("exec:spawn:git")})
        self.assertEqual(self.play(base, head, paths="ops/capgate.yaml").returncode, 5)
        self.assertIn("exec:spawn:git", self.comment)
        self.assertIn("other", self.comment)
        self.assertEqual(self.play(base, head).returncode, 5)
        self.assertIn("ops/capgate.yaml", self.comment)

    def test_hostile_names_stay_names(self):
        name = "a`b$(touch pwned);\n::set-output name=x::y @team.json"
        base, head = self.pull_request({name: manifest()}, {name: manifest("exec:spawn:git")})
        done = self.play(base, head)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertFalse(os.path.exists(self.repository.path("pwned")))
        commands = [line for line in done.stdout.splitlines() if line.startswith("::")]
        self.assertEqual(len(commands), 1)
        heading = next(line for line in self.comment.splitlines() if line.startswith("### "))
        self.assertEqual(heading.count("`"), 2)

    def test_commits_that_are_not_there_are_told(self):
        base, _ = self.pull_request({"github.json": manifest()}, {})
        for pair in ((base, "--upload-pack=x"), ("1" * 40, base), (base, "1" * 40)):
            done = self.play(*pair)
            self.assertEqual((done.returncode, self.outputs), (2, {}), done.stderr)
            self.assertIn("is not here: check out with fetch-depth: 0", done.stderr)
        self.assertEqual(self.play("", base).returncode, 2)

    def test_the_findings_are_sarif(self):
        base, head = self.pull_request({"github.json": manifest()},
                                       {"github.json": manifest("net:connect:*:443")})
        self.play(base, head)
        log = json.loads(self.read(self.outputs["sarif-file"]))
        self.assertEqual(log["version"], "2.1.0")
        self.assertTrue(log["runs"][0]["results"])


class PreCommit(RepositoryCase):
    def setUp(self):
        super().setUp()
        hooks = Repository(self.directory("hooks"), self.uid)
        for name in (".pre-commit-hooks.yaml", "integrations/git/staged-widening"):
            hooks.copy(os.path.join(launch.ROOT, name), name)
        revision = hooks.commit()
        self.repository.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": [
            {"repo": hooks.directory, "rev": revision,
             "hooks": [{"id": "capgate-check"}, {"id": "capgate-diff"}]}]}))
        self.env = {"PRE_COMMIT_HOME": self.directory("cache"), "CAPGATE": launch.CAPGATE}
        self.repository.write("github.capgate.json", manifest())
        self.repository.commit()
        self.repository.run("/usr/bin/pre-commit", "install", env=self.env, check=True)

    def try_commit(self, **env):
        self.repository.git("add", "-A")
        return self.repository.git("commit", "-m", "change", check=False, env={**self.env, **env})

    def test_a_commit_that_widens_is_stopped_and_can_be_meant(self):
        self.repository.write("github.capgate.json", manifest("net:connect:evil.example:443"))
        done = self.try_commit()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("evil.example", done.stdout + done.stderr)
        self.assertEqual(self.try_commit(CAPGATE_WIDEN="1").returncode, 0)

    def test_what_is_staged_counts_not_what_lies_there(self):
        self.repository.write("github.capgate.json", manifest("exec:spawn:git"))
        self.repository.git("add", "-A")
        self.repository.write("github.capgate.json", manifest())
        done = self.repository.git("commit", "-m", "change", check=False, env=self.env)
        self.assertNotEqual(done.returncode, 0)

    def test_what_narrows_passes(self):
        value = manifest()
        value["tools"].pop()
        self.repository.write("github.capgate.json", value)
        done = self.try_commit()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_mistake_is_stopped(self):
        self.repository.write("github.capgate.json", manifest("fs:read:relative"))
        done = self.try_commit(CAPGATE_WIDEN="1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("CAP_FS_RELATIVE", done.stdout + done.stderr)


    def test_each_file_is_named_and_only_what_changed_is_shown(self):
        self.repository.write("same.capgate.json", manifest(name="same"))
        self.repository.write("a b.capgate.json", manifest("exec:spawn:git"))
        done = self.try_commit()
        said = done.stdout + done.stderr
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("a\\ b.capgate.json:\n", said)
        self.assertIn("CAPGATE_WIDEN=1 git commit", said)
        self.assertEqual(self.try_commit(CAPGATE_WIDEN="1").returncode, 0)
        self.repository.write("same.capgate.json", json.dumps(manifest(name="same")))
        self.repository.write("github.capgate.json", manifest("fs:read:relative"))
        said = (done := self.try_commit()).stdout + done.stderr
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("same.capgate.json", said[said.index("capgate-diff"):])
        self.assertNotIn("git commit", said, "to say that it is meant does not help")
        self.assertIn("must be mended", said)

    def test_another_name_grants_nothing(self):
        self.repository.git("mv", "github.capgate.json", "other.capgate.json")
        done = self.try_commit()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_link_that_leads_to_more(self):
        self.repository.write("wide.txt", manifest("exec:spawn:git"))
        self.repository.write("github.capgate.json", Link("wide.txt"))
        done = self.try_commit()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("exec:spawn:git", done.stdout + done.stderr)


class Textconv(RepositoryCase):
    def setUp(self):
        super().setUp()
        self.repository.write(".gitattributes", "*.json diff=capgate\n")
        self.repository.git("config", "diff.capgate.textconv", f"{launch.CAPGATE} explain --textconv")
        self.repository.write("github.json", manifest())
        self.repository.commit()

    def diff(self):
        return [line for line in self.repository.git("diff").stdout.splitlines()
                if line[:1] in "+-" and not line.startswith(("+++", "---"))]

    def test_git_shows_what_is_granted(self):
        self.repository.write("github.json", manifest("net:connect:evil.example:443"))
        [line] = self.diff()
        self.assertRegex(line, r"^\+  net:connect:evil\.example:443 +connect to evil\.example")

    def test_layout_is_no_difference(self):
        value = manifest()
        value["tools"].reverse()
        self.repository.write("github.json", json.dumps(value))
        self.assertEqual(self.diff(), [])

    def test_a_broken_file_is_still_shown(self):
        self.repository.write("github.json", "{\n")
        self.assertIn("+{", self.diff())


class AsRoot(Action):
    uid = 0


if __name__ == "__main__":
    unittest.main()
