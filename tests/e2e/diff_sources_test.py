"""capgate diff with what compile printed, and of what looks like a policy."""

import base64
import json
import unittest

import launch
from diff_sources import MANIFEST, MISTAKES, SAME, TARGETS, UNREADABLE, USAGE, WIDENED, Sources


class Artifact(Sources):
    def test_what_was_compiled_is_the_same_for_every_target(self):
        listed = json.loads(launch.capgate("targets", "--json").stdout)
        names = {target["name"] for target in listed}
        self.assertEqual(names, set(TARGETS))
        for target, words in TARGETS.items():
            with self.subTest(target=target):
                artifact = self.compile_accepting(target, words)
                self.write("artifact.json", artifact)
                code, said = self.said("artifact.json", "notes.json")
                self.assertEqual((code, said["changed"], said["wider"]), (SAME, False, False), self.parts(said))
                expected = []
                for name, value in artifact["provenance"]["options"].items():
                    shown = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
                    expected += ["--expect", f"{name} {shown}"]
                for capability in artifact["unenforced"]:
                    expected += ["--expect", f"unenforced {capability}"]
                code, said = self.said("notes.json", "artifact.json", *expected)
                self.assertEqual((code, said["changed"], said["wider"]), (SAME, False, False), self.parts(said))

    def check_both_ways(self, artifact, part, words):
        """An artifact that grants more: as the new side wider, as the old one not what it was."""
        self.write("changed.json", artifact)
        code, said = self.said("notes.json", "changed.json")
        self.assertEqual((code, said["changed"], said["wider"]), (WIDENED, True, True))
        self.assertEqual(self.parts(said), [
            ("widened", part, words, "no capability of the manifest causes this")])
        code, said = self.said("changed.json", "notes.json")
        self.assertEqual((code, said["changed"], said["wider"]), (SAME, True, False))
        self.assertEqual(self.parts(said), [
            ("narrowed", part, words, "no capability of the manifest causes this")])

    def test_words_that_were_added_by_hand_are_found(self):
        artifact = self.compile()
        at = artifact["argv"].index("--chdir")
        artifact["argv"][at:at] = ["--bind", "/home", "/home"]
        self.check_both_ways(artifact, "argv", "--bind /home /home")

    def test_a_host_that_was_added_by_hand_is_found(self):
        artifact = self.compile()
        entry = {"host": "evil.example", "port": 443, "blockPrivate": False}
        artifact["egress"].append(entry)
        self.check_both_ways(artifact, "egress", json.dumps(entry, separators=(",", ":")))

    def test_a_variable_that_was_added_by_hand_is_found(self):
        artifact = self.compile()
        artifact["envInjections"].append("OTHER")
        self.check_both_ways(artifact, "envInjections", "OTHER")

    def test_what_was_not_accepted_is_found(self):
        artifact = self.compile()
        artifact["unenforced"].append("fs:read:/srv/notes/**")
        self.check_both_ways(artifact, "unenforced", "fs:read:/srv/notes/**")

    def check_differs(self, artifact, part, old="notes.json"):
        self.write("changed.json", artifact)
        for pair in ((old, "changed.json"), ("changed.json", old)):
            code, said = self.said(*pair)
            self.assertEqual((code, said["wider"]), (WIDENED, True))
            self.assertIn(part, [each[1] for each in self.parts(said, "differs", "widened")], said)

    def test_one_byte_of_the_filter_differs(self):
        artifact = self.compile()
        [filter_] = [each for each in artifact["fds"] if each["purpose"] == "seccomp"]
        code = bytearray(base64.b64decode(filter_["base64"]))
        code[-8] ^= 1
        filter_["base64"] = base64.b64encode(code).decode()
        self.check_differs(artifact, "descriptor seccomp")
        done = self.diff("notes.json", "changed.json")
        self.assertIn("cannot be judged", done.stdout.splitlines()[0])
        self.assertIn("Differs, and nobody can say which way:", done.stdout)

    def test_what_cannot_be_judged_counts_as_wider(self):
        for change, part in (
                (lambda a: a["argv"].remove("--unshare-net"), "argv"),
                (lambda a: a["argv"].__setitem__(slice(-1, None), ["--", "--"]), "argv"),
                (lambda a: a.__setitem__("hook", ["/bin/sh"]), "hook")):
            artifact = self.compile()
            change(artifact)
            self.write("changed.json", artifact)
            code, said = self.said("notes.json", "changed.json")
            self.assertEqual((code, said["wider"]), (WIDENED, True))
            self.assertEqual([each[1] for each in self.parts(said)], [part])

    def test_the_same_words_in_another_order_differ(self):
        artifact = self.compile()
        words = artifact["argv"]
        at = words.index("--tmpfs")
        moved = words[at:at + 2]
        del words[at:at + 2]
        artifact["argv"] = moved + words
        self.check_differs(artifact, "argv")

    def test_words_are_not_joined(self):
        """["/srv/notes /srv/notes"] is one word, and not two."""
        artifact = self.compile()
        at = artifact["argv"].index("/srv/notes")
        artifact["argv"][at:at + 2] = ["/srv/notes /srv/notes"]
        self.check_differs(artifact, "argv")

    def test_a_mount_that_covered_another_is_missed(self):
        """Below a directory that may be written, a read-only mount takes something away."""
        self.write("over.json", launch.server("fs:write:/srv/**", "fs:read:/srv/notes/**"))
        artifact = self.compile(manifest="over.json")
        at = artifact["argv"].index("--chdir")
        with_mask = json.loads(json.dumps(artifact))
        with_mask["argv"][at:at] = ["--ro-bind", "/dev/null", "/srv/key"]
        self.write("masked.json", with_mask)
        code, said = self.said("masked.json", "over.json")
        self.assertEqual((code, [each[0] for each in self.parts(said)]), (WIDENED, ["differs"]))

    def test_a_line_of_a_file_differs(self):
        artifact = self.compile("--target", "systemd", "--", "/usr/bin/node")
        service = artifact["files"][1]
        self.assertIn("\nNoNewPrivileges=", service["contents"])
        kept = [line for line in service["contents"].split("\n") if not line.startswith("NoNewPrivileges=")]
        service["contents"] = "\n".join(kept)
        self.check_differs(artifact, f"file {service['name']}")

    def test_files_elsewhere_are_compared_by_their_hashes(self):
        artifact = self.compile("--target", "systemd", "-o", self.tree.path("units"), "--", "/usr/bin/node")
        self.write("artifact.json", artifact)
        code, said = self.said("artifact.json", "notes.json")
        self.assertEqual((code, said["changed"]), (SAME, False), self.parts(said))
        self.assertIn("they were not read", " ".join(said["notes"]))
        artifact["files"][1]["sha256"] = "0" * 64
        self.check_differs(artifact, f"file {artifact['files'][1]['name']}")

    def test_a_mount_of_a_plan(self):
        artifact = self.compile("--target", "plan")
        mount = {"kind": "bind", "target": "/home", "access": "write"}
        artifact["plan"]["mounts"].append(mount)
        self.check_both_ways(artifact, "plan mounts", json.dumps(mount, separators=(",", ":")))

    def test_a_manifest_that_asks_for_more_names_its_capability(self):
        self.write("artifact.json", self.compile())
        self.write("more.json", {**MANIFEST, "tools": MANIFEST["tools"] + [
            {"name": "write", "capabilities": ["fs:write:/srv/out/**", "net:connect:b.example:443"]}]})
        code, said = self.said("artifact.json", "more.json")
        self.assertEqual((code, said["wider"]), (WIDENED, True))
        self.assertEqual({(each[1], each[3]) for each in self.parts(said, "widened")}, {
            ("argv", "fs:write:/srv/out/**"), ("egress", "net:connect:b.example:443")})
        places = [each["place"] for each in said["servers"][0]["parts"] if each["kind"] == "widened"]
        self.assertTrue(all(place.startswith("more.json:1:") and "(write)" in place for place in places), places)
        self.assertIn(("told", "policyHash"), [each[:2] for each in self.parts(said, "told")])
        code, said = self.said("more.json", "artifact.json")
        self.assertEqual((code, said["wider"]), (SAME, False), self.parts(said))
        self.assertEqual({(each[1], each[3]) for each in self.parts(said, "narrowed")}, {
            ("argv", "fs:write:/srv/out/**"), ("egress", "net:connect:b.example:443")})

    def test_a_manifest_that_asks_for_less(self):
        self.write("less.json", {**MANIFEST, "serverCapabilities": []})
        for target in ("apparmor", "bwrap", "docker", "plan", "systemd"):
            with self.subTest(target=target):
                self.write("artifact.json", self.compile_accepting(target, TARGETS[target]))
                code, said = self.said("artifact.json", "less.json")
                self.assertEqual((code, said["wider"], said["changed"]), (SAME, False, True), self.parts(said))
                self.assertIn("/srv/notes", str(self.parts(said, "narrowed")))
                code, said = self.said("less.json", "artifact.json")
                self.assertEqual((code, said["wider"]), (WIDENED, True))
                self.assertIn("/srv/notes", str(self.parts(said, "widened")))

    def test_only_the_text_or_the_compiler_is_another_one(self):
        artifact = self.compile()
        artifact["provenance"]["compiler"] = "capgate 0.0.1"
        self.write("artifact.json", artifact)
        self.write("other.json", {**MANIFEST, "version": "2"})
        code, said = self.said("artifact.json", "other.json")
        self.assertEqual((code, said["changed"], said["wider"]), (SAME, True, False))
        self.assertEqual([each[:2] for each in self.parts(said)], [("told", "manifestHash"), ("told", "compiler")])

    def test_options_and_what_was_accepted_are_told(self):
        self.write("limited.json", launch.server("limit:memory:512M"))
        self.write("artifact.json", self.compile("--accept-unenforced", "limit:memory:512M",
                                                 manifest="limited.json"))
        done = self.diff("artifact.json", "limited.json")
        self.assertEqual(done.returncode, SAME, done.stdout)
        self.assertIn("taken as accepted: limit:memory:512M", done.stderr)
        self.write("artifact.json", self.compile("--target", "docker", "--user", "0:0"))
        self.assertIn("user 0:0", self.diff("artifact.json", "notes.json").stderr)

    def test_validators_are_those_of_the_artifact(self):
        self.write("validators.json", {"validators": {"data.stays": "the host has no other network"}})
        self.write("artifact.json", self.compile("--validators", "validators.json"))
        code, said = self.said("artifact.json", "notes.json")
        self.assertEqual((code, said["changed"]), (SAME, False), self.parts(said))

    def test_a_tool_alone_and_sealed(self):
        self.write("sealed.json", {**MANIFEST, "tools": [
            {"name": "fetch", "capabilities": ["net:connect:api.example.com:443", "env:inject:TOKEN"]},
            {"name": "other", "capabilities": ["fs:read:/srv/other/**"]}]})
        self.write("artifact.json", self.compile("--target", "plan", "--tool", "fetch", "--seal",
                                                 manifest="sealed.json"))
        code, said = self.said("artifact.json", "sealed.json")
        self.assertEqual((code, said["changed"]), (SAME, False), self.parts(said))

    def test_variables_are_bound_as_they_were(self):
        self.write("home.json", launch.server("fs:read:${HOME}/notes/**", "fs:read:${ROOT}/**"))
        words = ("--set", "HOME=/home/alice", "--set", "ROOT=/srv/root")
        self.write("artifact.json", self.compile(*words, manifest="home.json"))
        code, said = self.said("artifact.json", "home.json", "--set", "ROOT=/srv/root")
        self.assertEqual((code, said["changed"]), (SAME, False), said)
        code, said = self.said("artifact.json", "home.json", "--set", "ROOT=/srv/other")
        self.assertEqual((code, said["wider"]), (WIDENED, True))
        self.assertEqual(self.diff("artifact.json", "home.json").returncode, MISTAKES)

    def test_two_artifacts(self):
        artifact = self.compile()
        self.write("a.json", artifact)
        self.assertEqual(self.said("a.json", "a.json")[1]["changed"], False)
        artifact["argv"][0:0] = ["--bind", "/home", "/home"]
        self.write("b.json", artifact)
        code, said = self.said("a.json", "b.json")
        self.assertEqual((code, self.parts(said)), (WIDENED, [("widened", "argv", "--bind /home /home", None)]))
        self.write("docker.json", self.compile("--target", "docker"))
        code, said = self.said("a.json", "docker.json")
        self.assertEqual((code, said["wider"]), (WIDENED, True))

    def test_other_formats(self):
        artifact = self.compile()
        artifact["argv"][0:0] = ["--bind", "/home", "/home`<img>"]
        self.write("changed.json", artifact)
        done = self.diff("notes.json", "changed.json")
        self.assertEqual(done.returncode, WIDENED)
        self.assertEqual(done.stdout.splitlines(), [
            'This change lets the server "notes" do more', "Widened:",
            "  + argv: --bind /home /home`<img>", "      no capability of the manifest causes this"])
        done = self.diff("notes.json", "changed.json", "--markdown")
        self.assertEqual(done.returncode, WIDENED)
        self.assertIn("### What is there now and was not before\n\n- new: ``argv: --bind /home /home`<img>``",
                      done.stdout)
        done = self.diff("notes.json", "changed.json", "--sarif")
        [result] = json.loads(done.stdout)["runs"][0]["results"]
        self.assertEqual((result["ruleId"], result["level"]), ("DIFF_ARTIFACT", "error"))
        self.assertIn("/home", result["message"]["text"])

    def test_what_cannot_be_compared(self):
        artifact = self.compile()
        self.write("artifact.json", artifact)
        self.assertEqual(self.diff("artifact.json", "/dev/null").returncode, UNREADABLE)
        for change in ({"target": "nothing"}, {"options": {"arch": "x86_64", "odd": 1}},
                       {"options": {"arch": "vax"}}, {"options": {"arch": "x86_64", "user": "root"}}):
            self.write("odd.json", {**artifact, "provenance": {**artifact["provenance"], **change}})
            done = self.diff("odd.json", "notes.json")
            self.assertEqual((done.returncode, done.stdout), (UNREADABLE, ""), done.stderr)
        self.write("unheld.json", launch.server("limit:memory:512M"))
        done = self.diff("artifact.json", "unheld.json")
        self.assertEqual(done.returncode, MISTAKES)
        self.assertIn("cannot be compiled as artifact.json was, for bwrap", done.stderr)


class IfPolicy(Sources):
    """--if-policy: silence where nothing grants, and no silence where a policy has mistakes."""

    def silent(self, *words):
        done = self.diff("--if-policy", *words)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (SAME, "", ""), words)

    def test_other_files_are_passed_over(self):
        for name, text in (("a.json", "{"), ("a.yaml", "a: [\n"), ("a.txt", "words: and more\n"), ("a", "\0\1"),
                           ("package.json", '{"name": "x", "tools": [{"name": "y"}]}'), ("list.json", "[1]"),
                           ("built.json", '{"provenance": {"builder": "x"}}'),
                           ("mcp.json", '{"servers": {"a": {"command": "npx", "args": ["x"]}}}'),
                           ("openapi.yaml", "servers:\n- url: https://api.test\n"), ("empty", "")):
            self.tree.file(name, text)
            for pair in ((name, name), ("/dev/null", name), (name, "/dev/null")):
                self.silent(*pair)
        self.assertEqual(self.diff("--if-policy", "none.json", "a.json").returncode, UNREADABLE)

    def test_a_policy_counts_on_either_side(self):
        self.tree.file("other.json", "{")
        for pair in (("notes.json", "other.json"), ("other.json", "notes.json")):
            self.assertEqual(self.diff("--if-policy", *pair).returncode, UNREADABLE)
        self.assertEqual(self.diff("--if-policy", "/dev/null", "notes.json").returncode, WIDENED)

    def test_a_mistake_does_not_make_it_another_file(self):
        for name, text, code in (
                ("a", '{"tools": [1, {"capabilities": 7}]}', MISTAKES), ("b", "serverCapabilities: [fs:raed:/x]", MISTAKES),
                ("c.json", "serverCapabilities: [fs:read:/x]", UNREADABLE),  # what it would be under another name
                ("d", '{"servers": [{"server": "a", "policy": ["fs:raed:/x"]}, 7]}', None),
                ("e", "servers: {a: {command: [x], odd: 1}}", None), ("f", "servers: {a: {manifest: none.json}}", UNREADABLE),
                ("g/capgate.yaml", "[", UNREADABLE), ("g/capgate.lock", "[", UNREADABLE), ("x.capgate.json", "[", UNREADABLE),
                ("h", '{"serverCapabilities": ["net:connect:a.test:${PORT}"]}', MISTAKES)):
            self.tree.file(name, text)
            done = self.diff("--if-policy", "/dev/null", name)
            self.assertIn(done.returncode, (code,) if code else (UNREADABLE, MISTAKES), (name, done.stdout, done.stderr))
            self.assertNotEqual(done.stderr, "")

    def test_artifacts_and_bindings(self):
        artifact = self.compile()
        self.write("a.json", artifact)
        self.silent("a.json", "/dev/null")
        self.assertEqual(self.diff("--if-policy", "/dev/null", "a.json").returncode, UNREADABLE)
        artifact["argv"][0:0] = ["--bind", "/home", "/home"]
        self.write("b.json", artifact)
        self.assertEqual(self.diff("--if-policy", "a.json", "b.json").returncode, WIDENED)
        self.write("port.json", launch.server("net:connect:a.test:${PORT}"))
        words = ("port.json", "port.json", "--set", "PORT=443", "--set", "UNUSED=1")
        self.assertEqual(self.diff(*words).returncode, USAGE)
        self.assertEqual(self.diff("--if-policy", *words).returncode, SAME)


if __name__ == "__main__":
    unittest.main()
