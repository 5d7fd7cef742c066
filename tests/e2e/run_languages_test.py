"""capgate run: programs of several languages, with threads and TCP, run under the filter.

Without any exec capability their threads and their own loopback interface work, and no process can
be started. The same programs outside are the control.
"""

import os
import shutil
import subprocess
import unittest

import launch
from cases import Case

SOURCES = os.path.join(launch.ROOT, "tests/e2e/languages")
BUILD_SECONDS = 120
JAVA = "/usr/bin/java"
USERS = (("user", launch.ORDINARY), ("root", 0))


class Languages(Case):
    def build(self, *command, **env):
        """Runs a compiler in the sources' directory. Its home is where its result goes."""
        subprocess.run(command, cwd=SOURCES, check=True, timeout=BUILD_SECONDS,
                       env={**launch.build_environment(self.tree.root), **env})

    def assert_runs(self, *command, allow=()):
        """Outside everything works; inside, for every user, everything but a new process."""
        self.assertEqual(self.output(command, launch.ORDINARY), "echoed 4, started 1\n")
        allowed = [word for capability in allow for word in ("--allow", capability)]
        wrapped = [launch.CAPGATE, "run", *allowed, "--", *command]
        for name, uid in USERS:
            with self.subTest(started_by=name):
                self.assertEqual(self.output(wrapped, uid), "echoed 4, started 0\n")

    def output(self, command, uid):
        done = launch.finish(launch.start(command, {"fds": []}, uid=uid,
                                          env={"PATH": os.defpath, "HOME": self.tree.root}))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_a_static_program(self):
        program = self.tree.path("echo-c")
        self.build("gcc", "-static", "-O1", "-Wall", "-pthread", "echo.c", "-o", program)
        self.assert_runs(program)

    def test_go(self):
        program = self.tree.path("echo-go")
        self.build("go", "build", "-o", program, "echo.go", CGO_ENABLED="0", GO111MODULE="off")
        self.assert_runs(program)

    def test_python(self):
        program = self.tree.path("echo.py")
        shutil.copy(os.path.join(SOURCES, "echo.py"), program)
        os.chmod(program, 0o755)
        self.assert_runs(program)

    def test_java(self):
        """The classes are an argument, which grants nothing, and Debian keeps a part of the runtime
        below /etc: both are named."""
        classes = self.tree.directory("classes")
        self.build("javac", "-d", classes, "Echo.java")
        self.assert_runs(JAVA, "-cp", classes, "Echo",
                         allow=[f"fs:read:{classes}/**", f"fs:read:{java_settings()}/**"])


def java_settings():
    """Where the runtime's link to its list of virtual machines leads to."""
    home = os.path.dirname(os.path.dirname(os.path.realpath(JAVA)))
    return os.path.dirname(os.path.realpath(os.path.join(home, "lib/jvm.cfg")))


if __name__ == "__main__":
    unittest.main()
