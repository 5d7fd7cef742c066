"""The pure commands of the release program, started by root and by an ordinary user: the same exit code and
the same bytes. Their cases are unit tests beside the code: src/cli/check_test.cc and its neighbours."""

import json
import os
import unittest

import launch
from cases import Case

GITHUB = os.path.join(launch.ROOT, "examples/github.json")


class Smoke(Case):
    def setUp(self):
        super().setUp()
        with open(GITHUB, encoding="utf-8") as file:
            manifest = json.load(file)
        self.tree.file("old.json", json.dumps(manifest))
        manifest["tools"][0]["capabilities"].append("net:connect:*")
        self.tree.file("new.json", json.dumps(manifest))

    def run_as(self, uid, words):
        return launch.capgate(*words, cwd=self.tree.root, env={"PATH": os.defpath}, user=uid, group=uid,
                              extra_groups=[])

    def same_for_root_and_user(self, *words, code):
        """What both print."""
        root, user = (self.run_as(uid, words) for uid in (0, launch.ORDINARY))
        self.assertEqual(root.returncode, code, root.stdout + root.stderr)
        self.assertEqual((user.returncode, user.stdout, user.stderr),
                         (root.returncode, root.stdout, root.stderr))
        return root

    def test_check(self):
        done = self.same_for_root_and_user("check", "new.json", code=5)
        self.assertIn("warning[NET_ANY]", done.stderr)
        self.assertTrue(done.stdout.startswith("new.json: 3 findings: "), done.stdout)

    def test_diff(self):
        done = self.same_for_root_and_user("diff", "old.json", "new.json", code=5)
        self.assertIn("Widened:\n  + may now connect to every public host on every port\n"
                      "      net:connect:*\n", done.stdout)

    def test_report(self):
        done = self.same_for_root_and_user("report", "new.json", "--against", "old.json", code=0)
        self.assertTrue(done.stdout.startswith("<!DOCTYPE html>"))
        for uid in (0, launch.ORDINARY):
            name = f"{uid}.html"
            self.assertEqual(self.run_as(uid, ["report", "new.json", "--against", "old.json", "-o",
                                               name]).returncode, 0)
            self.assertEqual(self.tree.text(name), done.stdout)
            self.assertEqual(os.stat(self.tree.path(name)).st_uid, uid)

    def test_schema(self):
        done = self.same_for_root_and_user("schema", code=0)
        self.assertIn("$defs", json.loads(done.stdout))


if __name__ == "__main__":
    unittest.main()
