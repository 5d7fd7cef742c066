"""What the egress tests share: a lab, `capgate run` in it, its audit file, and clients.

    class Fetching(EgressCase):
        def test_one(self):
            run = self.inside(curl(...), allow=["net:connect:api.example.test:443"])
            run.assert_denied(host="other.example.test")

`outside` runs the same command on the lab's host without a sandbox: the control.
"""

import collections
import hashlib
import json
import os
import shutil
import subprocess
import unittest

import launch
from cases import Case, stop
from egress_lab import HERE, Lab

API = "net:connect:api.example.test:443"
TALK = "talk.py"


class Module:
    """The one lab of a test module, made when its first test asks for it."""

    lab = None


def open_lab():
    """For setUpModule."""
    Module.lab = Lab()
    unittest.addModuleCleanup(close_lab)
    copy = shutil.copytree(os.path.join(HERE, "lab/clients"), Module.lab.tree.path("clients"))
    for at, _, names in os.walk(copy):
        os.chmod(at, 0o755)
        for name in names:
            os.chmod(os.path.join(at, name), 0o644)


def close_lab():
    Module.lab.close()
    Module.lab = None


class Run:
    """A finished command: `output`, `said` on stderr, and in a sandbox the audit `lines`."""

    def __init__(self, case, done, audit=None):
        self.case = case
        self.code = done.returncode
        self.output = done.stdout.decode(errors="replace")
        self.said = done.stderr.decode(errors="replace")
        self.lines = read_audit(audit) if audit else []

    def __str__(self):
        lines = "\n".join(json.dumps(line) for line in self.lines)
        return f"status {self.code}\n{self.output}\n{self.said}\n{lines}"

    def find(self, **fields):
        """The audit lines that have all of these; a tuple means one of them."""
        return [line for line in self.lines if fits(line, fields)]

    def assert_line(self, **fields):
        found = self.find(**fields)
        self.case.assertTrue(found, f"no audit line has {fields}:\n{self}")
        return found[0]

    def assert_no_line(self, **fields):
        self.case.assertEqual(self.find(**fields), [], f"an audit line has {fields}:\n{self}")

    def assert_denied(self, **fields):
        """A line tells that this was not let through, and why."""
        denied = [line for line in self.find(**fields) if is_denial(line)]
        self.case.assertTrue(denied, f"no denial has {fields}:\n{self}")
        return denied[0]

    def talks(self):
        """The results of talk.py."""
        return [json.loads(line) for line in self.output.splitlines()]


def is_denial(line):
    return line.get("verdict") == "denied" or line["event"] == "refused"


def fits(line, fields):
    for name, wanted in fields.items():
        value = line.get(name)
        if name == "host" and value:
            value = value.strip("[]")
        if value not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            return False
    return True


def read_audit(path):
    """Each line is a JSON object with the hash of the one before it."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as file:
        text = file.read()
    if text and not text.endswith("\n"):
        raise AssertionError(f"the last audit line was cut: {text[-80:]!r}")
    lines, previous = [], "0" * 64
    for line in text.splitlines():
        lines.append(json.loads(line))
        if lines[-1]["prev"] != previous:
            raise AssertionError(f"the chain is broken before {line}")
        previous = hashlib.sha256(line.encode()).hexdigest()
    return lines


class EgressCase(Case):
    def setUp(self):
        super().setUp()
        self.lab = Module.lab
        self.lab.far.clear()
        self.lab.near.clear()
        self.lab.vault.clear()
        self.home = self.tree.directory("home")
        self.work = self.tree.directory("work")
        self.clients = self.lab.tree.path("clients")
        self.runs = 0

    # ---- running ------------------------------------------------------------------------------

    def environment(self, env=None):
        return {"HOME": self.home, **(env or {})}

    def start(self, command, **options):
        """A command on the lab's host, still running; ended with the test."""
        process = self.lab.start(command, env=self.environment(options.pop("env", None)), **options)
        self.addCleanup(stop, process)
        return process

    def sandboxed(self, command, allow=(), options=(), audit=None):
        words = [launch.CAPGATE, "run", *(["--audit", audit] if audit else []), *options]
        for capability in allow:
            words += ["--allow", capability]
        return [*words, "--", *command]

    def new_audit(self):
        self.runs += 1
        return os.path.join(self.tree.directory("audit"), f"{self.runs}.jsonl")

    def inside(self, command, allow=(), options=(), stdin=b"", audit=None, **more):
        """The finished run in a sandbox. Only refusals of capgate itself are failures."""
        audit = audit or self.new_audit()
        process = self.start(self.sandboxed(command, allow, options, audit), **more)
        run = Run(self, launch.finish(process, stdin), audit)
        if run.code in (125, 126, 127):
            self.fail(f"capgate did not start it: {run}")
        return run

    def outside(self, command, stdin=b"", **more):
        return Run(self, launch.finish(self.start(command, **more), stdin))

    def refusal(self, command=("/usr/bin/true",), allow=(), options=(), **more):
        """What is said by a run that does not start."""
        process = self.start(self.sandboxed(command, allow, options),
                             stdin=subprocess.DEVNULL, **more)
        run = Run(self, launch.finish(process, None))
        self.assertEqual((run.code, run.output), (125, ""), run)
        self.assertTrue(run.said.strip(), "it must say why")
        return run.said

    # ---- talk.py ------------------------------------------------------------------------------

    def talk(self, *orders, together=False):
        """The command, one conversation after the other or all at once; it needs `self.reads`."""
        return [launch.PYTHON, "-I", os.path.join(self.clients, TALK),
                *(["--together"] if together else []), *(json.dumps(order) for order in orders)]

    @property
    def reads(self):
        return [f"fs:read:{self.clients}/**", f"fs:read:{self.lab.ca}"]

    def talk_outside(self, *orders):
        """The results of a control, which must all be something that was got."""
        results = self.outside(self.talk(*orders)).talks()
        for order, result in zip(orders, results, strict=True):
            self.assertNotIn("error", result, f"the control failed: {order}")
            self.assertTrue(result["got"], f"the control got nothing: {order}")
        return results

    def talk_inside(self, *orders, allow=(), together=False, **more):
        run = self.inside(self.talk(*orders, together=together), [*self.reads, *allow], **more)
        return run, run.talks()


Target = collections.namedtuple("Target", "url denial")


def request(host, *headers, method="GET", target="/"):
    """A plain HTTP/1.1 request."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    return "\r\n".join(lines) + "\r\n\r\n"


def last_request(host, *headers, **more):
    return request(host, *headers, "Connection: close", **more)
