"""A grant that may add or remove, and not both, leaves modes, times and attributes of what is there."""

import os
import unittest

from redteam import Redteam, launch, started_by_root_and_user

CHANGE = """
import errno, os, sys
path = sys.argv[1]
changes = {
    "chmod": lambda: os.chmod(path, 0o640),
    "fchmod": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o640),
    "fchmodat": lambda: os.chmod(os.path.basename(path), 0o640, dir_fd=os.open(os.path.dirname(path), os.O_RDONLY)),
    "utime": lambda: os.utime(path, (1, 1)),
    "futime": lambda: os.utime(os.open(path, os.O_RDONLY), (1, 1)),
    "setxattr": lambda: os.setxattr(path, "user.x", b"1"),
    "chown": lambda: os.chown(path, -1, -1),
}
for name, change in changes.items():
    try:
        change()
        print(name, "OPEN")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


@started_by_root_and_user
class Attributes(Redteam):
    def answers(self, allow):
        """What each change of an existing file gives; without `allow`, outside."""
        self.tree.file("work/there", "text")
        words = [launch.PYTHON, "-I", "-c", CHANGE, os.path.join(self.work, "there")]
        done = self.finish(self.sandboxed(words, allow)) if allow else launch.run_outside(words)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return dict(line.split() for line in done.stdout.decode().splitlines())

    def test_only_leave_to_write_is_leave_to_change_them(self):
        outside = self.answers([])
        self.assertEqual(set(outside.values()), {"OPEN"}, outside)
        self.assertEqual(self.answers([f"fs:write:{self.work}/**"]), outside)
        read = f"fs:read:{self.work}/**"
        for action in ("create", "delete"):
            answers = self.answers([read, f"fs:{action}:{self.work}/**"])
            self.assertEqual(set(answers.values()), {"EPERM"}, answers)
        status = os.stat(os.path.join(self.work, "there"))
        self.assertNotEqual(status.st_mtime, 1)

    def test_also_beside_a_directory_that_may_be_written(self):
        """The calls cannot be told apart by place: they are refused everywhere."""
        other = self.tree.directory("other")
        answers = self.answers([f"fs:read:{self.work}/**", f"fs:create:{self.work}/**", f"fs:write:{other}/**"])
        self.assertEqual(set(answers.values()), {"EPERM"}, answers)


if __name__ == "__main__":
    unittest.main()
