"""The real GitHub server from npm uses a sealed token, and holds it nowhere while it runs."""

import glob
import json
import os
import signal
import time
import unittest

import launch
import npm_servers
from egress_cases import Run
from seal_cases import SealCase, open_lab

FIXTURES = ("npm_servers",)
API = "net:connect:api.github.com:443"
TOKEN = "GITHUB_PERSONAL_ACCESS_TOKEN"
PIECE = 1 << 22  # of memory, in bytes


def setUpModule():
    npm_servers.install()
    open_lab()


def descendants(pid):
    found = [pid]
    for at in found:
        for path in glob.glob(f"/proc/{at}/task/*/children"):
            with open(path, encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def readable_memory(pid):
    """Every readable page of a process, in pieces that overlap."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        areas = [line.split() for line in maps]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for words in areas:
            if not words[1].startswith("r") or words[-1] in ("[vvar]", "[vsyscall]"):
                continue
            at, end = (int(word, 16) for word in words[0].split("-"))
            while at < end:
                try:
                    yield os.pread(memory.fileno(), min(PIECE + 256, end - at), at)
                except OSError:
                    pass  # beyond the end of a mapped file
                at += PIECE


def holds(pid, value):
    return any(value in piece for piece in readable_memory(pid))


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Github(SealCase):
    def setUp(self):
        super().setUp()
        self.value = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"[::-1]
        self.modules = os.path.realpath(npm_servers.MODULES)
        self.audit = self.new_audit()
        self.sent = 0

    def begin(self, injected):
        # So that the heap has the variable for sure, and a search of it means something.
        keep = self.tree.file("work/keep.cjs", f"globalThis.kept = process.env.{TOKEN};\n")
        command = [launch.NODE, "--require", keep, "--heapsnapshot-signal=SIGUSR2",
                   f"--diagnostic-dir={self.work}",
                   f"{self.modules}/@modelcontextprotocol/server-github/dist/index.js"]
        self.server = self.start(
            self.sandboxed(command, [API, injected, f"fs:read:{self.modules}/**",
                                     f"fs:write:{self.work}/**"], audit=self.audit),
            env={TOKEN: self.value})
        answer = self.ask("initialize", protocolVersion="2024-11-05", capabilities={},
                          clientInfo={"name": "capgate-e2e", "version": "1.0.0"})
        self.assertEqual(answer["serverInfo"]["name"], "github-mcp-server")
        self.send(method="notifications/initialized")

    def send(self, **message):
        self.server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.server.stdin.flush()

    def ask(self, method, **parameters):
        self.sent += 1
        self.send(id=self.sent, method=method, params=parameters)
        line = self.server.stdout.readline()
        if not line:
            self.fail(launch.finish(self.server, None).stderr.decode())
        answer = json.loads(line)
        self.assertIn("result", answer)
        return answer["result"]

    def call(self, tool, **arguments):
        result = self.ask("tools/call", name=tool, arguments=arguments)
        (content,) = result["content"]
        return content["text"]

    def processes(self):
        """Those of the sandbox, and the brokers, by the machine's numbers."""
        home = os.readlink(f"/proc/{self.lab.pid}/ns/pid")
        inside, brokers = [], []
        for pid in descendants(self.server.pid):
            name = read(f"/proc/{pid}/comm").decode().strip()
            if name.startswith("capgate-broker"):
                brokers.append(pid)
            elif os.readlink(f"/proc/{pid}/ns/pid") != home and name != "nsenter":
                inside.append(pid)
        return inside, brokers

    def node(self):
        (pid,) = [pid for pid in self.processes()[0]
                  if os.path.realpath(f"/proc/{pid}/exe").endswith("/node")]
        return pid

    def heap_snapshot(self):
        os.kill(self.node(), signal.SIGUSR2)
        end = time.monotonic() + launch.SECONDS
        while time.monotonic() < end:
            for path in glob.glob(f"{self.work}/*.heapsnapshot"):
                text = read(path)
                if text.rstrip().endswith(b"}"):
                    return text
            time.sleep(0.05)
        return self.fail("no heap snapshot was written")

    def test_the_service_gets_the_token_and_the_server_never_holds_it(self):
        self.begin(f"env:inject:{TOKEN}?to=api.github.com:443")
        names = {tool["name"] for tool in self.ask("tools/list")["tools"]}
        self.assertLessEqual({"search_repositories", "get_file_contents", "create_issue"}, names)
        self.assertIn("acme/box", self.call("search_repositories", query="box"))
        self.assertIn("a box", self.call("get_file_contents", owner="acme", repo="box",
                                         path="README"))
        self.assertIn("an issue", self.call("create_issue", owner="acme", repo="box",
                                            title="an issue", body="of a box"))
        self.assert_received(f"uthorization: Bearer {self.value}", times=3)

        value = self.value.encode()
        inside, brokers = self.processes()
        self.assertGreaterEqual(len(inside), 2, "the server and its process 1")
        self.assertTrue(any(holds(pid, value) for pid in brokers), "the search finds it somewhere")
        placeholder = dict(entry.split(b"=", 1) for entry in
                           read(f"/proc/{self.node()}/environ").split(b"\0") if entry)[
                               TOKEN.encode()]
        self.assertTrue(placeholder.startswith(b"ghp_") and len(placeholder) == len(value))
        self.assertTrue(holds(self.node(), placeholder))
        for pid in inside:
            self.assertFalse(holds(pid, value), f"memory of {read(f'/proc/{pid}/cmdline')}")
            for name in ("environ", "cmdline"):
                self.assertNotIn(value, read(f"/proc/{pid}/{name}"))
        snapshot = self.heap_snapshot()
        self.assertIn(placeholder, snapshot)
        self.assertNotIn(value, snapshot)
        self.assert_no_file_holds(value)

        run = Run(self, launch.finish(self.server), self.audit)
        self.assert_hidden(run)
        self.assertEqual([(line["method"], line["path"], line["status"], line["secrets"])
                          for line in run.find(event="request")],
                         [("GET", "/search/repositories", 200, TOKEN),
                          ("GET", "/repos/acme/box/contents/README", 200, TOKEN),
                          ("POST", "/repos/acme/box/issues", 200, TOKEN)])

    def assert_no_file_holds(self, value):
        """What it could write to: its own directory, and through its root HOME and /tmp."""
        root = f"/proc/{self.node()}/root"
        home = dict(entry.split(b"=", 1) for entry in
                    read(f"/proc/{self.node()}/environ").split(b"\0") if entry)[b"HOME"].decode()
        for top in (self.work, f"{root}{home}", f"{root}/tmp", f"{root}/dev/shm", f"{root}/etc"):
            for at, _, names in os.walk(top):
                for path in (os.path.join(at, name) for name in names):
                    if os.path.isfile(path) and not os.path.islink(path):
                        self.assertNotIn(value, read(path), path)

    def test_control_a_token_that_is_not_sealed_is_found_there(self):
        self.begin(f"env:inject:{TOKEN}")
        self.ask("tools/list")
        value = self.value.encode()
        self.assertIn(value, read(f"/proc/{self.node()}/environ"))
        self.assertTrue(holds(self.node(), value))
        self.assertIn(value, self.heap_snapshot())


if __name__ == "__main__":
    unittest.main()
