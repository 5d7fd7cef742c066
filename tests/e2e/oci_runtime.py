"""Bundles for the oci target, started by the real runtimes, as root and as an ordinary user."""

import contextlib
import os
import shutil
import subprocess
import tempfile

import launch

RUNC, CRUN = "/usr/sbin/runc", "/usr/bin/crun"
# crun 1.8 refuses hosts that have both versions of cgroups mounted; in a mount namespace of its own
# it sees one of them.
ONE_CGROUP_VERSION = ["unshare", "--mount", "sh", "-c",
                      'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"', "sh"]


def cgroup_roots():
    """Where controllers are mounted: one directory for version 2, several for version 1."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        fields = [line.split() for line in mounts]
    first = [at for _, at, kind, *_ in fields if kind == "cgroup"]
    return first or [at for _, at, kind, *_ in fields if kind == "cgroup2"]


@contextlib.contextmanager
def delegated_cgroups(uid):
    """A cgroup in each hierarchy that belongs to the user, as a session manager would make it."""
    made = []
    try:
        for root in cgroup_roots():
            path = tempfile.mkdtemp(prefix="capgate-e2e-", dir=root)
            made.append(path)
            for name in ("cpuset.cpus", "cpuset.mems"):  # empty at first in version 1
                if os.path.exists(f"{root}/{name}"):
                    shutil.copyfile(f"{root}/{name}", f"{path}/{name}")
            os.chmod(path, 0o755)
            for at in [path, *(entry.path for entry in os.scandir(path))]:
                os.chown(at, uid, uid)
        yield made
    finally:
        for path in made:
            for child in sorted((at for at, *_ in os.walk(path)), reverse=True):
                os.rmdir(child)


class Bundle:
    """A directory with a rootfs, owned by the ordinary user. Its programs are those of the host's
    /usr, which each test grants."""

    def __init__(self, tree):
        self.path = tree.directory("bundle")
        self.state = tree.directory("state")
        for name in ("dev", "etc", "proc", "tmp", "usr"):
            tree.directory(f"bundle/rootfs/{name}")
        for name in ("bin", "lib", "lib64", "sbin"):
            tree.link(f"bundle/rootfs/{name}", f"usr/{name}")

    def write(self, artifact):
        [file] = artifact["files"]
        with open(f"{self.path}/{file['name']}", "w", encoding="utf-8") as config:
            config.write(file["contents"])

    def run(self, runtime, uid, stdin=b""):
        """RUNTIME run, in the bundle; the user has a cgroup of its own."""
        name = os.path.basename(tempfile.mktemp(prefix="capgate-e2e-"))
        command = [*ONE_CGROUP_VERSION, "setpriv", f"--reuid={uid}", f"--regid={uid}",
                   "--clear-groups", runtime, "--root", f"{self.state}/{uid}", "run", name]
        with delegated_cgroups(uid) as cgroups:
            def enter():
                for path in cgroups:
                    with open(f"{path}/cgroup.procs", "w", encoding="utf-8") as procs:
                        procs.write("0")
            return subprocess.run(
                command, input=stdin, capture_output=True, timeout=launch.SECONDS, check=False,
                cwd=self.path, preexec_fn=enter,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": self.state})
