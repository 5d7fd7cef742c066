"""The capgate of today writes what capgate 0.1 wrote, and reads its artifacts: tests/fixtures/0.1/outputs."""

import fnmatch
import json
import os
import shutil
import subprocess

import launch
from fixture_cases import FixtureCase, read

# pylint: disable=wrong-import-order
from fixture_shape import form, identifiers, lost_keys
from fixture_stage import CAPGATE, FIXTURES, HOME, load, own


WIDER = 5  # what `capgate diff` says of an artifact that may let the server do more


def accepted_differences():
    """The patterns of differences.txt."""
    with open(os.path.join(FIXTURES, "differences.txt"), encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [line.split()[0] for line in lines if line and not line.startswith("#")]


def shown(output):
    """As text; a filter is not."""
    return output.decode(errors="backslashreplace")


def outputs_of(command):
    """The files below outputs/ that hold what a command gave."""
    beside = os.path.join(FIXTURES, "outputs", command["output"] + ".files")
    names = os.listdir(beside) if os.path.isdir(beside) else []
    return {command["output"], *(f"{command['output']}.files/{name}" for name in names)}


class Outputs(FixtureCase):
    """Each command of commands.json gives what it gave."""

    def setUp(self):
        super().setUp()
        version = json.loads(self.capgate("version", "--json").stdout)["version"]
        self.compiler = f'"compiler": "capgate {version}"'.encode()
        self.accepted = accepted_differences()

    def compare(self, name, actual, how):
        """The difference between a file of outputs/ and what the same command gives now; "": none."""
        expected = read(os.path.join(FIXTURES, "outputs", name))
        try:
            old, new = json.loads(expected), json.loads(actual)
        except ValueError:
            how = "bytes"
        if how == "form":
            return "\n".join(lost_keys(old, new))
        if how == "keys":
            lost = lost_keys(form(old), new)
            return "\n".join(lost + [f"no {each}" for each in identifiers(old) - identifiers(new)])
        actual = actual.replace(self.compiler, b'"compiler": "capgate 0.1.0"')
        return "" if actual == expected else f"{shown(expected)}\nis now\n{shown(actual)}"

    def differing(self, command):
        """The files that a command writes otherwise, or no longer writes, or writes now: name to difference."""
        done = self.stage.run_command(command)
        self.assertEqual(done.returncode, command["code"], done.stderr.decode())
        written = {command["output"]: done.stdout}
        for name in os.listdir(self.stage.out) if command["files"] else ():
            written[f"{command['output']}.files/{name}"] = self.stage.read(f"out/{name}")
        expected = outputs_of(command)
        out = {name: "it is not written any more" for name in expected - written.keys()}
        out |= {name: "it is new" for name in written.keys() - expected}
        for name in expected & written.keys():
            if difference := self.compare(name, written[name], command["compare"]):
                out[name] = difference
        return out

    def check(self, prefix):
        """All commands whose output begins with one of these; `used` are the accepted differences."""
        used = set()
        commands = [command for command in load("commands.json") if command["output"].startswith(prefix)]
        self.assertTrue(commands)
        for command in commands:
            with self.subTest(output=command["output"]):
                for name, difference in self.differing(command).items():
                    patterns = [each for each in self.accepted if fnmatch.fnmatchcase(name, each)]
                    used.update(patterns)
                    self.assertTrue(patterns, f"{name} is not in differences.txt:\n{difference[:4000]}")
        stale = {each for each in self.accepted if each.startswith(prefix)} - used
        self.assertEqual(stale, set(), "differences.txt names what does not differ")

    def test_artifacts_of_every_target(self):
        self.check("compile/")

    def test_exports_and_imports(self):
        self.check(("export/", "import/"))

    def test_reviews(self):
        self.check(("check/", "diff/", "explain/", "report/", "schema/", "catalog/", "why/"))

    def test_descriptions_of_capgate_and_the_machine(self):
        self.check(("targets.json", "version.json", "doctor.json"))

    def test_runs_and_starters(self):
        self.check(("run/", "init/"))

    def test_what_is_said_of_kept_state(self):
        self.check(("state/", "audit/"))

    def test_no_output_is_left_out(self):
        listed = set().union(*(outputs_of(command) for command in load("commands.json")))
        root = os.path.join(FIXTURES, "outputs")
        found = {os.path.relpath(os.path.join(at, name), root) for at, _, files in os.walk(root) for name in files}
        self.assertEqual(found, listed)
        for pattern in self.accepted:
            self.assertTrue(fnmatch.filter(listed, pattern) and not pattern.startswith("*"), pattern)


class Artifacts(FixtureCase):
    """Artifacts of 0.1 can be read again."""

    def test_diff_reads_each_artifact(self):
        commands = [command for command in load("commands.json") if "diff" in command]
        self.assertGreater(len(commands), 40)
        accepted = accepted_differences()
        for command in commands:
            with self.subTest(output=command["output"]):
                artifact = read(os.path.join(FIXTURES, "outputs", command["output"]))
                changed = any(fnmatch.fnmatchcase(command["output"], each) for each in accepted)
                self.capgate("diff", command["words"][1], "-", stdin=artifact,
                             code=WIDER if changed else command["diff"])

    def test_diff_sees_that_an_artifact_was_widened(self):
        artifact = json.loads(read(os.path.join(FIXTURES, "outputs/compile/github/bwrap.json")))
        artifact["argv"][:0] = ["--bind", "/srv", "/srv"]
        self.capgate("diff", "github.json", "-", stdin=json.dumps(artifact).encode(), code=WIDER)


class Egress(FixtureCase):
    """The token file of `capgate egress`, and specifications as policies, in a network of the test's own."""

    home = "egress"

    def start(self, policy):
        words = [CAPGATE, "egress", "--policy", policy, "--listen", "tcp:127.0.0.1:3128", "--token-file",
                 f"{HOME}/egress.token", "--json"]
        command = ["/usr/bin/unshare", "--net", "--", "/bin/sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                   *self.stage.command(words)]
        with open(os.path.join(self.stage.root, "egress.log"), "wb") as log:
            process = subprocess.Popen(command, env=self.stage.environment(), stdout=subprocess.PIPE, stderr=log)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.terminate()
        process.wait(launch.SECONDS)
        process.stdout.close()

    def status(self, process, password):
        """What the proxy says to a client that shows this password and asks for a host that is not declared."""
        done = subprocess.run(
            ["/usr/bin/nsenter", f"--net=/proc/{process.pid}/ns/net", "--", "/usr/bin/curl", "-sS", "-o", "/dev/null",
             "-w", "%{http_code}", "--proxy", f"http://capgate:{password}@127.0.0.1:3128",
             "http://other.example.test/"], capture_output=True, check=True, text=True, timeout=launch.SECONDS)
        return done.stdout

    def test_the_token_is_used_again(self):
        token = self.stage.read("egress.token").decode().strip()
        process = self.start("wide.json")
        self.assertIn("listening", process.stdout.readline().decode())
        self.assertEqual(self.status(process, token), "403")
        self.assertEqual(self.status(process, token[::-1]), "407")
        self.assertEqual(self.stage.read("egress.token").decode().strip(), token)

    def test_a_specification_is_a_policy(self):
        source = os.path.join(FIXTURES, "outputs/compile/github/egress.json.files/capgate-egress.yaml")
        shutil.copy(source, self.path("spec.yaml"))
        own(self.path("spec.yaml"), 0o600)
        self.assertIn("listening", self.start(f"{HOME}/spec.yaml").stdout.readline().decode())
