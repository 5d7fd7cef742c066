"""What the red-team tests share: the probe, outside as a control, and inside `capgate run`.

    self.assert_open(self.outside("open_read=/srv/canary"))
    self.assert_shut(self.inside("open_read=/srv/canary"), "ENOENT")

Every attack runs twice. Outside, as an ordinary user, it must succeed, or the result inside means
nothing. The attempts are the words of probe.c; which requirement each test holds: docs/redteam.md.
"""

import collections
import contextlib
import fcntl
import glob
import os
import pty
import secrets
import shutil
import signal
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

# pylint: disable=wrong-import-position
import launch  # noqa: E402
from cases import Case, service, started_by_root_and_user  # noqa: E402, F401

ORDINARY = launch.ORDINARY
BUILT_PROBE = os.path.join(os.path.dirname(launch.CAPGATE), "../tests/redteam_probe")
SECONDS = 30
REFUSED = 125
# What init, seccomp, Landlock and the mounts answer; anything else is somebody else's refusal.
FILTER = ("EPERM", "ENOSYS")
HIDDEN = ("ENOENT", "EACCES")
READ_ONLY = ("EROFS", "EACCES", "EPERM")
# Without an exec capability there is one process only; this one makes children possible.
CHILDREN = "exec:spawn:true"

Result = collections.namedtuple("Result", "name open why detail")


def as_user(command, uid):
    """The command as this user, for good. Root stays as it is, without further groups."""
    return ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--",
            *command]


def sandboxed(command, allow=(), as_root=False, options=()):
    """The one place that knows how a server is started by capgate."""
    words = [launch.CAPGATE, "run", *options]
    for capability in allow:
        words += ["--allow", capability]
    return as_user([*words, "--", *command], 0 if as_root else ORDINARY)


def canary():
    return "canary-" + secrets.token_hex(8)


def parse(text):
    """The probe's lines as results by name, in order."""
    results = {}
    for line in text.splitlines():
        words = line.split(" ", 3)
        if len(words) < 2 or words[1] not in ("OPEN", "shut"):
            continue
        if words[1] == "OPEN":
            result = Result(words[0], True, "", " ".join(words[2:]))
        else:
            result = Result(words[0], False, words[2], " ".join(words[3:]))
        results[result.name] = result
    return results


def signal_of(status):
    """The name of the signal that a status tells, by Popen's or by a shell's convention."""
    number = -status if status < 0 else status - 128
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return None


def complete(done, attempts):
    """One result for each attempt. A process that was killed stopped at the first one missing."""
    results = parse(done.stdout.decode(errors="replace"))
    out = []
    for attempt in attempts:
        if attempt in results:
            out.append(results[attempt])
            continue
        killed_by = signal_of(done.returncode)
        if killed_by is None or len(out) + 1 != len(attempts):
            raise AssertionError(f"{attempt} gave no result: status {done.returncode}\n"
                                 f"{done.stdout.decode()}{done.stderr.decode()}")
        out.append(Result(attempt, False, killed_by, ""))
    return out


def end(process):
    """Ends a process that a test started, if it still runs."""
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    # A launcher that the test killed could not remove its control groups.
    for group in glob.glob(f"/sys/fs/cgroup/**/capgate-{process.pid}", recursive=True):
        with contextlib.suppress(OSError):
            os.rmdir(group)


class Redteam(Case):
    """One test with its own tree, a copy of the probe in it, and a home directory."""

    uid = ORDINARY

    def setUp(self):
        super().setUp()
        if not os.path.exists(BUILT_PROBE):
            self.fail(f"{BUILT_PROBE} is missing: build the target redteam_probe")
        self.probe = shutil.copy(BUILT_PROBE, self.tree.path("probe"))
        os.chmod(self.probe, 0o755)
        self.home = self.tree.directory("home")
        self.work = self.tree.directory("work")

    # ---- starting ---------------------------------------------------------------------------

    def environment(self, extra=None):
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, **(extra or {})}

    def start(self, argv, *, env=None, cwd="/", **streams):
        """A process that is still running; ended with the test."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            argv, env=self.environment(env), cwd=cwd,
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **streams})
        self.addCleanup(end, process)
        return process

    def finish(self, argv, stdin=b"", **options):
        return launch.finish(self.start(argv, **options), stdin)

    def start_inside(self, *attempts, allow=(), options=(), direct=True, **more):
        words = [self.probe, *(["--direct"] if direct else []), *attempts]
        return self.start(self.sandboxed(words, allow, options), **more)

    def sandboxed(self, command, allow=(), options=()):
        return sandboxed(command, allow, self.uid == 0, options)

    def start_outside(self, *attempts, direct=True, **more):
        words = [self.probe, *(["--direct"] if direct else []), *attempts]
        return self.start(as_user(words, ORDINARY), **more)

    def start_echo(self, *, outside=False, **more):
        """A running server that answered once. Before that its start is not complete: setpriv may
        still be root, and the launcher may still be setting up the sandbox."""
        process = (self.start_outside if outside else self.start_inside)("echo=0", **more)
        process.stdin.write(b"x")
        process.stdin.flush()
        self.assertEqual(process.stdout.read(1), b"x")
        return process

    # ---- attempts ---------------------------------------------------------------------------

    def outside(self, *attempts, userns=False, **more):
        """The results without a sandbox, as an ordinary user."""
        words = [self.probe, *(["--userns"] if userns else []), *attempts]
        return complete(self.finish(as_user(words, ORDINARY), **more), attempts)

    def inside(self, *attempts, allow=(), options=(), direct=False, **more):
        """The results in the sandbox. Each attempt has a child where `allow` lets it have one."""
        words = [self.probe, *(["--direct"] if direct else []), *attempts]
        done = self.finish(self.sandboxed(words, allow, options), **more)
        if done.returncode in (REFUSED, 126, 127):
            raise AssertionError(f"capgate did not start it: {done.stderr.decode()}")
        return complete(done, attempts)

    def details(self, *attempts, **more):
        return [result.detail for result in self.inside(*attempts, **more)]

    # ---- judging ----------------------------------------------------------------------------

    def assert_open(self, results):
        for result in results:
            self.assertTrue(result.open, f"must be open: {result}")
        return results

    def assert_shut(self, results, *reasons):
        for result in results:
            self.assertFalse(result.open, f"must be shut: {result}")
            if reasons:
                self.assertIn(result.why, reasons, result)
        return results

    def assert_attack_fails(self, attempts, *reasons, **more):
        """Open outside, shut inside for one of the reasons."""
        self.assert_open(self.outside(*attempts))
        return self.assert_shut(self.inside(*attempts, **more), *reasons)

    def not_testable(self, what):
        """The control is shut as well, so that nothing is proved: a visible skip, and a failure on
        the kernel that all is tested on."""
        if os.environ.get("CAPGATE_REQUIRE_ALL") == "1":
            self.fail(f"not testable here: {what}")
        self.skipTest(f"not testable here: {what}")

    def assert_answered_by_the_filter(self, calls, *errors):
        """An error that is the same outside and inside was the kernel's: the call got through.
        Outside, in namespaces of its own, each call must get an answer that no filter gives."""
        attempts = [f"call={name}" for name in calls]
        untestable = [result.name for result in self.outside(*attempts, userns=True)
                      if result.why in FILTER]
        for allow in ([], [CHILDREN]):
            self.assert_shut(self.inside(*attempts, allow=allow), *errors)
        if untestable:
            self.not_testable(untestable)

    def refused(self, *command, allow=(), options=(), **more):
        """What capgate says when it refuses: 125, nothing on stdout, and words on stderr."""
        done = self.finish(self.sandboxed(command or [self.probe, "ids"], allow, options), **more)
        self.assertEqual((done.returncode, done.stdout), (REFUSED, b""), done.stderr.decode())
        self.assertRegex(done.stderr.decode(), r"(?m)^capgate: |: error\[[A-Z_]+\]: ")
        return done.stderr.decode()


class Terminal:
    """A terminal of the test's own, which the process that it starts is controlled by."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        settings = termios.tcgetattr(self.slave)
        settings[3] &= ~(termios.ICANON | termios.ECHO)  # what is pushed can be read at once
        termios.tcsetattr(self.slave, termios.TCSANOW, settings)
        os.fchown(self.slave, ORDINARY, ORDINARY)

    def take_control(self):
        """For preexec_fn: leads a session that this terminal controls."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def pushed(self):
        """The bytes that wait to be read from the terminal, as if they had been typed."""
        os.set_blocking(self.slave, False)
        try:
            return os.read(self.slave, 100)
        except BlockingIOError:
            return b""

    def close(self):
        os.close(self.master)
        os.close(self.slave)


def wait_until(condition, seconds=SECONDS):
    """Whether the condition came true in time. A test that expects True passes no `seconds`: a
    busy machine needs the whole time. A test that expects False states how long it watches."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def descendants(pid):
    """The process and all that come from it, as far as the host sees them."""
    found = [pid]
    for at in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{task}/children", encoding="ascii") as file:
                    found += [int(word) for word in file.read().split()]
    return found


def is_gone(pid):
    """Ended, and reaped by whoever had to."""
    return not os.path.exists(f"/proc/{pid}")


def is_dead(pid):
    """Ended. Whoever inherited it from a killed launcher may still have to reap it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
