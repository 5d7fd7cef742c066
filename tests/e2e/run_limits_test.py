"""capgate run: how a server ends. Grace, signals, time and memory, with words about why."""

import os
import signal
import time
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python, reap_orphans

KILLED = 128 + signal.SIGKILL
# The server's answer to TERM takes half a second, which is its work and no synchronisation.
SLOW_TO_END = """
import os, signal, sys, time
def end(*_):
    time.sleep(0.5)
    os.write(1, b'ended')
    os._exit(0)
signal.signal(signal.SIGTERM, end)
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)  # pause() would sleep through a signal that comes just before it
os.write(1, b'ready')
while True: os.read(read, 1)
"""
STUBBORN = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'term'))
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)  # pause() would sleep through a signal that comes just before it
os.write(1, b'ready')
while True: os.read(read, 1)
"""
SHARED = """
import mmap
memory = mmap.mmap(-1, 512 << 20)
for at in range(0, len(memory), 4096): memory[at] = 1
print('held all of it')
"""
PRIVATE = "held = bytearray(b'x') * (512 << 20); print('held all of it')"


def setUpModule():
    adopt_orphans()


@started_by_root_and_user
class Grace(RunCase):
    """After the end of input: wait, TERM, wait, KILL."""

    def start_ready(self, words, code):
        process = self.start(words, python(code))
        self.assertEqual(process.stdout.read(5), b"ready")
        return process

    def test_a_server_that_ends_with_its_input_is_left_alone(self):
        process = self.start_ready(["--grace", "60"], (
            "import os, sys, signal\n"
            "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))\n"
            "os.write(1, b'ready')\n"
            "sys.stdin.read()\n"
            "os._exit(4)\n"))
        # Neither asked by TERM (9) nor killed: its own end, before a grace that is over long after
        # the test has given up.
        self.assertEqual(launch.finish(process).returncode, 4)

    def test_a_server_that_stays_is_asked_to_end_and_has_time_for_it(self):
        process = self.start_ready(["--grace", "2"], SLOW_TO_END)
        start = time.monotonic()
        done = launch.finish(process)
        self.assertEqual((done.returncode, done.stdout), (0, b"ended"), done.stderr.decode())
        self.assertGreaterEqual(time.monotonic() - start, 2)

    def test_a_server_that_does_not_listen_is_killed(self):
        process = self.start_ready(["--grace", "1"], STUBBORN)
        start = time.monotonic()
        done = launch.finish(process)
        self.assertEqual((done.returncode, done.stdout), (KILLED, b"term"))
        self.assertIn(b"capgate: the server did not end after its input did", done.stderr)
        self.assertGreaterEqual(time.monotonic() - start, 2)
        self.assert_nothing_left(process.pid)

    def test_what_was_sent_before_the_end_is_read(self):
        """The clock starts when the server has taken everything."""
        process = self.start(["--grace", "1"], ["/usr/bin/cat"])
        sent = os.urandom(60000)
        done = launch.finish(process, sent)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(done.stdout == sent)

    def test_without_grace_the_server_decides(self):
        process = self.start_ready([], STUBBORN)
        process.stdin.close()
        process.stdin = None  # communicate() would flush it
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.read(4), b"term")
        self.assertIsNone(process.poll())


@started_by_root_and_user
class Ends(RunCase):
    def test_a_slow_answer_to_a_signal_completes(self):
        process = self.start([], python(SLOW_TO_END))
        self.assertEqual(process.stdout.read(5), b"ready")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.read(5), b"ended")
        self.assertEqual(process.wait(launch.SECONDS), 0)

    def kill_capgate(self):
        """The process id of a run whose capgate was killed, once everything in it is dead."""
        process = self.start([], python(STUBBORN))
        self.assertEqual(process.stdout.read(5), b"ready")
        process.kill()
        # The server holds the other end as long as it lives.
        self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.wait(launch.SECONDS), -signal.SIGKILL)
        reap_orphans()
        return process.pid

    def test_the_sandbox_dies_with_capgate(self):
        self.kill_capgate()

    def test_a_killed_capgate_leaves_nothing(self):
        """At the latest the next run clears away what it could not."""
        pid = self.kill_capgate()
        self.output([], ["/usr/bin/true"])
        self.assert_nothing_left(pid)

    def test_the_time_limit_ends_it_with_an_explanation(self):
        process = self.start(allow("limit:time:1s"), python(STUBBORN))
        start = time.monotonic()
        self.assertEqual(process.wait(launch.SECONDS), KILLED)
        self.assertGreaterEqual(time.monotonic() - start, 0.9)
        self.assertEqual(process.stderr.read().decode(),
                         "capgate: time limit 1s reached; raise it with limit:time:2s\n")
        self.assert_nothing_left(process.pid)

    def test_the_report_says_why_it_ended(self):
        report = self.report(allow("limit:time:1s"), python(STUBBORN), code=KILLED)
        self.assertEqual(report["exit"]["status"], KILLED)
        self.assertIn("time limit 1s reached", report["exit"]["explanation"])

    def test_an_end_in_time_is_not_explained(self):
        done = self.run_server(allow("limit:time:60s"), ["/usr/bin/true"])
        self.assertEqual((done.returncode, done.stderr), (0, b""))


@started_by_root_and_user
class Memory(RunCase):
    """Started by root a cgroup holds it, by anyone else an rlimit and a watchdog."""

    def test_it_is_held_by_the_strongest_mechanism(self):
        report = self.report(allow("limit:memory:64M"), ["/usr/bin/true"])
        limit = {each["name"]: each for each in report["limits"]}["memory"]
        self.assertEqual(limit["value"], "64M")
        self.assertRegex(limit["by"], "^cgroup v[12]$" if self.uid == 0 else "rlimit.*watchdog")

    def test_shared_memory_beyond_it_ends_the_server_with_an_explanation(self):
        process = self.start(allow("limit:memory:64M"), [launch.PYTHON, "-I", "-c", SHARED])
        done = launch.finish(process)
        self.assertEqual((done.returncode, done.stdout), (KILLED, b""), done.stderr.decode())
        self.assertEqual(done.stderr.decode(),
                         "capgate: memory limit 64M reached; raise it with limit:memory:128M\n")
        self.assert_nothing_left(process.pid)

    def test_private_memory_beyond_it_cannot_be_had(self):
        process = self.start(allow("limit:memory:64M"), [launch.PYTHON, "-I", "-c", PRIVATE])
        done = launch.finish(process)
        said = done.stderr.decode()
        self.assertEqual(done.stdout, b"")
        if self.uid == 0:
            self.assertEqual(done.returncode, KILLED, said)
            self.assertIn("memory limit 64M reached; raise it with limit:memory:128M", said)
        else:
            self.assertEqual(done.returncode, 1, said)
            self.assertIn("MemoryError", said)
        self.assert_nothing_left(process.pid)

    def test_what_fits_is_not_disturbed(self):
        for code in (SHARED, PRIVATE):
            said = self.output(allow("limit:memory:1G"), [launch.PYTHON, "-I", "-c", code])
            self.assertEqual(said, "held all of it\n")


FORK_WHILE_POSSIBLE = """
import errno, os, signal
count = 0
try:
    while count < 100:
        if os.fork() == 0:
            while True: signal.pause()
        count += 1
    error = 'none'
except OSError as raised:
    error = errno.errorcode[raised.errno]
print(count, error)
"""


@started_by_root_and_user
class OtherLimits(RunCase):
    def test_processes_are_counted(self):
        words = allow("exec:spawn:git", "limit:pids:8")
        process = self.start(words, python(FORK_WHILE_POSSIBLE))
        done = launch.finish(process)
        # The eighth is the server itself.
        self.assertEqual(done.stdout, b"7 EAGAIN\n", done.stderr.decode())
        self.assert_nothing_left(process.pid)

    def test_private_file_systems_are_bounded(self):
        fill = "open('/tmp/big', 'wb', buffering=0).write(bytes({}))"
        words = allow("limit:disk:1M")
        self.assertEqual(self.attempt(words, fill.format(1 << 19)), [str(1 << 19)])
        written = self.attempt(words, fill.format(1 << 22))
        self.assertEqual(written, [str(1 << 20)])

    def test_a_stated_limit_that_cannot_be_held_is_refused(self):
        """A share of the processor needs a cgroup, which an ordinary user does not have here."""
        words = allow("limit:cpu:50%")
        if self.uid == 0:
            report = self.report(words, ["/usr/bin/true"])
            limit = {each["name"]: each for each in report["limits"]}["cpu"]
            self.assertRegex(limit["by"], "^cgroup v[12]$")
        else:
            said = self.refusal(words)
            self.assertIn("limit:cpu:50% cannot be held on this host", said)
            self.assertRegex(said, r"(?m)^help: .*cgroup")


if __name__ == "__main__":
    unittest.main()
