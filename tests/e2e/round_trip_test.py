"""What `capgate export` writes, `capgate import` reads again.

For every good case of tests/golden and every format that has both ways. All that the format cannot
say is accepted by name. Then, between the manifest and the one that comes back:

- Nothing is wider, except by a grant that stands in `unenforced`: at the same path; at the same
  host, on any port; at NAME where it is *.NAME. A limit may be gone that stands there, and an
  assertion, which no format has.
- Nothing is missing, except what stands in `unenforced`; kinds of which the file says nothing (all
  but fs and net:connect, and clock:tzdata of srt); the private /tmp, which needs no word; and of a
  host what only srt can say (private=true) or none (sni=any, proto=tcp).
- An import is refused only where a grant of files stands in `unenforced`: the file may then hold
  denies that no manifest can say.

mcpb-meta carries everything: nothing changes at all.
"""

import glob
import json
import os
import re
import unittest

import launch
from cases import Case

FORMATS = ("srt", "toolhive", "vscode")
HOME = "/home/me"
# No manifest without --seal, which mcpb-meta does not take.
ONLY_SEALED = "seal-option"
MCPB = {"manifest_version": "0.3", "name": "x", "version": "1", "description": "d",
        "author": {"name": "a"},
        "server": {"type": "node", "entry_point": "i.js",
                   "mcp_config": {"command": "node", "args": ["i.js"]}}}
SERVER_JSON = {"name": "com.example/x", "version": "1",
               "packages": [{"registryType": "oci", "identifier": "x",
                             "transport": {"type": "stdio"}}]}


def goldens():
    """(name, manifest, options) of each good case."""
    for path in sorted(glob.glob(f"{launch.ROOT}/tests/golden/*/manifest.*")):
        folder = os.path.dirname(path)
        name = os.path.basename(folder)
        if name.startswith("bad-"):
            continue
        options = []
        if os.path.exists(f"{folder}/options.txt"):
            with open(f"{folder}/options.txt", encoding="utf-8") as file:
                options = file.read().split()
        yield name, path, options


def kind_of(capability):
    return ":".join(capability.split(":")[:2]) if capability.startswith("net:") else \
        capability.split(":")[0]


def path_of(capability):
    return capability.split(":", 2)[2].split("?")[0].removesuffix("/**")


def host_of(capability):
    return re.fullmatch(r"net:connect:(\[[^]]*\]|[^:?]*)(:\d+)?(\?.*)?", capability)[1]


def may_be_wider(change, unenforced):
    after = change["after"]
    if after is None:
        return change["before"] in unenforced or kind_of(change["before"]) == "assert"
    same = [one for one in unenforced if kind_of(one) == kind_of(after)]
    if kind_of(after) == "fs":
        return any(path_of(one) == path_of(after) for one in same)
    if kind_of(after) == "net:connect":
        return any(host_of(one) in (host_of(after), "*." + host_of(after)) for one in same)
    return False


def may_be_missing(change, unenforced, format_name):
    before = change["before"]
    if before in unenforced:
        return True
    if kind_of(before) == "fs":
        return path_of(before) == "/tmp"
    if kind_of(before) == "net:connect":
        said = ["sni=any", "proto=tcp"] + (["private=true"] if format_name != "srt" else [])
        return any(refinement in before for refinement in said)
    return format_name != "srt" or before != "clock:tzdata"


class RoundTrip(Case):
    def run_in_home(self, options, *words, text=None):
        home = [word.removeprefix("--set=HOME=") for word in options if "--set=HOME=" in word]
        environment = {**os.environ, "NO_COLOR": "1", "HOME": (home or [HOME])[0]}
        return launch.capgate(*words, text=text, env=environment)

    def exported(self, path, options, format_name):
        """The file, and what stands in `unenforced`."""
        words = ["export", path, "--to", format_name, *options]
        refused = self.run_in_home(options, *words)
        words += ["--accept-unenforced=" + capability for capability in
                  re.findall(r"or accept it with --accept-unenforced '(.*)'$", refused.stderr,
                             re.MULTILINE)]
        done = self.run_in_home(options, *words, "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        artifact = json.loads(done.stdout)
        return artifact["files"][0]["contents"], artifact["unenforced"]

    def changes(self, before, after, options):
        sets = [word for word in options if word.startswith("--set=")]
        done = self.run_in_home(options, "diff", "--json", *sets, before, after)
        change = json.loads(done.stdout)
        self.assertEqual(done.returncode, 5 if change["wider"] else 0,
                         done.stdout + done.stderr)
        return change

    def assert_same(self, path, options, format_name):
        contents, unenforced = self.exported(path, options, format_name)
        back = self.run_in_home(options, "import", "-", text=contents)
        if back.returncode == 4 and any(kind_of(one) == "fs" for one in unenforced):
            self.assertIn("IMPORT_REFUSED", back.stderr)
            return False
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertIn(f"read as {format_name}:", back.stderr)
        if "--seal" in options:
            with open(path, encoding="utf-8") as file:
                path = self.tree.file("sealed.json",
                                      json.dumps({**json.load(file), "seal": True}))
        change = self.changes(path, self.tree.file("back.json", back.stdout), options)
        for one in change["servers"][0]["changes"] if change["servers"] else []:
            told = (one["kind"], one["before"], one["after"])
            if one["kind"] == "widened":
                self.assertTrue(may_be_wider(one, unenforced), told)
            else:
                self.assertTrue(may_be_missing(one, unenforced, format_name), told)
        return True

    def test_goldens(self):
        came_back = 0
        for name, path, options in goldens():
            for format_name in FORMATS:
                with self.subTest(name, format=format_name):
                    came_back += self.assert_same(path, options, format_name)
        self.assertGreater(came_back, 90)

    def test_meta_loses_nothing(self):
        for name, path, options in goldens():
            if name == ONLY_SEALED:
                continue
            contents, unenforced = self.exported(path, options, "mcpb-meta")
            self.assertEqual(unenforced, [])
            for around in (MCPB, SERVER_JSON):
                with self.subTest(name, around=around["name"]):
                    text = json.dumps({**around, "_meta": json.loads(contents)})
                    back = self.run_in_home(options, "import", "--json", "-", text=text)
                    self.assertEqual(back.returncode, 0, back.stderr)
                    report = json.loads(back.stdout)
                    self.assertNotIn(("dropped", "dev.capgate/permissions"),
                                     [(loss["kind"], loss["subject"])
                                      for loss in report["losses"]])
                    self.assert_same_manifest(
                        json.loads(contents)["dev.capgate/permissions"]["manifest"],
                        report["manifest"])
                    after = self.tree.file("back.json", json.dumps(report["manifest"]))
                    change = self.changes(path, after, options)
                    self.assertFalse(change["wider"] or change["moved"])
                    for server in change["servers"]:
                        self.assertEqual((server["changes"], server["tools"]), ([], []))

    def assert_same_manifest(self, before, after):
        """What diff does not look at."""
        for key in ("name", "version", "description", "seal"):
            self.assertEqual(before.get(key), after.get(key))
        self.assertEqual([(tool["name"], tool.get("description")) for tool in before["tools"]],
                         [(tool["name"], tool.get("description")) for tool in after["tools"]])

    def test_samples_of_the_formats_themselves(self):
        """A sample, as a manifest, as the same format again, and back."""
        for format_name in FORMATS:
            samples = glob.glob(f"{launch.ROOT}/tests/import/samples/{format_name}/*")
            self.assertGreater(len(samples), 1)
            for sample in sorted(samples):
                with self.subTest(sample):
                    first = self.run_in_home([], "import", "--json", sample)
                    self.assertEqual(first.returncode, 0, first.stderr)
                    report = json.loads(first.stdout)
                    options = [f"--set={name}=/srv/bound" for name in report["variables"]]
                    path = self.tree.file("first.json", json.dumps(report["manifest"]))
                    self.assertTrue(self.assert_same(path, options, format_name))


if __name__ == "__main__":
    unittest.main()
