"""sandbox-runtime from npm, installed once into .deps/srt, and how a command is run in it."""

import fcntl
import os
import shlex
import shutil
import subprocess

import launch

SOURCE = os.path.join(launch.ROOT, "tests/e2e/srt")
PLACE = os.path.join(launch.ROOT, ".deps/srt")
PACKAGE = os.path.join(PLACE, "node_modules/@anthropic-ai/sandbox-runtime")
SRT = os.path.join(PACKAGE, "dist/cli.js")
INSTALL_SECONDS = 300
PATH = "/usr/local/bin:/usr/bin:/bin"


def install():
    """Makes the package ready, readable by every user."""
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(PLACE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as file:
            wanted = file.read()
        stamp = os.path.join(PLACE, "installed")
        if os.path.exists(stamp):
            with open(stamp, encoding="utf-8") as file:
                if file.read() == wanted:
                    return
            os.unlink(stamp)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(SOURCE, name), PLACE)
        for command in (["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                        ["chmod", "--recursive", "a+rX", PLACE]):
            subprocess.run(command, cwd=PLACE, check=True, capture_output=True,
                           timeout=INSTALL_SECONDS)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)


def words(settings, command):
    """The words that run a command in srt. It searches the directory that it is started in, below
    `/` for ten seconds: in a small one."""
    return ["/usr/bin/env", f"--chdir={SOURCE}", launch.NODE, SRT, "--settings", settings,
            "-c", shlex.join(command)]


def environment(**further):
    """What the notes of the export say: empty, but for what it names."""
    return {"PATH": PATH, "HOME": "/nonexistent", "CLAUDE_CODE_TMPDIR": "/tmp", **further}
