"""The command is the caller's choice: neither a script nor a server decides which program runs."""

import os
import shutil
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from config_test import ConfigCase
from run_cases import NOT_EXECUTABLE, PATH, RunCase, adopt_orphans, allow

READ = "import sys\nprint(open(sys.argv[1]).read())\n"


def setUpModule():
    adopt_orphans()


class ChainCase(RunCase):
    def setUp(self):
        super().setUp()
        self.elsewhere = self.own(self.tree.directory("elsewhere"), 0o755)
        # A project that looks like the directory of an interpreter.
        self.secret = self.file("private.txt", "private")
        self.file("lib/x", "")
        os.mkdir(os.path.join(self.work, "bin"))
        self.own(os.path.join(self.work, "bin"), 0o700)
        self.interpreter = os.path.join(self.work, "bin/python3")
        os.symlink(os.path.realpath(launch.PYTHON), self.interpreter)

    def script(self, line, directory=None, text=READ):
        path = os.path.join(directory or self.elsewhere, "server")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{line}\n{text}")
        return self.own(path, 0o755)


@started_by_root_and_user
class FirstLines(ChainCase):
    def outside(self, script, **options):
        return subprocess.run([script, self.secret], preexec_fn=lambda: launch.become(self.uid), check=False,
                              capture_output=True, timeout=launch.SECONDS, **options).stdout

    def test_a_script_opens_no_directory_of_the_callers(self):
        for line in ("#!bin/python3", f"#!{self.interpreter}", f"#!{self.elsewhere}/../work/bin/python3"):
            with self.subTest(line=line):
                script = self.script(line)
                self.assertEqual(self.outside(script, cwd=self.work), b"private\n", "the control")
                said = self.refusal([], [script, self.secret], code=NOT_EXECUTABLE, cwd=self.work)
                self.assertIn("neither the system's nor beside it", said)
                self.assertIn("name it yourself", said)

    def test_what_the_caller_names_works(self):
        """The interpreter on the command line, beside the script, of the system, and by PATH."""
        script = self.script(f"#!{self.interpreter}")
        self.assertEqual(self.output(allow(f"fs:read:{script}"), [self.interpreter, "-I", "-S", script, self.secret]), "private\n")
        beside = self.script(f"#!{self.interpreter} -IS", os.path.join(self.work, "bin"))
        self.assertEqual(self.output([], [beside, self.secret]), "private\n")
        link = os.path.join(self.elsewhere, "link")
        os.symlink(beside, link)
        self.assertEqual(self.output([], [link, self.secret]), "private\n")
        system = self.script(f"#!{os.path.realpath(launch.PYTHON)} -IS", text="print('ran')\n")
        self.assertEqual(self.output([], [system]), "ran\n")
        found = self.script("#!/usr/bin/env python3", text="print('ran')\n")
        self.assertEqual(self.output([], [found]), "ran\n")


@started_by_root_and_user
class WritableCommands(ChainCase):
    """What the server could write would be started the next time."""

    def assert_refused(self, command, path, **options):
        said = self.refusal(allow(f"fs:write:{self.work}/**"), command, **options)
        self.assertIn(f"{path} is what is started, and the server could write it: ", said)
        self.assertEqual(self.output(allow(f"fs:read:{self.work}/**"), command, **options), "ran\n")

    def program(self, name):
        path = os.path.join(self.work, name)
        shutil.copy(os.path.realpath("/bin/echo"), path)
        return self.own(path, 0o755)

    def test_the_file_itself(self):
        self.assert_refused([self.script(f"#!{launch.PYTHON} -IS", self.work, "print('ran')\n")],
                            f"{self.work}/server")
        echo = self.program("echo")
        self.assert_refused([echo, "ran"], echo)
        self.assert_refused(["./echo", "ran"], "./echo", cwd=self.work)

    def test_a_link_to_it(self):
        link = os.path.join(self.work, "link")
        os.symlink("/bin/echo", link)
        self.assert_refused([link, "ran"], link)
        outer = os.path.join(self.elsewhere, "outer")
        os.symlink(link, outer)
        self.assert_refused([outer, "ran"], outer)

    def test_its_interpreter(self):
        script = self.script(f"#!{self.interpreter} -IS", os.path.join(self.work, "bin"), "print('ran')\n")
        self.assert_refused([script], script)
        link = os.path.join(self.elsewhere, "link")
        os.symlink(script, link)
        self.assert_refused([link], link)

    def test_an_earlier_place_in_path(self):
        env = self.environment(PATH=f"{self.work}/bin:{PATH}")
        self.assert_refused(["echo", "ran"], f"{self.work}/bin/echo", env=env)
        env = self.environment(PATH=f"{PATH}:{self.work}/bin")
        self.assertEqual(self.output(allow(f"fs:write:{self.work}/**"), ["echo", "ran"], env=env), "ran\n")

    def test_arguments_are_no_part_of_it(self):
        script = self.script("", self.work, "print('ran')\n")
        self.assertEqual(self.output(allow(f"fs:write:{self.work}/**"),
                                     [launch.PYTHON, "-I", "-S", script]), "ran\n")


class Approved(ConfigCase):
    """What a script's first line leads to is shown, and pinned."""

    def script(self, line):
        path = os.path.join(self.data, "server")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{line}\nexit 0\n")
        return self.own(path, 0o755)

    def test_the_interpreter_is_shown_and_a_change_is_found(self):
        script = self.script("#!/bin/sh")
        self.user(x={"command": [script], "capabilities": []})
        done = self.approve("x", "--no-tools")
        self.assertIn(f"run by: {os.path.realpath('/bin/sh')}\n", done.stdout + done.stderr)
        self.assertEqual(self.run_server(["--profile", "x"], []).returncode, 0)
        self.script("#!/bin/bash")
        said = self.refused(command=())
        self.assertIn("interpreter of the command:", said)
        self.assertIn(os.path.realpath("/bin/bash"), said)


if __name__ == "__main__":
    unittest.main()
