"""What bench/launch/run and bench/launch/check share: a temporary directory with everything that is
started, the commands of each variant, and the harness.

Everything runs as an ordinary user: a sandbox that root starts is another program.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("CAPGATE_BUILD", ROOT / "build/release"))
CAPGATE = pathlib.Path(os.environ.get("CAPGATE", BUILD / "bin/capgate")).resolve()
PROGRAMS = ("floor", "harness", "init", "trivial")
BWRAP = "/usr/bin/bwrap"
ORDINARY = 12345  # an ordinary user without an entry in /etc/passwd
BASE_BINDS = 10   # what a launch binds before any grant: parts of /usr and /etc, the program
SERVER = "trivial"
NET = "net:connect:api.github.com:443"  # declared, never connected to


class Failure(Exception):
    """Something that was started did not work; the text says what."""


def leave_once(number, _frame):
    """A plain kill cleans up as well; a second one must not interrupt that."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


class Lab:
    """Use as `with Lab() as lab`: the directory is removed on every way out."""

    def __enter__(self):
        signal.signal(signal.SIGTERM, leave_once)
        self.is_root = os.geteuid() == 0
        self._temporary = tempfile.TemporaryDirectory(prefix="capgate-launch-")
        self.path = pathlib.Path(self._temporary.name)
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # A signal in the middle of the removal would leave the rest of it behind.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._temporary.cleanup()

    def _fill(self):
        self.path.chmod(0o755)
        self.programs = self.directory("programs")
        for name in PROGRAMS:
            built = BUILD / "bench/launch" / name
            if not built.exists():
                raise Failure(f"{built} is missing: run ./dev build")
            shutil.copy(built, self.programs)
        self.server = str(self.programs / SERVER)
        self.home = self.directory("home")
        self.certificate = self.path / "ca.pem"
        self.certificate.write_text("stands for a certificate\n")
        self.base = [str(self.directory(f"base/{i}")) for i in range(BASE_BINDS - 1)]
        self.base.append(str(self.programs))
        # A copy, with what is installed beside it: the ordinary user may not reach the original.
        self.bin = self.directory("bin")
        for part in CAPGATE.parent.glob("capgate*"):
            if part.is_file():
                shutil.copy(part, self.bin)

    # ---- files ---------------------------------------------------------------------------------

    def directory(self, name):
        """A new directory that belongs to the ordinary user."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        if self.is_root:
            os.chown(path, ORDINARY, ORDINARY)
        return path

    def grants(self, count):
        return [str(self.directory(f"grants/{i}")) for i in range(count)]

    @contextlib.contextmanager
    def large_directory(self, files, in_each=1000):
        """A directory with so many names below it. A walk pays for names; links make them with one
        system call each and no inode, which a busy disk may take minutes for."""
        top = self.directory("large")
        try:
            for start in range(0, files, in_each):
                first = self.directory(f"large/{start // in_each}") / "0"
                first.touch()
                at = os.open(first.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    for i in range(1, min(in_each, files - start)):
                        os.link("0", str(i), src_dir_fd=at, dst_dir_fd=at)
                finally:
                    os.close(at)
            yield str(top)
        finally:
            shutil.rmtree(top)

    def manifest(self, name, *capabilities):
        path = self.path / f"{name}.json"
        path.write_text(json.dumps({
            "name": "bench", "version": "1.0.0",
            "tools": [{"name": "tool", "capabilities": list(capabilities)}]}))
        return str(path)

    # ---- variants: each is a command line ------------------------------------------------------

    def bare(self, *arguments):
        return [self.server, *arguments]

    def floor(self, *arguments, grants=(), init=False):
        binds = [word for path in (*self.base, *grants) for word in ("--bind", path)]
        second = ["--init", str(self.programs / "init")] if init else []
        return [str(self.programs / "floor"), *binds, *second, "--", self.server, *arguments]

    def bwrap(self, *arguments, grants=()):
        """A gateway's flags for a server of one static file, without its handshake by descriptors
        and without the bootstrap program that it starts first."""
        binds = [word for path in grants for word in ("--ro-bind", path, path)]
        return [
            BWRAP, "--die-with-parent", "--new-session", "--unshare-user", "--unshare-net",
            "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--clearenv",
            "--setenv", "PATH", "/usr/bin:/bin", "--tmpfs", "/etc",
            "--setenv", "HTTPS_PROXY", "http://10.88.0.1:8081",
            "--setenv", "NODE_EXTRA_CA_CERTS", "/etc/ca.pem", "--setenv", "PLACEHOLDER", "none",
            "--setenv", "SSL_CERT_FILE", "/etc/ca.pem",
            "--ro-bind", self.server, "/app/server", "--ro-bind", str(self.certificate), "/etc/ca.pem",
            "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", *binds, "--chdir", "/",
            "--", "/app/server", *arguments]

    def capgate(self, manifest, *arguments):
        return [str(self.bin / CAPGATE.name), "run", "-m", manifest, "--", self.server, *arguments]

    # ---- running -------------------------------------------------------------------------------

    def as_ordinary(self, command):
        if not self.is_root:
            return command
        return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", *command]

    def start(self, command, **options):
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home),
                       "LANG": "C.UTF-8"}
        return subprocess.Popen(self.as_ordinary(command), env=environment, cwd=self.home, text=True,
                                **options)

    def need_capgate(self):
        """Says why `capgate run` cannot be measured, before anything is."""
        if not CAPGATE.exists():
            raise Failure(f"{CAPGATE} is missing: run ./dev build, or set CAPGATE")
        process = self.start(self.capgate(self.manifest("probe", NET)), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        words = process.communicate()[1]
        if process.returncode != 0:
            raise Failure(f"capgate run does not start a program (status {process.returncode}):\n"
                          f"{words.rstrip()}\n--without-capgate measures the rest")

    def _harness(self, mode, numbers, variants):
        command = [str(self.programs / "harness"), mode, *map(str, numbers)]
        for name, words in variants.items():
            command += [":::", name, *words]
        return command

    def measure(self, mode, numbers, variants):
        """{name: {"p50": seconds, "p90": seconds}} of an interleaved run."""
        process = self.start(self._harness(mode, [*numbers, "--json"], variants),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            out = process.communicate()[0]
        except BaseException:
            process.terminate()  # what it has started sees the end of its stdin
            process.wait()
            raise
        if process.returncode != 0:
            raise Failure(f"the harness failed: {mode} of {', '.join(variants)}")
        return {row["name"]: row for row in json.loads(out)}

    def launch(self, variants, rounds):
        return self.measure("launch", [rounds], variants)

    def burst(self, variants, rounds, count):
        return self.measure("burst", [rounds, count], variants)

    @contextlib.contextmanager
    def alive(self, name, command, count):
        """So many copies that all run at once, as (seconds until all did, process ids)."""
        process = self.start(self._harness("alive", [count], {name: command}),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            seconds, *pids = process.stdout.readline().split() or [0]
            if len(pids) == count:
                yield float(seconds), [int(pid) for pid in pids]
        finally:
            process.communicate()  # closes its stdin: all end, and it has waited for each
        if process.returncode != 0:
            raise Failure(f"{name}: {count} alive at once did not work")


# ---- memory --------------------------------------------------------------------------------------

def process_table():
    """{pid: (parent, name)} of everything that runs now."""
    table = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            name, fields = entry.read_text().split("(", 1)[1].rsplit(")", 1)
            table[int(entry.parent.name)] = (int(fields.split()[1]), name)
    return table


def pss_bytes(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except PermissionError:
        raise Failure("the memory of a process that is not dumpable: run this as root") from None
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def beside_servers(pids):
    """The processes that these launches keep running beside their servers, one server each."""
    table = process_table()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    family, rest = [], list(pids)
    while rest:
        pid = rest.pop()
        family.append(pid)
        rest += children.get(pid, [])
    ours = [pid for pid in family if table[pid][1] not in (SERVER, "server")]
    if len(family) - len(ours) != len(pids):
        raise Failure(f"{len(family) - len(ours)} servers found below {len(pids)} launches")
    return ours


def mean_overhead(pids):
    """(mean PSS, mean number of processes) of what each launch keeps running beside its server."""
    ours = beside_servers(pids)
    return sum(map(pss_bytes, ours)) / len(pids), len(ours) / len(pids)
