"""The SARIF of capgate check, with the schema of SARIF. The command itself: src/cli/check_test.cc."""

import copy
import json
import os
import resource
import unittest

import launch
import sarif_schema
from cases import Case

FETCH = launch.server("net:connect:*")
ENTRY = "ignore:\n  - rule: NET_ANY\n    reason: it fetches any page\n    expires: 2027-06-30\n"
BEFORE = {"SOURCE_DATE_EPOCH": "1814313600"}  # 2027-06-30


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
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        results = self.sarif("many.json", "--severity", "note", code=5)["results"]
        # Time of the processor: other busy programs and the validator do not add to it.
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 2)
        self.assertEqual(len(results), 2000)


if __name__ == "__main__":
    unittest.main()
