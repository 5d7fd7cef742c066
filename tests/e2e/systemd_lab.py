"""A real systemd, as process 1 of namespaces of its own, on a root of its own.

Nothing of the machine is writable there, and none of its units is known: the root is a tmpfs with
/usr read-only, and /tmp, /run, /var and /etc are made for the lab. An init that shares a directory
with the machine cleans it up when it starts (systemd-tmpfiles empties /tmp), so `_bwrap` is the one
place that says what is mounted, and it binds nothing writable but the lab's own directory.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time

import launch

SECONDS = 60
UNIFIED = ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
BOOT = """
mount -t sysfs sysfs /sys && mount -t cgroup2 none /sys/fs/cgroup || exit 9
chmod 1777 /tmp
exec /usr/lib/systemd/systemd --system --unit=lab.target --log-target=console --log-level=info \
     --show-status=no
"""
TARGET = "[Unit]\nDefaultDependencies=no\nWants=lab.service\n"
# Stops the lab when the client is done, however it ended.
CLIENT = """[Unit]
DefaultDependencies=no
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /lab/client.py
TimeoutStartSec=40
"""
PASSWD = "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"


class Lab:
    """Units of an artifact and a client that talks to them; `run` boots, and returns its answer."""

    def __init__(self, files):
        self.place = tempfile.mkdtemp(prefix="capgate-systemd-", dir="/var/tmp")
        for name in ("units", "etc", "capgate", "lab", "srv", "out"):
            os.mkdir(os.path.join(self.place, name))
        self.user = None
        for name, text in files.items():
            self._install(name, text)
        self.write("units/lab.target", TARGET)
        self.write("units/lab.service", CLIENT)
        self.write("boot", BOOT)
        self.write("etc/machine-id", "0" * 31 + "1\n")
        self.write("etc/nsswitch.conf", "passwd: files\ngroup: files\n")
        os.chmod(self.place, 0o755)

    def _install(self, name, text):
        """Where docs/targets/systemd.md says."""
        if name.endswith((".service", ".socket")):
            # The lab has no sysinit.target, which units wait for by default, and capgate not in /usr.
            text = text.replace("[Unit]\n", "[Unit]\nDefaultDependencies=no\n")
            self.write("units/" + name, text.replace("/usr/bin/capgate", "/opt/bin/capgate"))
        elif name.endswith(".conf"):
            self.user = text.split()[1]
        else:
            self.write("capgate/" + name, text)

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _bwrap(self, binds):
        def at(name):
            return os.path.join(self.place, name)
        words = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc",
                 "--unshare-uts", "--unshare-cgroup", "--as-pid-1", "--cap-add", "ALL", "--clearenv",
                 "--setenv", "PATH", "/usr/bin:/usr/sbin", "--setenv", "SYSTEMD_UNIT_PATH", "/units",
                 "--setenv", "container", "lab", "--tmpfs", "/", "--ro-bind", "/usr", "/usr"]
        for name in ("bin", "lib", "lib64", "sbin"):
            words += ["--symlink", "usr/" + name, "/" + name]
        words += ["--proc", "/proc", "--dev", "/dev", "--dir", "/sys", "--dir", "/root",
                  "--perms", "0755", "--dir", "/opt"]
        for name in ("/tmp", "/run", "/var", "/etc", "/home"):
            words += ["--tmpfs", name]
        for name in os.listdir(at("etc")):
            words += ["--ro-bind", at("etc/" + name), "/etc/" + name]
        words += ["--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache",
                  "--ro-bind", at("capgate"), "/etc/capgate", "--ro-bind", at("units"), "/units",
                  "--ro-bind", at("lab"), "/lab", "--bind", at("out"), "/out"]
        for source, target in binds:
            words += ["--bind", source, target]
        return words + ["--ro-bind", at("boot"), "/boot", "--", "/bin/sh", "/boot"]

    def run(self, client, binds=()):
        """Boots, runs the client (Python; it writes to /out/answer), and returns (answer, log)."""
        self.write("lab/client.py", client)
        self.write("etc/passwd", PASSWD + f"{self.user}:x:990:990::/:/bin/false\n")
        self.write("etc/group", f"root:x:0:\n{self.user}:x:990:\nnogroup:x:65534:\n")
        log = os.path.join(self.place, "log")
        # systemd logs to a terminal; script is one.
        command = ["script", "--quiet", "--return", "--command",
                   " ".join(map(_quoted, self._bwrap(binds))), log]
        with _own_cgroup() as join:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.STDOUT, preexec_fn=join, timeout=SECONDS,
                                  check=False)
        with open(log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        answer = os.path.join(self.place, "out/answer")
        if not os.path.exists(answer):
            raise AssertionError(f"the client gave no answer (exit {done.returncode}):\n{text}")
        with open(answer, encoding="utf-8") as file:
            return file.read(), text

    def close(self):
        shutil.rmtree(self.place)


def _quoted(word):
    return "'" + word.replace("'", "'\\''") + "'"


@contextlib.contextmanager
def _own_cgroup():
    """A cgroup below which the lab makes its own; gone afterwards."""
    root = next(path for path in UNIFIED if os.path.exists(os.path.join(path, "cgroup.procs")))
    place = os.path.join(root, f"capgate-systemd-{os.getpid()}")
    os.mkdir(place)

    def join():
        with open(os.path.join(place, "cgroup.procs"), "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
    try:
        yield join
    finally:
        _remove_cgroup(place)


def _remove_cgroup(place):
    """The lab's processes have been killed with its process 1, but may not be reaped yet."""
    deadline = time.monotonic() + SECONDS
    for directory, _, _ in os.walk(place, topdown=False):
        while True:
            try:
                os.rmdir(directory)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


@contextlib.contextmanager
def lab(manifest, *options):
    """A lab with the units of a manifest."""
    artifact = launch.compile_manifest(manifest, "--target", "systemd", *options)
    made = Lab({file["name"]: file["contents"] for file in artifact["files"]})
    try:
        yield made
    finally:
        made.close()
