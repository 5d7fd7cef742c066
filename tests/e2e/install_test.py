"""capgate install: packages of npm and PyPI from a registry of the test, and a few real ones."""

import glob
import io
import json
import os
import signal
import stat
import subprocess
import tarfile
import threading
import unittest

import launch
import package_registry
from cases import service, started_by_root_and_user
from run_cases import RunCase, adopt_orphans, end, reap_orphans

INSTALL_SECONDS = 300
REQUESTS = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in (
    {"id": 1, "method": "initialize",
     "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}})).encode()


def setUpModule():
    adopt_orphans()


def script(code):
    """The fields of a package whose postinstall script runs this in Node."""
    return {"scripts": {"postinstall": "node script.js"}}, {"script.js": code}


class InstallCase(RunCase):
    def setUp(self):
        super().setUp()
        context = package_registry.served()
        self.registry = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.store = os.path.join(self.home, ".local/share/capgate")

    def tiny(self, name="tiny-mcp", version="1.2.3", tool="greet", fields=None, files=None):
        says = f"module.exports = {{version: {version!r}, tool: {tool!r}}};"
        return self.registry.add_npm(
            name, version,
            {"index.js": package_registry.NODE_SERVER, "says.js": says, **(files or {})},
            bin="index.js", **(fields or {}))

    def start_install(self, *words, registry=True, path="", **environment):
        if registry:
            words = (*words, "--registry", self.registry.url + path)
        process = subprocess.Popen(
            [launch.CAPGATE, "install", *words], stdin=subprocess.DEVNULL, cwd="/",
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(**environment),
            preexec_fn=lambda: launch.become(self.uid))
        self.addCleanup(end, process)
        return process

    def install(self, *words, code=0, **options):
        """What an install says, on both of its outputs."""
        process = self.start_install(*words, **options)
        out, err = process.communicate(timeout=INSTALL_SECONDS)
        self.assertEqual(process.returncode, code, err.decode())
        return out.decode(), err.decode()

    def lock(self):
        with open(os.path.join(self.store, "capgate.lock"), encoding="utf-8") as file:
            return json.load(file)["packages"]

    def installed(self, name, registry="npm"):
        trees = glob.glob(os.path.join(self.store, "packages", registry, name, "*"))
        self.assertEqual(len(trees), 1, trees)
        return trees[0]

    def tools(self, command, words=()):
        """The names and the descriptions of the tools of a server that has no network."""
        said = self.output(words, command, stdin=REQUESTS)
        lines = [line for line in said.splitlines() if line.startswith("{")]
        answers = {answer["id"]: answer for answer in map(json.loads, lines)
                   if "id" in answer}
        return [(tool["name"], tool.get("description")) for tool in answers[2]["result"]["tools"]]


@started_by_root_and_user
class Npm(InstallCase):
    def test_a_package_runs_without_its_registry(self):
        integrity = self.tiny(fields={"dependencies": {"tiny-lib": "^1"}})
        self.registry.add_npm("tiny-lib", "1.0.0", {"index.js": ""})
        out, err = self.install("npm:tiny-mcp", "--json")
        self.assertEqual(err, "npm:tiny-mcp: version 1.2.3 is installed\n")
        told = json.loads(out)
        self.assertEqual(told["schemaVersion"], 1)
        entry = self.lock()[0]
        self.assertEqual((entry["name"], entry["version"], entry["integrity"], entry["scripts"]),
                         ("tiny-mcp", "1.2.3", integrity, False))
        self.assertEqual(told["packages"][0]["tree"], entry["tree"])
        asked = len(self.registry.asked)
        self.assertEqual(self.tools(["npx", "-y", "tiny-mcp", "a", "b"]), [("greet", "a b")])
        self.assertEqual(len(self.registry.asked), asked)
        # The second time nobody is asked.
        self.install("npm:tiny-mcp")
        self.assertEqual(len(self.registry.asked), asked)

    def test_a_dependency_comes_from_the_registry_of_its_scope(self):
        """Who publishes a name of the company's scope in the general registry is not asked."""
        self.tiny(fields={"dependencies": {"@acme/lib": "*"}})
        self.registry.add_npm("@acme/lib", "9.9.9", {"index.js": "'foreign'"})
        with package_registry.served() as company:
            company.add_npm("@acme/lib", "1.0.0", {"index.js": "'own'"})
            with open(os.path.join(self.home, ".npmrc"), "w", encoding="utf-8") as file:
                file.write(f"registry={self.registry.url}\n@acme:registry={company.url}\n")
            self.own(os.path.join(self.home, ".npmrc"), 0o600)
            self.install("npm:tiny-mcp", registry=False)
        inside = os.path.join(self.installed("tiny-mcp"), "node_modules/@acme/lib/index.js")
        with open(inside, encoding="utf-8") as file:
            self.assertEqual(file.read(), "'own'")

    def test_everything_is_the_callers_alone(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        for at, directories, files in os.walk(self.store):
            for name in (".", *directories, *files):
                info = os.lstat(os.path.join(at, name))
                if not stat.S_ISLNK(info.st_mode):
                    self.assertEqual((info.st_uid, info.st_mode & 0o7077), (self.uid, 0), name)
        self.assertEqual(sorted(os.listdir(self.store)),
                         ["capgate.lock", "install.lock", "packages"])

    def test_what_is_not_installed_is_a_refusal_that_helps(self):
        said = self.refusal([], ["npx", "-y", "tiny-mcp@^1"])
        self.assertIn("npm:tiny-mcp@^1 is not installed", said)
        self.assertIn("capgate install 'npm:tiny-mcp@^1'", said)

    def test_a_package_chooses_no_interpreter(self):
        """Its `#!` line could otherwise name a program of the caller's directory, and open that."""
        secret = self.file("private.txt", "private")
        self.file("lib/x", "")
        os.mkdir(os.path.join(self.work, "bin"))
        self.own(os.path.join(self.work, "bin"), 0o700)
        os.symlink(os.path.realpath(launch.PYTHON), os.path.join(self.work, "bin/python3"))
        code = f"print(open({secret!r}).read())\n"
        for number, line in enumerate(("#!bin/python3", f"#!{self.work}/bin/python3", "#!/usr/bin/env python3")):
            with self.subTest(line=line):
                name = f"evil-{number}"
                self.tiny(name, files={"index.js": f"{line}\n{code}"})
                self.install(f"npm:{name}")
                done = self.run_server([], ["npx", "-y", name], cwd=self.work)
                self.assertNotIn(b"private", done.stdout)
                self.assertEqual(done.returncode, 125, done.stderr)
                self.assertIn(b"asks to be run by", done.stderr)

    def test_without_its_interpreter_it_does_not_start(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        path = os.path.join(self.store, "capgate.lock")
        with open(path, encoding="utf-8") as file:
            lock = json.load(file)
        lock["packages"][0]["runtime"] = "/nowhere/node"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(lock, file)
        said = self.refusal([], ["npx", "-y", "tiny-mcp"])
        self.assertIn("was installed for /nowhere/node, which is gone", said)

    def test_the_tree_is_all_that_is_seen_of_the_store_and_cannot_be_changed(self):
        code = """#!/usr/bin/env node
const fs = require("fs");
const tried = (work) => { try { return work(); } catch (error) { return error.code; } };
console.log(JSON.stringify([
  __filename, tried(() => fs.readdirSync(process.argv[2])),
  tried(() => fs.writeFileSync(__filename, "")), tried(() => fs.mkdirSync(__dirname + "/new")),
  tried(() => fs.readdirSync("/opt/capgate")),
]));
"""
        self.registry.add_npm("tiny-mcp", "1.2.3", {"index.js": code}, bin="index.js")
        self.install("npm:tiny-mcp")
        for words in ([], ["--profile", "one"]):
            seen = json.loads(self.output(words, ["npx", "-y", "tiny-mcp", self.store]))
            self.assertEqual(seen[0], "/opt/capgate/package/node_modules/tiny-mcp/index.js")
            self.assertEqual(seen[1], "ENOENT")
            self.assertEqual(seen[2:], ["EROFS", "EROFS", ["package"]])

    def test_versions_are_chosen_by_range(self):
        self.tiny(version="1.2.3", tool="old")
        self.tiny(version="2.0.0", tool="new")
        self.install("npm:tiny-mcp@^1")
        self.install("npm:tiny-mcp")  # any version: the one that is there will do
        self.assertEqual([entry["range"] for entry in self.lock()], ["^1"])
        self.install("npm:tiny-mcp", "--upgrade")
        self.assertEqual(self.tools(["npx", "tiny-mcp@^1"])[0][0], "old")
        self.assertEqual(self.tools(["npx", "tiny-mcp"])[0][0], "new")
        self.assertEqual(self.tools(["npx", "tiny-mcp@1.x"])[0][0], "old")
        self.refusal([], ["npx", "tiny-mcp@^3"])

    def test_an_upgrade_takes_the_old_tree_away(self):
        self.tiny(tool="old")
        self.install("npm:tiny-mcp")
        before = self.installed("tiny-mcp")
        self.tiny(version="1.3.0", tool="new")
        self.install("npm:tiny-mcp", "--upgrade")
        self.assertNotEqual(self.installed("tiny-mcp"), before)
        self.assertEqual(self.tools(["npx", "tiny-mcp"])[0][0], "new")

    def test_an_upgrade_leaves_the_tree_of_a_running_server(self):
        self.tiny(tool="old")
        self.install("npm:tiny-mcp")
        before = self.installed("tiny-mcp")
        running = self.start([], ["npx", "tiny-mcp"])
        running.stdin.write(REQUESTS)
        running.stdin.flush()
        running.stdout.readline()
        self.tiny(version="1.3.0", tool="new")
        self.install("npm:tiny-mcp", "--upgrade")
        self.assertTrue(os.path.isdir(before))
        self.assertIn(b"old", running.stdout.readline())
        launch.finish(running)
        self.install("npm:tiny-mcp", "--upgrade")
        self.assertFalse(os.path.isdir(before))

    def test_list_and_remove(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        out, _ = self.install("--list", registry=False)
        self.assertIn("npm:tiny-mcp  1.2.3  " + self.store, out)
        self.install("--remove", "npm:tiny-mcp", registry=False)
        self.assertEqual(self.install("--list", "--json", registry=False)[0].split(),
                         json.dumps({"schemaVersion": 1, "packages": []}, indent=1).split())
        self.assertEqual(glob.glob(self.store + "/packages/npm/*"), [])
        self.install("--remove", "npm:tiny-mcp", registry=False, code=2)

    def test_a_changed_file_is_found(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        self.assertIn("ok", self.install("--check", registry=False)[0])
        with open(self.installed("tiny-mcp") + "/node_modules/tiny-mcp/says.js", "a",
                  encoding="utf-8") as file:
            file.write("// changed\n")
        out, err = self.install("--check", "--json", registry=False, code=8)
        self.assertIn("was changed after it was installed", err)
        self.assertFalse(json.loads(out)["packages"][0]["ok"])
        self.install("npm:tiny-mcp", "--upgrade")
        self.install("--check", registry=False)

    def test_a_tree_that_does_not_fit_the_lock_is_not_started(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        os.chmod(self.installed("tiny-mcp"), 0o777)
        self.assertIn("you alone can change", self.refusal([], ["npx", "tiny-mcp"]))

    def test_a_failed_install_says_why_and_changes_nothing(self):
        self.tiny()
        self.install("npm:tiny-mcp")
        before = self.lock()
        _, err = self.install("npm:missing-mcp", code=1)
        self.assertIn("404", err)
        self.assertEqual(self.lock(), before)
        self.tiny("tiny-two")
        page = "/tiny-two/-/tiny-two-1.2.3.tgz"
        other = package_registry.npm_archive({"package.json": '{"name": "tiny-two"}'})
        self.registry.pages[page] = ("application/octet-stream", other)
        _, err = self.install("npm:tiny-two", code=1)
        self.assertIn("EINTEGRITY", err)
        self.assertEqual(self.lock(), before)

    def test_a_hash_that_cannot_be_kept_leaves_the_lock_as_it_was(self):
        self.tiny("good-mcp")
        self.install("npm:good-mcp")
        integrity = self.tiny("long-mcp")
        kind, page = self.registry.pages["/long-mcp"]
        many = integrity + "".join(f" sha512-{i:085}A==" for i in range(20))
        self.registry.pages["/long-mcp"] = (kind, page.replace(integrity.encode(), many.encode()))
        _, err = self.install("npm:long-mcp", code=1)
        self.assertIn("cannot be kept in capgate.lock", err)
        self.assertEqual([each["name"] for each in self.lock()], ["good-mcp"])
        self.assertEqual(self.tools(["npx", "-y", "good-mcp"]), [("greet", "")])

    def test_words_that_are_no_package_are_refused(self):
        for word in ("tiny-mcp", "npm:../a", "npm:a@file:b", "npm:-g", "pypi:a @ http://b"):
            self.install(word, code=2)
        for url in ("ftp://a/", "http://me:hunter2@localhost/", "localhost"):
            _, err = self.install("npm:tiny-mcp", "--registry", url, registry=False, code=1)
            self.assertNotIn("hunter2", err)


@started_by_root_and_user
class Scripts(InstallCase):
    MARK = "require('fs').writeFileSync('marker', 'ran');"

    def marker(self):
        return self.installed("tiny-mcp") + "/node_modules/tiny-mcp/marker"

    def test_they_do_not_run(self):
        fields, files = script(self.MARK)
        self.tiny(fields=fields, files=files)
        self.install("npm:tiny-mcp")
        self.assertFalse(os.path.lexists(self.marker()))

    def test_they_run_where_they_are_allowed(self):
        fields, files = script(self.MARK)
        self.tiny(fields=fields, files=files)
        _, err = self.install("npm:tiny-mcp", "--allow-scripts")
        self.assertIn("scripts of its packages ran", err)
        self.assertTrue(os.path.exists(self.marker()))
        self.assertTrue(self.lock()[0]["scripts"])

    def test_they_run_also_where_it_is_installed_without_them(self):
        fields, files = script("require('fs').writeFileSync('ran', 'x')")
        self.tiny(fields=fields, files=files)
        self.install("npm:tiny-mcp")
        self.install("npm:tiny-mcp", "--allow-scripts")
        ran = os.path.join(self.installed("tiny-mcp"), "node_modules/tiny-mcp/ran")
        self.assertTrue(os.path.exists(ran))

    def test_they_reach_the_registry_and_nothing_else(self):
        fields, files = script("""
const net = require("net"), fs = require("fs");
const results = [];
const attempt = (port) => new Promise((done) => {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("connect", () => { results.push("connected"); socket.destroy(); done(); });
  socket.on("error", (error) => { results.push(error.code); done(); });
});
const see = (path) => { try { return fs.readdirSync(path); } catch (e) { return e.code; } };
attempt(Number(fs.readFileSync("port", "utf8"))).then(() => {
  results.push(see(process.env.HOME), see("%s"), Object.keys(process.env).includes("NPM_TOKEN"));
  fs.writeFileSync("marker", JSON.stringify(results));
});
""" % self.work)
        with service(2, ("127.0.0.1", 0)) as address:
            files["port"] = str(address[1])
            self.tiny(fields=fields, files=files)
            with open(os.path.join(self.home, ".npmrc"), "w", encoding="utf-8") as file:
                file.write("//localhost/:_authToken=hunter2\n")
            self.own(os.path.join(self.home, ".npmrc"), 0o600)
            self.install("npm:tiny-mcp", "--allow-scripts", NPM_TOKEN="hunter2")
        with open(self.marker(), encoding="utf-8") as file:
            connected, home, work, token = json.load(file)
        self.assertEqual((connected, home, work), ("ECONNREFUSED", [".local"], "ENOENT"))
        self.assertFalse(token)
        logs = glob.glob(os.path.join(self.home, ".local/state/capgate/audit/*.jsonl"))
        lines = []
        for path in logs:
            with open(path, encoding="utf-8") as file:
                lines += file.readlines()
        self.assertTrue(any(str(address[1]) in line for line in lines), lines)


@started_by_root_and_user
class Interrupted(InstallCase):
    def held_install(self, name):
        """An install that waits for the registry, which waits for us."""
        path = f"/{name}/-/{name}-1.2.3.tgz"
        self.registry.waits[path] = threading.Event()
        process = self.start_install(f"npm:{name}")
        self.assertTrue(self.registry.reached.wait(60))
        return process, self.registry.waits[path]

    def test_a_killed_one_leaves_the_store_as_it_was(self):
        self.tiny()
        self.tiny("tiny-two")
        self.install("npm:tiny-mcp")
        before = self.lock()
        process, gate = self.held_install("tiny-two")
        self.assertTrue(os.path.isdir(self.store + "/staging"))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        reap_orphans()  # returns when npm and its sandbox are gone
        self.assertEqual(self.lock(), before)
        self.assertEqual(os.listdir(self.store + "/packages/npm"), ["tiny-mcp"])
        self.assertEqual(self.tools(["npx", "tiny-mcp"])[0][0], "greet")
        gate.set()
        self.install("npm:tiny-two")
        self.assertFalse(os.path.exists(self.store + "/staging"))
        self.assertEqual(self.tools(["npx", "tiny-two"])[0][0], "greet")

    def test_two_at_once_wait_for_each_other(self):
        self.tiny()
        self.tiny("tiny-two")
        first, gate = self.held_install("tiny-two")
        second = self.start_install("npm:tiny-mcp")
        with self.assertRaises(subprocess.TimeoutExpired):
            second.wait(1)
        gate.set()
        for process in (first, second):
            _, err = process.communicate(timeout=INSTALL_SECONDS)
            self.assertEqual(process.returncode, 0, err.decode())
        self.assertEqual([entry["name"] for entry in self.lock()], ["tiny-mcp", "tiny-two"])


@started_by_root_and_user
class PyPi(InstallCase):
    def setUp(self):
        super().setUp()
        self.registry.add_wheel("tiny-words", "1.0", {"tiny_words.py": "TOOL = 'greet'\n"})
        self.integrity = self.registry.add_wheel(
            "tiny-py", "2.0", {"tiny_py.py": package_registry.PYTHON_SERVER},
            scripts={"tiny-py": "tiny_py:main"}, requires=["tiny-words"])

    def test_a_wheel_runs_without_its_index(self):
        self.install("pypi:tiny-py", path="simple")
        entry = self.lock()[0]
        self.assertEqual((entry["registry"], entry["version"], entry["integrity"]),
                         ("pypi", "2.0", self.integrity))
        asked = len(self.registry.asked)
        self.assertEqual(self.tools(["uvx", "tiny-py", "a"]), [("greet", "a")])
        self.assertEqual(self.tools(["pipx", "run", "tiny-py"]), [("greet", "")])
        self.assertEqual(len(self.registry.asked), asked)
        self.install("--check", registry=False)

    def test_the_index_is_the_one_of_pips_configuration(self):
        index = self.registry.url + "simple"
        self.install("pypi:tiny-py", registry=False, PIP_INDEX_URL=index)
        self.assertEqual(len(self.lock()), 1)

    def test_sources_are_not_built(self):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            text = b"open('/tmp/marker', 'w')\n"
            info = tarfile.TarInfo("tiny-source-1.0/setup.py")
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        self.registry.add_file("tiny-source", "tiny-source-1.0.tar.gz", data.getvalue())
        _, err = self.install("pypi:tiny-source", path="simple", code=1)
        self.assertIn("only wheels are installed", err)
        self.assertNotIn("/files/tiny-source-1.0.tar.gz", self.registry.asked)


@started_by_root_and_user
class Caches(InstallCase):
    def test_they_are_in_the_home_of_the_profile(self):
        """Nothing names a cache elsewhere, so that npm, pip and others make theirs in HOME."""
        env = self.environment(npm_config_cache="/var/tmp/x", XDG_CACHE_HOME="/var/tmp/x",
                               PIP_CACHE_DIR="/var/tmp/x", UV_CACHE_DIR="/var/tmp/x")
        seen = self.attempt(["--profile", "one"], "sorted(os.environ)", "os.environ['HOME']",
                            env=env)
        self.assertEqual(seen, [repr(["HOME", "LANG", "PATH", "TMPDIR"]),
                                repr(self.home)])


@started_by_root_and_user
class RealRegistry(InstallCase):
    """The registry of npm's own configuration, in a fresh HOME."""

    TIER = "full"
    PACKAGES = {0: ("@modelcontextprotocol/server-memory", "create_entities"),
                launch.ORDINARY: ("time-mcp", "current_time")}

    def test_a_real_server(self):
        name, tool = self.PACKAGES[self.uid]
        self.install(f"npm:{name}", registry=False)
        self.assertRegex(self.lock()[0]["integrity"], "^sha512-")
        self.assertIn(tool, [found for found, _ in self.tools(["npx", "-y", name])])
        self.install("--check", registry=False)


if __name__ == "__main__":
    unittest.main()
