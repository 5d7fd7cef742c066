"""A Docker engine of the tests' own: it shares no process, network, mount or file with the host's.

    with Daemon() as daemon:
        daemon.run(artifact, ["cat"], stdin=b"hello")  ->  a finished `docker run FLAGS IMAGE cat`

`shared()` gives the engine that all jobs of a run of tools/run-tests share; without that runner it is
one of its own. Only tests that declare RESOURCES = ("docker",) use it, one job at a time.

The engine lives in its own mount, network and pid namespaces, so that ending its first process ends
everything in it. Its cgroups have a name of their own and are removed at the end.
"""

import contextlib
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time

import launch
import shared_fixtures

DOCKER = "/usr/bin/docker"
BUSYBOX = "/usr/bin/busybox"
CGROUPS = "/sys/fs/cgroup"
SECONDS_TO_START = 60
SECONDS_TO_STOP = 20

# The engine keeps its sockets in /run and a key in /etc/docker, as the host's own engine would.
IN_NAMESPACES = """
mount -t tmpfs tmpfs /run && mkdir /run/upper /run/work &&
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work overlay /etc &&
ip link set lo up && exec docker-init -s -- dockerd "$@"
"""


class Daemon:
    """Runs from `__enter__` to `__exit__`, which leaves nothing behind."""

    def __init__(self):
        self.directory = None
        self.process = None
        self.image = None
        self._cgroup = f"capgate-e2e-{os.getpid()}"

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="capgate-docker-", dir=launch.PLACE)
        try:
            self._start()
            self.image = self.import_image(busybox_image())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            if self.process is not None:
                self._stop()
        finally:
            self._remove_cgroups()
            shutil.rmtree(self.directory)
        if left := self._leftovers():
            raise RuntimeError(f"the engine left behind: {left}")

    def run(self, artifact, command, *, env=None, stdin=b""):
        """`docker run FLAGS IMAGE COMMAND` with the artifact's flags and descriptors."""
        words = [*self.client(), "run", *artifact["argv"], self.image, *command]
        process = launch.start(words, artifact, env={**self._client_environment(), **(env or {})})
        return launch.finish(process, stdin)

    def client(self):
        """The words that every docker command of this engine starts with."""
        return [DOCKER, "--host", f"unix://{self._at('docker.sock')}"]

    def command(self, *words, stdin=None):
        """What another docker command prints."""
        done = subprocess.run([*self.client(), *words], input=stdin, capture_output=True,
                              env=self._client_environment(), timeout=launch.SECONDS, check=True)
        return done.stdout.decode().strip()

    @contextlib.contextmanager
    def configured(self, settings):
        """Meanwhile the docker command has this configuration of its user."""
        os.mkdir(self._at("config"))
        try:
            with open(self._at("config/config.json"), "w", encoding="ascii") as file:
                json.dump(settings, file)
            yield
        finally:
            shutil.rmtree(self._at("config"))

    def import_image(self, tar):
        return self.command("import", "-", stdin=tar)

    def log(self):
        with open(self._at("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def _leftovers(self):
        """What should be gone after the end: mounts, cgroups, files."""
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = [line for line in file if self.directory in line]
        files = [self.directory] if os.path.exists(self.directory) else []
        return mounts + self._cgroup_directories() + files

    def _at(self, name):
        return os.path.join(self.directory, name)

    def _client_environment(self):
        # No configuration, unless a test makes one: the caller's own could add proxies.
        return {"DOCKER_CONFIG": self._at("config"), "PATH": os.defpath}

    def _start(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready, \
                open(self._at("log"), "wb") as log:
            ready.bind(self._at("ready.sock"))
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "sh", "-c", IN_NAMESPACES, "sh", *self._options()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                env={"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                     "NOTIFY_SOCKET": self._at("ready.sock")})
            self._wait_until_ready(ready)

    def _options(self):
        # vfs needs nothing of the file system below, and the image is small.
        return ["--data-root", self._at("data"), "--exec-root", "/run/docker-e2e",
                "--pidfile", "/run/docker-e2e.pid", "--host", f"unix://{self._at('docker.sock')}",
                "--storage-driver", "vfs", "--bridge=none", "--iptables=false",
                "--ip6tables=false", "--exec-opt", "native.cgroupdriver=cgroupfs",
                "--cgroup-parent", f"/{self._cgroup}"]

    def _wait_until_ready(self, ready):
        """The engine says so, as it would to systemd; or it ends, and then its log says why."""
        ended = os.pidfd_open(self.process.pid)
        try:
            seen, _, _ = select.select([ready, ended], [], [], SECONDS_TO_START)
        finally:
            os.close(ended)
        if ready not in seen or b"READY=1" not in ready.recv(4096):
            raise RuntimeError("dockerd did not start:\n" + self.log()[-4000:])

    def first_processes(self):
        """Those directly inside the engine's namespaces, by their ids outside: one, if it runs."""
        return children_of(self.process.pid)

    def describe(self):
        """What another process needs in order to use the engine: see SharedDaemon."""
        return {"directory": self.directory, "image": self.image, "pid": self.process.pid}

    def _stop(self):
        for child in self.first_processes():
            os.kill(child, signal.SIGTERM)
        try:
            self.process.wait(timeout=SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()  # --kill-child: the namespace goes with it
            self.process.wait()

    def _cgroup_directories(self):
        """Deepest first."""
        return [at for at, _, _ in os.walk(CGROUPS, topdown=False)
                if f"/{self._cgroup}" in at]

    def _remove_cgroups(self):
        for directory in self._cgroup_directories():
            os.rmdir(directory)


class SharedDaemon(Daemon):
    """An engine that another process started and ends. `description` is what `describe` says."""

    def __init__(self, description):
        super().__init__()
        self.directory, self.image = description["directory"], description["image"]
        self._parent = description["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The engine goes on. It removes containers some time after their clients have ended; one that
        stays is an error of the test."""
        deadline = time.monotonic() + SECONDS_TO_STOP
        while left := self.command("ps", "--all", "--quiet").split():
            if time.monotonic() > deadline:
                self.command("rm", "--force", *left)
                raise RuntimeError(f"containers were left behind: {left}")
            time.sleep(0.1)

    def first_processes(self):
        return children_of(self._parent)


def shared():
    """The engine of the whole run, or a new one where there is none."""
    description = shared_fixtures.request("docker")
    return SharedDaemon(description) if description else Daemon()


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def busybox_image(programs=()):
    """An image as a tar file: busybox with its applets, a /tmp, and in /bin further programs."""
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True)
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("tmp", 0o1777)):
            directory = tarfile.TarInfo(name)
            directory.type, directory.mode = tarfile.DIRTYPE, mode
            tar.addfile(directory)
        tar.add(BUSYBOX, "bin/busybox")
        for program in programs:
            tar.add(program, f"bin/{os.path.basename(program)}")
        for library in libraries_of(programs):
            tar.add(os.path.realpath(library), library.lstrip("/"))
        for applet in applets.stdout.split():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            if applet != "busybox":
                tar.addfile(link)
    return tar_bytes.getvalue()


def libraries_of(programs):
    """The shared libraries that these programs load, by the paths at which they look for them."""
    found = set()
    for program in programs:
        lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        found.update(word for word in lines.split() if word.startswith("/"))
    return sorted(found)
