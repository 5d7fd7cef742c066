"""What the tests of capgate diff share: a manifest, targets, and how to ask."""

import json

import launch
from cases import Case

SAME, USAGE, UNREADABLE, MISTAKES, WIDENED = 0, 2, 3, 4, 5

MANIFEST = {"name": "notes", "version": "1", "serverCapabilities": ["fs:read:/srv/notes/**"], "tools": [
    {"name": "fetch", "capabilities": ["net:connect:api.example.com:443", "env:inject:TOKEN",
                                       "assert:data.stays:\"here\""]}]}
# What each target must be told besides the manifest.
TARGETS = {
    "apparmor": [], "bwrap": [], "compose": ["--image", "server:1", "--broker-image", "capgate:1", "--", "node"],
    "docker": ["--user", "1001:1001"], "egress": ["--egress-target", "squid"], "firejail": [],
    "kubernetes": ["--image", "server:1", "--broker-image", "capgate:1", "--network-policy", "cilium", "--", "node"],
    "landlock": [], "oci": ["--", "/usr/bin/node"], "plan": ["--arch", "aarch64"], "podman": ["--rootful"],
    "seatbelt": ["--script", "--egress-port", "4000"], "seccomp": [],
    "systemd": ["--", "/usr/bin/node", "a b"], "worker": []}


class Sources(Case):
    def setUp(self):
        super().setUp()
        self.write("notes.json", MANIFEST)

    def write(self, name, value):
        return self.tree.file(name, json.dumps(value))

    def compile(self, *words, manifest="notes.json"):
        done = launch.capgate("compile", manifest, *words, cwd=self.tree.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def compile_accepting(self, target, words):
        """Compiles, and accepts what this target cannot enforce."""
        accepted = []
        split = words.index("--") if "--" in words else len(words)
        while True:
            done = launch.capgate("compile", "notes.json", "--target", target, "--json", *accepted,
                                  *words[:split], *words[split:], cwd=self.tree.root)
            if done.returncode == 0:
                return json.loads(done.stdout)
            self.assertEqual(done.returncode, MISTAKES, done.stdout + done.stderr)
            for mistake in json.loads(done.stdout)["diagnostics"]:
                self.assertIn("--accept-unenforced", mistake["help"])
                accepted += ["--accept-unenforced", mistake["help"].split("'")[1]]

    def diff(self, *words, **options):
        options.setdefault("cwd", self.tree.root)
        return launch.capgate("diff", *words, **options)

    def said(self, *words):
        done = self.diff(*words, "--json")
        self.assertNotEqual(done.stdout, "", done.stderr)
        return done.returncode, json.loads(done.stdout)

    def parts(self, said, *kinds):
        [server] = said["servers"]
        return [(each["kind"], each["part"], each["before"] or each["after"], each["capability"] or each["why"])
                for each in server["parts"] if not kinds or each["kind"] in kinds]
