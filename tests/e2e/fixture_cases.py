"""What the tests of tests/fixtures share: a stage with a home that capgate 0.1 wrote."""

import glob
import json
import os
import sys
import unittest

import launch

sys.path.append(os.path.join(launch.ROOT, "tests/fixtures"))

# pylint: disable=wrong-import-position
from fixture_stage import Stage  # noqa: E402

REFUSED, DAMAGED = 125, 8
STATE = ".local/state/capgate"
DATA = ".local/share/capgate"
REQUESTS = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in (
    {"id": 1, "method": "initialize",
     "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}},
    {"id": 2, "method": "tools/list", "params": {}})).encode()


def read(path):
    with open(path, "rb") as file:
        return file.read()


class FixtureCase(unittest.TestCase):
    """A stage with one of the homes."""

    home = ""

    def setUp(self):
        self.stage = Stage(launch.CAPGATE)
        self.addCleanup(self.stage.close)
        if self.home:
            self.stage.restore(self.home)

    def capgate(self, *words, code=0, **options):
        done = self.stage.run(*words, **options)
        self.assertEqual(done.returncode, code, f"{words}\n{done.stdout.decode()}\n{done.stderr.decode()}")
        return done

    def path(self, name):
        return os.path.join(self.stage.home, name)

    def one(self, pattern):
        """The only file of the home that matches."""
        found = glob.glob(self.path(pattern))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def replace(self, path, old, new):
        """Changes the first occurrence of some bytes of a file."""
        with open(path, "rb") as file:
            contents = file.read()
        self.assertIn(old, contents)
        with open(path, "wb") as file:
            file.write(contents.replace(old, new, 1))

    def refused(self, *words, said, **options):
        """`capgate run WORDS` does not start the server, and says why."""
        done = self.capgate("run", *words, code=REFUSED, **options)
        self.assertIn(said, done.stderr.decode())

    def tools(self, *words, **options):
        """The names of the tools that a server lists in `capgate run WORDS`."""
        done = self.capgate("run", *words, stdin=REQUESTS, **options)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        (listed,) = [answer["result"]["tools"] for answer in answers if answer["id"] == 2]
        return [tool["name"] for tool in listed]
