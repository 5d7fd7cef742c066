"""Attack 36 and weakness G11: bounded amounts, each just above its limit.

Outside the same amounts are had. Everything is a few hundred MiB and a few hundred processes at
most, and gone when the attempt ends.
"""

import os
import re
import time
import unittest

from redteam import CHILDREN, REFUSED, Redteam, launch, started_by_root_and_user, wait_until


@started_by_root_and_user
class Amounts(Redteam):
    """A stated limit stops the server at its amount, whoever started it."""

    def assert_stopped(self, attempt, limit, *reasons, allow=(), most):
        """Had outside, stopped inside; what was had by then is at most `most`."""
        self.assert_open(self.outside(attempt))
        (found,) = self.assert_shut(self.inside(attempt, allow=[*allow, limit]), *reasons)
        if found.detail:
            self.assertLessEqual(int(found.detail), most, found)
        return found

    def test_36_processes(self):
        found = self.assert_stopped("children=40", "limit:pids:32", "EAGAIN", allow=[CHILDREN],
                                    most=32)
        self.assertGreater(int(found.detail), 16, "the limit is not half of what it says")

    def test_36_descriptors(self):
        self.assert_stopped("descriptors=70", "limit:files:64", "EMFILE", most=64)
        self.assert_shut(self.inside("raise_descriptor_limit=4096", allow=["limit:files:64"]),
                         "EPERM")

    def test_36_private_memory(self):
        self.assert_stopped("private_memory=160", "limit:memory:128M", "ENOMEM", "SIGKILL",
                            most=128)

    def test_36_shared_memory(self):
        self.assert_stopped("shared_memory=160", "limit:memory:128M", "ENOMEM", "SIGKILL",
                            most=160)

    def test_36_a_killed_server_is_explained(self):
        """By whichever mechanism: the limit and how to raise it, unless the server saw ENOMEM."""
        done = self.finish(self.sandboxed([self.probe, "--direct", "shared_memory=200"],
                                          ["limit:memory:128M"]))
        if b"ENOMEM" not in done.stdout:
            self.assertEqual(done.returncode, 137, done.stderr.decode())
            self.assertIn("limit:memory:", done.stderr.decode())

    def test_36_private_directories(self):
        attempt = "fill=/tmp,24"
        self.assert_open(self.outside(attempt))
        found = self.assert_shut(self.inside(attempt, allow=["limit:disk:16M"]), "ENOSPC")
        self.assertLessEqual(int(found[0].detail), 16)
        self.assert_shut(self.inside(f"fill={self.home},24", allow=["limit:disk:16M"]), "ENOSPC")

    def test_36_time(self):
        """`spin` ends by itself after 3 s; the limit is 1 s."""
        start = time.monotonic()
        done = self.finish(self.sandboxed([self.probe, "--direct", "spin=3000"], ["limit:time:1s"]))
        self.assertLess(time.monotonic() - start, 2.5)
        self.assertGreater(done.returncode, 128)
        self.assertNotIn(b"OPEN", done.stdout)
        self.assertIn("limit:time:", done.stderr.decode())


class Defaults(Redteam):
    """G11: limits are there also where nobody stated any."""

    def test_g11_private_directories_have_a_size(self):
        for path in ("/tmp", self.home, "/dev/shm"):
            (found,) = self.inside(f"capacity={path}")
            if path == "/dev/shm" and not found.open:
                continue
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

    def test_36_the_processor_share(self):
        """A tenth of one processor: so little that a busy machine gives more outside. Where the
        host has no mechanism for it, a stated limit is a refusal."""
        self.assertGreater(int(self.outside("spin=1500")[0].detail), 300, "a very busy machine")
        done = self.finish(self.sandboxed([self.probe, "spin=1500"], ["limit:cpu:10%"]))
        if done.returncode == REFUSED:
            self.assertIn("limit:cpu", done.stderr.decode())
        else:
            self.assertLess(int(re.search(rb"OPEN (\d+)", done.stdout).group(1)), 300)


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
            process.wait(timeout=5)
        finally:
            os.close(read)
            os.close(write)


if __name__ == "__main__":
    unittest.main()
