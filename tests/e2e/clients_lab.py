"""Real clients that start the servers of a client's own configuration file.

    config = clients_lab.read_config("claude_desktop_config.json")
    answer = clients_lab.talk(config["files"], clients_lab.SDK_1, [clients_lab.call("read", path="/x")],
                              uid=launch.ORDINARY, env={"HOME": home})

Every server is started with exactly the `command`, `args` and `env` of its entry, as the client of
that file would do it. `through` are words that start the client somewhere else, as those of a lab's
`enter`.
"""

import dataclasses
import json
import os
import subprocess

import launch
import npm_packages
import npm_servers
from cases import stop
from wrap_cases import parse

# The official clients, both lines of the SDK; see drive.mjs.
SDK_1 = 1
SDK_2 = 2
CLIENTS = (SDK_1, SDK_2)
CONVERSATION_SECONDS = 120

INSPECTOR_PLACE = os.path.join(launch.ROOT, ".deps/inspector")
INSPECTOR = os.path.join(
    INSPECTOR_PLACE, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")


def install_inspector():
    """Makes the MCP inspector ready, readable by every user."""
    # Not `npm ci`: that one demands the builds of optional packages for every other system too.
    npm_packages.install("inspector", command="install")


def _start(command, stdin, *, uid, env):
    process = launch.start(command, {"fds": []}, uid=uid, env={"PATH": os.defpath, **env})
    process.stdin.write(stdin)
    process.stdin.close()
    process.stdin = None
    return process


def _finish(process):
    """What a client prints that must end well."""
    try:
        stdout, stderr = process.communicate(timeout=CONVERSATION_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    if process.returncode != 0:
        raise RuntimeError(stderr.decode())
    return json.loads(stdout)


def inspect(config, server, tool, *, uid, env, through=(), **arguments):
    """The result of one call of a tool by the inspector's command line, which reads the file itself."""
    words = [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]
    return _finish(_start([*through, launch.NODE, INSPECTOR, "--cli", "--config", config, "--server",
                           server, "--method", "tools/call", "--tool-name", tool, *words], b"",
                          uid=uid, env={"MCP_INSPECTOR_SECRET_STORE": "memory", **env}))


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
    """The stdio servers of a file by name: JSON, with comments or not, or TOML. One with a `url` is
    no such server."""
    with open(path, encoding="utf-8") as file:
        servers = parse(path, file.read())[key]
    return {name: Entry(entry["command"], tuple(entry.get("args", ())), entry.get("env", {}))
            for name, entry in servers.items() if "command" in entry}


def call(tool, **arguments):
    """The step that calls a tool."""
    return {"call": tool, "arguments": arguments}


def talk(entry, client, steps, **options):
    """What the client is told by the server of this entry: see `answer` in drive.mjs."""
    return _finish(_start_talk(entry, client, steps, **options))


def talk_at_once(entry, steps, **options):
    """The same for each of CLIENTS, all at the same time."""
    processes = [_start_talk(entry, client, steps, **options) for client in CLIENTS]
    try:
        return [_finish(process) for process in processes]
    finally:
        for process in processes:
            stop(process)


def _start_talk(entry, client, steps, *, uid, env, cwd="/", through=()):
    """`env` are the variables of the client itself, of which a server gets what the client passes
    on."""
    order = {"client": client, "command": entry.words, "env": {**env, **entry.env}, "cwd": cwd,
             "steps": [{"list": True}, *steps]}
    return _start([*through, launch.NODE, npm_servers.DRIVE], json.dumps(order).encode(), uid=uid,
                  env=env)
