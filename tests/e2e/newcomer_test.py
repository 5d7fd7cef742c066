"""What a new user does: `capgate wrap --yes` on the files of their clients, in a fresh HOME.

Packages come from the registry that npm is configured for. The clients then start the servers
exactly as the wrapped files say, in a network of the test's own, and call their tools; `capgate
unwrap` gives back the very same files.
"""

import json
import os
import secrets
import shutil
import stat
import subprocess
import unittest

import clients_lab
import launch
import npm_servers
import package_registry
from cases import Tree, started_by_root_and_user, stop
from clients_lab import call
from egress_cases import Module, open_lab
from egress_lab import addresses
from run_servers_test import node
from secret_github_test import TOKEN, descendants, read

TIER = "full"  # packages come from a public registry
FIXTURES = ("npm_servers", "inspector")
ONE_JOB = True  # several people install packages before the first test
INSTALL_SECONDS = 300
DESKTOP = ".config/Claude/claude_desktop_config.json"
CURSOR = ".cursor/mcp.json"
CODE = ".config/Code/User/mcp.json"
CODEX = ".codex/config.toml"
FILESYSTEM = "@modelcontextprotocol/server-filesystem"
GITHUB = "@modelcontextprotocol/server-github"

DESKTOP_TEXT = """{
  // My servers.
  "globalShortcut": "",
  "mcpServers": {
    "filesystem": {
      "command": "npx",   /* the official one */
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "%NOTES%"]
    },
    "github": {
      "command": "npx",
      "args": [ "-y", "@modelcontextprotocol/server-github" ],
      "env": { "GITHUB_PERSONAL_ACCESS_TOKEN": "%TOKEN%" } // until next year
    },
\t"fetch":\t{"args": ["-y", "mcp-fetch-server"], "command": "npx"}
  }
}
"""

CODE_TEXT = """{
  "inputs": [],
  "servers": {
    // only my notes
    "notes": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "%NOTES%",],
    },
    "far": { "type": "http", "url": "https://mcp.example.com/mcp", },
  },
}
"""

CODEX_TEXT = """model = "o4"

[mcp_servers.notes]   # only my notes
command = "npx"
args = [
  "-y",
  "@modelcontextprotocol/server-filesystem",
  '%NOTES%',
]

[mcp_servers.far]
url = "https://mcp.example.com/mcp"
"""

# A server that needs nothing: it tells whether a file can be read.
LOCAL_SERVER = r"""
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if request["method"] == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"],
                  "capabilities": {"tools": {}}, "serverInfo": {"name": "local", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "exists", "inputSchema": {"type": "object"}}]}
    else:
        found = os.path.exists(request["params"]["arguments"]["path"])
        result = {"content": [{"type": "text", "text": str(found)}]}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class Person:
    """A user with a fresh HOME, a directory of notes, and a file that is nobody's business."""

    def __init__(self, uid):
        self.uid = uid
        self.tree = Tree()
        self.home = os.path.join(self.tree.root, "home")
        self.own(self.tree.root, 0o755)
        self.notes = self.directory("notes")
        self.token = f"ghp_{secrets.token_hex(18)}"
        self.write("notes/note.txt", "a note")
        self.hidden = self.write("hidden.txt", "not for servers")

    def own(self, path, mode):
        os.chown(path, self.uid, self.uid)
        os.chmod(path, mode)

    def path(self, name):
        return os.path.join(self.home, name)

    def directory(self, name):
        """Makes it in HOME with its parents, all of the user's."""
        path = os.path.normpath(self.path(name))
        if not os.path.isdir(path):
            self.directory(os.path.dirname(path))
            os.mkdir(path)
            self.own(path, 0o755)
        return path

    def write(self, name, text, mode=0o644):
        self.directory(os.path.dirname(name))
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text.replace("%NOTES%", self.notes).replace("%TOKEN%", self.token))
        self.own(self.path(name), mode)
        return self.path(name)

    # ---- capgate ------------------------------------------------------------------------------

    @property
    def environment(self):
        return {"PATH": os.defpath, "HOME": self.home}

    def start(self, *words):
        """capgate without a terminal, still running."""
        return subprocess.Popen(
            [launch.CAPGATE, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.environment, cwd=self.home, start_new_session=True,
            preexec_fn=lambda: launch.become(self.uid))

    def capgate(self, *words):
        """What it says that must end well, on both of its outputs."""
        return self.finish(self.start(*words))

    def finish(self, process):
        try:
            out, err = process.communicate(timeout=INSTALL_SECONDS)
        finally:
            stop(process)
        said = out.decode(), err.decode()
        if process.returncode != 0:
            raise AssertionError(f"{process.args} gives {process.returncode}\n{said[0]}\n{said[1]}")
        if self.token in said[0] + said[1]:
            raise AssertionError("the token is shown")
        return said

    # ---- clients ------------------------------------------------------------------------------

    @property
    def through(self):
        """The words that start a client in the lab, without a terminal."""
        lab = Module.lab
        if self.uid != 0:
            return ["/usr/bin/setsid", *lab.enter([])]
        # To the lab's users the files of the machine's root are nobody's, and among its processes
        # that root can make no sandbox: it takes the network, and the files that belong to it.
        places = (f"mount --bind {lab.root}/resolv.conf /etc/resolv.conf && "
                  f"mount --bind {lab.root}/roots /etc/ssl/certs && exec \"$@\"")
        return ["/usr/bin/setsid", "/usr/bin/nsenter", f"--target={lab.pid}", "--net", "--",
                "/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", places, "sh"]

    def servers(self, name, key="mcpServers"):
        return clients_lab.read_config(self.path(name), key)

    def talk(self, entry, client, *steps):
        """What the server answers, and what it and capgate say on stderr."""
        return heard(clients_lab.talk(entry, client, steps, uid=0, env={"HOME": self.home},
                                      through=self.through))

    def talk_at_once(self, entry, *steps):
        """The same for each line of the SDK, both at the same time."""
        return [heard(answer) for answer in clients_lab.talk_at_once(
            entry, steps, uid=0, env={"HOME": self.home}, through=self.through)]

    def inspect(self, config, server, tool, **arguments):
        result = clients_lab.inspect(self.path(config), server, tool, uid=0,
                                     env={"HOME": self.home}, through=self.through, **arguments)
        return result["content"][0]["text"]


def heard(answer):
    if "error" in answer:
        raise AssertionError(answer)
    return answer["results"][1:], answer["stderr"]


class People:
    """Those of this module, by uid, and what the first `capgate wrap` told each of them."""

    by_uid = {}
    first = {}


def prepare_lab():
    """The roots that its host trusts are the lab's own authority."""
    open_lab()
    lab = Module.lab
    roots = lab.tree.directory("roots")
    lab.tree.file("resolv.conf", f"nameserver {addresses.RESOLVER}\n")
    name = subprocess.run(["/usr/bin/openssl", "x509", "-noout", "-hash", "-in", lab.ca],
                          check=True, capture_output=True, text=True).stdout.strip()
    for copy in (f"{name}.0", "ca-certificates.crt"):
        shutil.copy(lab.ca, os.path.join(roots, copy))
    lab.run_as_root("/usr/bin/mount", "--bind", roots, "/etc/ssl/certs")


def setUpModule():
    npm_servers.install()
    clients_lab.install_inspector()
    running = {}
    for uid in (0, launch.ORDINARY):
        person = People.by_uid[uid] = Person(uid)
        unittest.addModuleCleanup(person.tree.remove)
        person.write(DESKTOP, DESKTOP_TEXT, mode=0o640)
        # The same for a client that reads no comments.
        servers = {name: {"command": entry.command, "args": entry.args, "env": entry.env}
                   for name, entry in person.servers(DESKTOP).items()}
        person.write(CURSOR, json.dumps({"mcpServers": servers}, indent=2), mode=0o600)
        person.before = {name: identity(person.path(name)) for name in (DESKTOP, CURSOR)}
        running[uid] = person.start("wrap", "--yes")
        unittest.addModuleCleanup(stop, running[uid])
    prepare_lab()
    for uid, process in running.items():
        People.first[uid] = People.by_uid[uid].finish(process)


def identity(path):
    """What must be the same again after unwrap."""
    info = os.lstat(path)
    return read(path), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid


class NewcomerCase(unittest.TestCase):
    """The files of both clients, wrapped with these `flags`."""

    uid = None
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.person = People.by_uid[cls.uid]
        cls.person.capgate("unwrap", "--yes")
        cls.person.capgate("wrap", "--yes", *cls.flags)
        cls.addClassCleanup(cls.person.capgate, "unwrap", "--yes")

    def setUp(self):
        self.lab = Module.lab
        self.lab.far.clear()
        self.lab.vault.clear()

    def answers(self, server, *steps):
        """For each client: the texts of these calls, which must all be answered."""
        for results, said in self.person.talk_at_once(self.person.servers(DESKTOP)[server], *steps):
            for result in results:
                self.assertIn("text", result, said)
            yield [result["text"] for result in results]

    def assert_token_received(self, times):
        """So many requests came to the API, each with the real token."""
        heads = [record["head"] for record in self.lab.vault.all()]
        self.assertEqual(len(heads), times, heads)
        for head in heads:
            self.assertIn("api.github.com", head)
            self.assertIn(f"uthorization: Bearer {self.person.token}", head)

    def assert_github_works(self):
        for found, in self.answers("github", call("search_repositories", query="box")):
            self.assertIn("acme/box", found)
        self.assert_token_received(times=len(clients_lab.CLIENTS))

    def assert_the_inspector_finds_a_repository(self):
        self.assertIn("acme/box", self.person.inspect(CURSOR, "github", "search_repositories",
                                                      query="box"))
        self.assert_token_received(times=1)

    def assert_unwrap_gives_everything_back(self):
        self.person.capgate("unwrap", "--yes")
        try:
            for name, before in self.person.before.items():
                self.assertEqual(identity(self.person.path(name)), before)
                self.assertFalse(os.path.exists(self.person.path(f"{name}.capgate-backup")))
        finally:
            self.person.capgate("wrap", "--yes", *self.flags)
        self.assertNotEqual(identity(self.person.path(DESKTOP)), self.person.before[DESKTOP])


@started_by_root_and_user
class Wrapped(NewcomerCase):
    def test_the_first_time_packages_are_installed_and_it_is_told(self):
        _, said = People.first[self.uid]
        for package in (FILESYSTEM, GITHUB, "mcp-fetch-server"):
            self.assertIn(f"installing npm:{package}", said)

    def test_files_in_the_directory_are_read_and_written(self):
        note = os.path.join(self.person.notes, "note.txt")
        new = os.path.join(self.person.notes, "new.txt")
        for text, _, written in self.answers(
                "filesystem", call("read_text_file", path=note),
                call("write_file", path=new, content="by a server"),
                call("read_text_file", path=new)):
            self.assertEqual((text, written), ("a note", "by a server"))
        self.assertEqual(read(new), b"by a server")
        self.assertEqual(os.stat(new).st_uid, self.uid)

    def test_other_files_do_not_exist_whatever_the_server_lets_through(self):
        entry = self.person.servers(DESKTOP)["filesystem"]
        steps = (call("read_text_file", path=self.person.hidden),
                 call("list_directory", path=self.person.home))
        # With one more word its own check is content with every path.
        everything = clients_lab.Entry(entry.command, (*entry.args, "/"), entry.env)
        (result, listed), _ = self.person.talk(everything, clients_lab.SDK_1, *steps)
        self.assertIn("ENOENT", result["error"])
        self.assertEqual(listed["text"].split(), ["[DIR]", "notes"])
        program, *words = node(f"{FILESYSTEM}/dist/index.js", "/")
        control = clients_lab.Entry(program, tuple(words), {})
        (result, _), _ = self.person.talk(control, clients_lab.SDK_1, *steps)
        self.assertEqual(result, {"text": "not for servers"})

    def test_the_api_gets_the_token(self):
        self.assert_github_works()

    def test_the_server_holds_a_placeholder(self):
        entry = self.person.servers(DESKTOP)["github"]
        process = subprocess.Popen(
            [*self.person.through, *entry.words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={**self.person.environment, **entry.env}, cwd="/")
        self.addCleanup(stop, process)
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                   "params": {"protocolVersion": "2024-11-05", "capabilities": {},
                              "clientInfo": {"name": "test", "version": "1"}}}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        self.assertIn("result", json.loads(process.stdout.readline()))
        servers = [pid for pid in descendants(process.pid)
                   if os.path.realpath(f"/proc/{pid}/exe").endswith("/node")]
        self.assertEqual(len(servers), 1)
        variables = dict(each.split(b"=", 1)
                         for each in read(f"/proc/{servers[0]}/environ").split(b"\0") if each)
        self.assertRegex(variables[TOKEN.encode()], b"^ghp_")
        self.assertNotIn(self.person.token.encode(), b"\0".join(variables.values()))

    def test_pages_are_fetched_by_name_but_not_from_private_addresses(self):
        entry = self.person.servers(DESKTOP)["fetch"]
        for (page, named, numbered), said in self.person.talk_at_once(
                entry, call("fetch_txt", url="http://api.example.test/"),
                call("fetch_txt", url="http://private.example.test/"),
                call("fetch_txt", url=f"http://{addresses.PRIVATE}/")):
            self.assertIn("origin api.example.test", page["text"])
            # The server was content with the name; capgate was not.
            self.assertIn("error", named)
            self.assertIn(f"private.example.test leads to {addresses.PRIVATE}", said)
            self.assertIn("error", numbered)
        self.assertEqual(self.lab.far.at(addresses.PRIVATE, 80), [])
        control = self.lab.run(["/usr/bin/curl", "-sS", "http://private.example.test/"])
        self.assertEqual(control.stdout, b"stub\n")

    def test_the_inspector_can_use_all(self):
        note = os.path.join(self.person.notes, "note.txt")
        self.assertEqual(self.person.inspect(CURSOR, "filesystem", "read_text_file", path=note),
                         "a note")
        self.assertIn("origin api.example.test", self.person.inspect(
            CURSOR, "fetch", "fetch_txt", url="http://api.example.test/"))
        self.assert_the_inspector_finds_a_repository()

    def test_unwrap_gives_everything_back(self):
        self.assert_unwrap_gives_everything_back()


@started_by_root_and_user
class Sealed(NewcomerCase):
    flags = ("--seal",)

    def test_no_file_holds_the_token(self):
        seen = set()
        for at, directories, names in os.walk(self.person.home):
            # What was published cannot know the token.
            directories[:] = [name for name in directories if name != "packages"]
            for path in (os.path.join(at, name) for name in names):
                seen.add(os.path.relpath(path, self.person.home))
                self.assertNotIn(self.person.token.encode(), read(path), path)
        self.assertLessEqual({DESKTOP, f"{DESKTOP}.capgate-backup", CURSOR}, seen)
        self.assertEqual(self.person.servers(DESKTOP)["github"].env, {TOKEN: f"store:{TOKEN}"})

    def test_the_api_gets_the_token(self):
        self.assert_github_works()

    def test_the_inspector_finds_a_repository(self):
        self.assert_the_inspector_finds_a_repository()

    def test_unwrap_gives_everything_back(self):
        self.assert_unwrap_gives_everything_back()


class OtherFiles(unittest.TestCase):
    """In the same HOME, where the packages are."""

    def setUp(self):
        self.person = People.by_uid[launch.ORDINARY]

    def wrap(self, name, text):
        """Wraps a client's file for this test. What is said, on both outputs together."""
        path = self.person.write(name, text)
        before = identity(path)

        def unwrap():
            self.person.capgate("unwrap", path, "--yes")
            self.assertEqual(identity(path), before)
            os.unlink(path)

        said = self.person.capgate("wrap", path, "--yes")
        self.addCleanup(unwrap)
        return "".join(said)

    def assert_notes_are_read(self, entry, client):
        self.assertEqual(entry.command, os.path.realpath(launch.CAPGATE))
        note = os.path.join(self.person.notes, "note.txt")
        (text,), _ = self.person.talk(entry, client, call("read_text_file", path=note))
        self.assertEqual(text, {"text": "a note"})

    def test_vs_code(self):
        self.wrap(CODE, CODE_TEXT)
        self.assert_notes_are_read(self.person.servers(CODE, "servers")["notes"],
                                   clients_lab.SDK_1)

    def test_codex(self):
        self.wrap(CODEX, CODEX_TEXT)
        self.assert_notes_are_read(self.person.servers(CODEX, "mcp_servers")["notes"],
                                   clients_lab.SDK_2)

    def test_an_unknown_server_gets_nothing_and_it_is_told_what_to_do(self):
        entry = {"command": launch.PYTHON, "args": ["-c", LOCAL_SERVER]}
        said = self.wrap(".kimi/mcp.json", json.dumps({"mcpServers": {"local": entry}}))
        self.assertIn("capgate run --profile local --trace -", said)
        self.assertIn(self.person.path(".config/capgate/servers/local.yaml"), said)
        (hidden, program), _ = self.person.talk(
            self.person.servers(".kimi/mcp.json")["local"], clients_lab.SDK_1,
            call("exists", path=self.person.hidden), call("exists", path=launch.PYTHON))
        self.assertEqual((hidden, program), ({"text": "False"}, {"text": "True"}))


class OtherVersion(unittest.TestCase):
    """A catalog entry says nothing about versions that it is not for. The registry is our own."""

    def setUp(self):
        self.person = Person(launch.ORDINARY)
        self.addCleanup(self.person.tree.remove)
        context = package_registry.served()
        self.registry = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.person.write(".npmrc", f"registry={self.registry.url}\n")
        entry = {"command": "npx", "args": ["-y", GITHUB]}
        self.path = self.person.write(CURSOR, json.dumps({"mcpServers": {"github": entry}}))

    def publish(self, version):
        says = f"module.exports = {{version: {version!r}, tool: 'any'}};"
        self.registry.add_npm(GITHUB, version, {"index.js": package_registry.NODE_SERVER,
                                                "says.js": says}, bin="index.js")

    def test_it_is_not_wrapped_with_the_manifest_of_another(self):
        self.publish("9999.0.0")
        before = identity(self.path)
        with self.assertRaisesRegex(AssertionError, "catalog:github is not for version 9999.0.0"):
            self.person.capgate("wrap", "--yes")
        self.assertEqual(identity(self.path), before)

    def test_an_upgrade_beyond_the_entry_is_refused(self):
        self.publish("2025.4.8")
        self.person.capgate("wrap", "--yes")
        entry = self.person.servers(CURSOR)["github"]
        self.person.talk(entry, clients_lab.SDK_1)
        self.publish("9999.0.0")
        self.person.capgate("install", f"npm:{GITHUB}", "--upgrade")
        with self.assertRaisesRegex(AssertionError, "<2026, and 9999.0.0 is installed"):
            self.person.talk(entry, clients_lab.SDK_1)


if __name__ == "__main__":
    unittest.main()
