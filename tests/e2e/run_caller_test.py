"""capgate run: callers that were themselves given little."""

import resource
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans


def setUpModule():
    adopt_orphans()


@started_by_root_and_user
class LowLimits(RunCase):
    """A limit of the caller's that is lower than ours is the stronger one, and no refusal."""

    def run_below(self, limit, value, hard=None, words=()):
        """A server under a capgate whose own limit is `value`."""
        def lower():
            launch.become(self.uid)
            resource.setrlimit(limit, (value, hard or value))
        return subprocess.run(
            [launch.CAPGATE, "run", *words, "--", "/usr/bin/echo", "runs"], preexec_fn=lower,
            check=False, stdin=subprocess.DEVNULL, capture_output=True, env=self.environment(),
            cwd="/")

    def assert_runs(self, done):
        self.assertEqual((done.returncode, done.stdout), (0, b"runs\n"), done.stderr.decode())

    def test_no_core_files(self):
        self.assert_runs(self.run_below(resource.RLIMIT_CORE, 0))

    def test_few_descriptors(self):
        self.assert_runs(self.run_below(resource.RLIMIT_NOFILE, 512))

    def test_more_grants_than_descriptors_by_default(self):
        words = [f"--allow=fs:read:{self.own(self.tree.directory(f'work/{number}'), 0o755)}"
                 for number in range(100)]
        self.assert_runs(self.run_below(resource.RLIMIT_NOFILE, 64, 512, words))

    def test_few_processes(self):
        self.assert_runs(self.run_below(resource.RLIMIT_NPROC, 400))

    def test_little_memory(self):
        self.assert_runs(self.run_below(resource.RLIMIT_DATA, 1 << 30))


if __name__ == "__main__":
    unittest.main()
