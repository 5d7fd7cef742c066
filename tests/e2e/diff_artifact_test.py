"""capgate diff with an artifact that somebody changed so that it looks like less."""

import copy
import json
import random
import re
import unittest

import launch
from diff_sources import SAME, TARGETS, USAGE, WIDENED, Sources

SYSTEMD = ["--", "/usr/bin/node", "a b"]
KUBERNETES = TARGETS["kubernetes"]


class Changed(Sources):
    def made(self, target, words=None):
        """An artifact, and the words with which diff takes its options as they are."""
        artifact = self.compile_accepting(target, TARGETS[target] if words is None else words)
        self.write("artifact.json", artifact)
        _, said = self.said("notes.json", "artifact.json")
        expected = []
        for kind, part, shown, _ in self.parts(said):
            self.assertEqual((kind, part), ("differs", "options"))
            expected += ["--expect", shown]
        self.assertEqual(self.diff("notes.json", "artifact.json", *expected).returncode, SAME)
        return artifact, expected

    def judged(self, artifact, expected):
        self.write("changed.json", artifact)
        done = self.diff("notes.json", "changed.json", *expected, "--json")
        kinds = []
        if done.stdout.startswith('{"schemaVersion"') or '"servers"' in done.stdout:
            kinds = [(each["kind"], each["part"], each["after"] or each["before"])
                     for each in json.loads(done.stdout)["servers"][0]["parts"]]
        return done.returncode, kinds

    def assert_found(self, artifact, expected):
        code, kinds = self.judged(artifact, expected)
        self.assertEqual(code, WIDENED, kinds)
        self.assertTrue(any(kind in ("widened", "differs") for kind, _, _ in kinds), kinds)


class Attack(Changed):
    def split_unit(self):
        artifact, expected = self.made("systemd", SYSTEMD)
        unit = artifact["files"][1]
        lines = unit["contents"].split("\n")
        cut = next(i for i, line in enumerate(lines) if line.startswith("ExecStart=")) + 1
        return artifact, expected, unit, lines, cut

    def test_a_key_is_no_file(self):
        artifact, expected, unit, lines, cut = self.split_unit()
        unit["contents"] = "\n".join(lines[:cut]) + "\n"
        out = {}
        for key, value in artifact.items():
            out[key] = value
            if key == "files":
                out[f"file {unit['name']}"] = lines[cut:-1]
        self.assert_found(out, expected)

    def test_a_file_stands_once(self):
        artifact, expected, unit, lines, _ = self.split_unit()
        artifact["files"].insert(1, {"name": unit["name"], "contents": "\n".join(lines[:2]) + "\n"})
        unit["contents"] = "\n".join(lines[2:])
        self.assert_found(artifact, expected)

    def test_network_policies_that_became_a_key(self):
        artifact, expected = self.made("kubernetes")
        file = artifact["files"][0]
        lines = file["contents"].split("\n")
        cut = max(i for i, line in enumerate(lines) if line == "---")
        file["contents"] = "\n".join(lines[:cut]) + "\n"
        self.assert_found({"argv": [], **artifact, f"file {file['name']}": lines[cut:-1]}, expected)

    def test_a_descriptor_or_a_plan_that_became_a_key(self):
        artifact, expected = self.made("bwrap")
        gone = artifact["fds"].pop(0)
        out = {**artifact, f"descriptor {gone['purpose']}": [f"fd {gone['fd']}"]}
        self.assert_found(out, expected)
        artifact, expected = self.made("plan")
        hidden = artifact["plan"].pop("hidden")
        self.assert_found({**artifact, "plan hidden": hidden}, expected)
        artifact["plan"]["hidden "] = hidden
        self.assert_found(artifact, expected)

    def test_a_line_is_no_hash(self):
        artifact, expected = self.made("seccomp")
        _, parts = self.judged({**artifact, "files": artifact["files"][:1]}, expected)
        [shown] = [words for _, part, words in parts if part == "file seccomp.bpf"]
        self.assertTrue(shown.startswith("contents sha256:"), shown)
        artifact["files"][1] = {"name": "seccomp.bpf", "contents": shown + "\n"}
        self.assert_found(artifact, expected)

    def test_nothing_is_something(self):
        for change in ({"hooks": []}, {"hooks": {}}, {"argv": []}):
            artifact, expected = self.made("apparmor")
            self.assert_found({**artifact, **change}, expected)
        artifact, expected = self.made("bwrap")
        del artifact["egress"]
        self.assertNotEqual(self.judged(artifact, expected)[0], SAME)
        artifact, expected = self.made("bwrap")
        artifact["provenance"]["hook"] = "x"
        self.assert_found(artifact, expected)

    def test_a_word_too_many_is_a_program(self):
        for target, before, words in (
                ("docker", "--cap-drop", ["--cap-drop", "CHOWN", "evil/image", "sh"]),
                ("docker", "--cap-drop", ["--read-only", "evil/image"]),
                ("docker", "--cap-drop", ["--cap-drop", "--privileged"]),
                ("docker", "--cap-drop", ["--read-only=false"]),
                ("podman", "--cap-drop", ["--cap-drop", "CHOWN", "evil/image", "sh"]),
                ("bwrap", "--proc", ["--remount-ro", "/usr", "/bin/sh", "/srv/notes/x.sh"]),
                ("bwrap", "--unshare-user", ["--cap-drop", "CAP_CHOWN", "/bin/sh", "/srv/evil.sh"]),
                ("bwrap", "--unshare-user", ["--unshare-net", "/bin/sh"]),
                ("bwrap", "--", ["--seccomp", "9"]),
                ("bwrap", "--chdir", ["--clearenv"])):
            with self.subTest(target=target, words=words):
                artifact, expected = self.made(target)
                at = artifact["argv"].index(before)
                artifact["argv"][at:at] = words
                self.assert_found(artifact, expected)

    def test_a_restraint_is_none_among_the_words_of_the_program(self):
        artifact, expected = self.made("bwrap")
        artifact["argv"].insert(artifact["argv"].index("--") + 1, "--unshare-net")
        self.assert_found(artifact, expected)

    def test_a_restraint_that_is_whole_narrows(self):
        for target, words in (("bwrap", ["--remount-ro", "/opt"]), ("bwrap", ["--cap-drop", "CAP_CHOWN"]),
                              ("docker", ["--cap-drop", "CHOWN"])):
            artifact, expected = self.made(target)
            artifact["argv"][0:0] = words
            self.assertEqual(self.judged(artifact, expected), (SAME, [("narrowed", "argv", " ".join(words))]))

    def test_one_rule_of_apparmor_in_a_line(self):
        for line in ("  deny /x w, /** mrwkix, network, capability,", '  deny "/x" w, "/**" mrwkix,', "  deny",
                     '  deny "/x" w #,', '  deny "/x\\" w,', '  deny "/x" w, # ,', "deny network,"):
            with self.subTest(line=line):
                artifact, expected = self.made("apparmor")
                profile = artifact["files"][0]
                profile["contents"] = profile["contents"].replace("\n}", f"\n{line}\n}}")
                self.assert_found(artifact, expected)
        artifact, expected = self.made("apparmor")
        profile = artifact["files"][0]
        profile["contents"] = profile["contents"].replace("\n}", '\n  deny "/x{,/,/**}" wl,\n}')
        self.assertEqual(self.judged(artifact, expected)[0], SAME)

    def test_lines_whose_order_or_repetition_decides(self):
        for target, words, number, change in (
                ("systemd", SYSTEMD, 1, lambda lines: lines.append("ExecStart=")),
                ("systemd", SYSTEMD, 1, lambda lines: lines.append("BindReadOnlyPaths=")),
                ("systemd", SYSTEMD, 1, lambda lines: lines.reverse()),
                ("systemd", SYSTEMD, 1, lambda lines: lines.append("InaccessiblePaths=/x")),
                ("egress", ["--egress-target", "squid"], 0, lambda lines: lines.insert(0, "http_access deny all")),
                ("egress", ["--egress-target", "squid"], 0, lambda lines: lines.reverse()),
                ("egress", ["--egress-target", "envoy"], 0, lambda lines: lines.insert(0, lines.pop())),
                ("egress", ["--egress-target", "nftables"], 0, lambda lines: lines.insert(3, lines.pop(4))),
                ("seatbelt", [], 0, lambda lines: lines.append("(deny default)")),
                ("firejail", [], 0, lambda lines: lines.insert(0, "blacklist /x")),
                ("seccomp", [], 0, lambda lines: lines.insert(2, lines.pop()))):
            with self.subTest(target=target, words=words):
                artifact, expected = self.made(target, words)
                file = artifact["files"][number]
                lines = file["contents"].split("\n")[:-1]
                change(lines)
                file["contents"] = "\n".join(lines) + "\n"
                self.assert_found(artifact, expected)

    def test_a_rule_that_stood_before_a_wider_one(self):
        self.write("notes.json", launch.server("net:connect:api.example.com:443?proto=http",
                                               "net:connect:*.example.com:443?proto=tls"))
        artifact, expected = self.made("plan")
        narrow = next(each for each in artifact["egress"] if each["host"] == "api.example.com")
        artifact["egress"].remove(narrow)
        self.assert_found(artifact, expected)
        artifact, expected = self.made("plan")
        rules = artifact["plan"]["network"]["rules"]
        rules.remove(next(each for each in rules if each["capability"].startswith("net:connect:api.")))
        self.assert_found(artifact, expected)

    def test_that_it_says_less_of_itself_is_not_less(self):
        artifact, expected = self.made("firejail")
        self.assertTrue(artifact["notCovered"])
        artifact["notCovered"].clear()
        self.assert_found(artifact, expected)

    def test_promises_of_one_name(self):
        artifact, expected = self.made("bwrap")
        artifact["assertions"].insert(0, {"id": "data.stays", "description": "anywhere"})
        self.assert_found(artifact, expected)

    def test_what_nobody_but_the_caller_can_say(self):
        for words, shown in ((["--user", "0:0"], "user 0:0"), (["--writable-root"], "writableRoot true"),
                             (["--egress-dir", "/home/me"], "egressDir /home/me"),
                             (["--set", "HOME=/odd"], "home /odd")):
            with self.subTest(words=words):
                self.write("artifact.json", self.compile_accepting("docker", words))
                code, said = self.said("notes.json", "artifact.json")
                self.assertEqual((code, [each[:3] for each in self.parts(said)]),
                                 (WIDENED, [("differs", "options", shown)]))
                code, said = self.said("notes.json", "artifact.json", "--expect", shown)
                self.assertEqual((code, said["changed"]), (SAME, False))
                self.assertEqual(self.diff("artifact.json", "notes.json").returncode, SAME)
        self.assertEqual(self.diff("notes.json", "artifact.json", "--set", "HOME=/odd").returncode, SAME)
        self.assertEqual(self.diff("notes.json", "artifact.json", "--set", "HOME=/other").returncode, WIDENED)
        self.write("notes.json", launch.server("limit:memory:512M"))
        self.write("artifact.json", self.compile("--accept-unenforced", "limit:memory:512M"))
        self.assertEqual(self.diff("notes.json", "artifact.json").returncode, WIDENED)
        self.assertEqual(self.diff("notes.json", "artifact.json", "--expect",
                                   "unenforced limit:memory:512M").returncode, SAME)

    def test_two_artifacts_with_other_options(self):
        self.write("a.json", self.compile("--target", "docker"))
        self.write("b.json", self.compile("--target", "docker", "--user", "0:0", "--writable-root"))
        code, said = self.said("a.json", "b.json")
        self.assertEqual(code, WIDENED)
        self.assertLessEqual({"user 0:0", "writableRoot true"}, {each[2] for each in self.parts(said, "differs")})
        self.assertEqual(self.diff("a.json", "b.json", "--expect", "user 0:0").returncode, USAGE)
        self.assertEqual(self.diff("notes.json", "notes.json", "--expect", "user 0:0").returncode, USAGE)


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
