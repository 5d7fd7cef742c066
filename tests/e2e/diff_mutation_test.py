"""capgate diff with an artifact that was changed at random. Chosen changes: src/cli/diff_attack_test.cc."""

import copy
import json
import random
import re
import unittest

import launch
from cases import Case

SAME, MISTAKES = 0, 4

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


class Changed(Case):
    def setUp(self):
        super().setUp()
        self.write("notes.json", MANIFEST)

    def write(self, name, value):
        return self.tree.file(name, json.dumps(value))

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

    def diff(self, *words):
        return launch.capgate("diff", *words, cwd=self.tree.root)

    def made(self, target, words):
        """An artifact, and the words with which diff takes its options as they are."""
        artifact = self.compile_accepting(target, words)
        self.write("artifact.json", artifact)
        [server] = json.loads(self.diff("notes.json", "artifact.json", "--json").stdout)["servers"]
        expected = []
        for part in server["parts"]:
            self.assertEqual((part["kind"], part["part"]), ("differs", "options"))
            expected += ["--expect", part["before"] or part["after"]]
        self.assertEqual(self.diff("notes.json", "artifact.json", *expected).returncode, SAME)
        return artifact, expected

    def judged(self, artifact, expected):
        self.write("changed.json", artifact)
        done = self.diff("notes.json", "changed.json", *expected, "--json")
        kinds = []
        if '"servers"' in done.stdout:
            kinds = [(each["kind"], each["part"], each["after"] or each["before"])
                     for each in json.loads(done.stdout)["servers"][0]["parts"]]
        return done.returncode, kinds


POOL = ["--bind", "/", "/bin/sh", "evil/image", "--privileged", "--cap-drop", "ALL", "--unshare-net", "--", "",
        "deny /x w, /** mrwkix,", "ExecStart=", "(allow default)", "http_access allow all", "contents sha256:00"]
# What may be put in anywhere: each was reviewed, and can only take something away or is for people.
SAFE_OPTIONS = {"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
                "--unshare-cgroup", "--disable-userns", "--new-session", "--die-with-parent", "--read-only"}
SAFE_LISTS = {("notes",), ("plan", "hidden"), ("plan", "protected")}
# What may be taken away.
LESS_LISTS = {("notes",), ("egress",), ("envInjections",), ("plan", "programs"), ("plan", "mounts"),
              ("plan", "landlock", "rules"), ("plan", "network", "rules"), ("plan", "network", "published"),
              ("plan", "environment", "inject"), ("plan", "environment", "read")}


class Mutation(Changed):
    """Nothing that is put in, doubled or moved may pass for the same or for less."""

    ROUNDS = 45

    def containers(self, value, path=()):
        if isinstance(value, dict):
            yield path, value
            for key, inner in value.items():
                if path or key != "provenance":
                    yield from self.containers(inner, path + (key,))
        elif isinstance(value, list):
            yield path, value
            for index, inner in enumerate(value):
                yield from self.containers(inner, path + (index,))

    def change_list(self, rng, items, how):
        at = rng.randrange(len(items) + 1)
        if how == "insert":
            thing = rng.choice(POOL)
            items.insert(at, thing)
        elif how == "double":
            thing = copy.deepcopy(rng.choice(items))
            items.insert(at, thing)
        elif how == "move":
            thing = items.pop(rng.randrange(len(items)))
            items.insert(rng.randrange(len(items) + 1), thing)
        else:
            thing = items.pop(rng.randrange(len(items)))
        return thing

    def change_words(self, rng, line):
        words = line.split(" ")
        words.insert(rng.randrange(len(words) + 1), rng.choice(POOL) or "x")
        return " ".join(words)

    def mutate(self, rng, artifact):
        """One change; what it was, where, and of what."""
        places = [each for each in self.containers(artifact)]
        path, place = rng.choice(places)
        texts = [file for file in artifact.get("files", []) if "contents" in file]
        how = rng.choice(("insert", "double", "move", "delete"))
        if texts and rng.random() < 0.6:
            file = rng.choice(texts)
            lines = file["contents"].split("\n")[:-1]
            if rng.random() < 0.25:
                at = rng.randrange(len(lines))
                lines[at] = self.change_words(rng, lines[at])
                how, thing = "insert", lines[at]
            else:
                thing = self.change_list(rng, lines, how)
            file["contents"] = "\n".join(lines) + "\n"
            return how, ("line", file["name"]), thing
        if "argv" in artifact and rng.random() < 0.5:
            path, place = ("argv",), artifact["argv"]
        if isinstance(place, dict):
            key = rng.choice(list(place))
            if how == "delete" or (how == "move" and not path):
                del place[key]
                return "delete", path, key
            name = rng.choice((f"{key} ", "file a", "plan hidden", "x", f"descriptor {key}"))
            place[name] = copy.deepcopy(place[key]) if how == "double" else rng.choice((POOL[0], [], {}, POOL))
            return "insert", path, name
        if not place:
            how = "insert"
        return how, path, self.change_list(rng, place, how)

    def is_reviewed(self, how, path, thing):
        if path[:1] == ("line",) and how == "double":
            return re.fullmatch(r'  deny "[^"\\]*" [a-z]+,', thing)
        if how != "delete":
            return path in SAFE_LISTS or (path == ("argv",) and thing in SAFE_OPTIONS)
        if path[0] == "line":
            return thing.startswith(('  "/', 'BindPaths="', 'BindReadOnlyPaths="'))
        return path in LESS_LISTS or (path[0] == "fds" and path[-1] == "names")

    def check_target(self, target, words):
        artifact, expected = self.made(target, words)
        rng = random.Random(f"{target} {words}")
        seen = 0
        for _ in range(self.ROUNDS):
            changed = copy.deepcopy(artifact)
            how, path, thing = self.mutate(rng, changed)
            if json.dumps(changed) == json.dumps(artifact):
                continue
            seen += 1
            code, kinds = self.judged(changed, expected)
            self.assertIn(code, (0, 2, 3, 4, 5))
            if code == SAME:
                self.assertTrue(self.is_reviewed(how, path, thing), (target, how, path, thing, kinds))
        self.assertGreater(seen, self.ROUNDS // 2)

    def test_every_target(self):
        cases = dict.fromkeys(TARGETS) | {"egress": None}
        for target in cases:
            with self.subTest(target=target):
                self.check_target(target, TARGETS[target])
        for egress in ("envoy", "nftables", "mitmproxy", "spec"):
            with self.subTest(target=egress):
                self.check_target("egress", ["--egress-target", egress])

    def test_a_larger_policy(self):
        self.write("notes.json", launch.server(
            "fs:write:/srv/**", "fs:read:/srv/notes/**", "net:connect:*.example.com:443", "net:listen:8080",
            "env:read:LANG", "env:inject:TOKEN", "net:connect:api.example.com:443?methods=GET", "fs:read:/opt/data/**"))
        for target in ("bwrap", "docker", "podman", "plan", "apparmor", "systemd"):
            with self.subTest(target=target):
                self.check_target(target, TARGETS[target])


if __name__ == "__main__":
    unittest.main()
