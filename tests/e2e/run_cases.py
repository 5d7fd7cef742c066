"""What the tests of `capgate run` share: a home, a directory to grant, and who starts it."""

import ctypes
import glob
import json
import os
import subprocess
import unittest

import launch
from cases import Case, stop

PATH = "/usr/local/bin:/usr/bin:/bin"
PR_SET_CHILD_SUBREAPER = 36
# The codes of capgate itself.
REFUSED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def python(code, *arguments):
    """A server: this Python program, with nothing around it."""
    return [launch.PYTHON, "-I", "-S", "-c", code, *arguments]


def allow(*capabilities):
    """The words that grant these capabilities."""
    return [word for each in capabilities for word in ("--allow", each)]


def set_subreaper(wanted):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, wanted, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def adopt_orphans():
    """In this module a process that outlives its parent becomes a child of ours, and is seen."""
    set_subreaper(1)
    unittest.addModuleCleanup(set_subreaper, 0)


def reap_orphans():
    """Waits for the end of every process that a killed capgate left to us."""
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def end(process):
    """Ends a run that a test started, if it still runs, with everything in it."""
    is_running = process.poll() is None
    stop(process)
    if is_running:
        reap_orphans()
    # A test that failed must not leave anything to the next one.
    for path in cgroups_of(process.pid):
        os.rmdir(path)


class RunCase(Case):
    """`capgate run` started by `uid`, which owns `home` and `work`; nothing of them is granted."""

    uid = launch.ORDINARY

    def setUp(self):
        super().setUp()
        self.home = self.own(self.tree.directory("home"), 0o700)
        self.work = self.own(self.tree.directory("work"), 0o700)
        # Nobody but its owner needs to pass.
        self.own(self.tree.root, 0o755)

    def own(self, path, mode):
        os.chown(path, self.uid, self.uid)
        os.chmod(path, mode)
        return path

    def file(self, name, text="", mode=0o600):
        """A file in `work` that the caller owns; its path."""
        path = os.path.join(self.work, name)
        at = self.work
        for part in name.split("/")[:-1]:
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.own(at, 0o700)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.own(path, mode)

    def text(self, name):
        with open(os.path.join(self.work, name), encoding="utf-8") as file:
            return file.read()

    def environment(self, **changes):
        """The caller's variables: None removes one."""
        values = {"HOME": self.home, "PATH": PATH, **changes}
        return {name: value for name, value in values.items() if value is not None}

    def start(self, words, command, *, env=None, uid=None, **options):
        """capgate run WORDS -- COMMAND, still running, with pipes where nothing else is said."""
        for name in ("stdin", "stdout", "stderr"):
            options.setdefault(name, subprocess.PIPE)
        options.setdefault("cwd", "/")
        who = self.uid if uid is None else uid
        process = subprocess.Popen(
            [launch.CAPGATE, "run", *words, "--", *command], preexec_fn=lambda: launch.become(who),
            env=self.environment() if env is None else env, **options)
        self.addCleanup(end, process)
        return process

    def run_server(self, words, command, *, stdin=b"", **options):
        """The finished run. Its output is bytes."""
        return launch.finish(self.start(words, command, **options), stdin)

    def output(self, words, command, **options):
        """What a server prints that must end well."""
        done = self.run_server(words, command, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def refusal(self, words, command=("/usr/bin/true",), *, code=REFUSED, **options):
        """What is said on stderr by a run that never starts; a person must be able to read it."""
        options.setdefault("stdin", subprocess.DEVNULL)
        process = self.start(words, command, **options)
        done = launch.finish(process, None)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, code, said)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(said.endswith("\n"), said)
        return said

    def attempt(self, words, *attempts, **options):
        """What each of these Python expressions gives inside, or the name of its error."""
        code = ("import sys, os, json, errno\n"
                "def result(text):\n"
                "    try:\n"
                "        return repr(eval(text, {'os': os, 'open': open}))\n"
                "    except OSError as error:\n"
                "        return errno.errorcode[error.errno]\n"
                "print(json.dumps([result(text) for text in sys.argv[1:]]))\n")
        command = [launch.PYTHON, "-I", "-S", "-c", code, *attempts]
        return json.loads(self.output(words, command, **options))

    def report(self, words, command, *, code=0, **options):
        """What --report writes about a run that ends with this code."""
        path = os.path.join(self.own(self.tree.directory("reports"), 0o700), "report.json")
        done = self.run_server(["--report", path, *words], command, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def dry_run(self, words, command, **options):
        return json.loads(self.output(["--dry-run", *words], command, **options))

    def assert_nothing_left(self, pid):
        """Of a run that has ended: no process, cgroup, mount or file with its number."""
        with self.assertRaises(ChildProcessError, msg="a process is left"):
            os.waitpid(-1, os.WNOHANG)
        self.assertEqual(cgroups_of(pid), [])
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            self.assertNotIn(self.tree.root, table.read())
        for place in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
            self.assertEqual(glob.glob(f"{place}/*capgate*{pid}*"), [])


def cgroups_of(pid):
    """The cgroups that the run with this process id made, in every hierarchy of ours."""
    found = glob.glob(f"/sys/fs/cgroup/*/capgate-{pid}")
    with open("/proc/self/cgroup", encoding="utf-8") as table:
        for line in table:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(",") if controllers else ["", "unified"]:
                place = f"/sys/fs/cgroup/{controller}{path}"
                found += glob.glob(f"{place}/capgate-{pid}")
                found += glob.glob(f"{os.path.dirname(place)}/capgate-{pid}")
    return sorted({os.path.normpath(path) for path in found})
