"""Which jobs are made of test classes, and in which order they start."""

import dataclasses
import unittest

from testrun.schedule import (BUNDLE_SECONDS, PART_SECONDS, SPLIT_SECONDS, UNKNOWN_SECONDS, Job, TestClass,
                              make_jobs, take_next)


def a_class(name, *tests, module="m_test", **more):
    return TestClass(suite="e2e", module=module, name=name, tests=tests or ("test_a",), **more)


def a_job(name, seconds, *resources):
    return Job(suite="e2e", names=(f"m_test.{name}",), ids=(f"e2e/m_test.{name}.test_a",),
               resources=frozenset(resources), seconds=seconds)


def seconds_of(*classes, each=1.0):
    return {name: each for cls in classes for name in cls.ids()}


class Jobs(unittest.TestCase):
    def names(self, classes, durations):
        return [job.names for job in make_jobs(classes, durations)]

    def test_a_class_of_unknown_duration_has_its_own_job_and_counts_as_long(self):
        one, two, three = a_class("One"), a_class("Two"), a_class("Three")
        jobs = make_jobs([one, two, three], seconds_of(one, three))
        self.assertEqual([job.names for job in jobs], [("m_test.One",), ("m_test.Two",), ("m_test.Three",)])
        self.assertEqual(jobs[1].seconds, UNKNOWN_SECONDS)

    def test_short_classes_of_one_module_share_a_job(self):
        one, two = a_class("One"), a_class("Two")
        other = a_class("Three", module="n_test")
        jobs = self.names([one, two, other], seconds_of(one, two, other))
        self.assertEqual(jobs, [("m_test.One", "m_test.Two"), ("n_test.Three",)])

    def test_a_bundle_is_not_longer_than_its_limit(self):
        classes = [a_class(f"C{number}") for number in range(4)]
        durations = seconds_of(*classes, each=BUNDLE_SECONDS / 2)
        self.assertEqual(self.names(classes, durations),
                         [("m_test.C0", "m_test.C1"), ("m_test.C2", "m_test.C3")])

    def test_classes_with_other_resources_do_not_share_a_job(self):
        one, two = a_class("One"), a_class("Two", resources=frozenset({"docker"}))
        self.assertEqual(self.names([one, two], seconds_of(one, two)), [("m_test.One",), ("m_test.Two",)])

    def test_a_module_with_an_expensive_setup_is_one_job(self):
        one, two = a_class("One", one_job=True), a_class("Two", one_job=True)
        other = a_class("Three", module="n_test", one_job=True)
        self.assertEqual(self.names([one, two, other], seconds_of(one, each=SPLIT_SECONDS)),
                         [("m_test.One", "m_test.Two"), ("n_test.Three",)])

    def test_a_long_class_is_split_and_every_test_is_in_one_part(self):
        tests = tuple(f"test_{number}" for number in range(10))
        long = a_class("Long", *tests)
        jobs = make_jobs([long], seconds_of(long, each=SPLIT_SECONDS / 8))
        self.assertGreater(len(jobs), 1)
        self.assertTrue(all(job.seconds <= PART_SECONDS for job in jobs))
        self.assertEqual(sorted(name for job in jobs for name in job.names),
                         sorted(f"m_test.Long.{test}" for test in tests))
        self.assertEqual(sorted(name for job in jobs for name in job.ids), sorted(long.ids()))

    def test_a_long_class_with_a_setup_of_its_own_stays_whole(self):
        long = a_class("Long", "test_a", "test_b", class_setup=True)
        self.assertEqual(self.names([long], seconds_of(long, each=SPLIT_SECONDS)), [("m_test.Long",)])

    def test_a_part_of_a_class_is_named_test_by_test(self):
        part = a_class("One", "test_a", "test_b", complete=False)
        self.assertEqual(self.names([part], seconds_of(part)), [("m_test.One.test_a", "m_test.One.test_b")])


class Order(unittest.TestCase):
    def order(self, jobs):
        """The jobs in the order in which one after the other starts."""
        pending, taken = list(jobs), []
        while pending:
            taken.append(take_next(pending, []).names[0].removeprefix("m_test."))
        return taken

    def test_the_longest_starts_first(self):
        self.assertEqual(self.order([a_job("A", 1), a_job("B", 3), a_job("C", 2)]), ["B", "C", "A"])

    def test_jobs_of_one_resource_count_as_long_as_all_of_them(self):
        jobs = [a_job("Long", 5), a_job("D1", 2, "docker"), a_job("D2", 2, "docker"),
                a_job("D3", 2, "docker")]
        self.assertEqual(self.order(jobs)[0], "D1")

    def test_two_jobs_never_use_the_same_resource(self):
        pending = [a_job("D1", 9, "docker"), a_job("D2", 9, "docker"), a_job("Other", 1)]
        first = take_next(pending, [])
        second = take_next(pending, [first])
        self.assertEqual((first.names[0], second.names[0]), ("m_test.D1", "m_test.Other"))
        self.assertIsNone(take_next(pending, [first, second]))
        self.assertEqual(take_next(pending, [second]).names[0], "m_test.D2")

    def test_the_first_job_makes_a_fixture_while_others_that_need_it_wait(self):
        first, second = (dataclasses.replace(a_job(name, 5), fixtures=frozenset({"npm"})) for name in "AB")
        pending = [a_job("Other", 9), first, second]
        self.assertEqual(take_next(pending, []), first, "both count together")
        self.assertEqual(take_next(pending, [first]).names[0], "m_test.Other")
        self.assertIsNone(take_next(pending, [first]))
        self.assertEqual(take_next(pending, [], frozenset({"npm"})), second)

    def test_jobs_share_a_fixture_that_is_made(self):
        first, second = (dataclasses.replace(a_job(name, 5), fixtures=frozenset({"npm"})) for name in "AB")
        self.assertEqual(take_next([second], [first], frozenset({"npm"})), second)

    def test_a_job_that_runs_alone_waits_for_all_others(self):
        pending = [a_job("Alone", 99, "alone"), a_job("Short", 1)]
        short = take_next(pending, [])
        self.assertEqual(short.names[0], "m_test.Short")
        self.assertIsNone(take_next(pending, [short]))
        self.assertEqual(take_next(pending, []).names[0], "m_test.Alone")

    def test_nothing_starts_beside_a_job_that_runs_alone(self):
        self.assertIsNone(take_next([a_job("Short", 1)], [a_job("Alone", 9, "alone")]))


if __name__ == "__main__":
    unittest.main()
