import contextlib
import io
import unittest

from limits import holds, interval, verdict


class IntervalTest(unittest.TestCase):
    def test_is_narrow_where_the_measurements_agree(self):
        low, mean, high = interval([1.0, 1.01, 0.99, 1.0, 1.0])
        self.assertLess(high - low, 0.03)
        self.assertAlmostEqual(mean, 1.0, places=2)

    def test_is_symmetric_for_a_ratio_and_its_inverse(self):
        low, _, high = interval([0.5, 1.0, 2.0])
        self.assertAlmostEqual(low, 1 / high)


class VerdictTest(unittest.TestCase):
    def test_one_word_for_each_place_of_the_limit(self):
        self.assertEqual(verdict(0.8, 0.9, 1.1, 1.0), "ok")
        self.assertEqual(verdict(0.9, 1.1, 1.3, 1.0), "within noise")
        self.assertEqual(verdict(1.1, 1.2, 1.3, 1.0), "TOO SLOW")

    def test_the_same_for_limits_from_below(self):
        self.assertEqual(verdict(19, 21, 23, 20, at_least=True), "ok")
        self.assertEqual(verdict(17, 19, 21, 20, at_least=True), "within noise")
        self.assertEqual(verdict(15, 17, 19, 20, at_least=True), "TOO SLOW")


class HoldsTest(unittest.TestCase):
    def test_fails_only_for_certain_misses_and_prints_the_interval(self):
        for ratios, expected in (([1.3, 1.31, 1.3, 1.32, 1.29], False), ([0.7, 1.8, 0.9, 1.6, 1.0], True)):
            values = iter(ratios)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(holds("thing", lambda: next(values), 1.0), expected)
            self.assertRegex(out.getvalue(), r"ratio 1\.\d+, between [\d.]+ and [\d.]+ \(at most 1\): thing")
