"""What the tests of the catalog share: a server under the manifest of its entry, as its command and
environment bind it, and the same without one capability.

    box = Box(self, "sqlite-npm", [database])
    self.converse(box.around(node(...)), ...)
"""

import json
import os
import subprocess

import launch
import npm_servers


def catalog(*words, env=None, cwd="/"):
    """The finished `capgate catalog`."""
    return subprocess.run([launch.CAPGATE, "catalog", *words], capture_output=True, text=True,
                          check=False, cwd=cwd, timeout=launch.SECONDS,
                          env={"PATH": os.defpath, "HOME": "/home/alice", **(env or {})})


def read_remedies(trace):
    """What the lines of `run --trace` would be allowed by."""
    with open(trace, encoding="utf-8") as file:
        return [line.rstrip("\n").rsplit(": ", 1)[1] for line in file]


class Box:
    """An entry, bound by the words and variables that its server is started with."""

    def __init__(self, case, entry, words=(), env=None):
        self.case = case
        done = catalog("bind", entry, "--json", "--", *words, env=env)
        case.assertEqual(done.returncode, 0, done.stderr)
        bound = json.loads(done.stdout)
        self.entry, self.variables, self.manifest = entry, bound["variables"], bound["manifest"]

    @property
    def tools(self):
        return {tool["name"] for tool in self.manifest["tools"]}

    def lists(self):
        return [self.manifest.get("serverCapabilities", []),
                *(tool["capabilities"] for tool in self.manifest["tools"])]

    def without(self, capability):
        """Takes a capability out of the manifest, wherever it stands."""
        found = [items for items in self.lists() if capability in items]
        self.case.assertTrue(found, f"{self.entry} has no {capability}")
        for items in found:
            items.remove(capability)
        return self

    def around(self, command, *options):
        """The command in the sandbox; the packages are readable as the store would be."""
        text = json.dumps(self.manifest)
        manifest = self.case.tree.file(f"{self.entry}.json", text)
        words = [launch.CAPGATE, "run", "--manifest", manifest, *options,
                 "--allow", f"fs:read:{os.path.realpath(npm_servers.MODULES)}/**"]
        for name, values in self.variables.items():
            if "${" + name + "}" in text:
                words += [word for value in values for word in ("--set", f"{name}={value}")]
        return [*words, "--", *command]
