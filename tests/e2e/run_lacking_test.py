"""A server that the catalog knows, under a policy that lacks something: what is said where it fails,
and that nothing is said where it does not."""

import os
import signal
import unittest

import launch
from run_cases import RunCase, adopt_orphans, allow

# Ends with the status that it is told, by an argument or by a signal.
SERVER = """
import signal, sys
def end(number, frame):
    sys.exit(4)
signal.signal(signal.SIGTERM, end)
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
print("ready", flush=True)
sys.stdin.read()
sys.exit(3)
"""
FORK = "import os\nos.fork()\n"
LOOK_UP = "import socket\nsocket.getaddrinfo('db.test', 80)\n"
CONNECT = "import socket\nsocket.create_connection(('127.0.0.1', 5432))\n"
POSTGRES = "@modelcontextprotocol/server-postgres"


def lacks(status, entry, *capabilities):
    lines = "".join(f"  {capability}\n" for capability in capabilities)
    return (f"capgate: the server ended with status {status}, and its policy lacks what {entry} of "
            f"the catalog has:\n{lines}")


def setUpModule():
    adopt_orphans()


class LackingCase(RunCase):
    def command(self, code, package, *arguments):
        script = self.file(f"node_modules/{package}/server.py", code, mode=0o644)
        return [launch.PYTHON, "-I", "-S", script, *arguments]

    def said(self, words, command, **options):
        done = self.run_server([*self.readable(), *words], command, **options)
        return done.returncode, done.stderr.decode()

    def readable(self):
        """The modules beside a script are a grant of the caller's."""
        return allow(f"fs:read:{self.work}/node_modules/**")


class End(LackingCase):
    def test_a_server_that_fails_is_told_what_it_lacks(self):
        self.assertEqual(self.said([], self.command(SERVER, "time-mcp", "3")),
                         (3, lacks(3, "time-npm", "clock:tzdata")))

    def test_one_that_ends_well_is_told_nothing(self):
        self.assertEqual(self.said([], self.command(SERVER, "time-mcp", "0")), (0, ""))

    def test_nor_one_that_lacks_nothing(self):
        self.assertEqual(
            self.said(allow("clock:tzdata"), self.command(SERVER, "time-mcp", "3")), (3, ""))

    def test_nor_one_that_the_catalog_does_not_know(self):
        self.assertEqual(self.said([], self.command(SERVER, "time-mcp-plus", "3")), (3, ""))

    def test_nor_one_with_a_part_of_the_policy(self):
        manifest = self.tree.file("manifest.json", '{"name": "x", "version": "1", "tools": ['
                                  '{"name": "now", "capabilities": []}]}')
        self.assertEqual(self.said(["-m", manifest, "--tool", "now"],
                                   self.command(SERVER, "time-mcp", "3")), (3, ""))

    def test_nor_one_that_was_told_to_end(self):
        command = self.command(SERVER, "time-mcp")
        process = self.start(self.readable(), command)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(launch.SECONDS), 4)
        self.assertEqual(process.stderr.read(), b"")

    def test_the_password_of_an_address_is_not_repeated(self):
        command = self.command("raise SystemExit(1)", POSTGRES, "postgresql://u:secret@db.test/x")
        self.assertEqual(self.said([], command),
                         (1, lacks(1, "postgres", "net:connect:db.test:5432")))


class Trace(LackingCase):
    def lines(self, code, package, *arguments, **options):
        path = os.path.join(self.own(self.tree.directory("traces"), 0o700), "trace")
        self.said(["--trace", path], self.command(code, package, *arguments), **options)
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_the_program_of_a_child_process(self):
        env = self.environment(GIT_BASE_DIR=self.work)
        self.assertIn("denied start a child process: exec:spawn:git",
                      self.lines(FORK, "@cyanheads/git-mcp-server", env=env))

    def test_an_unknown_server_gets_an_example(self):
        self.assertIn("denied start a child process: exec:spawn:PROGRAM",
                      self.lines(FORK, "unknown"))
        self.assertIn("denied find a host by its name: net:connect:HOST:PORT",
                      self.lines(LOOK_UP, "unknown"))

    def test_the_host_behind_a_name(self):
        self.assertIn("denied find a host by its name: net:connect:db.test:5432",
                      self.lines(LOOK_UP, POSTGRES, "postgresql://db.test/x"))

    def test_a_service_of_this_host(self):
        line = "denied connect localhost:5432: net:connect:localhost:5432"
        self.assertIn(line, self.lines(CONNECT, POSTGRES, "postgresql://127.0.0.1/x"))
        # The sandbox's own loopback is nobody's business.
        self.assertNotIn(line, self.lines(CONNECT, "unknown"))


if __name__ == "__main__":
    unittest.main()
