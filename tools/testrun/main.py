"""The command line of tools/run-tests."""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from testrun import fixtures, leftovers, records, runner, schedule
from testrun.report import Report

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SUITES = {name: str(ROOT / "tests" / name) for name in ("e2e", "redteam", "library")}
RESULTS = ROOT / "build/test-results"
ALLOWED_SKIPS = ROOT / "tests/allowed-skips.txt"
PLACES = "/var/tmp"
LOCK = "run-tests.lock"
DURATIONS = records.cache_directory() / "test-durations.json"
SHARED_FIXTURES = [runner.PYTHON, "-B", str(ROOT / "tests/e2e/shared_fixtures.py")]

TEXT = """Runs the Python test suites: jobs of whole test classes, several at a time, the longest first."""
EXAMPLES = """examples:
  tools/run-tests                              all suites
  tools/run-tests --suite redteam              one suite
  tools/run-tests run_files_test egress_       tests whose name contains one of these
  tools/run-tests 'e2e/*.LimitsByRoot.*'       tests whose whole name matches
  tools/run-tests --failed                     only those that failed last time
  tools/run-tests --repeat 5 --suite redteam   five rounds; says how often each test failed

A test is named SUITE/MODULE.CLASS.TEST. CAPGATE and NODE name the programs to test with, as for
`python3 -m unittest`. Results: build/test-results/last.json. A module or class declares
RESOURCES = ("docker",) if no other job may use docker meanwhile, RESOURCES = ("alone",) if nothing
else may run, and TIER = "full" if it runs with --tier full only. A module declares FIXTURES =
("npm_servers",) if its first job makes something that other modules use too, and ONE_JOB = True if
its setUpModule is expensive.
"""


def parse(words):
    parser = argparse.ArgumentParser(prog="tools/run-tests", description=TEXT, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="run only matching tests")
    parser.add_argument("--suite", action="append", choices=SUITES, help="may be repeated; default: all")
    parser.add_argument("--tier", choices=("test", "full"), default="test",
                        help="full includes tests that need virtual machines or public registries")
    parser.add_argument("--failed", action="store_true", help="run only the tests that failed last time")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run everything N times")
    parser.add_argument("--jobs", type=int, default=default_jobs(), metavar="N",
                        help="how many jobs run at a time (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS",
                        help="time limit of each job (default: %(default)s)")
    parser.add_argument("--strict", action="store_true",
                        default=bool(os.environ.get("CI") or os.environ.get("CAPGATE_REQUIRE_ALL") == "1"),
                        help="a skip that tests/allowed-skips.txt does not list is a failure; the "
                             "default if CI is set")
    parser.add_argument("--list", action="store_true", help="list the tests and do not run them")
    parser.add_argument("--verbose", action="store_true", help="print a line for every job that ends")
    return parser.parse_args(words)


def default_jobs():
    """Tests wait for more than 40 % of their time, and some jobs hold back others."""
    return 2 * (os.cpu_count() or 1) + 1


# ---- selecting ----------------------------------------------------------------------------------


def discover(suites):
    """(classes, outcomes of modules that cannot be imported). One process per suite, at the same
    time: modules of different suites may have the same name."""
    listings = {name: subprocess.Popen([runner.PYTHON, "-B", runner.WORKER, "list", SUITES[name]],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                for name in suites}
    classes, broken = [], []
    for suite, process in listings.items():
        text, _ = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"run-tests: cannot list the tests of {SUITES[suite]}")
        for record in map(json.loads, text.splitlines()):
            if "error" in record:
                broken.append(records.Outcome(f"{suite}/{record['module']}", records.FAILED, 0.0,
                                              record["error"]))
            else:
                classes.append(schedule.TestClass(
                    suite=suite, module=record["module"], name=record["class"],
                    tests=tuple(record["tests"]), resources=frozenset(record["resources"]),
                    fixtures=frozenset(record["fixtures"]), tier=record["tier"],
                    class_setup=record["class_setup"], one_job=record["one_job"]))
    return classes, broken


def select(classes, wanted):
    """The classes with those of their tests for whose name `wanted` is true."""
    for each in classes:
        tests = tuple(test for test, name in zip(each.tests, each.ids()) if wanted(name))
        if tests:
            yield schedule.dataclasses.replace(each, tests=tests, complete=tests == each.tests)


def failed_last_time():
    last = records.read_json(RESULTS / "last.json", None)
    if last is None:
        raise SystemExit("run-tests: no results of an earlier run in build/test-results")
    return {test["id"] for test in last["tests"] if test["outcome"] == records.FAILED}


def choose(options, classes):
    if options.tier != "full":
        classes = [each for each in classes if each.tier != "full"]
    if options.patterns:
        classes = select(classes, lambda name: any(records.matches(name, pattern)
                                                   for pattern in options.patterns))
    if options.failed:
        failed = failed_last_time()
        classes = select(classes, lambda name: name in failed or any(
            name.startswith(f"{each}.") for each in failed))
    return list(classes)


# ---- running ------------------------------------------------------------------------------------


@contextlib.contextmanager
def run_directory():
    """A directory for the files of all jobs, which may belong to several users. /tmp and homes have
    a meaning for capgate."""
    remove_stale_directories()
    place = pathlib.Path(tempfile.mkdtemp(prefix="capgate-", dir=PLACES))
    place.chmod(0o755)
    (place / "shared").mkdir()
    try:
        with open(place / LOCK, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def remove_stale_directories():
    """Those of runs that were killed: their lock is free."""
    for path in pathlib.Path(PLACES).glob(f"capgate-*/{LOCK}"):
        with contextlib.suppress(OSError), open(path, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for point in leftovers.mounts_below(path.parent, leftovers.mount_table()):
                leftovers.unmount(point)
            shutil.rmtree(path.parent, ignore_errors=True)


def run(options, classes, report):
    """The outcomes of all rounds, and whether the user interrupted the run."""
    jobs = schedule.make_jobs(classes, records.read_json(DURATIONS, {}))
    RESULTS.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with run_directory() as place, open(RESULTS / "fixtures.log", "wb") as log:
        watch = leftovers.Watch(str(place))
        shared = fixtures.Fixtures(SHARED_FIXTURES, place / "shared", log)
        settings = runner.Settings(folders=SUITES, slots=options.jobs, timeout=options.timeout,
                                   place=place)
        machine = runner.Runner(settings, report)
        try:
            for number in range(1, options.repeat + 1):
                for each in machine.run(jobs):
                    each.round = number
                    outcomes.append(each)
        finally:
            trouble = shared.close() + watch.unmount()
            if machine.killed:
                for line in watch.remove_cgroups():
                    report.line(f"removed {line}")
    if trouble:
        outcomes.append(records.Outcome("run-tests (left behind)", records.FAILED, 0.0, "\n".join(trouble)))
    if machine.interrupted:
        outcomes = [each for each in outcomes if not each.text.startswith(records.NOT_RUN)]
    else:
        records.write_json(DURATIONS, records.updated_durations(records.read_json(DURATIONS, {}),
                                                                machine.spent))
    return outcomes, machine.interrupted


def apply_allowed_skips(options, outcomes, report):
    text = ALLOWED_SKIPS.read_text(encoding="utf-8") if ALLOWED_SKIPS.exists() else ""
    unused = records.refuse_skips(outcomes, records.read_allowed_skips(text))
    if not options.patterns and not options.failed and not options.suite:
        for pattern in unused:
            report.line(f"tests/allowed-skips.txt: {pattern} matches no skipped test")


def write_results(outcomes, seconds):
    passed, failed, skipped = records.count(outcomes)
    records.write_json(RESULTS / "last.json", {
        "seconds": round(seconds, 1), "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "passed": passed, "failed": failed, "skipped": skipped,
        "tests": [each.as_json() | {"round": each.round} for each in outcomes]})
    # Started by sudo: what lies in build/ belongs to the developer.
    if owner := os.environ.get("SUDO_UID"):
        for path in (RESULTS, *RESULTS.iterdir()):
            os.chown(path, int(owner), int(os.environ["SUDO_GID"]))


def list_tests(classes):
    durations = records.read_json(DURATIONS, {})
    for each in classes:
        needs = f"  needs {', '.join(sorted(each.resources))}" if each.resources else ""
        for name in each.ids():
            known = f"{durations[name]:7.2f} s" if name in durations else "        ?"
            print(f"{known}  {name}{needs}")
    return 0


def main(words):
    options = parse(words)
    if os.geteuid() != 0:
        print("run-tests: the tests start daemons and become other users: run this as root",
              file=sys.stderr)
        return 2
    classes, broken = discover(options.suite or SUITES)
    classes = choose(options, classes)
    if options.list:
        return list_tests(classes)
    report = Report(options.repeat * sum(len(each.tests) for each in classes), options.verbose)
    outcomes, interrupted = run(options, classes, report)
    outcomes = broken + outcomes
    if options.strict:
        apply_allowed_skips(options, outcomes, report)
    report.summary(outcomes)
    write_results(outcomes, report.seconds())
    if interrupted:
        print("run-tests: interrupted", file=sys.stderr)
        return 130
    if not outcomes:
        print("run-tests: no test ran", file=sys.stderr)
    failed = any(each.outcome == records.FAILED for each in outcomes)
    return 0 if outcomes and not failed else 1
