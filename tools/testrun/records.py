"""What is known about tests: outcomes of this run, stored durations, and which skips are allowed."""

import collections
import fnmatch
import json
import os
import pathlib
import re

# The worker's message in a test that it interrupts.
ENDED_BY_RUNNER = "the runner ended this test"
NOT_RUN = "did not run"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


class Outcome:
    """How one test ended in one round."""

    def __init__(self, name, outcome, seconds=0.0, text="", round_number=1):
        self.name = name
        self.outcome = outcome
        self.seconds = seconds
        self.text = text
        self.round = round_number
        self.notes = []  # lines `note: ...` that it printed

    def as_json(self):
        record = {"id": self.name, "outcome": self.outcome, "seconds": self.seconds}
        if self.text:
            record["text"] = self.text
        return record


def matches(name, pattern):
    """A pattern with *, ? or [ is for the whole name; any other one is a part of it."""
    if any(sign in pattern for sign in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern in name


class JobRecord:
    """Collects the lines of one job's worker. `finish` turns them into outcomes of all its tests."""

    def __init__(self, suite, ids):
        self.suite = suite
        self.ids = ids
        self.outcomes = {}
        self.spent = {}
        self.done = None
        self.current = None
        self._fixtures = []

    def add(self, record):
        name = f"{self.suite}/{record.get('id')}"
        if record["event"] == "start":
            self.current = name
        elif record["event"] == "end":
            self.current = None
            self.outcomes[name] = Outcome(name, record["outcome"], record["seconds"], record["text"])
            self.outcomes[name].notes = record["notes"]
            self.spent[name] = record["spent"]
        elif record["event"] == "fixture":
            self._fixtures.append(record)
        else:
            self.done = record

    def finish(self, trouble=None, log=""):
        """The outcomes of all tests of the job. A failure that belongs to no test gets a name of its
        own. `trouble` says why the runner ended the job; `log` is what it printed."""
        if trouble is None and (self.done is None or self.done["status"] != 0):
            status = "no status" if self.done is None else f"status {self.done['status']}"
            trouble = f"the test process ended with {status}"
        if trouble and self.current:
            self._fail(self.current, f"{trouble}\n---- printed ----\n{log[-8000:]}")
        for each in self.outcomes.values():
            if trouble and ENDED_BY_RUNNER in each.text:
                each.text += f"\n{trouble}"
        for record in self._fixtures:
            self._add_fixture(record)
        for name in self.ids:
            if name not in self.outcomes:
                self._fail(name, f"{NOT_RUN}: {trouble or 'see the failure of its class or module'}")
        if trouble and not any(each.outcome == FAILED for each in self.outcomes.values()):
            self._fail(self._own_name(), f"{trouble}\n---- printed ----\n{log[-8000:]}")
        if self.done and self.done["left"]:
            self._fail(f"{self._own_name()} (left processes behind)", "\n".join(self.done["left"]))
        return list(self.outcomes.values())

    def add_left_files(self, paths):
        """For the runner: files that were not removed."""
        if paths:
            self._fail(f"{self._own_name()} (left files behind)", "\n".join(paths))

    def _own_name(self):
        return self.ids[0].rsplit(".", 1)[0]

    def _fail(self, name, text):
        self.outcomes[name] = Outcome(name, FAILED, 0.0, text)

    def _add_fixture(self, record):
        """A class or module whose setup failed, or which was skipped there."""
        where = re.search(r"\((.*)\)", record["id"])
        prefix = f"{self.suite}/{where[1]}." if where else ""
        if record["outcome"] == SKIPPED:
            for name in self.ids:
                if name.startswith(prefix):
                    self.outcomes.setdefault(name, Outcome(name, SKIPPED, 0.0, record["text"]))
        else:
            self._fail(f"{self.suite}/{record['id']}", record["text"])


# ---- stored durations ---------------------------------------------------------------------------


def cache_directory():
    """In the user's cache, as for tools/lint, so that a fresh clone knows the durations too."""
    place = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(place, "capgate-dev")


def read_json(path, default):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return default


def write_json(path, value):
    """Replaces the file in one step: another run may read it."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    new.replace(path)


def updated_durations(old, spent):
    """Half of a duration comes from the last run: one slow run does not decide the next order."""
    new = dict(old)
    for name, seconds in spent.items():
        new[name] = round((old[name] + seconds) / 2 if name in old else seconds, 3)
    return new


# ---- skips --------------------------------------------------------------------------------------


def read_allowed_skips(text):
    """[(pattern, reason)] of lines `PATTERN REASON`."""
    allowed = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pattern, _, reason = line.partition(" ")
        if not reason.strip():
            raise ValueError(f"line {number} gives no reason for {pattern}")
        allowed.append((pattern, reason.strip()))
    return allowed


def refuse_skips(outcomes, allowed):
    """Makes every skip that no pattern allows a failure. The patterns that match no skip."""
    used = set()
    for each in outcomes:
        if each.outcome != SKIPPED:
            continue
        found = [pattern for pattern, _ in allowed if matches(each.name, pattern)]
        used.update(found)
        if not found:
            each.outcome = FAILED
            each.text = f"skipped, and tests/allowed-skips.txt does not list it: {each.text}"
    return [pattern for pattern, _ in allowed if pattern not in used]


def count(outcomes):
    counts = collections.Counter(each.outcome for each in outcomes)
    return counts[PASSED], counts[FAILED], counts[SKIPPED]
