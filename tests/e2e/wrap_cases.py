"""A user with the configurations of MCP clients, as people write them."""

import json
import os
import re
import stat
import subprocess
import tomllib

import launch
from cases import Case

TOKEN = "ghp_1t.Is-a/token+that~nobody=sees"

JSON_SERVERS = """{
  // my servers
  "theme": "dark",
  "KEY": {
    "github": {
      "command": "npx",            // the official one
      "args": ["-y", "@modelcontextprotocol/server-github"],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "%TOKEN%" }
    },
\t"no args":\t{ "command" : "/usr/bin/notes-server" },
    "files": {"args": [ "-y",
        "@modelcontextprotocol/server-filesystem", "/srv/a b" ], "command": "npx"},
    "remote": { "type": "http", "url": "https://mcp.example.com/mcp",
                "headers": { "Authorization": "Bearer %TOKEN%" } },
  },
  "last": [1, 2.50, null,],
}
"""

CLAUDE_CODE = """{
  "numStartups": 12,
  "mcpServers": {"one": {"type": "stdio", "command": "one-server", "args": []}},
  "projects": {
    "/srv/project": {
      "history": [],
      "mcpServers": {
        "one": {"type": "stdio", "command": "other-server", "args": ["--x=\\u0041"], "env": {}}
      }
    },
    "/srv/other": {"mcpServers": {}}
  }
}
"""

OPENCODE = """{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "everything": {
      "type": "local",
      "command": ["npx", "-y", "@modelcontextprotocol/server-everything"], // all of it
      "environment": {"MY_KEY": "%TOKEN%"}
    },
    "far": {"type": "remote", "url": "https://mcp.example.com"}
  }
}
"""

CODEX = """# Codex
model = "o4"

[mcp_servers.docs]   # the docs
command = "npx"
args = [
  "-y",              # no question
  "docs-server",
]
env = { DOCS_TOKEN = "%TOKEN%" }

[mcp_servers."no args"]
command = '/usr/bin/notes-server'
startup_timeout_sec = 20

[mcp_servers.far]
url = "https://mcp.example.com/mcp"

[tui]
notifications = true
"""

VIBE = """active_model = "devstral"

[[mcp_servers]]
name = "fetch"
transport = "stdio"
command = "uvx"
args = ["mcp-server-fetch"]

[[mcp_servers]]
name = "far"
transport = "http"
url = "https://mcp.example.com"
"""

GOOSE = """GOOSE_PROVIDER: anthropic
extensions:
  # for notes
  notes:
    type: stdio
    enabled: true
    cmd: notes-server
    args:
      - --dir
      - "/srv/notes"
    envs:
      NOTES_KEY: %TOKEN%
  developer:
    type: builtin
    enabled: true
    name: developer
"""

CONTINUE = """name: mine
version: 0.0.1
mcpServers:
  - name: sqlite
    command: npx
    args: ["-y", "mcp-sqlite", /srv/test.db]   # one line
  - name: far
    type: streamable-http
    url: https://mcp.example.com/mcp
"""


def json_servers(key):
    return JSON_SERVERS.replace("KEY", key)


# Where each client keeps its file, and what stands in it.
CLIENTS = {
    "claude-desktop": (".config/Claude/claude_desktop_config.json", json_servers("mcpServers")),
    "claude-code": (".claude.json", CLAUDE_CODE),
    "vscode": (".config/Code/User/mcp.json", json_servers("servers")),
    "cursor": (".cursor/mcp.json", json_servers("mcpServers")),
    "windsurf": (".codeium/windsurf/mcp_config.json", json_servers("mcpServers")),
    "zed": (".config/zed/settings.json", json_servers("context_servers")),
    "codex": (".codex/config.toml", CODEX),
    "gemini": (".gemini/settings.json", json_servers("mcpServers")),
    "goose": (".config/goose/config.yaml", GOOSE),
    "continue": (".continue/config.yaml", CONTINUE),
    "opencode": (".config/opencode/opencode.json", OPENCODE),
    "copilot": (".copilot/mcp-config.json", json_servers("mcpServers")),
    "vibe": (".vibe/config.toml", VIBE),
    "cline": (".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
              "cline_mcp_settings.json", json_servers("mcpServers")),
    "roo": (".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/"
            "mcp_settings.json", json_servers("mcpServers")),
    "lmstudio": (".lmstudio/mcp.json", json_servers("mcpServers")),
    "kiro": (".kiro/settings/mcp.json", json_servers("mcpServers")),
    "amp": (".config/amp/settings.json", json_servers("amp.mcpServers")),
    "kimi": (".kimi/mcp.json", json_servers("mcpServers")),
    "factory": (".factory/mcp.json", json_servers("mcpServers")),
    "antigravity": (".gemini/antigravity/mcp_config.json", json_servers("mcpServers")),
}


def parse(path, text):
    """The meaning of a file, read by Python and not by us."""
    if path.endswith(".toml"):
        return tomllib.loads(text)
    if path.endswith(".yaml"):
        return parse_yaml(text)
    kept = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or "", text,
                  flags=re.DOTALL)
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])',
                             lambda match: match[1] or "", kept))


def parse_yaml(text):
    """Just the YAML of this file: there is no parser in Python's own library."""
    def scalar(word):
        word = re.sub(r"\s+#.*$", "", word.strip())
        if word.startswith("["):
            return [scalar(each) for each in split_flow(word[1:-1])]
        return word[1:-1] if word[:1] in ("'", '"') else word

    def split_flow(inside):
        return [each for each in re.findall(r'\s*("(?:\\.|[^"\\])*"|\'[^\']*\'|[^,]+)', inside)]

    lines = [(len(line) - len(line.lstrip()), line.strip())
             for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]

    def block(at, indent):
        if lines[at][1].startswith("- "):
            out = []
            while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
                rest = lines[at][1][2:]
                if re.match(r"[\w ]+:( |$)", rest):
                    lines[at] = (indent + 2, rest)
                    value, at = block(at, indent + 2)
                else:
                    value, at = scalar(rest), at + 1
                out.append(value)
            return out, at
        out = {}
        while at < len(lines) and lines[at][0] == indent and not lines[at][1].startswith("- "):
            key, value = lines[at][1].split(":", 1)
            at += 1
            if value.strip():
                out[key] = scalar(value)
            elif at < len(lines) and (lines[at][0] > indent or lines[at][1].startswith("- ")):
                out[key], at = block(at, lines[at][0])
            else:
                out[key] = None
        return out, at

    return block(0, 0)[0]


def commands_of(value):
    """The value without commands, and the commands: whatever wrap may change."""
    found = []

    def strip(node):
        if isinstance(node, list):
            return [strip(each) for each in node]
        if not isinstance(node, dict):
            return node
        key = "cmd" if "cmd" in node else "command"
        if key not in node:
            return {name: strip(each) for name, each in node.items()}
        words = node[key] if isinstance(node[key], list) else [node[key]]
        found.append(words + (node.get("args") or []))
        return {name: each for name, each in node.items() if name not in (key, "args")}

    return strip(value), found


class WrapCase(Case):
    """One user with a fresh home; `uid` is who that is."""

    uid = 0

    def setUp(self):
        super().setUp()
        self.home = self.tree.path("home")
        self.own_directory(self.home)

    def own_directory(self, path):
        """Makes it with its parents, all of the user's."""
        if os.path.isdir(path):
            return
        self.own_directory(os.path.dirname(path))
        os.mkdir(path, 0o755)
        os.chown(path, self.uid, self.uid)

    def config(self, name, text, mode=0o644):
        """Writes a file of the user's home, and returns its path."""
        path = os.path.join(self.home, name)
        self.own_directory(os.path.dirname(path))
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(path, mode)
        os.chown(path, self.uid, self.uid)
        return path

    def client(self, client, **options):
        name, text = CLIENTS[client]
        return self.config(name, text.replace("%TOKEN%", TOKEN), **options)

    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": self.home, "TERM": "xterm"}

    def as_user(self, *words, code=0, env=None, **options):
        """What a run without a terminal prints: (stdout, stderr)."""
        def become():
            os.setsid()
            launch.become(self.uid)

        done = subprocess.run([launch.CAPGATE, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False, timeout=launch.SECONDS,
                              env=env or self.environment(), preexec_fn=become,
                              cwd=options.get("cwd", self.home))
        out, err = done.stdout.decode(), done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{words}\n{out}\n{err}")
        self.assertNotIn(TOKEN, out)
        self.assertNotIn(TOKEN, err)
        return out, err

    def wrap(self, *words, **options):
        return self.as_user("wrap", *words, "--no-install", **options)

    def unwrap(self, *words, **options):
        return self.as_user("unwrap", *words, **options)

    def read(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()

    def snapshot(self, *, below=None):
        """Every file of the home: bytes, mode, owner."""
        seen = {}
        for at, directories, files in os.walk(below or self.home):
            for path in (os.path.join(at, name) for name in directories + files):
                info = os.lstat(path)
                data = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        data = file.read()
                seen[path] = (data, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
        return seen

    def policy_file(self, name):
        return os.path.join(self.home, ".config/capgate/servers", f"{name}.yaml")
