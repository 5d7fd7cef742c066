"""capgate run: real MCP servers from npm, driven by the official clients, do their work in the box.

Every conversation is held twice: plainly, as the control, and under `capgate run`.
"""

import dataclasses
import json
import os
import pwd
import shutil
import subprocess
import tempfile
import unittest

import launch
import npm_servers
from cases import Case

FIXTURES = ("npm_servers",)
MANIFESTS = os.path.join(npm_servers.SOURCE, "manifests")
BROWSER = "/usr/bin/chromium"
CONVERSATION_SECONDS = 120
# What the sandbox gives every server, whatever its manifest says.
OWN_VARIABLES = {"PATH", "HOME", "TMPDIR", "LANG"}
LIST = {"list": True}
FILESYSTEM = "@modelcontextprotocol/server-filesystem/dist/index.js"


@dataclasses.dataclass(frozen=True)
class User:
    """Who starts the client, and with it capgate."""

    uid: int
    has_home: bool = True


ORDINARY = User(launch.ORDINARY)
ROOT = User(0)
# An account that every Debian has and nobody uses.
NAMED = User(pwd.getpwnam("games").pw_uid)
WITHOUT_NAME_AND_HOME = User(54321, has_home=False)


def setUpModule():
    npm_servers.install()


def wrap(manifest, command, **settings):
    """The command that runs `command` as the manifest says, with these values of its variables."""
    words = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return [launch.CAPGATE, "run", "--manifest", manifest, *words, "--", *command]


def node(program, *arguments):
    """The command of a server in the installed packages."""
    return [launch.NODE, os.path.join(npm_servers.MODULES, program), *arguments]


def call(tool, **arguments):
    """The step that calls a tool."""
    return {"call": tool, "arguments": arguments}


class ServerCase(Case):
    """Conversations with one server, which has `data` for its files."""

    manifest = None
    user = ORDINARY
    client = 1

    def setUp(self):
        super().setUp()
        self.data = self.private_directory("data")
        self.home = self.private_directory("home")

    def private_directory(self, name):
        """A directory that only the user of this case, and nobody else, may use."""
        path = self.tree.directory(name)
        os.chown(path, self.user.uid, self.user.uid)
        os.chmod(path, 0o700)
        return path

    def drive(self, command, *steps, env=None, cwd=None):
        """The answer of the driver, run by the user of this case; see drive.mjs."""
        order = {"client": self.client, "command": command, "env": env or {},
                 "cwd": cwd or self.data, "steps": steps}
        home = {"HOME": self.home} if self.user.has_home else {}
        process = self.start_driver({"PATH": os.defpath, **home})
        try:
            stdout, stderr = process.communicate(json.dumps(order).encode(), CONVERSATION_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        self.assertEqual(process.returncode, 0, stderr.decode())
        return json.loads(stdout)

    def start_driver(self, env):
        return launch.start([launch.NODE, npm_servers.DRIVE], {"fds": []}, uid=self.user.uid,
                            env=env)

    def converse(self, command, *steps, **options):
        """The results of a conversation with a server that must come up."""
        answer = self.drive(command, *steps, **options)
        self.assertNotIn("error", answer, answer["stderr"])
        return answer["results"]

    def wrapped(self, command, without=""):
        """`command` in the sandbox of this case's manifest, or of what is left without a text."""
        with open(os.path.join(MANIFESTS, self.manifest + ".json"), encoding="utf-8") as file:
            text = file.read()
        if without:
            self.assertEqual(text.count(without), 1)
        settings = {"MODULES": npm_servers.MODULES}
        if "${DATA}" in text:
            settings["DATA"] = self.data
        manifest = self.tree.file("manifest.json", text.replace(without, ""))
        return wrap(manifest, command, **settings)

    def outside_and_inside(self, command, *steps, **options):
        """The results of the same conversation without the sandbox and in it."""
        outside = self.converse(command, *steps, **options)
        return outside, self.converse(self.wrapped(command), *steps, **options)


class Filesystem(ServerCase):
    """The server is told that everything is its own: what stops it is the sandbox."""

    manifest = "filesystem"
    command = property(lambda self: node(FILESYSTEM, "/"))

    def test_a_file_is_written_and_read_back(self):
        for place, command in (("outside", self.command), ("inside", self.wrapped(self.command))):
            with self.subTest(place=place):
                path = os.path.join(self.data, place)
                written, text, listed = self.converse(
                    command, call("write_file", path=path, content=f"from {place}"),
                    call("read_text_file", path=path), call("list_directory", path=self.data))
                self.assertIn("Successfully wrote", written.get("text", str(written)))
                self.assertEqual(text, {"text": f"from {place}"})
                self.assertIn(f"[FILE] {place}", listed["text"])
                self.assert_file_of_user(path, f"from {place}")

    def assert_file_of_user(self, path, text):
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        info = os.stat(path)
        self.assertEqual((info.st_uid, info.st_gid), (self.user.uid, self.user.uid))

    def test_other_files_are_out_of_reach(self):
        secret = self.tree.file("secret.txt", "the secret")
        new = os.path.join(self.tree.directory("open"), "new.txt")
        steps = (call("read_text_file", path=secret), call("write_file", path=new, content="x"),
                 call("list_directory", path=self.tree.root),
                 call("read_text_file", path="/etc/debian_version"))
        for result in self.converse(self.command, *steps):
            self.assertIn("text", result)
        os.unlink(new)
        read, written, listed, system = self.converse(self.wrapped(self.command), *steps)
        for result in (read, written, system):
            self.assertRegex(result.get("error", str(result)), "ENOENT|EACCES|EROFS|does not exist")
        self.assertNotIn("secret.txt", str(listed))
        self.assertFalse(os.path.exists(new))


class FilesystemStartedByRoot(Filesystem):
    """Root's own directory, mode 0700, is usable although the server does not run as root."""

    user = ROOT


class FilesystemOfANamedUser(Filesystem):
    user = NAMED


class FilesystemWithoutNameAndHome(Filesystem):
    user = WITHOUT_NAME_AND_HOME


class FilesystemWithTheNewClient(Filesystem):
    """The 2.x client asks for the newest revision first, of a second process of the same command,
    and falls back."""

    client = 2


class Refusal(ServerCase):
    """Clients hide what a server writes to stderr: capgate's reason reaches them as an answer."""

    manifest = "filesystem"

    def test_the_client_is_told_why(self):
        os.rmdir(self.data)
        command = self.wrapped(node(FILESYSTEM, self.data))
        answer = self.drive(command, LIST, cwd="/")
        self.assertNotIn("results", answer)
        self.assertIn(self.data, answer["error"])


class RefusalWithTheNewClient(Refusal):
    client = 2


class Modern(ServerCase):
    """The 2026-07-28 revision from end to end."""

    manifest = "modern"
    client = 2

    def test_files_are_written_and_read_and_others_are_not(self):
        command = node("capgate-e2e/modern.mjs")
        path = os.path.join(self.data, "file")
        secret = self.tree.file("secret.txt", "the secret")
        steps = (LIST, call("write", path=path, text="new"), call("read", path=path),
                 call("read", path=secret))
        outside, inside = self.drive(command, *steps), self.drive(self.wrapped(command), *steps)
        worked = [["read", "write"], {"text": "written"}, {"text": "new"}]
        for answer in (outside, inside):
            self.assertEqual(answer.get("protocol"), "2026-07-28", answer)
            self.assertEqual(answer["results"][:3], worked)
        self.assertEqual(outside["results"][3], {"text": "the secret"})
        self.assertIn("ENOENT", inside["results"][3].get("error", str(inside)))


class Memory(ServerCase):
    manifest = "memory"

    def test_what_was_remembered_is_read_by_the_next_process(self):
        command = node("@modelcontextprotocol/server-memory/dist/index.js")
        entity = {"name": "box", "entityType": "thing", "observations": ["is closed"]}
        for place, words in (("outside", command), ("inside", self.wrapped(command))):
            with self.subTest(place=place):
                file = os.path.join(self.data, place + ".json")
                env = {"MEMORY_FILE_PATH": file}
                made, = self.converse(words, call("create_entities", entities=[entity]), env=env)
                self.assertEqual(json.loads(made.get("text", str(made))), [entity])
                graph, = self.converse(words, call("read_graph"), env=env)
                self.assertEqual(json.loads(graph["text"]), {"entities": [entity], "relations": []})
                with open(file, encoding="utf-8") as written:
                    self.assertIn("is closed", written.read())


class Everything(ServerCase):
    manifest = "everything"
    command = property(lambda self: node("@modelcontextprotocol/server-everything/dist/index.js"))

    def test_tools_answer_the_same(self):
        outside, inside = self.outside_and_inside(
            self.command, LIST, call("echo", message="grüße"), call("get-sum", a=2, b=40))
        self.assertEqual(outside[1:],
                         [{"text": "Echo: grüße"}, {"text": "The sum of 2 and 40 is 42."}])
        self.assertEqual(inside, outside)

    def test_undeclared_variables_stay_outside(self):
        outside, inside = self.outside_and_inside(
            self.command, call("get-env"), env={"TOKEN_OF_ANOTHER": "secret"})
        self.assertEqual(json.loads(outside[0]["text"])["TOKEN_OF_ANOTHER"], "secret")
        self.assertEqual(set(json.loads(inside[0]["text"])), OWN_VARIABLES)


class EverythingWithTheNewClient(Everything):
    client = 2


class SequentialThinking(ServerCase):
    manifest = "sequential-thinking"

    def test_one_thought(self):
        outside, inside = self.outside_and_inside(
            node("@modelcontextprotocol/server-sequential-thinking/dist/index.js"), LIST,
            call("sequentialthinking", thought="a box", thoughtNumber=1, totalThoughts=1,
                 nextThoughtNeeded=False))
        self.assertEqual(json.loads(outside[1]["text"])["thoughtHistoryLength"], 1)
        self.assertEqual(inside, outside)


class Sqlite(ServerCase):
    """A native module, and journals beside the database."""

    manifest = "sqlite"

    def test_a_database_is_made_filled_and_read(self):
        for place, wrapped in (("outside", False), ("inside", True)):
            with self.subTest(place=place):
                database = os.path.join(self.data, place + ".db")
                command = node("mcp-server-sqlite-npx/dist/index.js", database)
                table, row, rows = self.converse(
                    self.wrapped(command) if wrapped else command,
                    call("create_table", query="CREATE TABLE box (id INTEGER, name TEXT)"),
                    call("write_query", query="INSERT INTO box VALUES (7, 'closed')"),
                    call("read_query", query="SELECT * FROM box"))
                self.assertNotIn("error", (*table, *row))
                self.assertEqual(json.loads(rows["text"]), [{"id": 7, "name": "closed"}])
                with open(database, "rb") as file:
                    self.assertEqual(file.read(15), b"SQLite format 3")


class Github(ServerCase):
    manifest = "github"

    def test_tools_are_listed_and_a_call_without_network_fails_as_an_answer(self):
        outside, inside = self.outside_and_inside(
            node("@modelcontextprotocol/server-github/dist/index.js"), LIST,
            call("search_repositories", query="capgate"), LIST,
            env={"GITHUB_PERSONAL_ACCESS_TOKEN": "not-a-token"})
        self.assertIn("create_issue", outside[0])
        self.assertEqual((inside[0], inside[2]), (outside[0], outside[0]))
        self.assertIn("error", inside[1])


class Git(ServerCase):
    """A server that starts programs: git, and nothing but git."""

    manifest = "git"
    env = {"GIT_USERNAME": "Box", "GIT_EMAIL": "box@example.com", "GIT_SIGN_COMMITS": "false",
           "MCP_LOG_LEVEL": "error"}
    command = property(lambda self: node("@cyanheads/git-mcp-server/dist/index.js"))

    def test_commits_are_really_made(self):
        for place, command in (("outside", self.command), ("inside", self.wrapped(self.command))):
            with self.subTest(place=place):
                repository = self.private_directory("data/" + place)
                self.commit(command, repository, "first", call("git_init", path=repository))
                # Now the files of git that run programs exist, and are held.
                self.commit(command, repository, "second")
                self.assertEqual(self.log(repository), ["second Box <box@example.com>",
                                                        "first Box <box@example.com>"])

    def test_without_exec_git_cannot_be_started(self):
        steps = [call("git_init", path=self.data)]
        command = self.wrapped(self.command, without='"exec:spawn:git",')
        refused, = self.converse(command, *steps, env=self.env)
        self.assertIn("error", refused)
        self.assertEqual(os.listdir(self.data), [])
        made, = self.converse(self.command, *steps, env=self.env)
        self.assertNotIn("error", made)

    def commit(self, command, repository, name, *before):
        path = os.path.join(repository, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(name)
        os.chown(path, self.user.uid, self.user.uid)
        results = self.converse(command, *before, call("git_add", path=repository, paths=[name]),
                                call("git_commit", path=repository, message=name), env=self.env)
        for result in results:
            self.assertNotIn("error", result)

    def log(self, repository):
        done = subprocess.run(
            ["git", "-c", f"safe.directory={repository}", "-C", repository, "log",
             "--format=%s %an <%ae>"], capture_output=True, text=True, check=True,
            timeout=launch.SECONDS)
        return done.stdout.splitlines()


class Playwright(ServerCase):
    """A browser with a sandbox of its own, in ours."""

    manifest = "playwright"
    command = property(lambda self: node(
        "@playwright/mcp/cli.js", "--headless", "--isolated", "--sandbox", "--browser=chromium",
        f"--executable-path={BROWSER}"))
    page = "data:text/html,<title>local</title><h1>a page of our own</h1>"

    def test_a_local_page_opens_and_the_browsers_sandbox_is_on(self):
        # Outside it keeps sockets below TMPDIR, in a directory that other users must not own.
        outside, inside = self.outside_and_inside(
            self.command, LIST, call("browser_navigate", url=self.page), call("browser_snapshot"),
            call("browser_navigate", url="chrome://sandbox"), call("browser_snapshot"),
            env={"TMPDIR": self.short_directory()})
        self.assertIn("browser_navigate", outside[0])
        self.assertEqual(inside[0], outside[0])
        for place, results in (("outside", outside), ("inside", inside)):
            with self.subTest(place=place):
                self.assertIn('heading "a page of our own"', results[2].get("text", str(results)))
                self.assertIn("You are adequately sandboxed.", results[4].get("text", str(results)))

    def short_directory(self):
        """A directory of this user's whose path leaves room for the name of a Unix socket."""
        path = tempfile.mkdtemp(prefix="pw", dir="/tmp")
        self.addCleanup(shutil.rmtree, path)
        os.chown(path, self.user.uid, self.user.uid)
        return path

    def test_without_nested_sandbox_the_browser_does_not_start(self):
        command = self.wrapped(self.command, without="?nestedSandbox=true")
        tools, opened = self.converse(command, LIST, call("browser_navigate", url=self.page))
        self.assertIn("browser_navigate", tools)
        self.assertIn("No usable sandbox!", opened.get("error", str(opened)))


if __name__ == "__main__":
    unittest.main()
