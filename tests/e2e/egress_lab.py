"""A network of the test's own: a host, and an internet with real origins behind a cable.

    def setUpModule():
        lab = Lab()
        unittest.addModuleCleanup(lab.close)

    lab.run(["/usr/bin/curl", "http://api.example.test/"])   on the lab's host, not sandboxed

Everything in it runs as an ordinary user of the machine, in namespaces that this user made; nothing
outside is contacted. Commands see themselves as user 1000 without any capability. The lab is a pid
namespace as well: when its process 1 ends, which it does when the test lets go of its stdin, the
kernel ends everything in it. addresses.py in lab/ is its map.
"""

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time

import launch
from cases import Tree, stop

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "lab"))

# pylint: disable=wrong-import-position
import addresses  # noqa: E402, F401

PATH = "/usr/local/bin:/usr/bin:/bin"
ORDINARY = ["/usr/bin/setpriv", f"--reuid={launch.ORDINARY}", f"--regid={launch.ORDINARY}",
            "--clear-groups", "--"]
NAMESPACES = ["/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--net", "--pid",
              "--fork", "--kill-child", "--mount-proc", "--"]
USER = ["/usr/bin/unshare", "--user", "--map-user=1000", "--map-group=1000", "--",
        "/usr/bin/setpriv", "--pdeathsig=KILL", "--"]


class Lab:
    def __init__(self):
        with contextlib.ExitStack() as undo:
            self.tree = Tree()
            undo.callback(self.tree.remove)
            self.root = self.tree.root
            # Whoever is granted the lab's directory must not find the lab's own sockets there.
            self.inner = self.tree.directory("inner")
            self.ca = os.path.join(self.inner, "ca.pem")
            self.process = subprocess.Popen(
                [*ORDINARY, *NAMESPACES, launch.PYTHON, "-B", os.path.join(HERE, "lab/init.py"),
                 self.inner],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env={"PATH": PATH})
            undo.callback(self.end_processes)
            said = self.process.stdout.readline()
            if said != b"ready\n":
                raise RuntimeError(f"the lab says {said!r}")
            self.pid = child_of(self.process.pid)
            self.far = undo.enter_context(Records(f"{self.inner}/far"))
            self.near = undo.enter_context(Records(f"{self.inner}/near"))
            self.vault = undo.enter_context(Records(f"{self.inner}/vault"))
            self.undo = undo.pop_all()

    def close(self):
        self.undo.close()

    def end_processes(self):
        self.process.stdin.close()
        try:
            self.process.wait(launch.SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    # ---- commands -----------------------------------------------------------------------------

    def enter(self, command, *, user=USER, internet=False):
        """The words that run a command in the lab."""
        other = ["/usr/bin/nsenter", f"--net={self.inner}/internet.net", "--"] if internet else []
        return [*ORDINARY, "/usr/bin/nsenter", f"--target={self.pid}", "--user", "--mount",
                "--net", "--pid", "--preserve-credentials", "--", *other, *user, *command]

    def start(self, command, *, env=None, user=USER, internet=False, **streams):
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.enter(command, user=user, internet=internet), cwd="/",
            env={"PATH": PATH, "HOME": self.root, **(env or {})},
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **streams})

    def run(self, command, stdin=b"", **options):
        """The finished command on the lab's host."""
        process = self.start(command, **options)
        try:
            return launch.finish(process, stdin)
        finally:
            stop(process)

    def run_as_root(self, *command, stdin=b""):
        """What changes the lab itself: root of its namespaces, an ordinary user of the machine."""
        done = self.run(command, stdin, user=())
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode())
        return done.stdout.decode()

    # ---- its files ----------------------------------------------------------------------------

    def replace(self, name, text):
        """Puts a new /etc/NAME in the place of the old one, as resolvconf does. The old text."""
        path = f"/etc/{name}"
        old = self.run_as_root("/usr/bin/cat", path)
        self.run_as_root("/bin/sh", "-c", 'cat >"$0.new" && mv "$0.new" "$0"', path,
                         stdin=text.encode())
        return old

    def web_log(self):
        """What the web server answered, one line a request. nginx writes a line after the client
        has its answer, so a further request comes last, and its line is waited for."""
        mark = f"/mark-{secrets.token_hex(8)}"
        self.run(["/usr/bin/curl", "-sS", "--max-time", "25", "-o", "/dev/null",
                  f"http://{addresses.API}{mark}"])
        end = time.monotonic() + launch.SECONDS
        while True:
            with open(f"{self.inner}/web.log", encoding="utf-8") as file:
                lines = file.read().splitlines()
            if any(mark in line for line in lines):
                return [line for line in lines if " /mark-" not in line]
            if time.monotonic() > end:
                raise RuntimeError("the web server did not log a request")
            time.sleep(0.01)


class Records:
    """What the stubs of one side of the cable saw, and the names that the resolver answers."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(launch.SECONDS)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rwb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.socket.close()

    def ask(self, **order):
        self.stream.write(json.dumps(order).encode() + b"\n")
        self.stream.flush()
        return json.loads(self.stream.readline())

    def clear(self):
        self.ask(do="clear")

    def set_names(self, names):
        self.ask(do="names", names=names)

    def all(self):
        return self.ask(do="records")

    def questions(self):
        """The names that the resolvers were asked for."""
        return [record["name"] for record in self.all() if record["kind"] == "dns"]

    def at(self, address, port):
        """The bytes of each connection to this place."""
        return [record["bytes"] for record in self.all()
                if record["kind"] == "tcp" and record["at"] == f"{address}:{port}"]


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        (child,) = file.read().split()
    return int(child)
