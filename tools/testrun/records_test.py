"""What is made of a worker's reports, of stored durations and of the list of allowed skips."""

import unittest

from testrun import records
from testrun.records import FAILED, PASSED, SKIPPED, JobRecord, Outcome

IDS = ("e2e/m_test.C.test_a", "e2e/m_test.C.test_b")
DONE = {"event": "done", "status": 0, "left": []}


def end(test, outcome=PASSED, text=""):
    return {"event": "end", "id": f"m_test.C.{test}", "outcome": outcome, "seconds": 1.0, "spent": 2.0,
            "text": text, "notes": []}


class Jobs(unittest.TestCase):
    def outcomes(self, *reports, **how):
        record = JobRecord("e2e", IDS)
        for report in reports:
            record.add(report)
        return {each.name.removeprefix("e2e/"): (each.outcome, each.text) for each in record.finish(**how)}

    def kinds(self, *reports, **how):
        return {name: outcome for name, (outcome, _) in self.outcomes(*reports, **how).items()}

    def test_finished_tests_have_their_outcomes(self):
        self.assertEqual(self.outcomes(end("test_a"), end("test_b", SKIPPED, "no kernel"), DONE),
                         {"m_test.C.test_a": (PASSED, ""), "m_test.C.test_b": (SKIPPED, "no kernel")})

    def test_a_test_without_a_report_is_a_failure(self):
        self.assertEqual(self.kinds(end("test_a"), DONE),
                         {"m_test.C.test_a": PASSED, "m_test.C.test_b": FAILED})

    def test_a_dead_worker_fails_the_test_that_ran_with_what_was_printed(self):
        seen = self.outcomes(end("test_a"), {"event": "start", "id": "m_test.C.test_b"},
                             {"event": "done", "status": -11, "left": []}, log="last words")
        self.assertEqual(seen["m_test.C.test_b"][0], FAILED)
        self.assertIn("status -11", seen["m_test.C.test_b"][1])
        self.assertIn("last words", seen["m_test.C.test_b"][1])

    def test_a_dead_worker_is_a_failure_even_if_all_tests_passed(self):
        seen = self.outcomes(end("test_a"), end("test_b"), {"event": "done", "status": 1, "left": []})
        self.assertIn("status 1", seen["m_test.C"][1])

    def test_a_timeout_is_a_failure_even_if_all_tests_passed(self):
        seen = self.outcomes(end("test_a"), end("test_b"), DONE, trouble="no end after 600 s")
        self.assertIn("no end after 600 s", seen["m_test.C"][1])

    def test_a_worker_that_says_nothing_fails_all_tests(self):
        self.assertEqual(set(self.kinds().values()), {FAILED})

    def test_a_failed_setup_fails_its_tests_and_shows_why(self):
        report = {"event": "fixture", "id": "setUpClass (m_test.C)", "outcome": FAILED, "text": "no lab"}
        seen = self.outcomes(report, DONE)
        self.assertEqual(seen["setUpClass (m_test.C)"], (FAILED, "no lab"))
        self.assertEqual({seen[f"m_test.C.{test}"][0] for test in ("test_a", "test_b")}, {FAILED})

    def test_a_skip_of_a_class_is_a_skip_of_its_tests(self):
        report = {"event": "fixture", "id": "setUpClass (m_test.C)", "outcome": SKIPPED, "text": "no docker"}
        self.assertEqual(self.outcomes(report, DONE), dict.fromkeys(
            ("m_test.C.test_a", "m_test.C.test_b"), (SKIPPED, "no docker")))

    def test_processes_that_stay_are_a_failure(self):
        seen = self.outcomes(end("test_a"), end("test_b"), {**DONE, "left": ["17 sleep 99"]})
        self.assertEqual(seen["m_test.C (left processes behind)"], (FAILED, "17 sleep 99"))


class Durations(unittest.TestCase):
    def test_half_comes_from_the_last_run(self):
        self.assertEqual(records.updated_durations({"a": 2.0, "b": 1.0}, {"a": 4.0, "c": 5.0}),
                         {"a": 3.0, "b": 1.0, "c": 5.0})


class Patterns(unittest.TestCase):
    def test_a_word_is_a_part_and_a_glob_is_the_whole(self):
        name = "e2e/run_test.Limits.test_a"
        self.assertTrue(records.matches(name, "run_test.Lim"))
        self.assertTrue(records.matches(name, "e2e/*.Limits.*"))
        self.assertFalse(records.matches(name, "*.Limits"))


class Skips(unittest.TestCase):
    def test_lines_have_a_pattern_and_a_reason(self):
        self.assertEqual(records.read_allowed_skips("# x\n\na.b  the kernel lacks it\n"),
                         [("a.b", "the kernel lacks it")])
        with self.assertRaisesRegex(ValueError, "line 2 gives no reason for c.d"):
            records.read_allowed_skips("a.b why\nc.d\n")

    def test_a_skip_that_is_not_listed_is_a_failure_and_unused_entries_are_named(self):
        outcomes = [Outcome("e2e/m.C.test_a", SKIPPED, text="a"), Outcome("e2e/m.C.test_b", SKIPPED, text="b"),
                    Outcome("e2e/m.C.test_c", PASSED)]
        unused = records.refuse_skips(outcomes, [("test_a", "x"), ("test_c", "y")])
        self.assertEqual([each.outcome for each in outcomes], [SKIPPED, FAILED, PASSED])
        self.assertIn("allowed-skips.txt does not list it: b", outcomes[1].text)
        self.assertEqual(unused, ["test_c"])


if __name__ == "__main__":
    unittest.main()
