"""What the tests of `capgate approve` share: a server of either era whose tools stand in a file."""

import json
import os
import subprocess

import launch
from config_test import ConfigCase
from run_cases import python

# Its first word is the era, its second the file with what it says: a list of tools for each time that
# it is asked, and what it says of itself besides. What it finds around it goes into the description of
# a tool called "probe".
SERVER = """
import json, os, sys
said = json.load(open(sys.argv[2]))
lists = said["lists"]
asked = 0
def fill(tool):
    if tool["name"] == "probe":
        tool["description"] = json.dumps({name: os.environ.get(name) for name in sys.argv[3:]})
    if tool["name"] == "client":
        tool["description"] = client
    return tool
client = ""
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    method = request["method"]
    if method == "tools/list":
        answer["result"] = {"tools": [fill(tool) for tool in lists[min(asked, len(lists) - 1)]]}
        asked += 1
    elif method == "server/discover" and sys.argv[1] == "modern":
        answer["result"] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "modern", "version": "1"}, **said["more"]}
    elif method == "initialize" and sys.argv[1] == "legacy":
        client = request["params"]["clientInfo"]["name"]
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "legacy", "version": "1"}, **said["more"]}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""

INTEGRITY = 8
DRIFT = 5


def tool(name="search", description="Searches the code.", **more):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


class ApproveCase(ConfigCase):
    era = "legacy"

    def setUp(self):
        super().setUp()
        self.lists = os.path.join(self.data, "tools.json")
        self.say([tool()])

    def say(self, *lists, **more):
        """What the server lists from now on: the first time, the second time, ...; and says first."""
        self.written(self.lists, json.dumps({"lists": lists, "more": more}))

    def server(self, *words):
        return python(SERVER, self.era, self.lists, *words)

    def entry(self, *capabilities, words=(), **more):
        return {"command": self.server(*words),
                "capabilities": [f"fs:read:{self.data}/**", *capabilities], **more}

    def approvals(self):
        return os.path.join(self.home, ".local/state/capgate/approved")

    def record(self):
        names = [name for name in os.listdir(self.approvals()) if name.endswith(".json")]
        self.assertEqual(len(names), 1)
        with open(os.path.join(self.approvals(), names[0]), encoding="utf-8") as file:
            return json.load(file)

    def live(self, *words, code=0, name="x"):
        done = self.capgate("check", "--live", name, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def refused_entry(self, *words, env=None):
        """What `run --profile x` says that does not start the entry's own command."""
        return self.refusal(["--profile", "x", *words], [], cwd=self.project,
                            env=self.environment(**(env or {})))

    def runs(self, *words):
        done = self.run_server(["--profile", "x", *words], [], cwd=self.project)
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def answered(self, *words):
        """The JSON-RPC error that a client gets from a run that is refused."""
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        done = subprocess.run(
            [launch.CAPGATE, "run", "--profile", "x", *words], cwd=self.project,
            env=self.environment(), preexec_fn=lambda: launch.become(self.uid), check=False,
            input=json.dumps(request) + "\n", text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=launch.SECONDS)
        self.assertEqual(done.returncode, 125, done.stderr)
        return json.loads(done.stdout)["error"]["message"]
