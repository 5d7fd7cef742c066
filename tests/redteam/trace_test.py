"""Rule for every denial by the kernel: `run --trace` names it, with the capability that would do.

Tracing observes only: each attempt ends as it does without.
"""

import os
import unittest

from redteam import CHILDREN, Redteam, canary, launch, started_by_root_and_user

PAIRS = 500
# The part of all pairs in which the answer about the first kind took longer. Each name is tried once,
# so that nothing is known of it; the order within a pair changes. The second word adds so many
# nanoseconds of work to the first kind.
CLOCK = f"""
import os, sys, time
place, extra = sys.argv[1], int(sys.argv[2])
def seconds(kind, number):
    path = f"{{place}}/{{kind}}-{{number}}"
    start = time.perf_counter_ns()
    try: os.stat(path)
    except OSError: pass
    end = time.perf_counter_ns() + (extra if kind == "a" else 0)
    while time.perf_counter_ns() < end: pass
    return time.perf_counter_ns() - start
slower = 0
for number in range({PAIRS}):
    kinds = "ab" if number % 2 else "ba"
    took = {{kind: seconds(kind, number) for kind in kinds}}
    slower += took["a"] > took["b"]
print(slower)
"""


@started_by_root_and_user
class Trace(Redteam):
    """One line for each path, program and socket that is refused."""

    def setUp(self):
        super().setUp()
        self.log = self.tree.path("trace")
        self.secret = self.tree.file("secret", canary())

    def traced(self, *attempts, allow=()):
        """The lines that tracing writes about these attempts."""
        if os.path.exists(self.log):
            os.remove(self.log)
        plain = self.inside(*attempts, allow=allow)
        traced = self.inside(*attempts, allow=allow, options=["--trace", self.log])
        self.assertEqual([result[:3] for result in plain], [result[:3] for result in traced])
        with open(self.log, encoding="utf-8") as file:
            return file.read().splitlines()

    def assert_one_line(self, lines, *words):
        found = [line for line in lines if all(word in line for word in words)]
        self.assertEqual(len(found), 1, f"{words} in {lines}")

    def test_a_refused_path_is_named_with_its_capability(self):
        new = self.tree.path("new")
        lines = self.traced(f"open_read={self.secret}", f"open_read={self.secret}", f"create={new}")
        self.assert_one_line(lines, f"fs:read:{self.secret}")
        self.assert_one_line(lines, new, "fs:")

    def test_a_refused_write_asks_for_writing(self):
        lines = self.traced(f"open_write={self.secret}", allow=[f"fs:read:{self.secret}"])
        self.assert_one_line(lines, f"fs:write:{self.secret}")

    def test_a_refused_program_is_named(self):
        for allow in ([], [CHILDREN]):
            self.assert_one_line(self.traced("exec=/usr/bin/env", allow=allow), "exec:spawn:env")

    def test_a_refused_socket_is_named(self):
        path = self.tree.path("socket")
        lines = self.traced(f"unix={path}")
        self.assertTrue(any("ipc:connect:" in line for line in lines), lines)

    def test_what_is_granted_leaves_no_line(self):
        lines = self.traced(f"open_read={self.secret}", allow=[f"fs:read:{self.secret}"])
        self.assertEqual([line for line in lines if self.secret in line], [])


@started_by_root_and_user
class Timing(Redteam):
    """A traced call takes its time; how long must not depend on what the host has."""

    def slower(self, *words):
        done = self.finish(self.sandboxed([launch.PYTHON, "-I", "-c", CLOCK, *words], (),
                                          ["--trace", os.devnull]))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return int(done.stdout) / PAIRS

    def test_35_the_time_of_a_refusal_does_not_tell_whether_a_file_exists(self):
        place = self.tree.directory("place")
        self.assertGreater(self.slower(place, "6000"), 0.65, "the control: 6 us would be seen")
        for number in range(PAIRS):
            self.tree.file(f"place/a-{number}", "")
        found = self.slower(place, "0")
        print(f"note: slower for files that exist in {found:.2f} of all pairs")
        self.assertLess(abs(found - 0.5), 0.15)


if __name__ == "__main__":
    unittest.main()
