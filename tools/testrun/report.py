"""Prints how a run proceeds and how it ended."""

import collections
import sys
import time

from testrun import records

SECONDS_BETWEEN_LINES = 15
SLOWEST = 20


class Report:
    """On a terminal one status line that is rewritten; otherwise a line every 15 s. Failures are
    named as soon as they are known, and their texts come at the end."""

    def __init__(self, total, verbose=False, out=sys.stdout):
        self._out = out
        self._terminal = out.isatty()
        self._verbose = verbose
        self._total = total
        self._done = 0
        self._failed = 0
        self._start = time.monotonic()
        self._next_line = self._start + SECONDS_BETWEEN_LINES

    def _colour(self, number, text):
        return f"\033[{number}m{text}\033[0m" if self._terminal else text

    def line(self, text):
        if self._terminal:
            self._out.write("\r\033[K")
        print(text, file=self._out, flush=True)

    def seconds(self):
        return time.monotonic() - self._start

    def finished(self, job, outcomes, seconds):
        self._done += len(job.ids)
        failed = [each.name for each in outcomes if each.outcome == records.FAILED]
        self._failed += len(failed)
        for name in failed:
            self.line(f"{self._colour(31, 'FAILED')} {name}")
        if self._verbose:
            self.line(f"{seconds:6.1f} s  {job.title()}: {len(job.ids)} tests")

    def state(self, runner):
        now = time.monotonic()
        text = (f"[{self.seconds():4.0f} s] {self._done}/{self._total} tests, {self._failed} failed, "
                f"{len(runner.running)} jobs running, {len(runner.pending)} waiting")
        if self._terminal:
            names = ", ".join(each.job.names[0].split(".")[0] for each in runner.running)
            self._out.write(f"\r\033[K{text}: {names}"[:200])
            self._out.flush()
        elif now >= self._next_line:
            self._next_line = now + SECONDS_BETWEEN_LINES
            oldest = min(runner.running, key=lambda each: each.start, default=None)
            since = f"; {oldest.job.title()} for {now - oldest.start:.0f} s" if oldest else ""
            self.line(text + since)

    def summary(self, outcomes):
        """Failures, the slowest tests, skips with their reasons, counts."""
        failed = [each for each in outcomes if each.outcome == records.FAILED]
        for each in failed:
            self.line(f"\n{self._colour(31, '==== FAILED')} {each.name}\n{each.text.rstrip()}")
        self._slowest(outcomes)
        self._skips(outcomes)
        for note in dict.fromkeys(note for each in outcomes for note in each.notes):
            self.line(note)
        if failed:
            self.line("\nfailed:")
            for name, times in sorted(collections.Counter(each.name for each in failed).items()):
                rounds = len({each.round for each in outcomes})
                self.line(f"  {name}" + (f" ({times} of {rounds} rounds)" if rounds > 1 else ""))
        passed, failures, skipped = records.count(outcomes)
        words = f"{passed} passed, {failures} failed, {skipped} skipped"
        self.line(f"\nRan {len(outcomes)} tests in {self.seconds():.0f} s: "
                  f"{self._colour(31 if failures else 32, words)}")

    def _slowest(self, outcomes):
        slow = sorted(outcomes, key=lambda each: -each.seconds)[:SLOWEST]
        if len(outcomes) > SLOWEST:
            self.line(f"\nslowest {SLOWEST} tests:")
            for each in slow:
                self.line(f"  {each.seconds:6.1f} s  {each.name}")

    def _skips(self, outcomes):
        skipped = [each for each in outcomes if each.outcome == records.SKIPPED]
        if skipped:
            self.line(f"\n{len(skipped)} skipped:")
        for each in skipped:
            self.line(f"  {each.name}: {each.text}")
