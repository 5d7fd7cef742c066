"""Rule for every denial by the kernel: `run --trace` names it, with the capability that would do.

Tracing observes only: each attempt ends as it does without.
"""

import os
import unittest

from redteam import CHILDREN, Redteam, canary, started_by_root_and_user


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


if __name__ == "__main__":
    unittest.main()
