"""Every golden artifact of bwrap, docker, podman, squid, nftables, mitmproxy and the Worker is taken by
its real consumer. (The other targets have the same beside their own tests.)

What a golden mounts is seldom on this machine: a mount's source becomes a directory or a file of the
test. Nothing else of the artifact is changed.
"""

import csv
import glob
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

import launch
from cases import Case
from docker_daemon import shared
from podman_engine import Podman

GOLDEN = os.path.join(launch.ROOT, "tests/golden")
# How those mounts of goldens end that are files.
FILES = (".jsonl", "bus", "socket", ".sock", "localtime", ".txt")
BINDS = ("--bind", "--ro-bind")
NSENTER, NFT, SQUID = "/usr/bin/nsenter", "/usr/sbin/nft", "/usr/sbin/squid"


def goldens(test, pattern, at_least=15):
    paths = sorted(glob.glob(os.path.join(GOLDEN, "*", pattern)))
    test.assertGreaterEqual(len(paths), at_least, pattern)
    return paths


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class StandIns(Case):
    """Sources for the mounts of goldens, which an ordinary user may use as well."""

    def setUp(self):
        super().setUp()
        self.directory = self.tree.directory("any")
        self.tree.directory("any/out")  # one golden has a grant inside another one
        self.file = self.tree.file("any/file", "")
        # What `capgate egress` puts into its directory: a socket, and the forwarder.
        self.egress = self.tree.directory("egress")
        init = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-init")
        shutil.copy(init, os.path.join(self.egress, "capgate-init"))
        os.chmod(os.path.join(self.egress, "capgate-init"), 0o755)
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(os.path.join(self.egress, "egress.sock"))
        os.chmod(os.path.join(self.egress, "egress.sock"), 0o666)
        self.listener.listen()

    def source_for(self, source, target):
        if target == "/run/capgate":
            return self.egress
        if os.path.exists(source) and not source.startswith("/tmp"):
            return source
        return self.file if target.endswith(FILES) else self.directory


class Bwrap(StandIns):
    def test_every_golden_starts(self):
        for path in goldens(self, "bwrap.json"):
            artifact = read_json(path)
            argv = artifact["argv"]
            targets = [argv[at + 2] for at, word in enumerate(argv) if word in BINDS]
            for outer, inner in itertools.permutations(targets, 2):
                if inner.startswith(outer + "/") and not os.path.exists(outer):
                    os.makedirs(self.directory + inner.removeprefix(outer), exist_ok=True)
            for at, word in enumerate(argv):
                # One that goes through its own target masks a credential directory, if it is there.
                if word in BINDS and "/../" not in argv[at + 1]:
                    argv[at + 1] = self.source_for(argv[at + 1], argv[at + 2])
            values = {name: "value" for name in artifact["envInjections"]}
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                done = launch.run_bwrap(artifact, ["/usr/bin/true"], uid=launch.ORDINARY,
                                        values=values)
                if "programs" not in artifact["provenance"]["options"]:
                    self.assertEqual(done.returncode, 0, done.stderr)
                else:  # --program hides all others, also `true`: bwrap got as far as that
                    self.assertEqual(done.returncode, 127, done.stderr)
                    self.assertRegex(done.stderr, b"/usr/bin/true: [Nn]o such file")


def with_source(mount, choose):
    """The same words of --mount, which are CSV, with another source."""
    fields = next(csv.reader([mount]))
    named = dict(field.partition("=")[::2] for field in fields)
    changed = [f"source={choose(named['source'], named['target'])}"
               if field.startswith("source=") else field for field in fields]
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(changed)
    return out.getvalue()


class Containers(StandIns):
    """Started as printed: `true` ends at once."""

    RESOURCES = ("docker",)

    def assert_all_start(self, engine, pattern):
        for path in goldens(self, pattern, at_least=10):
            artifact = read_json(path)
            argv = artifact["argv"]
            for at, word in enumerate(argv):
                if word != "--mount" or not argv[at + 1].startswith("type=bind"):
                    continue
                argv[at + 1] = with_source(argv[at + 1], self.source_for)
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                done = engine.run(artifact, [*artifact.get("commandPrefix", []), "true"])
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_docker(self):
        with shared() as docker:
            self.assert_all_start(docker, "docker.json")


class Squid(Case):
    def test_every_golden_is_parsed(self):
        for path in goldens(self, "egress-squid/capgate-egress.squid.conf"):
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                done = subprocess.run([SQUID, "-k", "parse", "-f", path], capture_output=True,
                                      text=True, check=False, timeout=launch.SECONDS)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotRegex(done.stderr, "ERROR|FATAL|acl .*ignored", path)


class Nftables(Case):
    def test_every_golden_is_loaded(self):
        holder = subprocess.Popen(["/usr/bin/unshare", "--net", "/usr/bin/cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: (holder.stdin.close(), holder.wait(), holder.stdout.close()))
        holder.stdin.write(b"\n")  # once it answers, it is there
        holder.stdin.flush()
        holder.stdout.readline()
        for path in goldens(self, "egress-nftables/capgate-egress-nft.sh"):
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                subprocess.run(["/bin/sh", path, str(holder.pid)], check=True,
                               capture_output=True, timeout=launch.SECONDS)
                shown = subprocess.run([NSENTER, f"--target={holder.pid}", "--net", NFT, "list",
                                        "ruleset"], capture_output=True, text=True, check=True)
                self.assertEqual(shown.stdout.count("policy drop"), 3, shown.stdout)


class Mitmproxy(unittest.TestCase):
    def test_every_golden_is_an_addon(self):
        for path in goldens(self, "egress-mitmproxy/capgate_egress.py"):
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                spec = importlib.util.spec_from_file_location("capgate_egress", path)
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                self.assertEqual(len(module.addons), 1)


class Worker(unittest.TestCase):
    def test_every_golden_is_a_module_with_options(self):
        node = os.environ["NODE"]
        for path in goldens(self, "worker/worker.mjs"):
            with self.subTest(path=os.path.relpath(path, GOLDEN)):
                subprocess.run([node, "--check", path], check=True, capture_output=True,
                               timeout=launch.SECONDS)
                options = read_json(path.replace("worker.mjs", "worker.json"))
                # Node itself reads the flags: an unknown one ends it with status 9.
                subprocess.run([node, *options["execArgv"], "--eval", "0"], check=True, cwd="/",
                               capture_output=True, timeout=launch.SECONDS)


class PodmanByUser(Containers):
    RESOURCES = ("podman",)
    test_docker = None  # inherited, and done above

    def test_podman(self):
        with Podman(uid=launch.ORDINARY) as podman:
            os.chmod(self.tree.root, 0o755)
            self.assert_all_start(Prefixed(podman), "podman.json")


class Prefixed:
    """Podman adds the prefix of a command itself."""

    def __init__(self, podman):
        self.podman = podman

    def run(self, artifact, command):
        return self.podman.run(artifact, command[len(artifact.get("commandPrefix", [])):])


if __name__ == "__main__":
    unittest.main()
