"""Turns test classes into jobs and decides which job starts next. Pure functions.

A class or its module names what it needs for itself in RESOURCES, for example ("docker",): two jobs
with the same name never run at the same time. A job with the resource "alone" runs while nothing
else does. FIXTURES names what the first job that needs it makes for all others, for example an
installation of packages: until that job has ended, other jobs that need it wait and others run.
"""

import dataclasses

ALONE = "alone"
# A class of unknown duration counts as long: it starts early and cannot be the last one to end.
UNKNOWN_SECONDS = 120.0
# Longer classes are split into parts of about PART_SECONDS, if they have no setup of their own.
SPLIT_SECONDS = 40.0
PART_SECONDS = 15.0
# Short classes of one module share a process: each process costs half a second of imports, and many
# modules start a lab.
BUNDLE_SECONDS = 6.0


@dataclasses.dataclass(frozen=True)
class TestClass:
    """A class with the names of those of its tests that are to run."""

    suite: str
    module: str
    name: str
    tests: tuple
    resources: frozenset = frozenset()
    fixtures: frozenset = frozenset()
    tier: str = "test"
    class_setup: bool = False
    one_job: bool = False  # the classes of its module stay together: setUpModule is expensive
    complete: bool = True  # all of its tests are to run

    def ids(self):
        return [f"{self.suite}/{self.module}.{self.name}.{test}" for test in self.tests]


@dataclasses.dataclass(frozen=True)
class Job:
    suite: str
    names: tuple  # module.Class or module.Class.test
    ids: tuple
    resources: frozenset
    seconds: float
    fixtures: frozenset = frozenset()

    def title(self):
        module, rest = self.names[0].split(".", 1)
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"{self.suite}/{module}.{rest}{more}"


def expected_seconds(ids, durations):
    """The sum of the stored durations, or None if one is missing."""
    known = [durations.get(name) for name in ids]
    return None if None in known else sum(known)


def make_jobs(classes, durations):
    """The jobs of these classes, in their order."""
    jobs, bundle = [], []
    for each in classes:
        seconds = expected_seconds(each.ids(), durations)
        if bundle and not fits(bundle, each, seconds):
            jobs.append(job_of(bundle))
            bundle = []
        if each.one_job:
            bundle.append((each, UNKNOWN_SECONDS if seconds is None else seconds))
        elif seconds is None:
            jobs.append(job_of([(each, UNKNOWN_SECONDS)]))
        elif seconds > SPLIT_SECONDS and len(each.tests) > 1 and not each.class_setup:
            jobs += split(each, durations)
        else:
            bundle.append((each, seconds))
    return jobs + ([job_of(bundle)] if bundle else [])


def fits(bundle, each, seconds):
    """Whether a class may join the classes of a job."""
    first = bundle[0][0]
    if (first.suite, first.module) != (each.suite, each.module):
        return False
    if each.one_job:
        return True
    total = sum(spent for _, spent in bundle)
    return first.resources == each.resources and seconds is not None and total + seconds <= BUNDLE_SECONDS


def names_of(each):
    name = f"{each.module}.{each.name}"
    return [name] if each.complete else [f"{name}.{test}" for test in each.tests]


def job_of(bundle):
    first = bundle[0][0]
    return Job(suite=first.suite, names=tuple(name for each, _ in bundle for name in names_of(each)),
               ids=tuple(name for each, _ in bundle for name in each.ids()),
               resources=frozenset().union(*(each.resources for each, _ in bundle)),
               seconds=sum(seconds for _, seconds in bundle), fixtures=first.fixtures)


def split(each, durations):
    """Several jobs for one class, the longest tests first, each of at most about PART_SECONDS."""
    parts = []
    for seconds, test in sorted(((durations[name], test) for name, test in zip(each.ids(), each.tests)),
                                reverse=True):
        part = next((part for part in parts
                     if sum(spent for spent, _ in part) + seconds <= PART_SECONDS), None)
        if part is None:
            parts.append(part := [])
        part.append((seconds, test))
    return [job_of([(dataclasses.replace(each, tests=tuple(test for _, test in part), complete=False),
                     sum(seconds for seconds, _ in part))]) for part in parts]


def take_next(pending, running, made=frozenset()):
    """Removes the job that is to start now from `pending` and returns it, or None. `made` are the
    fixtures that exist already.

    The longest goes first. A job that shares a resource or makes a fixture counts as long as all jobs
    that wait for the same one together, because they run after it. Jobs that run alone come last: the
    machine becomes idle for them only once.
    """
    if any(ALONE in job.resources for job in running):
        return None

    def needs(job):
        return job.resources | job.fixtures - made

    in_use = frozenset().union(*map(needs, running))
    queues = {}
    for job in pending:
        for name in needs(job):
            queues[name] = queues.get(name, 0) + job.seconds

    def weight(job):
        return max([job.seconds, *(queues[name] for name in needs(job))])

    shared = [job for job in pending if ALONE not in job.resources]
    free = [job for job in shared if not needs(job) & in_use]
    if not shared and not running:
        free = pending
    if not free:
        return None
    chosen = max(free, key=weight)
    pending.remove(chosen)
    return chosen
