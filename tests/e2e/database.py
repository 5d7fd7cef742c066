"""A real PostgreSQL in the network of the lab.

    database.start(self, fsync="off")    in a test of EgressCase: listens at addresses.DATABASE

Making a cluster takes seconds, so all tests of a run copy one (shared_fixtures.py, `database`).
"""

import atexit
import functools
import glob
import os
import pwd
import shutil
import subprocess
import tempfile

import launch
import shared_fixtures
from egress_lab import addresses

# The newest one that Debian installed.
PROGRAMS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]


class Cluster:
    """A fresh cluster that everybody may read, which the server itself would refuse."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="capgate-database-", dir=launch.PLACE)
        try:
            os.chmod(self.directory, 0o755)
            data = os.path.join(self.directory, "data")
            os.mkdir(data)
            user = pwd.getpwnam("postgres").pw_uid  # initdb asks for the name of its user
            os.chown(data, user, user)
            subprocess.run([f"{PROGRAMS}/initdb", "-D", data, "-U", "lab", "-A", "trust", "--no-sync",
                            "--no-locale", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL,
                           preexec_fn=lambda: launch.become(user), cwd="/")
            with open(os.path.join(data, "pg_hba.conf"), "w", encoding="utf-8") as file:
                file.write("host all all 0.0.0.0/0 trust\n")
            subprocess.run(["/bin/chmod", "-R", "a+rX", data], check=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.directory)

    def describe(self):
        return {"directory": self.directory}


@functools.lru_cache(maxsize=None)
def cluster():
    """Where the cluster of this run is; without a runner, one of this process's own."""
    description = shared_fixtures.request("database")
    if description is None:
        own = Cluster().__enter__()
        atexit.register(own.__exit__)
        description = own.describe()
    return os.path.join(description["directory"], "data")


def start(test, **settings):
    """Starts a server with a copy of the cluster, and returns when it accepts connections."""
    data = f"{test.lab.inner}/memory/database-{os.path.basename(test.tree.root)}"
    made = test.outside(["/bin/sh", "-c", 'cp -r "$1" "$2" && chmod -R go= "$2"', "sh", cluster(), data])
    test.assertEqual(made.code, 0, made)
    settings = {"listen_addresses": addresses.DATABASE, "unix_socket_directories": "", "fsync": "off",
                **settings}
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server = test.start([f"{PROGRAMS}/postgres", "-D", data, *words], internet=True)
    # If the server cannot start, its stderr ends, and so does this loop.
    for line in server.stderr:
        if b"ready to accept connections" in line:
            return
    test.fail("PostgreSQL did not start")
