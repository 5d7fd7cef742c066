"""Attacks on what watches the sandbox: its clock, its memory watch, its masks, its words."""

import contextlib
import os
import shutil
import subprocess
import unittest

from redteam import REFUSED, Redteam, canary, launch

MEMORY = "limit:memory:64M"
# Takes more than that and keeps it for longer than the watch looks away.
TAKE = """
import ctypes, mmap, os, threading, time
def take():
    memory = mmap.mmap(-1, 200 << 20)
    for at in range(0, len(memory), 4096): memory[at] = 1
    time.sleep(2)
"""
PLAIN = TAKE + "take()\n"
RENAMED = TAKE + "ctypes.CDLL(None).prctl(15, b'RssShmem:0', 0, 0, 0)\ntake()\n"
FORKED_BY_A_THREAD = TAKE + """
def start():
    child = os.fork()
    if child == 0:
        take()
        os._exit(0)
    os.waitpid(child, 0)
thread = threading.Thread(target=start)
thread.start()
thread.join()
"""


class Supervisor(Redteam):

    def python(self, script, allow=(), options=(), **more):
        return self.start(self.sandboxed(["/usr/bin/python3", "-c", script], allow, options),
                          **more)

    def ends(self, process, seconds=launch.SECONDS):
        """Whether it ends although nobody reads what it writes."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return True
        return False


class Memory(Supervisor):

    def test_36_memory_is_counted_whoever_holds_it(self):
        for script in (PLAIN, RENAMED, FORKED_BY_A_THREAD):
            with self.subTest(script=script):
                done = launch.finish(self.python(script, [MEMORY, "exec:spawn:true"]), b"")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("memory limit 64M reached", done.stderr.decode())


class Words(Supervisor):
    """A client that never reads stderr, and a server that knows."""

    def test_36_words_at_the_end_do_not_wait_for_a_reader(self):
        script = ("import os, time\n"
                  f"open({self.work + '/.envrc'!r}, 'w')\n"
                  "os.set_blocking(2, False)\n"
                  "end = time.monotonic() + 1\n"
                  "while time.monotonic() < end:\n"
                  "    try: os.write(2, b'x' * 4096)\n"
                  "    except BlockingIOError: pass\n")
        self.assertTrue(self.ends(self.python(script, [f"fs:write:{self.work}"])))

    def test_36_a_trace_that_nobody_reads_does_not_stop_the_clock(self):
        script = ("import os, contextlib\n"
                  "while True:\n"
                  "    for number in range(9000):\n"
                  "        with contextlib.suppress(OSError):\n"
                  f"            os.open('{self.work}/' + 'x' * 200 + str(number),\n"
                  "                    os.O_CREAT | os.O_WRONLY)\n")
        self.assertTrue(self.ends(self.python(script, ["limit:time:2s"], ["--trace", "-"])))

    def test_35_a_trace_never_suggests_more_than_was_tried(self):
        attempts = [f"create={self.work}/{name}" for name in ("**", "*", "[a-z]*", "plain")]
        done = self.finish(self.sandboxed([self.probe, "--direct", *attempts], options=[
            "--trace", "-"]))
        lines = [line for line in done.stderr.decode().splitlines() if self.work in line]
        self.assertIn(f"denied write {self.work}/plain: fs:write:{self.work}/plain", lines)
        for line in lines:
            self.assertNotRegex(line, r": fs:.*[*\[]")

    def test_35_a_trace_takes_no_planted_program_for_one_of_the_host(self):
        planted = shutil.copy(self.probe, self.tree.path("work/bash"))
        script = (f"import os\nfor path in ({planted!r}, '/usr/bin/bash'):\n"
                  "    try: os.execv(path, ['x'])\n    except OSError: pass\n")
        process = self.python(script, [f"fs:write:{self.work}"], ["--trace", "-"])
        lines = launch.finish(process, b"").stderr.decode().splitlines()
        self.assertIn("denied run /usr/bin/bash: exec:spawn:bash", lines)
        self.assertIn(f"denied run {planted}: no capability can allow it", lines)

    def test_36_a_pipe_in_place_of_the_report_or_trace_is_not_waited_for(self):
        pipe = self.tree.path("work/out")
        os.mkfifo(pipe)
        os.chmod(pipe, 0o666)
        for option in ("--report", "--trace"):
            with self.subTest(option=option):
                process = self.start(self.sandboxed([self.probe, "ids"], (), [option, pipe]))
                self.assertTrue(self.ends(process))
                self.assertEqual(process.returncode, REFUSED)


class Masks(Supervisor):

    def test_12_a_directory_above_a_mask_that_the_host_replaces(self):
        masked = self.tree.file("home/.config/containers/auth.json", canary())
        process = self.start_inside(f"stays_readable={masked}",
                                    allow=[f"fs:read:{self.home}/.config"])
        self.assertEqual(process.stdout.readline(), b"ready\n")
        above = os.path.dirname(masked)
        os.rename(above, above + ".old")
        self.tree.file("home/.config/containers/auth.json", canary())
        self.assertEqual(process.stderr.readline().decode(),
                         f"capgate: {masked} was replaced on the host; it is hidden again\n")
        done = launch.finish(process, b"\n")
        self.assertEqual((done.returncode, done.stdout.decode()),
                         (0, f"stays_readable={masked} shut ENODATA\n"))


if __name__ == "__main__":
    unittest.main()
