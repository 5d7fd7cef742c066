"""Real clients that start the servers of a client's own configuration file.

    config = clients_lab.read_config("claude_desktop_config.json")
    answer = clients_lab.talk(config["files"], clients_lab.SDK_1, [clients_lab.call("read", path="/x")],
                              uid=12345, env={"HOME": home})

Every server is started with exactly the `command`, `args` and `env` of its entry, as the client of that
file would do it.
"""

import dataclasses
import json
import os
import subprocess

import launch
import npm_servers

# The official clients, both lines of the SDK; see drive.mjs.
SDK_1 = 1
SDK_2 = 2
CLIENTS = (SDK_1, SDK_2)
CONVERSATION_SECONDS = 120


@dataclasses.dataclass(frozen=True)
class Entry:
    """One stdio server of a configuration file."""

    command: str
    args: tuple
    env: dict

    @property
    def words(self):
        return [self.command, *self.args]


def read_config(path, key="mcpServers"):
    """The stdio servers of a JSON file by name; one with a `url` is no such server."""
    with open(path, encoding="utf-8") as file:
        servers = json.load(file)[key]
    return {name: Entry(entry["command"], tuple(entry.get("args", ())), entry.get("env", {}))
            for name, entry in servers.items() if "command" in entry}


def call(tool, **arguments):
    """The step that calls a tool."""
    return {"call": tool, "arguments": arguments}


def talk(entry, client, steps, *, uid, env, cwd="/"):
    """What the client is told by the server of this entry: see `answer` in drive.mjs. `env` are the
    variables of the client itself, of which a server gets what the client passes on."""
    order = {"client": client, "command": entry.words, "env": {**env, **entry.env}, "cwd": cwd,
             "steps": [{"list": True}, *steps]}
    process = launch.start([launch.NODE, npm_servers.DRIVE], {"fds": []}, uid=uid,
                           env={"PATH": os.defpath, **env})
    try:
        stdout, stderr = process.communicate(json.dumps(order).encode(), CONVERSATION_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if process.returncode != 0:
        raise RuntimeError(stderr.decode())
    return json.loads(stdout)
