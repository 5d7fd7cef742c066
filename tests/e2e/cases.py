"""What the test classes share: a tree of files on the host, probes, and both kinds of starters."""

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import unittest

import launch

with open(os.path.join(os.path.dirname(__file__), "probe.py"), encoding="utf-8") as source:
    PROBE = source.read()


def probe(*attempts):
    """The command that makes these attempts; see probe.py."""
    return [launch.PYTHON, "-I", "-S", "-c", PROBE, json.dumps(attempts)]


def quoted(path):
    """A path as the scope of a capability, whatever is in it."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Tree:
    """A temporary directory that everyone may use, removed by `remove`."""

    def __init__(self, place=launch.PLACE):
        self.root = tempfile.mkdtemp(prefix="capgate-e2e-", dir=place)
        self._open_to_everyone(self.root, 0o777)

    def _open_to_everyone(self, path, mode):
        os.chmod(path, mode)
        os.chown(path, launch.ORDINARY, launch.ORDINARY)

    def path(self, name):
        return os.path.join(self.root, name)

    def directory(self, name):
        """Makes a directory with its parents, and returns its path."""
        at = self.root
        for part in name.split("/"):
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self._open_to_everyone(at, 0o777)
        return at

    def file(self, name, text):
        """Makes a file with its parents, and returns its path."""
        if "/" in name:
            self.directory(os.path.dirname(name))
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        self._open_to_everyone(self.path(name), 0o666)
        return self.path(name)

    def link(self, name, target):
        """Makes a symbolic link, and returns its path."""
        os.symlink(target, self.path(name))
        return self.path(name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def snapshot(self):
        """Everything below the root, to compare: mode and size, or where a link points to."""
        seen = {}
        for at, directories, files in os.walk(self.root):
            for path in (os.path.join(at, name) for name in directories + files):
                info = os.lstat(path)
                is_link = stat.S_ISLNK(info.st_mode)
                seen[path] = os.readlink(path) if is_link else (info.st_mode, info.st_size)
        return seen

    def remove(self):
        shutil.rmtree(self.root)


class Case(unittest.TestCase):
    """One test with its own tree of files."""

    def setUp(self):
        self.tree = self.make_tree()

    def make_tree(self, place=launch.PLACE):
        tree = Tree(place)
        self.addCleanup(tree.remove)
        return tree

    def assert_open_outside(self, *attempts):
        """The control of an attack: without a sandbox all of these succeed. Their results."""
        done = launch.run_outside(probe(*attempts))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        results = json.loads(done.stdout)
        for made, result in zip(attempts, results):
            self.assertNotRegex(str(result), r"^E[A-Z]+$", f"outside: {made}")
        return results


class BwrapCase(Case):
    """Tests of what the bwrap target prints, on the real bwrap.

    `uid` is who starts bwrap: `started_by_root_and_user` defines the subclasses.
    """

    uid = None

    def compile(self, *capabilities, options=()):
        return launch.compile_manifest(launch.server(*capabilities), *options)

    def start(self, artifact, command, **options):
        process = launch.start_bwrap(artifact, command, uid=self.uid, **options)
        self.addCleanup(stop, process)
        return process

    def run_command(self, artifact, command, **options):
        """What a command prints that must end well."""
        done = launch.run_bwrap(artifact, command, uid=self.uid, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def attempt_with(self, artifact, *attempts, **options):
        """The results of the attempts in the artifact's sandbox."""
        return json.loads(self.run_command(artifact, probe(*attempts), **options))

    def without(self, artifact, *words):
        """The artifact without these words of argv, to see that they are what makes it hold."""
        argv = artifact["argv"]
        places = [i for i in range(len(argv)) if tuple(argv[i:i + len(words)]) == words]
        self.assertEqual(len(places), 1, f"{words} in {argv}")
        at = places[0]
        return {**artifact, "argv": argv[:at] + argv[at + len(words):]}

    def attempt(self, capabilities, *attempts):
        """The results of the attempts in the sandbox of these capabilities."""
        return self.attempt_with(self.compile(*capabilities), *attempts)

    def assert_refuses_to_start(self, artifact, named):
        """bwrap ends with an error that names a path, and the server never ran."""
        done = launch.run_bwrap(artifact, ["/usr/bin/echo", "the server ran"], uid=self.uid)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")
        self.assertIn(named, done.stderr.decode())


def started_by_root_and_user(cases):
    """Replaces a class of tests by two: bwrap started by root, and by an ordinary user."""
    module = sys.modules[cases.__module__]
    for suffix, uid in (("StartedByRoot", 0), ("StartedByUser", launch.ORDINARY)):
        name = cases.__name__ + suffix
        body = {"uid": uid, "__module__": cases.__module__, "__qualname__": name}
        setattr(module, name, type(name, (cases,), body))
    return None  # under its own name it would run a third time, started by nobody


def stop(process):
    """Ends a process that a test started, if it still runs."""
    if process.poll() is None:
        process.kill()
    if process.stdin is not None and process.stdin.closed:
        process.stdin = None  # communicate() would flush it
    process.communicate()


@contextlib.contextmanager
def service(family, address):
    """A service of the host that greets everyone who connects. Gives the address it listens on."""
    with socket.socket(family) as listener:
        listener.bind(address)
        listener.listen()
        # A process, not a thread: a thread would take and free descriptors while others start.
        greeter = os.fork()
        if greeter == 0:
            greet_forever(listener)
        try:
            yield listener.getsockname()
        finally:
            os.kill(greeter, signal.SIGKILL)
            os.waitpid(greeter, 0)


def greet_forever(listener):
    try:
        while True:
            with listener.accept()[0] as connection:
                connection.sendall(b"hello from the host")
    finally:
        os._exit(1)
