"""Real MCP servers and the official clients from npm, installed once into .deps/servers."""

import glob
import os

import launch
import npm_packages

SOURCE = os.path.join(launch.ROOT, "tests/e2e/servers")
PLACE = os.path.join(launch.ROOT, ".deps/servers")
MODULES = os.path.join(PLACE, "node_modules")
# Our own programs lie among the packages, because that is where Node looks for what they import.
OWN = os.path.join(MODULES, "capgate-e2e")
DRIVE = os.path.join(OWN, "drive.mjs")

# The defines of the package's own build description.
SQLITE_DEFINES = ["-DNAPI_VERSION=6", "-DNAPI_DISABLE_CPP_EXCEPTIONS=1", "-DSQLITE_THREADSAFE=1",
                  "-DHAVE_USLEEP=1"]


def install():
    """Makes the packages and our programs ready, readable by every user. Browsers come from Debian."""
    npm_packages.install("servers", build=_build_sqlite, built_by=[__file__])
    for path in glob.glob(os.path.join(SOURCE, "*.mjs")):
        npm_packages.add_program(path, OWN)
    _check_that_others_can_read()


def _build_sqlite(place):
    """The package's own install script fetches a binary or Node's headers from outside of npm. The
    headers come from an npm package and from Debian's libuv instead."""
    package = os.path.join(place, "node_modules/sqlite3")
    run = npm_packages.run
    run(["tar", "--extract", "--one-top-level=build", "--strip-components=1", "--file",
         *glob.glob("deps/sqlite-autoconf-*.tar.gz", root_dir=package)], package)
    run(["gcc", "-c", "-fPIC", *SQLITE_DEFINES, "build/sqlite3.c", "-o", "build/sqlite3.o"], package)
    os.makedirs(os.path.join(package, "build/Release"), exist_ok=True)
    run(["g++", "-shared", "-fPIC", "-std=c++17", *SQLITE_DEFINES, "-Ibuild",
         "-I../node-addon-api", "-I../node-api-headers/include",
         *sorted(glob.glob("src/*.cc", root_dir=package)), "build/sqlite3.o",
         "-o", "build/Release/node_sqlite3.node"], package)


def _check_that_others_can_read():
    done = launch.run_outside([launch.NODE, "--check", DRIVE])
    if done.returncode != 0:
        raise RuntimeError("the tests run as several users: this clone and its Node must be "
                           f"readable by all of them: {done.stderr.decode()}")

