"""What counts as left behind, and that directories of killed runs are removed."""

import fcntl
import os
import pathlib
import tempfile
import unittest
import unittest.mock

from testrun import leftovers, main

TABLE = """\
1 0 8:1 / / rw - ext4 /dev/sda rw
2 1 0:5 / /var/tmp/capgate-a/1 rw - tmpfs tmpfs rw
3 2 0:6 / /var/tmp/capgate-a/1/deep rw - tmpfs tmpfs rw
4 1 0:7 / /var/tmp/capgate-ab/1 rw - tmpfs tmpfs rw
"""


class Mounts(unittest.TestCase):
    def test_only_those_of_the_directory_and_the_deepest_first(self):
        self.assertEqual(leftovers.mounts_below("/var/tmp/capgate-a", TABLE),
                         ["/var/tmp/capgate-a/1/deep", "/var/tmp/capgate-a/1"])


class Cgroups(unittest.TestCase):
    def test_the_name_has_the_process_that_made_it(self):
        for name, number in (("capgate-123", "123"), ("capgate-e2e-45", "45"),
                             ("capgate-e2e-podman-67-12345", "67"), ("capgate-doctor-8", "8")):
            self.assertEqual(leftovers.OWN_CGROUP.fullmatch(name)[1], number)
        for name in ("capgate", "capgate-e2e-x1y2z3ab", "other-12", "user-12345"):
            self.assertIsNone(leftovers.OWN_CGROUP.fullmatch(name))

    def test_a_maker_that_lives_is_not_gone(self):
        self.assertFalse(leftovers.maker_is_gone(f"/x/capgate-{os.getpid()}"))
        self.assertTrue(leftovers.maker_is_gone("/x/capgate-99999999"))


class Directories(unittest.TestCase):
    def test_those_of_killed_runs_are_removed_and_those_of_others_stay(self):
        places = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("capgate-killed", "capgate-running"):
            (places / name).mkdir()
            (places / name / main.LOCK).touch()
        (places / "capgate-e2e-other").mkdir()
        with unittest.mock.patch.object(main, "PLACES", str(places)), \
                open(places / "capgate-running" / main.LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            main.remove_stale_directories()
        self.assertEqual(sorted(os.listdir(places)), ["capgate-e2e-other", "capgate-running"])


if __name__ == "__main__":
    unittest.main()
