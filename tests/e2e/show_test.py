"""./dev run: the example server converses in its sandbox, and its four attempts to leave are denied.

examples/converse itself fails when a declared tool does not work, when an attempt is not denied and
when a named capability does not allow what it says.
"""

import os
import shutil
import unittest

import launch
from cases import Case

EXAMPLES = os.path.join(launch.ROOT, "examples")
SERVER = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-example-server")
DENIALS = ["No such file or directory", "No such file or directory", "Network is unreachable",
           "Operation not permitted"]


class Show(Case):
    def setUp(self):
        super().setUp()
        # An ordinary user need not be able to read the clone.
        self.examples = shutil.copytree(EXAMPLES, self.tree.path("examples"))
        self.capgate = shutil.copy(launch.CAPGATE, self.tree.directory("bin"))
        shutil.copy(SERVER, self.tree.path("bin"))
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
                self.assertIn("Try it yourself:", lines)
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
