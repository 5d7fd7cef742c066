"""Carries out an artifact exactly as printed: its argv, its descriptors, and nothing else."""

import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CAPGATE = os.environ.get("CAPGATE", os.path.join(ROOT, "build/release/bin/capgate"))
NODE = os.path.realpath(os.environ.get("NODE", "/usr/bin/node"))
PYTHON = "/usr/bin/python3"
BWRAP = "/usr/bin/bwrap"

# An ordinary user without an entry in /etc/passwd. Attacks outside a sandbox run as this one. Each
# worker of tools/run-tests has one of its own: the kernel counts processes and more per user.
FIRST_ORDINARY = 12345
ORDINARY = int(os.environ.get("CAPGATE_TEST_UID", FIRST_ORDINARY))
# Where tests make their directories: outside of /tmp and of every home directory, which mean
# something to capgate. tools/run-tests gives each job a place that it removes afterwards.
PLACE = os.environ.get("CAPGATE_TEST_PLACE", "/var/tmp")
# Above every descriptor that an artifact names.
FIRST_FREE_FD = 64
SECONDS = 30

if os.geteuid() != 0:
    raise SystemExit("the end-to-end tests start daemons and become other users: run them as root")


def build_environment(home):
    """For a compiler. Go compiles its own library first: tools/run-tests has a cache for it."""
    cache = {"GOCACHE": os.environ["GOCACHE"]} if "GOCACHE" in os.environ else {}
    return {"PATH": os.defpath, "HOME": home, **cache}


def capgate(*words, text=None, **options):
    """The finished run of one capgate command."""
    options.setdefault("timeout", SECONDS)
    return subprocess.run([CAPGATE, *words], input=text, capture_output=True, text=True,
                          check=False, **options)


def compile_manifest(manifest, *options):
    """The artifact of a manifest given as a Python value. A refusal raises its diagnostics."""
    done = capgate("compile", "-", *options, text=json.dumps(manifest))
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def server(*capabilities):
    """A manifest with one tool that has these capabilities."""
    return {"name": "e2e", "version": "1.0.0",
            "tools": [{"name": "tool", "capabilities": list(capabilities)}]}


def descriptor_contents(entry, values):
    """What a descriptor of the artifact holds. Only the environment needs the launcher's values."""
    if "base64" in entry:
        return base64.b64decode(entry["base64"])
    words = []
    for name in entry["names"]:
        words += ["--setenv", name, values[name]]
    return "".join(word + "\0" for word in words).encode()


def become(uid):
    """Gives up the groups, and for an ordinary user every right of root, for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


@contextlib.contextmanager
def descriptor_files(artifact, values, owner=0):
    """One open file for each descriptor of the artifact, as (number, file). Some programs open it
    again by its name in /dev/fd, so it belongs to whoever runs them."""
    with contextlib.ExitStack() as stack:
        files = []
        for entry in artifact["fds"]:
            file = stack.enter_context(tempfile.TemporaryFile())
            os.fchown(file.fileno(), owner, owner)
            file.write(descriptor_contents(entry, values))
            file.seek(0)
            files.append((entry["fd"], file))
        yield files


@contextlib.contextmanager
def low_descriptors_taken():
    """Meanwhile a new descriptor gets none of the low numbers, which belong to the artifact: the
    pipe by which subprocess reports a failed exec must not sit where one of its files goes."""
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < FIRST_FREE_FD:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for fd in taken:
            os.close(fd)


def start(command, artifact, *, uid=0, owner=None, env=None, values=None):
    """Starts `command` with the artifact's descriptors, as user `uid`, with pipes to talk to it.
    `owner` is whose the descriptors' files are, where the command becomes another user itself."""
    with descriptor_files(artifact, values or {}, uid if owner is None else owner) as files, low_descriptors_taken():
        def become_the_launcher():
            # Away from the low numbers first: a source may sit where another one's target is.
            high = [(os.dup2(file.fileno(), 2 * FIRST_FREE_FD + fd), fd) for fd, file in files]
            for source, fd in high:
                os.dup2(source, fd, inheritable=True)
                os.close(source)
            become(uid)

        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=env or {}, cwd="/",
            preexec_fn=become_the_launcher, pass_fds=[fd for fd, _ in files])


def finish(process, stdin=b""):
    """Waits for the end of a process that `start` started, and returns how it ended."""
    try:
        stdout, stderr = process.communicate(stdin, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start_bwrap(artifact, command, **options):
    """bwrap ARGV COMMAND: a process that is still running."""
    return start([BWRAP, *artifact["argv"], *command], artifact, **options)


def run_bwrap(artifact, command, *, stdin=b"", **options):
    """bwrap ARGV COMMAND: a finished process."""
    return finish(start_bwrap(artifact, command, **options), stdin)


def run_outside(command, *, env=None, stdin=b""):
    """The same command without a sandbox, as an ordinary user: the control of an attack."""
    return finish(start(command, {"fds": []}, uid=ORDINARY, env=env), stdin)
