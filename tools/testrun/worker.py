"""Lists the test classes of a folder, or runs some of them, and reports as JSON lines.

    worker.py list FOLDER                one line for each test class, or for a module that cannot be imported
    worker.py run FOLDER FD NAME...      one line on the descriptor FD for each finished test

`run` has two processes. The child runs the tests. The parent is the child's subreaper: every process
that outlives its own parent becomes a child of it, so that it finds, reports and kills what a job
leaves behind. The parent itself ends with the runner.
"""

import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import unittest

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
HANDLED = {signal.SIGCHLD, signal.SIGTERM}
# Processes of a killed sandbox need a moment to end by themselves. The tests of the runner are shorter.
SECONDS_TO_END = float(os.environ.get("CAPGATE_TEST_GRACE", 5))
# Cleanups of an interrupted test: they remove cgroups, mounts and daemons.
SECONDS_TO_CLEAN_UP = 20
OUTPUT_LIMIT = 64 * 1024


def emit(fd, **record):
    data = json.dumps(record).encode() + b"\n"
    while data:
        data = data[os.write(fd, data):]


def prctl(option, value):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


# ---- listing ------------------------------------------------------------------------------------


def is_overridden(cls, name):
    return getattr(cls, name).__func__ is not getattr(unittest.TestCase, name).__func__


def classes_of(module):
    """{name in the module: class} of every class that has tests."""
    load = unittest.defaultTestLoader
    return {name: value for name, value in sorted(vars(module).items())
            if isinstance(value, type) and issubclass(value, unittest.TestCase)
            and load.getTestCaseNames(value)}


def describe(module_name):
    try:
        module = __import__(module_name)
    except (Exception, SystemExit):  # pylint: disable=broad-exception-caught
        yield {"module": module_name, "error": traceback.format_exc()}
        return
    for name, cls in classes_of(module).items():
        declared = {*getattr(module, "RESOURCES", ()), *getattr(cls, "RESOURCES", ())}
        yield {"module": module_name, "class": name,
               "tests": list(unittest.defaultTestLoader.getTestCaseNames(cls)),
               "resources": sorted(declared), "fixtures": list(getattr(module, "FIXTURES", ())),
               "one_job": getattr(module, "ONE_JOB", False),
               "tier": getattr(cls, "TIER", getattr(module, "TIER", "test")),
               "class_setup": is_overridden(cls, "setUpClass")}


def list_folder(folder):
    sys.path.insert(0, folder)
    for name in sorted(os.listdir(folder)):
        if name.endswith("_test.py"):
            for record in describe(name.removesuffix(".py")):
                emit(sys.stdout.fileno(), **record)


# ---- running ------------------------------------------------------------------------------------


class Interrupted(Exception):
    """The runner ends the test: an ordinary exception, so that the test's cleanups run."""


class Result(unittest.TestResult):
    """Reports each test when it ends. `names` has the name of each class in its module."""

    def __init__(self, fd, names):
        super().__init__()
        self._fd = fd
        self._names = names
        self._last = time.monotonic()
        self._start = self._last
        self._offset = 0
        self._outcome = None
        self._texts = []

    def id_of(self, test):
        name = self._names.get(type(test))
        return f"{name}.{test._testMethodName}" if name else test.id()  # pylint: disable=protected-access

    def startTest(self, test):
        super().startTest(test)
        self._start = time.monotonic()
        self._offset = printed_so_far()
        self._outcome, self._texts = "passed", []
        emit(self._fd, event="start", id=self.id_of(test))

    def stopTest(self, test):
        super().stopTest(test)
        now = time.monotonic()
        # `spent` includes the setup of a class or module before its first test.
        self._report(self.id_of(test), now - self._start, now - self._last)
        self._last = now

    def _report(self, name, seconds, spent):
        texts = list(self._texts)
        if self._outcome == "failed" and (output := printed_since(self._offset)):
            texts.append(f"---- printed ----\n{output}")
        notes = [line for line in printed_since(self._offset).splitlines() if line.startswith("note: ")]
        emit(self._fd, event="end", id=name, outcome=self._outcome, seconds=round(seconds, 3),
             spent=round(spent, 3), text="\n".join(texts), notes=notes)
        self._outcome = None

    def _note(self, test, outcome, text):
        if self._outcome is not None:  # within a test
            if self._outcome != "failed":
                self._outcome = outcome
            self._texts.append(text)
            return
        # The setup or cleanup of a class or module: `test` only has its name.
        self._outcome, self._texts = outcome, [text]
        emit(self._fd, event="fixture", id=test.id(), outcome=outcome, text=text)
        self._outcome = None

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._note(test, "failed", f"{subtest}\n{self._exc_info_to_string(err, test)}")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self._note(test, "failed", "unexpected success")


def printed_so_far():
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fstat(sys.stdout.fileno()).st_size


def printed_since(offset):
    """The end of what the test and its children printed. Descriptor 1 is the job's log file."""
    size = printed_so_far()
    start = max(offset, size - OUTPUT_LIMIT)
    with contextlib.suppress(OSError), open("/proc/self/fd/1", "rb") as log:
        log.seek(start)
        return log.read(size - start).decode(errors="replace")
    return ""


def load(names):
    """The tests of these names (module.Class or module.Class.test) and {class: its name}."""
    suites, known = [], {}
    for name in names:
        module_name, class_name, *_ = name.split(".")
        cls = getattr(__import__(module_name), class_name)
        known[cls] = f"{module_name}.{class_name}"
        suites.append(unittest.defaultTestLoader.loadTestsFromName(name))
    return unittest.TestSuite(suites), known


def run_tests(folder, fd, names):
    sys.path.insert(0, folder)
    os.chdir(folder)
    os.set_inheritable(fd, False)
    tempfile.tempdir = os.environ.get("CAPGATE_TEST_PLACE")
    suite, known = load(names)
    result = Result(fd, known)

    def interrupt(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        result.stop()
        raise Interrupted("the runner ended this test")

    signal.signal(signal.SIGTERM, interrupt)
    suite.run(result)


# ---- watching the child -------------------------------------------------------------------------


def children_of(pid):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found = []
    for task in tasks:
        with contextlib.suppress(OSError), \
                open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def descendants():
    found = children_of(os.getpid())
    for pid in found:
        found += children_of(pid)
    return found


def command_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        if words := file.read().replace(b"\0", b" ").decode(errors="replace").strip():
            return f"{pid} {words[:200]}"
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
        return f"{pid} [{file.read().strip()}]"
    return str(pid)


def reap(child):
    """Takes in every ended child. The status of `child`, if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                status = os.waitstatus_to_exitcode(how)
    return status


def wait_for(child):
    """Until the child ends. A SIGTERM lets it clean up first, for a while."""
    deadline = None
    while True:
        if (status := reap(child)) is not None:
            return status
        got = signal.sigtimedwait(HANDLED, 1)
        if got is not None and got.si_signo == signal.SIGTERM and deadline is None:
            deadline = time.monotonic() + SECONDS_TO_CLEAN_UP
            os.kill(child, signal.SIGTERM)
        if deadline is not None and time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)


def end_the_rest():
    """Waits for all other processes of the job. Kills and returns those that stay."""
    deadline = time.monotonic() + SECONDS_TO_END
    while True:
        reap(0)
        if not descendants():
            return []
        if time.monotonic() > deadline:
            break
        signal.sigtimedwait(HANDLED, 0.05)
    left = [command_of(pid) for pid in descendants()]
    deadline = time.monotonic() + SECONDS_TO_CLEAN_UP
    while (pids := descendants()) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait(HANDLED, 0.05)
        reap(0)
    return left


def run(folder, fd, names):
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # fork does not inherit it
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)
        run_tests(folder, fd, names)
        return
    status = wait_for(child)
    emit(fd, event="done", status=status, left=end_the_rest())


def main(words):
    if words[0] == "list":
        list_folder(words[1])
    else:
        run(words[1], int(words[2]), words[3:])


if __name__ == "__main__":
    main(sys.argv[1:])
