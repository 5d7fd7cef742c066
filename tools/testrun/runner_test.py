"""Jobs in real worker processes: outcomes, timeouts, interrupts, and what jobs leave behind."""

import contextlib
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest
import unittest.mock

from testrun import fixtures, main, records, runner, schedule

# Seconds that no other process of the machine sleeps for.
NAP = str(100_000_000 + os.getpid())
SUITE = '''
import os, signal, subprocess, sys, tempfile, time, unittest

class Ends(unittest.TestCase):
    def test_fails(self):
        print("printed by the test")
        subprocess.run(["echo", "printed by a child"])
        self.fail("on purpose")
    def test_fails_in_a_part(self):
        for number in (1, 2):
            with self.subTest(number=number):
                self.assertEqual(number, 1)
    def test_passes(self):
        print("note: kernel 1.2")
    def test_skips(self):
        self.skipTest("no reason")

class Dies(unittest.TestCase):
    def test_dies(self):
        print("last words", flush=True)
        os._exit(3)

class Leaves(unittest.TestCase):
    def test_a_process(self):
        subprocess.Popen(["setsid", "sleep", os.environ["NAP"]])
    def test_a_file(self):
        tempfile.mkdtemp(prefix="left-")

class Hangs(unittest.TestCase):
    def test_hangs(self):
        self.addCleanup(lambda: open(os.environ["MARK"], "w").close())
        subprocess.Popen(["sleep", os.environ["NAP"]])
        print("it hangs", flush=True)
        time.sleep(1000)

class HoldsOn(unittest.TestCase):
    def test_ignores_the_end(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(os.environ["MARK"], "w").close()
        time.sleep(1000)

class User(unittest.TestCase):
    def test_user(self):
        self.fail("user " + os.environ["CAPGATE_TEST_UID"])
'''


class Silent:
    """A report that is not printed; `on_state` is called several times per second."""

    def __init__(self, on_state=lambda machine: None):
        self.on_state = on_state

    def finished(self, *_):
        pass

    def state(self, machine):
        self.on_state(machine)


def is_running(*words):
    wanted = "\0".join(words).encode() + b"\0"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read() == wanted:
                return True
    return False


class RunnerCase(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.place / "suite").mkdir()
        (self.place / "suite/some_test.py").write_text(SUITE, encoding="utf-8")
        (self.place / "run").mkdir()
        self.mark = self.place / "mark"
        for name, value in (("MARK", str(self.mark)), ("NAP", NAP), ("CAPGATE_TEST_GRACE", "0.2")):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        self.addCleanup(signal.set_wakeup_fd, -1)

    def run_classes(self, names, timeout=60.0, slots=3, on_state=lambda machine: None):
        """{name: (outcome, text)} of these classes."""
        self.enterContext(unittest.mock.patch.dict(main.SUITES, {"e2e": str(self.place / "suite")}))
        classes, broken = main.discover(["e2e"])
        self.assertEqual(broken, [])
        jobs = [schedule.job_of([(each, 1.0)]) for each in classes if each.name in names]
        settings = runner.Settings(folders=main.SUITES, slots=slots, timeout=timeout,
                                   place=self.place / "run")
        outcomes = runner.Runner(settings, Silent(on_state)).run(jobs)
        self.assertEqual(os.listdir(self.place / "run"), [])
        self.notes = [note for each in outcomes for note in each.notes]
        return {each.name.removeprefix("e2e/some_test."): (each.outcome, each.text) for each in outcomes}


class Outcomes(RunnerCase):
    def test_each_test_has_its_outcome_and_a_failure_what_was_printed(self):
        seen = self.run_classes(["Ends"])
        self.assertEqual(seen["Ends.test_passes"], (records.PASSED, ""))
        self.assertEqual(self.notes, ["note: kernel 1.2"])
        self.assertEqual(seen["Ends.test_skips"], (records.SKIPPED, "no reason"))
        self.assertEqual(seen["Ends.test_fails"][0], records.FAILED)
        for text in ("on purpose", "printed by the test", "printed by a child"):
            self.assertIn(text, seen["Ends.test_fails"][1])
        self.assertEqual(seen["Ends.test_fails_in_a_part"][0], records.FAILED)
        self.assertIn("number=2", seen["Ends.test_fails_in_a_part"][1])

    def test_a_process_that_dies_fails_its_test(self):
        outcome, text = self.run_classes(["Dies"])["Dies.test_dies"]
        self.assertEqual(outcome, records.FAILED)
        self.assertIn("status 3", text)
        self.assertIn("last words", text)

    def test_each_job_has_a_user_of_its_own(self):
        seen = self.run_classes(["User"])
        self.assertIn("user 12345", seen["User.test_user"][1])


class Leftovers(RunnerCase):
    def test_processes_and_files_are_removed_and_are_failures(self):
        seen = self.run_classes(["Leaves"])
        self.assertEqual(seen["Leaves.test_a_process"][0], records.PASSED)
        self.assertIn(f"sleep {NAP}", seen["Leaves (left processes behind)"][1])
        self.assertIn("left-", seen["Leaves (left files behind)"][1])
        self.assertFalse(is_running("sleep", NAP))


class Ends(RunnerCase):
    def test_a_timeout_runs_the_cleanups_and_ends_all_processes(self):
        outcome, text = self.run_classes(["Hangs"], timeout=1.5)["Hangs.test_hangs"]
        self.assertEqual(outcome, records.FAILED)
        self.assertIn("no end after 2 s", text)
        self.assertIn("it hangs", text)
        self.assertTrue(self.mark.exists(), "the cleanup ran")
        self.assertFalse(is_running("sleep", NAP))

    def test_a_signal_ends_the_run_and_starts_nothing_more(self):
        def interrupt(machine):
            if is_running("sleep", NAP) and not machine.interrupted:
                os.kill(os.getpid(), signal.SIGTERM)

        seen = self.run_classes(["Hangs", "User"], slots=1, on_state=interrupt)
        self.assertNotIn("User.test_user", seen)
        self.assertIn("the run was interrupted", seen["Hangs.test_hangs"][1])
        self.assertFalse(is_running("sleep", NAP))

    def test_a_second_signal_kills_a_job_that_does_not_end(self):
        def interrupt(_):
            if self.mark.exists():
                os.kill(os.getpid(), signal.SIGINT)

        start = time.monotonic()
        seen = self.run_classes(["HoldsOn"], on_state=interrupt)
        self.assertEqual(seen["HoldsOn.test_ignores_the_end"][0], records.FAILED)
        self.assertLess(time.monotonic() - start, 15)


FIXTURE = "import sys; print('{\"made\": %s}' % len(sys.argv[1]), flush=True); sys.stdin.read()"


class SharedFixtures(unittest.TestCase):
    def test_one_process_serves_all_who_ask_and_ends_with_the_run(self):
        with tempfile.TemporaryDirectory() as place, open(os.path.join(place, "log"), "wb") as log:
            shared = fixtures.Fixtures([runner.PYTHON, "-c", FIXTURE], place, log)
            answers = []
            threads = [threading.Thread(target=lambda: answers.append(shared.get("four"))) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(answers, 3 * [{"made": 4}])
            self.assertEqual(len(shared._processes), 1)  # pylint: disable=protected-access
            self.assertEqual(shared.close(), [])
            self.assertFalse(is_running(runner.PYTHON, "-c", FIXTURE, "four"))

    def test_one_that_does_not_start_is_an_error(self):
        with tempfile.TemporaryDirectory() as place, open(os.path.join(place, "log"), "wb") as log:
            shared = fixtures.Fixtures([runner.PYTHON, "-c", "raise SystemExit(1)"], place, log)
            self.assertIn("did not start", shared.get("x")["error"])
            self.assertEqual(shared.close(), ["shared fixture x: status 1"])


if __name__ == "__main__":
    unittest.main()
