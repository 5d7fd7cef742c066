"""Real MCP servers and the official clients from npm, installed once into .deps/servers."""

import fcntl
import glob
import hashlib
import os
import shutil
import subprocess

import launch

SOURCE = os.path.join(launch.ROOT, "tests/e2e/servers")
PLACE = os.path.join(launch.ROOT, ".deps/servers")
MODULES = os.path.join(PLACE, "node_modules")
# Our own programs lie among the packages, because that is where Node looks for what they import.
OWN = os.path.join(MODULES, "capgate-e2e")
DRIVE = os.path.join(OWN, "drive.mjs")
INSTALL_SECONDS = 300

# The defines of the package's own build description.
SQLITE_DEFINES = ["-DNAPI_VERSION=6", "-DNAPI_DISABLE_CPP_EXCEPTIONS=1", "-DSQLITE_THREADSAFE=1",
                  "-DHAVE_USLEEP=1"]


def install():
    """Makes the packages and our programs ready, readable by every user."""
    os.makedirs(PLACE, exist_ok=True)
    with open(os.path.join(PLACE, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install_packages()
        _copy_own_programs()
    _check_that_others_can_read()


def _install_packages():
    stamp = os.path.join(PLACE, "installed")
    wanted = _digest()
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                return
        os.unlink(stamp)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(SOURCE, name), PLACE)
    # No script of a package runs here: browsers come from Debian, and SQLite is built below.
    _run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], PLACE)
    _build_sqlite(os.path.join(MODULES, "sqlite3"))
    _run(["chmod", "--recursive", "a+rX", PLACE], PLACE)
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)


def _digest():
    """Changes with everything that decides what is installed."""
    digest = hashlib.sha256()
    for path in (os.path.join(SOURCE, "package.json"), os.path.join(SOURCE, "package-lock.json"),
                 __file__):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def _build_sqlite(package):
    """The package's own install script fetches a binary or Node's headers from outside of npm. The
    headers come from an npm package and from Debian's libuv instead."""
    _run(["tar", "--extract", "--one-top-level=build", "--strip-components=1", "--file",
          *glob.glob("deps/sqlite-autoconf-*.tar.gz", root_dir=package)], package)
    _run(["gcc", "-c", "-fPIC", *SQLITE_DEFINES, "build/sqlite3.c", "-o", "build/sqlite3.o"],
         package)
    os.makedirs(os.path.join(package, "build/Release"), exist_ok=True)
    _run(["g++", "-shared", "-fPIC", "-std=c++17", *SQLITE_DEFINES, "-Ibuild",
          "-I../node-addon-api", "-I../node-api-headers/include",
          *sorted(glob.glob("src/*.cc", root_dir=package)), "build/sqlite3.o",
          "-o", "build/Release/node_sqlite3.node"], package)


def _copy_own_programs():
    os.makedirs(OWN, exist_ok=True)
    for path in glob.glob(os.path.join(SOURCE, "*.mjs")):
        copy = os.path.join(OWN, os.path.basename(path))
        shutil.copy(path, copy + ".new")
        os.chmod(copy + ".new", 0o644)
        os.replace(copy + ".new", copy)


def _check_that_others_can_read():
    done = launch.run_outside([launch.NODE, "--check", DRIVE])
    if done.returncode != 0:
        raise RuntimeError("the tests run as several users: this clone and its Node must be "
                           f"readable by all of them: {done.stderr.decode()}")


def _run(command, where):
    old = os.umask(0o022)
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False,
                              timeout=INSTALL_SECONDS)
    finally:
        os.umask(old)
    if done.returncode != 0:
        raise RuntimeError(f"{command} failed: {done.stderr}")
