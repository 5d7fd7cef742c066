"""sandbox-runtime from npm, installed once into .deps/srt, and how a command is run in it."""

import os
import re
import shlex

import launch
import npm_packages

SOURCE = os.path.join(launch.ROOT, "tests/e2e/srt")
PLACE = os.path.join(launch.ROOT, ".deps/srt")
PACKAGE = os.path.join(PLACE, "node_modules/@anthropic-ai/sandbox-runtime")
SRT = os.path.join(PACKAGE, "dist/cli.js")
PATH = "/usr/local/bin:/usr/bin:/bin"
# It gives the helper that makes its sockets 0.6 s, and on a busy machine has lost one at times.
NOT_STARTED = re.compile(rb"Failed to create bridge sockets|bridge socket does not exist|"
                         rb"Can't find source path /tmp/claude-[a-z]+-[0-9a-f]+\.sock")


def install():
    """Makes the package ready, readable by every user."""
    npm_packages.install("srt")


def words(settings, command):
    """The words that run a command in srt. It searches the directory that it is started in, below
    `/` for ten seconds: in a small one."""
    return ["/usr/bin/env", f"--chdir={SOURCE}", launch.NODE, SRT, "--settings", settings,
            "-c", shlex.join(command)]


def finished(run):
    """What run() gives, a finished run of srt. One in which srt could not start its own helper says
    nothing about the settings, so it is run again."""
    for _ in range(5):
        done = run()
        if not NOT_STARTED.search(done.stderr):
            return done
    raise AssertionError(f"srt does not start: {done.stderr.decode()}")


def environment(**further):
    """What the notes of the export say: empty, but for what it names."""
    return {"PATH": PATH, "HOME": "/nonexistent", "CLAUDE_CODE_TMPDIR": "/tmp", **further}
