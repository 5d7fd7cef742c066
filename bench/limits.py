"""Judges the limits of bench/check-ratios, bench/launch/check and bench/egress/check.

    holds("capgate run / bwrap", lambda: against_bwrap(lab), 1.0)

Each ratio is measured several times, and the interval that holds its true value with 95 % confidence
is printed. A limit is missed when the whole interval lies beyond it; if only the mean does, the
machine was too noisy to tell, and the line says so.
"""

import math
import statistics

REPETITIONS = 5
# Student's t for 95 % and n - 1 degrees of freedom, by n.
T95 = {3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}


def interval(ratios):
    """(low, mean, high). Computed from logarithms: 0.5 is as far from 1 as 2 is."""
    logs = [math.log(max(ratio, 1e-9)) for ratio in ratios]
    mean = statistics.fmean(logs)
    half = T95[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(mean - half), math.exp(mean), math.exp(mean + half)


def verdict(low, mean, high, limit, at_least=False):
    """"ok", "within noise" or "TOO SLOW"."""
    if at_least:
        low, mean, high, limit = 1 / high, 1 / mean, 1 / low, 1 / limit
    if mean <= limit:
        return "ok"
    return "within noise" if low <= limit else "TOO SLOW"


def holds(what, measure, limit, at_least=False, repetitions=REPETITIONS):
    """Measures, prints one line, and returns False if the limit is missed for certain."""
    low, mean, high = interval([measure() for _ in range(repetitions)])
    word = verdict(low, mean, high, limit, at_least)
    print(f"{word}: ratio {mean:.2f}, between {low:.2f} and {high:.2f} "
          f"({'at least' if at_least else 'at most'} {limit:g}): {what}", flush=True)
    return word != "TOO SLOW"
