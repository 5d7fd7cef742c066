"""The catalog: every entry is right, and real servers do their work under the manifest of theirs.

Each server is started as a client would start it; its words and variables bind the manifest. Under
the same manifest without one capability it fails, and what is said names the capability.
"""

import glob
import json
import os
import unittest

import launch
import npm_servers
from cases import Case
from catalog_cases import Box, catalog, read_remedies
from run_servers_test import BROWSER, LIST, ServerCase, call, node

FIXTURES = ("npm_servers",)
SOURCES = os.path.join(launch.ROOT, "catalog")
TEN = {"filesystem", "fetch", "git", "memory", "time", "github", "postgres", "sqlite",
       "brave-search", "puppeteer"}
OFFICIAL = "@modelcontextprotocol/server-"


def setUpModule():
    npm_servers.install()


class Entries(Case):
    def test_every_entry_is_right(self):
        done = catalog("test", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual([entry for entry in answer["entries"] if entry["problems"]], [])
        self.assertTrue(answer["passed"])
        self.assertEqual(done.returncode, 0)

    def test_all_files_are_built_in(self):
        files = {os.path.basename(path)[:-len(".json")] for path in glob.glob(f"{SOURCES}/*.json")}
        entries = json.loads(catalog("list", "--json").stdout)["entries"]
        self.assertEqual({entry["name"] for entry in entries}, files)
        self.assertLessEqual(TEN, files)
        npm = [entry for entry in entries if entry["packages"][0].startswith("npm:")]
        self.assertGreaterEqual(len(npm), 30)

    def test_an_entry_is_found_by_its_package(self):
        for word in ("npm:@modelcontextprotocol/server-github", "github",
                     "@modelcontextprotocol/server-github", "npm:@modelcontextprotocol/server-github@1"):
            shown = json.loads(catalog("show", word, "--json").stdout)
            self.assertEqual(shown["name"], "github")
        self.assertEqual(json.loads(catalog("show", "mcp-server-git", "--json").stdout)["name"],
                         "git")
        unknown = catalog("show", "githob")
        self.assertEqual((unknown.returncode, unknown.stdout), (2, ""))
        self.assertIn("did you mean github?", unknown.stderr)

    def test_a_manifest_of_the_catalog_is_an_ordinary_one(self):
        shown = json.loads(catalog("show", "gitlab", "--json").stdout)
        path = self.tree.file("gitlab.json", json.dumps(shown["manifest"]))
        done = launch.capgate("check", path, "--set", "GITLAB_HOST=git.example.com", "--set",
                              "GITLAB_PORT=443")
        self.assertEqual(done.returncode, 0, done.stderr)


class Binding(Case):
    def bound(self, entry, *words, **options):
        done = catalog("bind", entry, "--", *words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def test_words_and_variables_bind(self):
        self.assertEqual(self.bound("filesystem", "/a", "b", "~/c", cwd="/usr"),
                         ["ROOTS=/a", "ROOTS=/usr/b", "ROOTS=/home/alice/c"])
        self.assertEqual(self.bound("postgres", "postgresql://u:secret@db.example.com/x"),
                         ["DB_HOST=db.example.com", "DB_PORT=5432"])
        self.assertEqual(self.bound("redis"), ["REDIS_HOST=localhost", "REDIS_PORT=6379"])
        self.assertEqual(self.bound("git", "--repository", "/srv/repo"), ["REPO=/srv/repo"])

    def test_what_is_missing_is_named(self):
        for entry, place in (("postgres", "argument 1"), ("memory", "MEMORY_FILE_PATH"),
                             ("git", "--repository")):
            done = catalog("bind", entry)
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertIn(place, done.stderr)

    def test_no_password_is_repeated(self):
        done = catalog("bind", "postgres", "--", "odd://u:secret@db/x")
        self.assertEqual(done.returncode, 4)
        self.assertNotIn("secret", done.stdout + done.stderr)

    def test_what_is_optional_is_left_out_unless_it_is_set(self):
        capability = "env:inject:CONTEXT7_API_KEY?to=context7.com:443"
        for env, wanted in (({}, False), ({"CONTEXT7_API_KEY": "x"}, True)):
            bound = json.loads(catalog("bind", "context7", "--json", env=env).stdout)
            self.assertEqual(capability in bound["manifest"]["serverCapabilities"], wanted)


class EntryCase(ServerCase):
    """Conversations under the manifest of an entry; what is refused goes to a file."""

    entry = None
    words = ()
    variables = {}

    def box(self):
        return Box(self, self.entry, self.words, self.variables)

    def inside(self, box, *steps):
        answer = self.drive(box.around(self.command), *steps, env=self.variables)
        self.assertNotIn("error", answer, answer["stderr"])
        return answer["results"]

    def assert_works(self, *steps):
        """Every tool that is listed is in the manifest; the results of the steps."""
        box = self.box()
        listed, *results = self.inside(box, LIST, *steps)
        self.assertEqual(set(listed) - box.tools, set())
        for step, result in zip(steps, results, strict=True):
            self.assertIn("text", result, step)
        return [result["text"] for result in results]

    def without(self, capability, step):
        """What a step comes to without a capability, and the remedies that the trace names."""
        trace = os.path.join(self.private_directory("traces"), "trace")
        box = self.box().without(capability)
        answer = self.drive(box.around(self.command, "--trace", trace), step, env=self.variables)
        result, = answer.get("results") or [answer]
        return result, read_remedies(trace)

    def assert_named(self, capability, step, remedy):
        """Without the capability the step fails, and the trace names what would allow it."""
        result, remedies = self.without(capability, step)
        self.assertIn("error", result)
        self.assertIn(remedy, remedies)


class Filesystem(EntryCase):
    entry = "filesystem"
    words = property(lambda self: [self.data])
    command = property(lambda self: node(f"{OFFICIAL}filesystem/dist/index.js", self.data))

    def test_files_are_written_and_read(self):
        path = os.path.join(self.data, "file")
        *_, text = self.assert_works(call("write_file", path=path, content="new"),
                                     call("read_text_file", path=path))
        self.assertEqual(text, "new")

    def test_what_it_lacks_is_named(self):
        path = os.path.join(self.data, "file")
        with open(path, "w", encoding="utf-8") as file:
            file.write("old")
        os.chown(path, self.user.uid, self.user.uid)
        self.assert_named("fs:write:${ROOTS}/**", call("edit_file", path=path, edits=[
            {"oldText": "old", "newText": "new"}]), f"fs:write:{self.data}/**")


class Memory(EntryCase):
    entry = "memory"
    command = property(lambda self: node(f"{OFFICIAL}memory/dist/index.js"))
    step = call("create_entities", entities=[
        {"name": "box", "entityType": "thing", "observations": ["is closed"]}])

    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.data, "memory.jsonl")
        self.variables = {"MEMORY_FILE_PATH": self.file}

    def test_what_was_remembered_is_kept(self):
        self.assert_works(self.step)
        with open(self.file, encoding="utf-8") as file:
            self.assertIn("is closed", file.read())
        self.assertIn("is closed", self.assert_works(call("read_graph"))[0])

    def test_what_it_lacks_is_named(self):
        self.assert_works(self.step)
        self.assert_named("fs:write:${MEMORY_DIR}/**", call(
            "delete_entities", entityNames=["box"]), f"fs:write:{self.data}/**")


class Sqlite(EntryCase):
    entry = "sqlite-npm"
    words = property(lambda self: [os.path.join(self.data, "box.db")])
    command = property(lambda self: node("mcp-server-sqlite-npx/dist/index.js", *self.words))

    def test_a_database_is_made_and_read(self):
        *_, rows = self.assert_works(
            call("create_table", query="CREATE TABLE box (id INTEGER)"),
            call("write_query", query="INSERT INTO box VALUES (7)"),
            call("read_query", query="SELECT * FROM box"))
        self.assertEqual(json.loads(rows), [{"id": 7}])

    def test_what_it_lacks_is_named(self):
        self.assert_works(call("create_table", query="CREATE TABLE box (id INTEGER)"))
        self.assert_named("fs:write:${DB_DIR}/**", call("read_query", query="SELECT * FROM box"),
                          f"fs:write:{self.data}/**")


class Git(EntryCase):
    entry = "git-npm"
    command = property(lambda self: node("@cyanheads/git-mcp-server/dist/index.js"))

    def setUp(self):
        super().setUp()
        self.variables = {"GIT_BASE_DIR": self.data, "GIT_USERNAME": "Box", "MCP_LOG_LEVEL": "error",
                          "GIT_EMAIL": "box@example.com", "GIT_SIGN_COMMITS": "false"}

    def test_a_commit_is_made(self):
        repository = self.private_directory("data/repository")
        path = os.path.join(repository, "file")
        with open(path, "w", encoding="utf-8") as file:
            file.write("text")
        os.chown(path, self.user.uid, self.user.uid)
        *_, log = self.assert_works(
            call("git_init", path=repository), call("git_add", path=repository, paths=["file"]),
            call("git_commit", path=repository, message="first"), call("git_log", path=repository))
        self.assertIn("first", log)

    def test_what_it_lacks_is_named(self):
        self.assert_named("exec:spawn:git", call("git_init", path=self.data), "exec:spawn:git")


class Time(EntryCase):
    """On a host that is in Tokyo."""

    entry = "time-npm"
    command = property(lambda self: node("time-mcp/dist/index.js"))
    now = call("current_time", format="YYYY-MM-DD")

    def setUp(self):
        super().setUp()
        self.zone = self.tree.directory("zone")
        os.symlink("/usr/share/zoneinfo/Asia/Tokyo", os.path.join(self.zone, "localtime"))

    def start_driver(self, env):
        script = ('mount -t overlay zone -o "lowerdir=$0:/etc" /etc &&'
                  f' exec setpriv --reuid {self.user.uid} --regid {self.user.uid} --clear-groups "$@"')
        return launch.start(["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, self.zone,
                             launch.NODE, npm_servers.DRIVE], {"fds": []}, uid=0, env=env)

    def test_the_time_is_told(self):
        told, = self.assert_works(call("convert_time", sourceTimezone="Asia/Tokyo",
                                       targetTimezone="Europe/Berlin", time="2026-01-01 12:00:00"))
        self.assertIn("04:00", told)

    def test_the_zone_of_the_host_is_known(self):
        told, = self.assert_works(self.now)
        self.assertIn("the time in Asia/Tokyo is", told)

    def test_what_it_lacks_is_named(self):
        """Without the zones it tells another one's time, and the trace why."""
        told, remedies = self.without("clock:tzdata", self.now)
        self.assertIn("the time in UTC is", told["text"])
        self.assertIn("clock:tzdata", remedies)


class Puppeteer(EntryCase):
    entry = "puppeteer"
    command = property(lambda self: node(f"{OFFICIAL}puppeteer/dist/index.js"))
    variables = {"PUPPETEER_LAUNCH_OPTIONS": json.dumps(
        {"headless": True, "executablePath": BROWSER})}
    steps = (call("puppeteer_navigate", url="data:text/html,<h1>a page of our own</h1>"),
             call("puppeteer_evaluate", script="document.body.innerText"))

    def test_a_page_opens(self):
        *_, text = self.assert_works(*self.steps)
        self.assertIn("a page of our own", text)

    def test_what_it_lacks_is_named(self):
        self.assert_named("exec:spawn:chromium?nestedSandbox=true", self.steps[0],
                          "exec:spawn:chromium?nestedSandbox=true")


class OtherTools(EntryCase):
    """Servers that need no counterpart to say what tools they have."""

    def test_no_tool_is_unknown(self):
        for entry, program in (
                ("everything", f"{OFFICIAL}everything/dist/index.js"),
                ("sequential-thinking", f"{OFFICIAL}sequential-thinking/dist/index.js"),
                ("playwright", "@playwright/mcp/cli.js")):
            with self.subTest(entry=entry):
                self.entry, self.command = entry, node(program)
                self.assert_works()


if __name__ == "__main__":
    unittest.main()
