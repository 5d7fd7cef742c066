"""What the host mounts below a granted directory while the server runs: it must not come in. Mounts of
most hosts are shared (systemd makes them so), and what arrives has none of the grant's restrictions.
"""

import json
import os
import unittest

from redteam import ORDINARY, Redteam, as_user, canary, launch, started_by_root_and_user

# Runs in a mount namespace of its own, which stands for a host with shared mounts.
HOST = """
import ctypes, json, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
SHARED, RECURSIVE = 1 << 20, 1 << 14

def mount(kind, place, flags=0):
    if libc.mount(b"host", place.encode(), kind, flags, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")

directory, name, uid, *words = sys.argv[1:]
below = directory + "/below"
mount(b"tmpfs", directory)
mount(None, directory, SHARED | RECURSIVE)
os.mkdir(below)
for place in (directory, below):
    os.chmod(place, 0o755)
    os.chown(place, int(uid), int(uid))
server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdout.readline() == b"ready\\n"
mount(b"tmpfs", below)
open(f"{below}/{name}", "w").close()
server.stdin.write(b"look\\n")
server.stdin.close()
print(json.dumps([os.listdir(below), json.loads(server.stdout.read())]))
"""
LOOK = """
import json, os, sys
print("ready", flush=True)
input()
print(json.dumps(os.listdir(sys.argv[1])))
"""


@started_by_root_and_user
class LaterMounts(Redteam):
    def seen(self, command):
        """What the host, and what the command see below the directory in the end."""
        name = canary()
        if self.uid == 0:
            space = ["/usr/bin/unshare", "--mount", "--"]
        else:
            space = as_user(["/usr/bin/unshare", "--user", "--map-current-user", "--keep-caps",
                             "--mount", "--"],
                            ORDINARY)
        done = self.finish([*space, launch.PYTHON, "-I", "-c", HOST, self.work, name,
                            str(ORDINARY), *command])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        host, inside = json.loads(done.stdout)
        self.assertEqual(host, [name])
        return name, inside

    def look(self):
        return [launch.PYTHON, "-I", "-c", LOOK, os.path.join(self.work, "below")]

    def test_a_mount_of_the_host_does_not_come_in(self):
        name, outside = self.seen(self.look())
        self.assertEqual(outside, [name])
        for grant in (f"fs:read:{self.work}/**", f"fs:write:{self.work}/**"):
            words = [launch.CAPGATE, "run", "--allow", grant, "--", *self.look()]
            self.assertEqual(self.seen(words)[1], [], grant)


if __name__ == "__main__":
    unittest.main()
