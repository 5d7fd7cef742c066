"""Finds and removes what killed jobs leave on the machine: mounts, cgroups, files.

Their network namespaces have no names: they end with the processes."""

import contextlib
import os
import re
import shutil
import subprocess

CGROUPS = "/sys/fs/cgroup"
# Cgroups of capgate and of the tests end with the id of the process that made them.
OWN_CGROUP = re.compile(r"capgate(?:-[a-z0-9]+)*?-(\d+)(?:-\d+)?")


def mount_table():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return file.read()


def unmount(point):
    subprocess.run(["umount", "--lazy", point], check=False)


def mounts_below(directory, table):
    """The mount points below a directory, deepest first, from the text of mountinfo."""
    points = [line.split()[4] for line in table.splitlines()]
    return sorted((point for point in points if point.startswith(f"{directory}/")), reverse=True)


def cgroups():
    """Every cgroup with a name of ours, deepest first."""
    return [at for at, _, _ in os.walk(CGROUPS, topdown=False)
            if OWN_CGROUP.fullmatch(os.path.basename(at))]


def maker_is_gone(cgroup):
    number = OWN_CGROUP.fullmatch(os.path.basename(cgroup))[1]
    return not os.path.exists(f"/proc/{number}")


class Watch:
    """Knows what was there before the run. Other runs may be at work on the machine: cgroups are
    removed only after jobs were killed, and only if the process that made them is gone."""

    def __init__(self, directory):
        self._directory = directory
        self._cgroups = set(cgroups())

    def unmount(self):
        """Mounts in the directory of the run."""
        found = mounts_below(self._directory, mount_table())
        for point in found:
            unmount(point)
        return [f"mount {point}" for point in found]

    def remove_cgroups(self):
        removed = []
        for top in cgroups():
            if top in self._cgroups or not maker_is_gone(top):
                continue
            for at, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(at)
            if not os.path.exists(top):
                removed.append(f"cgroup {top}")
        return removed


def remove_tree(path):
    """Removes a job's directory. What was in it, for the report."""
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    shutil.rmtree(path, ignore_errors=True)
    return names
