"""Podman for the tests: root's, or that of an ordinary user, apart from any that the host has.

    with Podman(uid=launch.ORDINARY) as podman:
        podman.run(artifact, ["cat"], stdin=b"hello")  ->  a finished `podman run FLAGS IMAGE cat`

Every command runs in a mount namespace that one process holds open: with a /run and a /dev/shm of
its own, and for an ordinary user with a line in passwd, subuid and subgid. Ending that process and
removing one directory leaves nothing behind.
"""

import os
import shutil
import subprocess
import tempfile

import launch
from docker_daemon import busybox_image

CGROUPS = "/sys/fs/cgroup"
CAP_SYS_RESOURCE = 24
IMAGE = "localhost/e2e:1"
SUB_IDS = 65536

# crun refuses a v2 hierarchy that is mounted beside those of v1.
HOLD = """
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
if test -d /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
for name in passwd subuid subgid; do
  test -e "/etc/$name" || touch "/etc/$name"
  mount --bind "$1/etc/$name" "/etc/$name"
done
echo ready
exec sleep infinity
"""


class Podman:
    """Runs from `__enter__` to `__exit__`, which leaves nothing behind."""

    def __init__(self, uid=0):
        self.uid = uid
        self.image = IMAGE
        self.directory = None
        self._holder = None
        self._cgroup = f"capgate-e2e-podman-{os.getpid()}-{uid}"

    def __enter__(self):
        # Podman refuses a --runroot of more than 50 characters.
        self.directory = tempfile.mkdtemp(prefix="pod-", dir=launch.PLACE)
        try:
            self._make_places()
            self._hold_namespace()
            self.import_image(busybox_image())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._end_pause_process()
        finally:
            if self._holder is not None:
                self._holder.kill()
                self._holder.wait()
                self._holder.stdout.close()
            self._remove_cgroups()
            shutil.rmtree(self.directory)
        if left := self._cgroup_directories():
            raise RuntimeError(f"podman left behind: {left}")

    def run(self, artifact, command, *, env=None, stdin=b""):
        """`podman run FLAGS IMAGE PREFIX COMMAND` with the artifact's flags and descriptors."""
        words = [*self.client(env or {}), "run", *self._for_this_machine(), *artifact["argv"],
                 self.image, *artifact.get("commandPrefix", []), *command]
        return launch.finish(launch.start(words, artifact, owner=self.uid), stdin)

    def client(self, env=None):
        """The words that every podman command of this engine starts with."""
        settings = {"HOME": self._at("home"), "XDG_RUNTIME_DIR": self._at("runtime"),
                    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})}
        return ["nsenter", "--target", str(self._holder.pid), "--mount", "--",
                "setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups",
                "env", "-i", *[f"{name}={value}" for name, value in settings.items()],
                "podman", "--root", self._at("storage"), "--runroot", self._at("state"),
                "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "crun",
                "--events-backend", "file"]

    def command(self, *words, stdin=None):
        """What another podman command prints."""
        done = subprocess.run([*self.client(), *words], input=stdin, capture_output=True, cwd="/",
                              timeout=launch.SECONDS, check=True)
        return done.stdout.decode().strip()

    def import_image(self, tar):
        self.command("import", "-", self.image, stdin=tar)

    def _at(self, name):
        return os.path.join(self.directory, name)

    def _make_places(self):
        os.chmod(self.directory, 0o755)
        os.mkdir(self._at("etc"))
        with open("/etc/passwd", encoding="utf-8") as file:
            users = file.read()
        self._write("etc/passwd", f"{users}capgate-e2e:x:{launch.ORDINARY}:{launch.ORDINARY}::"
                                  f"{self._at('home')}:/bin/sh\n")
        for name in ("subuid", "subgid"):
            self._write(f"etc/{name}", f"capgate-e2e:{first_sub_id()}:{SUB_IDS}\n")
        for name in ("home", "runtime", "storage", "state"):
            os.mkdir(self._at(name), 0o700)
            os.chown(self._at(name), self.uid, self.uid)

    def _write(self, name, text):
        with open(self._at(name), "w", encoding="utf-8") as file:
            file.write(text)

    def _hold_namespace(self):
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", HOLD, "sh", self.directory],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
        if self._holder.stdout.readline() != b"ready\n":
            raise RuntimeError("no mount namespace for podman")

    def _for_this_machine(self):
        """Podman asks for more processes than a root without CAP_SYS_RESOURCE may have."""
        words = []
        if self.uid == 0:
            words += ["--cgroup-parent", f"/{self._cgroup}"]
            if not has_capability(CAP_SYS_RESOURCE):
                words += ["--ulimit", "nproc=4096:4096"]
        return words

    def _end_pause_process(self):
        """The process that keeps an ordinary user's namespaces between commands."""
        path = self._at("runtime/libpod/tmp/pause.pid")
        if not os.path.exists(path):
            return
        with open(path, encoding="ascii") as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/environ", "rb") as file:
            is_ours = self.directory.encode() in file.read()
        if is_ours:
            os.kill(pid, 9)

    def _cgroup_directories(self):
        """Deepest first."""
        return [at for at, _, _ in os.walk(CGROUPS, topdown=False) if f"/{self._cgroup}" in at]

    def _remove_cgroups(self):
        for directory in self._cgroup_directories():
            os.rmdir(directory)


def first_sub_id():
    """The range of each ordinary user of the tests is its own."""
    return 200000 + (launch.ORDINARY - launch.FIRST_ORDINARY) * SUB_IDS


def has_capability(number):
    """Whether this process has a capability."""
    with open("/proc/self/status", encoding="ascii") as file:
        effective = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> number & 1)
