"""capgate check: findings as people, programs and code scanning read them, and the ignore file.

tests/e2e/check holds a manifest and what check says of it. CAPGATE_UPDATE_GOLDEN=1 rewrites the
texts; the reviewer then reads the difference.
"""

import copy
import json
import os
import time
import unittest

import launch
import sarif_schema
from cases import Case

GOLDEN = os.path.join(launch.ROOT, "tests/e2e/check")
FETCH = launch.server("net:connect:*")
CLEAN = launch.server("net:connect:api.example.com:443")
NOTED = launch.server("net:connect:api.example.com")
ENTRY = "ignore:\n  - rule: NET_ANY\n    reason: it fetches any page\n    expires: 2027-06-30\n"
BEFORE = {"SOURCE_DATE_EPOCH": "1814313600"}  # 2027-06-30
AFTER = {"SOURCE_DATE_EPOCH": "1814400000"}  # the day after


class CheckCase(Case):
    def setUp(self):
        super().setUp()
        self.fetch = self.tree.file("fetch.json", json.dumps(FETCH, indent=2))

    def check(self, *words, code, env=None, **options):
        options.setdefault("cwd", self.tree.root)
        done = launch.capgate("check", *words, env={"PATH": os.defpath, **(env or {})}, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def json(self, *words, **options):
        return json.loads(self.check(*words, "--json", **options).stdout)

    def rules(self, *words, **options):
        return [each["rule"] for each in self.json(*words, **options)["findings"]]


class Exits(CheckCase):
    def test_findings_are_five_and_notes_are_not(self):
        self.check("fetch.json", code=5)
        self.check(self.tree.file("clean.json", json.dumps(CLEAN)), code=0)
        noted = self.tree.file("noted.json", json.dumps(NOTED))
        self.assertIn("1 finding of less severity", self.check(noted, code=0).stderr)

    def test_severity_is_the_least_that_counts(self):
        noted = self.tree.file("noted.json", json.dumps(NOTED))
        self.assertEqual(self.rules(noted, "--severity", "note", code=5), ["NET_NO_PORT"])
        self.assertEqual(self.rules("fetch.json", "--severity", "error", code=0), [])
        self.check("fetch.json", "--severity", "fatal", code=2)

    def test_only_variables_that_a_line_uses_are_not_bound(self):
        file = self.tree.file("repo.json", json.dumps(launch.server("fs:read:${REPO}/**")))
        done = self.check(file, code=0)
        self.assertIn("${REPO} is not bound", done.stderr)
        self.assertNotIn("HOME", done.stderr)
        self.assertEqual(self.json(file, code=0)["unbound"], ["REPO"])
        both = self.tree.file("both.json", json.dumps(
            launch.server("fs:read:${REPO}/**", "fs:read:${HOME}/notes/**")))
        self.assertEqual(self.json(both, code=0)["unbound"], ["HOME", "REPO"])

    def test_a_boolean_of_yaml_counts_however_it_is_spelt(self):
        text = ("name: s\nversion: '1'\nseal: {}\ntools: []\n"
                "serverCapabilities: ['env:inject:A_TOKEN', 'net:connect:a.example.com:443']\n")
        told = {}
        for word in ("true", "True", "TRUE", "false", "False", "FALSE"):
            file = self.tree.file(f"{word}.yaml", text.format(word))
            told.setdefault(word.lower(), set()).add(
                launch.capgate("explain", file, env={"PATH": os.defpath}).stdout)
        [sealed], [held] = told["true"], told["false"]
        self.assertIn("env:inject:A_TOKEN?to=a.example.com:443", sealed)
        self.assertNotIn("?to=", held)

    def test_mistakes_come_before_findings(self):
        bad = self.tree.file("bad.json", json.dumps(launch.server("fs:read:relative")))
        self.check(bad, code=4)
        self.check("fetch.json", bad, code=4)
        self.check("fetch.json", bad, "missing.json", code=3)

    def test_a_directory_is_refused_clearly(self):
        self.tree.directory("servers")
        said = self.check("servers", code=3).stderr
        self.assertIn("servers", said)
        self.assertIn("irectory", said)

    def test_json_and_sarif_exclude_each_other(self):
        self.check("fetch.json", "--json", "--sarif", code=2)
        self.check("fetch.json", "--ignore", "x", "--no-ignore", code=2)


class Modes(CheckCase):
    """An option that would do nothing is a mistake."""

    def test_options_of_a_server_that_is_started(self):
        for words in (["--config", "capgate.yaml"], ["--allow", "fs:read:/srv"], ["--timeout", "3"]):
            done = self.check("fetch.json", *words, code=2)
            self.assertIn(f"{words[0]} is for a server that is started", done.stderr)

    def test_options_of_findings(self):
        for words in (["--sarif"], ["--severity", "note"], ["--ignore", "x.yaml"], ["--no-ignore"], ["--seal"],
                      ["--tool", "x"], ["--validators", "v.json"]):
            done = self.check("--live", "fetch.json", *words, "--", "/usr/bin/true", code=2)
            self.assertIn(f"{words[0]} is for the findings of a file", done.stderr)

    def test_a_lock_has_the_whole_policy_of_a_file(self):
        for words in (["fetch.json", "--tool", "x"], ["fetch.json", "--seal"], ["-"]):
            self.assertIn("lock", self.check(*words, "--locked", "capgate.lock", code=2).stderr)


class Files(CheckCase):
    def test_several_files_are_checked_each_once(self):
        self.tree.file("clean.json", json.dumps(CLEAN))
        done = self.check("fetch.json", "clean.json", "./fetch.json", code=5)
        self.assertEqual([line.split(":")[0] for line in done.stdout.splitlines()],
                         ["fetch.json", "clean.json"])
        said = self.json("fetch.json", "clean.json", code=5)
        self.assertEqual([file["file"] for file in said["files"]], ["fetch.json", "clean.json"])
        self.assertEqual([each["file"] for each in said["findings"]], ["fetch.json"])

    def test_a_wrong_file_does_not_hide_the_others(self):
        bad = self.tree.file("bad.json", json.dumps(launch.server("fs:read:relative")))
        said = self.json(bad, "fetch.json", "missing.json", code=3)
        self.assertEqual(said["files"][0]["diagnostics"][0]["code"], "CAP_FS_RELATIVE")
        self.assertTrue(said["files"][2]["unreadable"])
        self.assertEqual(len(said["findings"]), 1)

    def test_standard_input_has_no_file(self):
        said = self.json("-", code=5, text=json.dumps(FETCH))
        self.assertEqual(said["findings"][0]["file"], "")
        self.assertEqual(said["schemaVersion"], 1)

    def test_the_keys_of_before_are_still_there(self):
        said = self.json("fetch.json", code=5)
        for key in ("diagnostics", "name", "version", "tools", "declared", "grants",
                    "manifestHash", "policyHash"):
            self.assertIn(key, said)


class Fingerprints(CheckCase):
    def prints(self, path, **options):
        return {each["fingerprint"] for each in self.json(path, "--severity", "note", code=5,
                                                          **options)["findings"]}

    def test_they_survive_moved_lines_and_reordered_keys(self):
        manifest = launch.server("net:connect:*", "fs:write:/srv/x/**", "exec:spawn:bash")
        manifest["tools"][0]["annotations"] = {"readOnlyHint": True}
        self.tree.file("m.json", json.dumps(manifest, indent=4))
        before = self.prints("m.json")
        self.assertGreaterEqual(len(before), 4)
        tool = {key: manifest["tools"][0][key] for key in ("annotations", "capabilities", "name")}
        tool["capabilities"] = list(reversed(tool["capabilities"]))
        self.tree.file("m.json", "\n\n" + json.dumps({"tools": [tool], "version": "9",
                                                      "name": "other"}))
        self.assertEqual(self.prints("m.json"), before)

    def test_they_do_not_depend_on_how_the_file_is_named(self):
        here = self.prints("fetch.json")
        self.assertEqual(self.prints("./fetch.json"), here)
        self.assertEqual(self.prints(self.fetch), here)
        self.assertNotEqual(self.prints(self.fetch, cwd="/"), here)


class Ignore(CheckCase):
    def test_the_file_of_the_working_directory_is_used(self):
        self.tree.file(".capgate-ignore.yaml", ENTRY)
        said = self.json("fetch.json", code=0, env=BEFORE)
        self.assertEqual(said["findings"], [])
        self.assertEqual(said["ignored"][0]["reason"], "it fetches any page")
        self.assertIn("1 finding ignored", self.check("fetch.json", code=0, env=BEFORE).stderr)
        self.check("fetch.json", "--no-ignore", code=5, env=BEFORE)
        self.check(self.fetch, code=5, env=BEFORE, cwd="/")

    def test_an_entry_holds_through_its_last_day(self):
        path = self.tree.file("i.yaml", ENTRY)
        self.assertEqual(self.rules("fetch.json", "--ignore", path, code=0, env=BEFORE), [])
        self.assertEqual(self.rules("fetch.json", "--ignore", path, code=5, env=AFTER),
                         ["NET_ANY", "IGNORE_EXPIRED"])
        said = self.check("fetch.json", "--ignore", path, code=5, env=AFTER).stderr
        self.assertIn(f"{path}:2:11: warning[IGNORE_EXPIRED]", said)

    def test_an_entry_that_matches_nothing_is_noted(self):
        path = self.tree.file("i.yaml", ENTRY.replace("NET_ANY", "UNSAFE"))
        self.assertEqual(self.rules("fetch.json", "--ignore", path, "--severity", "note", code=5,
                                    env=BEFORE), ["NET_ANY", "IGNORE_UNUSED"])

    def test_mistakes_have_their_place(self):
        path = self.tree.file("i.yaml", ENTRY.replace("    reason: it fetches any page\n", ""))
        said = self.check("fetch.json", "--ignore", path, code=4).stderr
        self.assertIn(f"{path}:2:5: error[IGNORE_SHAPE]: reason is missing", said)
        self.check("fetch.json", "--ignore", "missing.yaml", code=3)
        os.symlink("missing", self.tree.path("dangling.yaml"))
        self.tree.directory(".capgate-ignore.yaml")
        self.check("fetch.json", code=3)


class Sarif(CheckCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.validator = sarif_schema.validator()

    def sarif(self, *words, code, **options):
        log = json.loads(self.check(*words, "--sarif", code=code, **options).stdout)
        self.validator.validate(log)
        return log["runs"][0]

    def test_the_schema_refuses_what_is_wrong(self):
        log = json.loads(self.check("fetch.json", "--sarif", code=5).stdout)
        self.assertTrue(self.validator.is_valid(log))
        wrong = copy.deepcopy(log)
        wrong["runs"][0]["results"][0]["level"] = "fatal"
        self.assertFalse(self.validator.is_valid(wrong))

    def test_findings_have_place_rule_and_fingerprint(self):
        run = self.sarif("fetch.json", code=5)
        result = run["results"][0]
        self.assertEqual(run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"], "NET_ANY")
        self.assertEqual(result["locations"][0]["physicalLocation"],
                         {"artifactLocation": {"uri": "fetch.json"},
                          "region": {"startLine": 8, "startColumn": 10, "endLine": 8,
                                     "endColumn": 23}})
        self.assertEqual(result["partialFingerprints"]["capgate/v1"],
                         self.json("fetch.json", code=5)["findings"][0]["fingerprint"])

    def test_paths_are_uris(self):
        name = "a b#ä:1.json"
        self.tree.file(name, json.dumps(FETCH))
        for cwd, uri in ((self.tree.root, "a%20b%23%C3%A4%3A1.json"),
                         ("/", self.tree.root[1:] + "/a%20b%23%C3%A4%3A1.json"),
                         ("/usr", f"file://{self.tree.root}/a%20b%23%C3%A4%3A1.json")):
            run = self.sarif(self.tree.path(name), code=5, cwd=cwd)
            place = run["results"][0]["locations"][0]["physicalLocation"]
            self.assertEqual(place["artifactLocation"]["uri"], uri)

    def test_ignored_findings_are_suppressed(self):
        self.tree.file(".capgate-ignore.yaml", ENTRY)
        result = self.sarif("fetch.json", code=0, env=BEFORE)["results"][0]
        self.assertEqual(result["suppressions"],
                         [{"kind": "external", "justification": "it fetches any page"}])

    def test_mistakes_are_results_too(self):
        self.tree.file("bad.json", json.dumps(launch.server("fs:read:x", "fs:read:x", "gpu:a:b")))
        results = self.sarif("bad.json", "fetch.json", code=4)["results"]
        self.assertEqual(sorted(each["ruleId"] for each in results),
                         ["CAP_FS_RELATIVE", "CAP_FS_RELATIVE", "CAP_UNKNOWN_KIND", "NET_ANY"])
        prints = {each["partialFingerprints"]["capgate/v1"] for each in results}
        self.assertEqual(len(prints), 4)

    def test_many_findings_are_quick(self):
        lines = [f"net:connect:*.t{i}.example.com" for i in range(1000)]
        self.tree.file("many.json", json.dumps(launch.server(*lines)))
        start = time.monotonic()
        results = self.sarif("many.json", "--severity", "note", code=5)["results"]
        self.assertEqual(len(results), 2000)
        self.assertLess(time.monotonic() - start, 10)


class Golden(CheckCase):
    def compare(self, name, text):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("CAPGATE_UPDATE_GOLDEN") and not os.environ.get("CI"):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_review_in_words(self):
        done = self.check("review.yaml", "--severity", "note", code=5, cwd=GOLDEN)
        self.compare("review.txt", done.stderr + done.stdout)

    def test_a_review_as_sarif(self):
        done = self.check("review.yaml", "--severity", "note", "--sarif", code=5, cwd=GOLDEN)
        self.compare("review.sarif", done.stdout)


if __name__ == "__main__":
    unittest.main()
