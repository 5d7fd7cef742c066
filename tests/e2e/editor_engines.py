"""The engines of editors from npm, installed once into .deps/editors, and one question to them."""

import fcntl
import json
import os
import shutil
import subprocess

import launch

SOURCE = os.path.join(launch.ROOT, "tests/e2e/editors")
PLACE = os.path.join(launch.ROOT, ".deps/editors")
FILES = ("package.json", "package-lock.json")
INSTALL_SECONDS = 300
SECONDS = 120


def install():
    """Makes the packages ready. No script of a package runs."""
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(PLACE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _read(os.path.join(SOURCE, "package-lock.json"))
        stamp = os.path.join(PLACE, "installed")
        if not os.path.exists(stamp) or _read(stamp) != wanted:
            for name in FILES:
                shutil.copy(os.path.join(SOURCE, name), PLACE)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=PLACE,
                           check=True, capture_output=True, timeout=INSTALL_SECONDS)
            with open(stamp, "w", encoding="utf-8") as file:
                file.write(wanted)
        shutil.copy(os.path.join(SOURCE, "ask.cjs"), PLACE)  # where Node looks for what it imports


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def ask(question, **order):
    """What ask.cjs answers."""
    done = subprocess.run([launch.NODE, os.path.join(PLACE, "ask.cjs"), question],
                          input=json.dumps(order), capture_output=True, text=True, check=False,
                          timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)
