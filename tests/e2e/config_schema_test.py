"""The examples of capgate.yaml: what capgate says of each, and that the published schema agrees.

tests/config/good      accepted by both; NAME.txt is what `capgate explain` prints
tests/config/bad       refused by both
tests/config/meaning   well-formed, so that the schema accepts it, and refused for what it says

CAPGATE_UPDATE_GOLDEN=1 rewrites the texts; the reviewer then reads the difference.
"""

import glob
import json
import os
import unittest

import jsonschema
import yaml

import launch

EXAMPLES = os.path.join(launch.ROOT, "tests/config")
HOME = {"HOME": "/home/me", "PATH": "/usr/bin:/bin"}


def examples(kind):
    paths = sorted(glob.glob(os.path.join(EXAMPLES, kind, "*.yaml")))
    if not paths:
        raise AssertionError(f"no examples in {kind}")
    return paths


def explain(path, *words):
    """In the file's own directory, as a user would."""
    return launch.capgate("explain", os.path.basename(path), *words, env=HOME,
                          cwd=os.path.dirname(path))


class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(launch.ROOT, "docs/capgate-yaml.schema.json"),
                  encoding="utf-8") as file:
            cls.schema = json.load(file)
        cls.validator = jsonschema.Draft202012Validator(cls.schema)

    def is_valid(self, path):
        with open(path, encoding="utf-8") as file:
            return self.validator.is_valid(yaml.safe_load(file))

    def test_it_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(self.schema)

    def test_good_examples_are_accepted(self):
        for path in examples("good") + examples("meaning"):
            with self.subTest(path=path):
                self.assertTrue(self.is_valid(path))

    def test_bad_examples_are_refused(self):
        for path in examples("bad"):
            with self.subTest(path=path):
                self.assertFalse(self.is_valid(path))

    def test_every_key_is_known_to_both(self):
        entry = set(self.schema["$defs"]["server"]["properties"])
        done = launch.capgate("explain", "-", text="servers: {x: {zzzzzzzzzzzz: 1}}", env=HOME)
        names = done.stderr.split("known are: ")[1].split("\n")[0].split(", ")
        self.assertEqual(entry, set(names))


class Explain(unittest.TestCase):
    maxDiff = None

    def test_good_examples_are_explained(self):
        for path in examples("good"):
            with self.subTest(path=path):
                done = explain(path)
                self.assertEqual(done.returncode, 0, done.stderr)
                golden = path.replace(".yaml", ".txt")
                if os.environ.get("CAPGATE_UPDATE_GOLDEN"):
                    with open(golden, "w", encoding="utf-8") as file:
                        file.write(done.stdout)
                with open(golden, encoding="utf-8") as file:
                    self.assertEqual(done.stdout, file.read())

    def test_what_is_refused_is_shown_in_its_line(self):
        for path in examples("bad") + examples("meaning"):
            with self.subTest(path=path):
                done = explain(path)
                self.assertIn(done.returncode, (2, 3, 4), done.stdout)
                self.assertTrue(done.stderr, path)
                self.assertIn("help:" if done.returncode != 3 else "cannot read", done.stderr)

    def test_no_value_is_shown(self):
        path = os.path.join(EXAMPLES, "bad/secret-value.yaml")
        for words in ((), ("--json",)):
            done = explain(path, *words)
            self.assertEqual(done.returncode, 4)
            self.assertNotIn("ghp_", done.stdout + done.stderr)

    def test_as_json(self):
        done = explain(os.path.join(EXAMPLES, "good/lists.yaml"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["schemaVersion"], 1)
        github, git = answer["servers"]
        self.assertEqual(github["name"], "github")
        self.assertEqual([(each["capability"], each["file"], each["line"])
                          for each in git["capabilities"]],
                         [("fs:write:/home/me/repo/**", "lists.yaml", 12),
                          ("exec:spawn:git", "lists.yaml", 12),
                          ("exec:spawn:ssh", "lists.yaml", 12)])
        self.assertTrue(git["policyHash"].startswith("sha256:"))

    def test_relative_paths_start_at_the_file(self):
        done = launch.capgate("explain", "-", text="servers: {x: {sandbox: {read: [data]}}}",
                              env=HOME, cwd="/usr")
        self.assertIn("fs:read:/usr/data", done.stdout)

    def test_a_mistake_in_a_capability_stands_in_the_config(self):
        done = explain(os.path.join(EXAMPLES, "bad/capability.yaml"))
        self.assertIn("capability.yaml:1:39: error[CAP_FS_RELATIVE]", done.stderr)


if __name__ == "__main__":
    unittest.main()
