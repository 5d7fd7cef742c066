"""sandbox-runtime from npm, installed once into .deps/srt, and how a command is run in it."""

import os
import shlex

import launch
import npm_packages

SOURCE = os.path.join(launch.ROOT, "tests/e2e/srt")
PLACE = os.path.join(launch.ROOT, ".deps/srt")
PACKAGE = os.path.join(PLACE, "node_modules/@anthropic-ai/sandbox-runtime")
SRT = os.path.join(PACKAGE, "dist/cli.js")
PATH = "/usr/local/bin:/usr/bin:/bin"


def install():
    """Makes the package ready, readable by every user."""
    npm_packages.install("srt")


def words(settings, command):
    """The words that run a command in srt. It searches the directory that it is started in, below
    `/` for ten seconds: in a small one."""
    return ["/usr/bin/env", f"--chdir={SOURCE}", launch.NODE, SRT, "--settings", settings,
            "-c", shlex.join(command)]


def environment(**further):
    """What the notes of the export say: empty, but for what it names."""
    return {"PATH": PATH, "HOME": "/nonexistent", "CLAUDE_CODE_TMPDIR": "/tmp", **further}
