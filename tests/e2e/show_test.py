"""./dev run: the example server converses in its sandbox, and its attempts to leave are denied.

examples/converse itself fails when a declared tool does not work, when an attempt is not denied and
when a named capability does not allow what it says; examples/use_token when a sealed token is not
sealed.
"""

import os
import re
import shutil
import unittest

import launch
from cases import Case

EXAMPLES = os.path.join(launch.ROOT, "examples")
PROGRAMS = ("capgate", "capgate-broker", "capgate-broker-tls", "capgate-example-server")
DENIALS = ["No such file or directory", "No such file or directory", "Name or service not known",
           "Connection refused", "Operation not permitted"]
# Time and server, then the columns of `capgate audit tail`: event, verdict, destination, the rest.
AUDIT_LINE = re.compile(r"20\S+Z  box +(start|connect|close|dns|refused|end)  +(\S+) *(\S*) *(.*)")


class Show(Case):
    def setUp(self):
        super().setUp()
        # An ordinary user need not be able to read the clone.
        self.examples = shutil.copytree(EXAMPLES, self.tree.path("examples"))
        self.tree.directory("bin")
        for program in PROGRAMS:
            shutil.copy(os.path.join(os.path.dirname(launch.CAPGATE), program), self.tree.path("bin"))
        self.capgate = self.tree.path("bin/capgate")
        self.temporary = self.tree.directory("temporary")

    def show(self, uid):
        command = [os.path.join(self.examples, "show"), self.capgate]
        return launch.finish(launch.start(command, {"fds": []}, uid=uid, env={
            "PATH": os.defpath, "HOME": self.tree.root, "TMPDIR": self.temporary}))

    def test_denies_each_attempt_and_leaves_nothing_behind(self):
        for uid in (0, launch.ORDINARY):
            with self.subTest(uid=uid):
                done = self.show(uid)
                output = done.stdout.decode()
                self.assertEqual(done.returncode, 0, output + done.stderr.decode())
                lines = output.splitlines()
                answers = [lines[at - 1] for at, line in enumerate(lines)
                           if line.startswith("   denied; to allow it: ")]
                self.assertEqual([answer.rsplit(": ", 1)[1] for answer in answers], DENIALS)
                self.assertIn("<- hello from a shell", lines)
                self.check_network(lines)
                self.check_token(lines)
                self.assertIn("Try it yourself:", lines)
                self.assertEqual(os.listdir(self.temporary), [])

    def check_network(self, lines):
        """One request that is allowed, two that are not, each with its line in a log that is whole."""
        tracker, neighbour = [re.search(r'"port": "(\d+)"', line)[1] for line in lines
                              if line.startswith("-> fetch") and "localhost" in line][:2]
        logged = [found.groups() for found in map(AUDIT_LINE.fullmatch, lines) if found]
        events = ["start", "connect", "close", "dns", "refused", "end"]
        self.assertCountEqual([event for event, *_ in logged], events)
        self.assertEqual([logged[0][0], logged[-1][0]], ["start", "end"])
        by_event = {event: (event, *rest) for event, *rest in logged}
        allowed, closed, name, port = (by_event[event] for event in events[1:-1])
        self.assertEqual(allowed[1:3], ("allowed", f"localhost:{tracker}"))
        self.assertIn(f"net:connect:localhost:{tracker}", allowed[3])
        self.assertIn("bytes received", closed[3])
        self.assertEqual(name[1:3], ("denied", "elsewhere.example"))
        self.assertEqual(port[1:3], ("denied", f"localhost:{neighbour}"))
        self.assertTrue(port[3].endswith(f"to allow it: net:connect:localhost:{neighbour}"), port)
        self.assertTrue(any(re.search(r"audit\.jsonl: whole, 6 lines, 1 run, head [0-9a-f]{64}$", line)
                            for line in lines), lines)
        self.assertTrue(any(line.startswith("capgate: name elsewhere.example refused: ") for line in lines))

    def check_token(self, lines):
        """The environment holds a placeholder, the tracker got the token, two misuses are refused."""
        start = re.search(r"tracker_[0-9a-f]{4}", "\n".join(lines))[0]
        placeholder = [line for line in lines if line.startswith("TRACKER_TOKEN=")][0].split("=")[1]
        self.assertRegex(placeholder, r"^[A-Za-z0-9]{48}$")
        answers = [line for line in lines[lines.index(f"TRACKER_TOKEN={placeholder}"):]
                   if line.startswith("<- ")]
        self.assertEqual(answers[0], f"<- #7 main returns 1; you are Bearer {placeholder}")
        self.assertRegex(answers[1], r"^<- 403 capgate: the placeholder of TRACKER_TOKEN stands in the field x-copy")
        self.assertIn("Connection reset", answers[2])
        self.assertIn(f"the tracker received, and its answer repeated: Bearer {start}...", lines)
        logged = [line.split(maxsplit=5)[2:] for line in lines if re.match(r"20\S+Z  tracker ", line)]
        self.assertEqual([(event, verdict) for event, verdict, *_ in logged],
                         [("request", "allowed"), ("request", "denied"), ("connect", "denied")])
        self.assertIn("GET /issues -> 200 with TRACKER_TOKEN", logged[0][3])

    def test_fails_when_the_token_is_not_sealed(self):
        """The control: a capgate that gives the program the token itself."""
        self.capgate = self.tree.file("bin/unsealed", '#!/bin/sh\n'
                                      'while [ "$1" != -- ]; do\n'
                                      '  case $1 in TRACKER_TOKEN=file:*)\n'
                                      '    export TRACKER_TOKEN="$(cat "${1#*file:}")" ;; esac\n'
                                      '  shift\ndone\nshift\nexec "$@"\n')
        os.chmod(self.capgate, 0o755)
        command = [os.path.join(self.examples, name) for name in ("use_token", "token_user", "sealed.json")]
        command.insert(1, self.capgate)
        done = launch.finish(launch.start(command, {"fds": []}, uid=launch.ORDINARY, env={
            "PATH": os.defpath, "HOME": self.tree.root, "TMPDIR": self.temporary}))
        self.assertEqual(done.returncode, 1, done.stdout.decode())
        self.assertIn("this should hold: the program does not get to see the token", done.stderr.decode())
        self.assertEqual(os.listdir(self.temporary), [])

    def test_fails_when_the_server_runs_without_a_sandbox(self):
        """The control: a capgate that starts the server as it is."""
        self.capgate = self.tree.file("bin/uncaged", '#!/bin/sh\n'
                                      'case $1 in run) ;; *) exit 0 ;; esac\n'
                                      'for word; do last=$word; done\nexec "$last"\n')
        os.chmod(self.capgate, 0o755)
        done = self.show(launch.ORDINARY)
        self.assertEqual(done.returncode, 1, done.stdout.decode())
        self.assertIn("this should have been denied", done.stderr.decode())
        self.assertEqual(os.listdir(self.temporary), [])


if __name__ == "__main__":
    unittest.main()
