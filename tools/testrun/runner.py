"""Runs jobs in worker processes, several at a time, until all have ended or the user interrupts."""

import contextlib
import dataclasses
import json
import os
import pathlib
import selectors
import signal
import subprocess
import time

from testrun import leftovers, records, schedule

FIRST_USER = 12345
WORKER = pathlib.Path(__file__).with_name("worker.py")
# A worker that was asked to end cleans up for 20 s and ends other processes for 25 s.
SECONDS_TO_END = 60
PYTHON = "/usr/bin/python3"


@dataclasses.dataclass
class Settings:
    folders: dict  # suite: folder
    slots: int
    timeout: float
    place: pathlib.Path  # a directory for the files of this run


class Running:
    """One job in its worker process."""

    def __init__(self, job, slot, number, settings):
        self.job = job
        self.slot = slot
        self.record = records.JobRecord(job.suite, job.ids)
        self.start = time.monotonic()
        self.deadline = self.start + settings.timeout
        self.trouble = None
        self._buffer = b""
        self.place = settings.place / str(number)
        self.place.mkdir(mode=0o755)
        self._log = settings.place / f"{number}.log"
        self.pipe, theirs = os.pipe()
        os.set_blocking(self.pipe, False)
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [PYTHON, "-B", WORKER, "run", settings.folders[job.suite], str(theirs), *job.names],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[theirs],
                start_new_session=True, env=self._environment(settings))
        os.close(theirs)
        self.pidfd = os.pidfd_open(self.process.pid)

    def _environment(self, settings):
        return {**os.environ, "CAPGATE_TEST_UID": str(FIRST_USER + self.slot),
                "CAPGATE_TEST_PLACE": str(self.place),
                "CAPGATE_TEST_SHARED": str(settings.place / "shared"),
                "GOCACHE": str(records.cache_directory() / "go-build")}

    def read(self):
        """Takes in what the worker has reported so far."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.pipe, 1 << 16):
                self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self.record.add(json.loads(line))

    def ask_to_end(self, trouble):
        if self.trouble is None:
            self.trouble = trouble
            self.deadline = time.monotonic() + SECONDS_TO_END
            self.process.terminate()
        else:
            self.process.kill()

    def finish(self):
        """The outcomes of all its tests."""
        self.read()
        self.process.wait()
        os.close(self.pipe)
        os.close(self.pidfd)
        with open(self._log, encoding="utf-8", errors="replace") as file:
            log = file.read()
        self._log.unlink()
        left = leftovers.remove_tree(self.place)
        self.record.finish(self.trouble, log)
        self.record.add_left_files(left)
        return list(self.record.outcomes.values())


class Runner:
    """`report` is told about every job that ends and several times per second about the state."""

    def __init__(self, settings, report):
        self._settings = settings
        self._report = report
        self._number = 0
        self._made = frozenset()  # fixtures
        self._selector = selectors.DefaultSelector()
        self.running = []
        self.pending = []
        self.spent = {}
        self.interrupted = False
        self.killed = False  # a job was ended before its end
        self._wakeup, wakeup_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupt)

    def _interrupt(self, *_):
        """The second signal kills jobs that still clean up."""
        self.interrupted = self.killed = True
        self.pending.clear()
        for each in self.running:
            each.ask_to_end("the run was interrupted")

    def run(self, jobs):
        """The outcomes of all tests of these jobs."""
        outcomes = []
        self.pending = list(jobs)
        if self.interrupted:
            return outcomes
        while self.pending or self.running:
            self._start_jobs()
            self._wait()
            for each in [each for each in self.running if each.process.poll() is not None]:
                outcomes += self._finish(each)
            self._end_late_jobs()
            self._report.state(self)
        return outcomes

    def _start_jobs(self):
        while len(self.running) < self._settings.slots:
            job = schedule.take_next(self.pending, [each.job for each in self.running],
                                     self._made)
            if job is None:
                return
            used = {each.slot for each in self.running}
            slot = next(slot for slot in range(self._settings.slots) if slot not in used)
            self._number += 1
            each = Running(job, slot, self._number, self._settings)
            self.running.append(each)
            for fd in (each.pipe, each.pidfd):
                self._selector.register(fd, selectors.EVENT_READ, each)

    def _wait(self):
        for key, _ in self._selector.select(0.5):
            if key.fd == self._wakeup:
                os.read(self._wakeup, 1024)
            elif key.fd == key.data.pipe:
                key.data.read()
                if key.data.record.done:  # closed: it would be readable for ever
                    with contextlib.suppress(KeyError):
                        self._selector.unregister(key.fd)

    def _finish(self, each):
        self.running.remove(each)
        for fd in (each.pipe, each.pidfd):
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
        outcomes = each.finish()
        self._made |= each.job.fixtures
        self.spent.update(each.record.spent)
        self._report.finished(each.job, outcomes, time.monotonic() - each.start)
        return outcomes

    def _end_late_jobs(self):
        for each in self.running:
            if time.monotonic() > each.deadline:
                self.killed = True
                each.ask_to_end(f"no end after {self._settings.timeout:.0f} s")
