"""Packages from npm at the versions of a lock file, installed once into .deps/NAME.

    PLACE = npm_packages.install("srt")      the packages of tests/e2e/srt, readable by every user
    python3 npm_packages.py node             the same from a shell; prints the directory

The lock files pin every package by version and integrity and name no registry. A finished
installation is packed into the user's cache, so that a fresh clone unpacks it. Several jobs may ask
at the same time: the first one installs.
"""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

# Not launch.ROOT: the benchmarks install packages too, and not as root.
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "capgate-dev/npm")
FILES = ("package.json", "package-lock.json")
INSTALL_SECONDS = 600
MONTH = 30 * 24 * 3600


def install(name, command="ci", build=None, built_by=()):
    """The directory with the packages of tests/e2e/NAME. `build(directory)` finishes an installation;
    `built_by` are the files that decide what it does."""
    source, place = ROOT / "tests/e2e" / name, ROOT / ".deps" / name
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = digest([*(source / file for file in FILES), *built_by])
        stamp = place / "installed"
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return str(place)
        stamp.unlink(missing_ok=True)
        shutil.rmtree(place / "node_modules", ignore_errors=True)
        packed = CACHE / f"{name}-{wanted}.tar"
        if packed.exists():
            run(["tar", "--extract", "--file", str(packed)], place)
        else:
            fetch(source, place, command)
            if build:
                build(str(place))
            run(["chmod", "--recursive", "a+rX", "node_modules"], place)
            pack(place, packed)
        stamp.write_text(wanted, encoding="utf-8")
    return str(place)


def add_program(source, place):
    """Copies a program of the tests to where Node looks for the packages that it imports. Another job
    may start it meanwhile."""
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, os.path.basename(source))
    new = f"{path}.{os.getpid()}"
    shutil.copy(source, new)
    os.chmod(new, 0o644)
    os.replace(new, path)
    return path


def digest(paths):
    """Changes with everything that decides what is installed."""
    value = hashlib.sha256()
    for path in paths:
        value.update(pathlib.Path(path).read_bytes() + b"\0")
    return value.hexdigest()[:32]


def fetch(source, place, command):
    for file in FILES:
        shutil.copy(source / file, place)
    words = ["--no-save"] if command == "install" else []
    # No script of a package runs.
    run(["npm", command, *words, "--ignore-scripts", "--no-audit", "--no-fund"], place)
    check(place)


def check(place):
    """Nothing was installed but what the lock file pins."""
    pinned = read_packages(place / "package-lock.json")
    for path, package in read_packages(place / "node_modules/.package-lock.json").items():
        if "integrity" not in package or package["integrity"] != pinned.get(path, {}).get("integrity"):
            raise RuntimeError(f"{place / path}: the lock file does not pin this package")


def read_packages(path):
    packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
    return {name: package for name, package in packages.items() if name}


def pack(place, packed):
    packed.parent.mkdir(parents=True, exist_ok=True)
    new = packed.with_suffix(f".{os.getpid()}")
    run(["tar", "--create", "--file", str(new), "node_modules"], place)
    new.replace(packed)
    for old in packed.parent.iterdir():
        if time.time() - old.stat().st_mtime > MONTH:
            old.unlink()


def run(command, where):
    old = os.umask(0o022)
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False,
                              timeout=INSTALL_SECONDS)
    finally:
        os.umask(old)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr}")


if __name__ == "__main__":
    print(install(sys.argv[1]))
