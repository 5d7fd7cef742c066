"""Fixtures that all jobs of one run of tools/run-tests share.

    description = request("docker")    in a test: None, if the tests run without that runner

The runner starts `shared_fixtures.py NAME` when the first job asks for it. That process makes the
fixture, prints its description as one line of JSON, and removes it when its stdin closes.
"""

import json
import os
import socket
import sys

SECONDS = 320


def request(name):
    """The description of a fixture of this run."""
    directory = os.environ.get("CAPGATE_TEST_SHARED")
    if directory is None:
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(SECONDS)
        connection.connect(os.path.join(directory, "fixtures.sock"))
        connection.sendall(f"{name}\n".encode())
        with connection.makefile(encoding="utf-8") as answers:
            description = json.loads(answers.readline())
    if "error" in description:
        raise RuntimeError(description["error"])
    return description


def make(name):
    if name == "docker":
        from docker_daemon import Daemon  # pylint: disable=import-outside-toplevel
        return Daemon()
    if name == "database":
        from database import Cluster  # pylint: disable=import-outside-toplevel
        return Cluster()
    raise ValueError(f"no shared fixture {name}")


def main(name):
    with make(name) as fixture:
        print(json.dumps(fixture.describe()), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
