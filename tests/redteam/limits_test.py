"""Attack 36 and weakness G11: bounded amounts, each just above its limit.

Outside the same amounts are had. Everything is a few hundred MiB and a few hundred processes at
most, and gone when the attempt ends.
"""

import contextlib
import glob
import os
import re
import signal
import time
import unittest

from redteam import CHILDREN, Redteam, launch, started_by_root_and_user, wait_until


@started_by_root_and_user
class Amounts(Redteam):
    """A stated limit stops the server at its amount, whoever started it."""

    def assert_stopped(self, attempt, limit, reason, allow=()):
        """Had outside, stopped inside for this reason."""
        self.assert_open(self.outside(attempt))
        (found,) = self.assert_shut(self.inside(attempt, allow=[*allow, limit]), reason)
        return found

    def assert_stopped_at(self, most, *words, **more):
        """The same, and what was had by then is at most this."""
        found = self.assert_stopped(*words, **more)
        self.assertLessEqual(int(found.detail), most, found)
        return found

    def test_36_processes(self):
        found = self.assert_stopped_at(32, "children=40", "limit:pids:32", "EAGAIN",
                                       allow=[CHILDREN])
        self.assertGreater(int(found.detail), 16, "the limit is not half of what it says")

    def test_36_descriptors(self):
        self.assert_stopped_at(64, "descriptors=70", "limit:files:64", "EMFILE")
        self.assert_shut(self.inside("raise_descriptor_limit=4096", allow=["limit:files:64"]),
                         "EPERM")

    def test_36_private_memory(self):
        """Started by root a cgroup holds the limit and kills; for anyone else it is an rlimit."""
        words = ("private_memory=160", "limit:memory:128M")
        if self.uid == 0:
            self.assert_stopped(*words, "SIGKILL")
        else:
            self.assert_stopped_at(128, *words, "ENOMEM")

    def test_36_shared_memory(self):
        self.assert_stopped("shared_memory=160", "limit:memory:128M", "SIGKILL")

    def test_36_a_killed_server_is_explained(self):
        """By whichever mechanism: the limit and how to raise it."""
        done = self.finish(self.sandboxed([self.probe, "--direct", "shared_memory=200"],
                                          ["limit:memory:128M"]))
        self.assertEqual((done.returncode, done.stdout), (137, b""), done.stderr.decode())
        self.assertIn("capgate: memory limit 128M reached; raise it with limit:memory:256M",
                      done.stderr.decode())

    def test_36_private_directories(self):
        attempt = "fill=/tmp,24"
        self.assert_open(self.outside(attempt))
        found = self.assert_shut(self.inside(attempt, allow=["limit:disk:16M"]), "ENOSPC")
        self.assertLessEqual(int(found[0].detail), 16)
        self.assert_shut(self.inside(f"fill={self.home},24", allow=["limit:disk:16M"]), "ENOSPC")

    def test_36_time(self):
        """`spin` ends by itself, with a word. The limit ends it before, and not too early."""
        control = self.finish(self.sandboxed([self.probe, "--direct", "spin=1200"],
                                             ["limit:time:20s"]))
        self.assertRegex(control.stdout, b"^spin=1200 OPEN ")
        start = time.monotonic()
        done = self.finish(self.sandboxed([self.probe, "--direct", "spin=20000"],
                                          ["limit:time:1s"]))
        self.assertGreaterEqual(time.monotonic() - start, 1)
        self.assertEqual((done.returncode, done.stdout), (128 + signal.SIGKILL, b""))
        self.assertIn("capgate: time limit 1s reached; raise it with limit:time:2s",
                      done.stderr.decode())

    def test_36_the_processor_share(self):
        """A tenth of one processor, where a cgroup can hold it. Where none can, as for an ordinary
        user here, the stated limit is a refusal."""
        spin = [self.probe, "spin=1500"]
        if self.uid != 0:
            said = self.refused(*spin, allow=["limit:cpu:10%"])
            self.assertIn("limit:cpu:10% cannot be held on this host", said)
            return
        # How much is had without the limit depends on the machine, so the control is the kernel's
        # own number: the share that it keeps for the group of the server.
        self.assertEqual(self.processor_share(self.start_echo()), None)
        self.assertEqual(self.processor_share(self.start_echo(allow=["limit:cpu:10%"])), 0.1)
        done = self.finish(self.sandboxed(spin, ["limit:cpu:10%"]))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertLess(int(re.search(rb"OPEN (\d+)", done.stdout).group(1)), 300)

    def processor_share(self, process):
        """What the control group of this run leaves to it, of one processor; None: everything."""
        for group in glob.glob(f"/sys/fs/cgroup/**/capgate-{process.pid}", recursive=True):
            for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
                with contextlib.suppress(FileNotFoundError):
                    words = " ".join(read(os.path.join(group, name)) for name in names).split()
                    return None if words[0] in ("max", "-1") else int(words[0]) / int(words[1])
        return None


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Defaults(Redteam):
    """G11: limits are there also where nobody stated any."""

    def test_g11_private_directories_have_a_size(self):
        for path in ("/tmp", self.home, "/dev/shm"):
            (found,) = self.assert_open(self.inside(f"capacity={path}"))
            self.assertTrue(0 < int(found.detail) <= 4 * 1024 ** 3, found)

    def test_g11_descriptors_and_core_files(self):
        text = self.details("read=/proc/self/limits")[0]
        rows = {row[:25].strip(): row[26:].split() for row in text.split("|")}
        self.assertEqual(rows["Max open files"][:2], ["1024", "1024"])
        self.assertEqual(rows["Max core file size"][:2], ["1", "1"])

    def test_g11_processes(self):
        self.assert_open(self.outside("children=300"))
        (found,) = self.assert_shut(self.inside("children=300", allow=[CHILDREN]), "EAGAIN")
        self.assertLessEqual(int(found.detail), 256)


class Flood(Redteam):
    """10 MiB of words on stderr: what passes is bounded, and the server is not blocked."""

    def test_36_stderr_is_bounded(self):
        outside = launch.finish(self.start_outside("flood_stderr=10"))
        self.assertEqual(len(outside.stderr), 10 * 1024 ** 2)
        done = launch.finish(self.start_inside("flood_stderr=10"))
        self.assertIn(b"OPEN 10", done.stdout)
        self.assertLess(len(done.stderr), 8 * 1024 ** 2)

    def test_36_a_full_stderr_does_not_hold_up_the_end(self):
        """Nobody reads: the server waits, as it would outside, and still both can be ended."""
        read, write = os.pipe()
        try:
            process = self.start_inside("flood_stderr=10", stderr=write)
            self.assertFalse(wait_until(lambda: process.poll() is not None, 0.5))
            process.terminate()
            self.assertEqual(process.wait(timeout=launch.SECONDS), 128 + signal.SIGTERM)
        finally:
            os.close(read)
            os.close(write)


if __name__ == "__main__":
    unittest.main()
