"""What bench/egress/run and bench/egress/check share: a network namespace with nothing but loopback,
the relays in it, their peers from Debian and npm, and what is asked of each.

Every relay runs as an ordinary user. Only root can read the memory of a process that hides it.
"""

import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests/e2e"))

# pylint: disable=wrong-import-position
import npm_packages  # noqa: E402

BUILD = pathlib.Path(os.environ.get("CAPGATE_BUILD", ROOT / "build/release"))
CAPGATE = pathlib.Path(os.environ.get("CAPGATE", BUILD / "bin/capgate")).resolve()
BROKER = pathlib.Path(os.environ.get("BROKER", CAPGATE.parent / "capgate-broker")).resolve()
NODE = os.environ.get("NODE", "node")
ORDINARY = 12345  # an ordinary user without an entry in /etc/passwd
DESCRIPTORS = 40000
ORIGIN = 9000
START_SECONDS = 20
OURS = ("origin", "floor", "floor-resume", "broker")
PEER_ATTEMPTS = 3
INSIDE = "CAPGATE_BENCH_NAMESPACE"


class Failure(Exception):
    """Something that was started did not work; the text says what."""


def leave_once(number, _frame):
    """A plain kill cleans up as well; a second one must not interrupt that."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def enter_namespace():
    """Starts this script again in a network namespace of its own: ports, and connections that wait
    for their end, are then nobody else's."""
    if os.environ.get(INSIDE) != str(os.getpid()):
        if os.geteuid() != 0:
            sys.exit("run this as root: it makes a network namespace and reads memory")
        # unshare replaces itself by the script, so the process id stays.
        os.environ[INSIDE] = str(os.getpid())
        os.execvp("unshare", ["unshare", "--net", "--", sys.executable, *sys.argv])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    settings = pathlib.Path("/proc/sys/net/ipv4")
    (settings / "ip_local_port_range").write_text("10000 65000")
    # Else the ports of ended connections run out: there are tens of thousands a second.
    (settings / "tcp_max_tw_buckets").write_text("4096")


def raise_descriptor_limit():
    with contextlib.suppress(ValueError, PermissionError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        return
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def policy(*ports):
    """The broker's orders: these ports of 127.0.0.1, and limits that are never met."""
    rules = [{"capability": f"net:connect:127.0.0.1:{port}?proto=tcp", "at": "bench.json:1:1"}
             for port in ports]
    return {"server": "bench", "sandbox": "00000001", "policyHash": "sha256:" + "0" * 64,
            "rules": rules, "seals": [], "roots": {"file": "", "directory": ""}, "publicOnly": False,
            "lacking": [], "proxyCredential": "",
            "limits": {"connections": 20000, "perSecond": 1000000, "requestsPerSecond": 1000000, "bytes": 0, "idleSeconds": 900,
                       "headBytes": 65536, "helloSeconds": 15, "dialSeconds": 20}}


class Relay:
    """One proxy that runs, or the origin: `address` is how load speaks to it."""

    def __init__(self, name, address, process):
        self.name, self.address, self.process = name, address, process

    def family(self):
        """The relay itself and what it has started; not the supervisor that we play."""
        children = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                fields = entry.read_text().rsplit(")", 1)[1].split()
                children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
        found, rest = [], [self.process.pid]
        while rest:
            pid = rest.pop()
            found.append(pid)
            rest += children.get(pid, [])
        is_ours = self.name == "broker"
        return found[1:] if is_ours else found

    def memory(self, field="Pss"):
        """Bytes, of the whole family."""
        return sum(memory_of(pid, field) for pid in self.family())

    def cpu_seconds(self):
        """With those of its threads and children that have ended."""
        ticks = 0
        for pid in self.family():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")


def memory_of(pid, field):
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines()
                      if line.startswith(field + ":"))


class Lab:
    """Use as `with Lab() as lab`: what was started ends, and the directory is removed."""

    programs = ("floor", "load", "origin", "supervise", "traffic")
    broker = BROKER

    @property
    def recipes(self):
        """{name: what gives (how load speaks to it, command line)}"""
        return RELAYS

    def __enter__(self):
        signal.signal(signal.SIGTERM, leave_once)
        raise_descriptor_limit()
        self._next_port = ORIGIN
        self._stack = contextlib.ExitStack()
        self.path = pathlib.Path(self._stack.enter_context(
            tempfile.TemporaryDirectory(prefix="capgate-egress-")))
        try:
            self._fill()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        self._stack.close()

    def _fill(self):
        os.chown(self.path, ORDINARY, ORDINARY)
        for name in self.programs:
            built = BUILD / "bench/egress" / name
            if not built.exists():
                raise Failure(f"{built} is missing: run ./dev build")
            shutil.copy(built, self.path)
        if self.broker.exists():
            shutil.copy(self.broker, self.path)
        origin = self._stack.enter_context(
            self._started("origin", self._origin_command(), ORIGIN))
        self.origin = Relay("origin", f"direct:{ORIGIN}", origin)

    def _origin_command(self):
        return [str(self.path / "origin"), str(ORIGIN)]

    # ---- starting ------------------------------------------------------------------------------

    def file(self, name, text):
        path = self.path / name
        path.write_text(text)
        os.chown(path, ORDINARY, ORDINARY)
        return str(path)

    def as_ordinary(self, command):
        return ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", *command]

    def spawn(self, command, **options):
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME": str(self.path),
                       "LANG": "C.UTF-8"}
        return subprocess.Popen(self.as_ordinary(command), env=environment, cwd=self.path,
                                start_new_session=True, **options)

    @contextlib.contextmanager
    def _started(self, name, command, port):
        log_path = self.path / f"{name}.log"
        with open(log_path, "ab") as log:
            process = self.spawn(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        try:
            wait_until_listening(process, port, log_path)
            yield process
        finally:
            process.stdin.close()
            end_group(process)

    @contextlib.contextmanager
    def relay(self, name):
        """A fresh one of the recipes, while the block runs."""
        self._next_port += 1
        port = self._next_port
        dialect, command = self.recipes[name](self, port)
        with self._started(name.replace("'", "").replace(" ", "-"), command, port) as process:
            yield Relay(name, f"{dialect}:{port}", process)

    # ---- asking --------------------------------------------------------------------------------

    def load(self, mode, address, *numbers):
        return self._asked(["load", mode, address, str(ORIGIN), *map(str, numbers)])

    def _asked(self, words):
        """What one of our programs answers, which is a line of JSON."""
        program, mode, address = words[:3]
        command = [str(self.path / program), *words[1:]]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=120)
        if done.returncode != 0:
            raise Failure(f"{mode} through {address}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def tunnels(self, relay, count):
        """So many idle tunnels, while the block runs."""
        command = [str(self.path / "load"), "hold", relay.address, str(ORIGIN), str(count)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            if not process.stdout.readline():
                raise Failure(f"{relay.name}: {count} tunnels: {process.stderr.read().strip()}")
            yield
        finally:
            process.communicate()

    def interleaved(self, mode, relays, numbers, rounds):
        """{name: {field: median}} of `relays`, each asked once a round, in a new order. "cpu" is the
        processor time that the relay itself took, "others" the share of all processors that was not
        available to the measurement: programs of others took it."""
        taken = {relay.name: [] for relay in relays}
        order = list(relays)
        shuffle = random.Random(1).shuffle  # the same orders in every run
        for _ in range(rounds):
            shuffle(order)
            for relay in order:
                before = self._clocks(relay)
                row = self._load_patiently(mode, relay, numbers)
                wall, all_busy, loads, origin, own = (
                    after - start for after, start in zip(self._clocks(relay), before))
                others = (all_busy - loads - origin - own) / (wall * os.cpu_count())
                taken[relay.name].append({**row, "cpu": own, "others": max(others, 0.0)})
        return {name: {field: statistics.median(one[field] for one in all_of_it)
                       for field in all_of_it[0]} for name, all_of_it in taken.items()}

    def _load_patiently(self, mode, relay, numbers):
        """A peer may break a connection off now and then (squid does); what is ours may not."""
        for left in reversed(range(1 if relay.name in OURS else PEER_ATTEMPTS)):
            try:
                return self.load(mode, relay.address, *numbers)
            except Failure:
                if left == 0:
                    raise

    def _clocks(self, relay):
        own = relay.cpu_seconds() if relay is not self.origin else 0.0
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (time.monotonic(), busy_seconds(), children.ru_utime + children.ru_stime,
                self.origin.cpu_seconds(), own)

    def memory_per_tunnel(self, name, counts):
        """[(PSS, own memory)] in bytes for each idle tunnel, beyond what the relay takes alone."""
        result = []
        with self.relay(name) as relay:
            with self.tunnels(relay, 1):
                pass  # what is taken once, by the first
            base = relay.memory(), relay.memory("Pss_Anon")
            for count in counts:
                with self.tunnels(relay, count):
                    now = relay.memory(), relay.memory("Pss_Anon")
                result.append(tuple((after - before) / count for before, after in zip(base, now)))
        return result

    def cost_by_live_tunnels(self, name, counts, rounds):
        """Processor seconds of the relay for a connection, with so many others alive: {count: s}."""
        with contextlib.ExitStack() as stack:
            relays = {count: stack.enter_context(self.relay(name)) for count in counts}
            for count, relay in relays.items():
                stack.enter_context(self.tunnels(relay, count))
            taken = {count: [] for count in counts}
            for _ in range(rounds):
                for count, relay in relays.items():
                    before = relay.cpu_seconds()
                    opened = self.load("rate", relay.address, 16, 1)["opened"]
                    taken[count].append((relay.cpu_seconds() - before) / opened)
        return {count: min(costs) for count, costs in taken.items()}  # noise only adds


# ---- the relays: each gives (how load speaks to it, command line) --------------------------------

def _floor(lab, port):
    return "connect", [str(lab.path / "floor"), str(port)]


def _broker(lab, port):
    if not BROKER.exists():
        raise Failure(f"{BROKER} is missing: run ./dev build, or set BROKER")
    orders = lab.file(f"policy-{port}.json", json.dumps(policy(ORIGIN)))
    audit = lab.file(f"audit-{port}.jsonl", "")
    return "connect", [str(lab.path / "supervise"), str(port), "broker",
                       str(lab.path / BROKER.name), audit, orders]


def _squid(lab, port):
    config = lab.file(f"squid-{port}.conf", f"""
http_port 127.0.0.1:{port}
acl all_ports port 1-65535
http_access allow CONNECT all_ports
http_access deny all
cache deny all
access_log none
cache_log {lab.path}/squid-{port}-cache.log
cache_store_log none
pid_filename {lab.path}/squid-{port}.pid
coredump_dir {lab.path}
pinger_enable off
max_filedescriptors 19000
shutdown_lifetime 0 seconds
""")
    return "connect", ["squid", "-N", "-f", config]


def _tinyproxy(lab, port):
    config = lab.file(f"tinyproxy-{port}.conf", f"""
Port {port}
Listen 127.0.0.1
Timeout 600
LogLevel Critical
LogFile "{lab.path}/tinyproxy-{port}-own.log"
MaxClients 9000
Allow 127.0.0.1
""")
    return "connect", ["tinyproxy", "-d", "-c", config]


def _dante(lab, port):
    config = lab.file(f"dante-{port}.conf", f"""
logoutput: stderr
internal: 127.0.0.1 port = {port}
external: 127.0.0.1
clientmethod: none
socksmethod: none
client pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 }}
socks pass {{ from: 127.0.0.0/8 to: 0.0.0.0/0 }}
""")
    return "socks5", ["danted", "-f", config, "-p", f"{lab.path}/dante-{port}.pid"]


def _srt(lab, port):
    module = install_srt() / "node_modules/@anthropic-ai/sandbox-runtime/dist/sandbox/http-proxy.js"
    script = lab.path / "srt-proxy.mjs"
    shutil.copy(pathlib.Path(__file__).parent / "srt/proxy.mjs", script)
    return "connect", [NODE, str(script), str(module), str(port)]


RELAYS = {"floor": _floor, "broker": _broker, "squid": _squid, "tinyproxy": _tinyproxy,
          "dante": _dante, "srt": _srt}
PEERS = ("squid", "tinyproxy", "dante", "srt")


def install_srt():
    """srt from npm, once, in .deps/srt, where the end-to-end tests have it too."""
    return pathlib.Path(npm_packages.install("srt"))


# ---- the machine ---------------------------------------------------------------------------------

def busy_seconds():
    """Of all processors together, by anybody; also what other virtual machines took."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


# ---- processes -----------------------------------------------------------------------------------

def wait_until_listening(process, port, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise Failure(f"{process.args} does not listen on port {port}: "
                  f"{log.read_text(errors='replace')[-2000:]}")


def end_group(process):
    """The relay, and what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
