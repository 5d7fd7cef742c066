"""capgate run: whichever step fails, the server never runs and nothing is left behind."""

import os
import re
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import NOT_EXECUTABLE, REFUSED, RunCase, adopt_orphans, allow

SOURCES = os.path.join(launch.ROOT, "src/sandbox")
# After the fork it races with the server's own process, so it is tried more than once.
RACING = {"init_drop": 20}
# The last step is the command's own: it cannot be run.
CODES = {"exec": NOT_EXECUTABLE}


def setUpModule():
    adopt_orphans()


def source(name):
    with open(os.path.join(SOURCES, name), encoding="utf-8") as file:
        return file.read()


def steps_of_the_enumeration():
    body = re.search(r"enum class Step[^{]*\{(.*?)\};", source("orders.h"), re.DOTALL).group(1)
    names = re.findall(r"^  (\w+),", body, re.MULTILINE)
    return [name for name in names if name not in ("none", "count")]


def steps_with_words():
    table = source("steps.cc").split("steps = {{")[1].split("}};")[0]
    return [name for name in re.findall(r'\{"(\w+)", ', table) if name != "none"]


class Steps(unittest.TestCase):
    def test_every_step_can_be_made_to_fail(self):
        self.assertEqual(steps_with_words(), steps_of_the_enumeration())
        self.assertGreater(len(steps_with_words()), 20)


@started_by_root_and_user
class Faults(RunCase):
    """The server is one that is quick: it makes a file and ends."""

    def setUp(self):
        super().setUp()
        self.canary = os.path.join(self.work, "canary")

    def run_with_fault(self, step):
        """The finished run, with its process id; a step of None is no fault."""
        env = self.environment(CAPGATE_FAIL_STEP=step)
        process = self.start(allow(f"fs:write:{self.work}/**"), ["/usr/bin/touch", self.canary],
                             env=env, stdin=subprocess.DEVNULL)
        return process.pid, launch.finish(process, None)

    def test_without_a_fault_the_server_runs_and_nothing_is_left(self):
        pid, done = self.run_with_fault(None)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(os.path.exists(self.canary))
        self.assert_nothing_left(pid)

    def assert_stops_everything(self, step, named):
        before = self.tree.snapshot()
        pid, done = self.run_with_fault(step)
        said = done.stderr.decode()
        self.assertFalse(os.path.exists(self.canary), f"the server ran: {said}")
        self.assertEqual(done.returncode, CODES.get(step, REFUSED), said)
        self.assertIn(f"(step {named})", said)
        self.assertRegex(said, r"(?m)^capgate: ")
        self.assertRegex(said, r"(?m)^help: ")
        self.assertEqual(done.stdout, b"")
        self.assertEqual(self.tree.snapshot(), before)
        self.assert_nothing_left(pid)

    def test_a_step_that_does_not_exist_stops_everything(self):
        self.assert_stops_everything("no_such_step", "read_orders")


def fault_test(step):
    def test(self):
        for _ in range(RACING.get(step, 1)):
            self.assert_stops_everything(step, step)

    return test


for _cases in (FaultsStartedByRoot, FaultsStartedByUser):  # made by started_by_root_and_user
    for _step in steps_of_the_enumeration():
        setattr(_cases, f"test_{_step}_that_fails_stops_everything", fault_test(_step))
# Under these names the loader would find the last class twice.
del _cases, _step


if __name__ == "__main__":
    unittest.main()
