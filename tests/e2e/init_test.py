"""capgate init: the tools of real servers of both eras become a manifest that passes `check`, servers
that do not keep to the protocol give a message, and nothing of them is left running."""

import contextlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import unittest

import launch
import npm_servers
from cases import service, started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, cgroups_of, end, python, reap_orphans
from starters import started_by_user

FIXTURES = ("npm_servers",)
PACKAGES = "@modelcontextprotocol/server-"
NO_LIST = 3
USAGE = 2

# A legacy server, and a function for each message that it writes.
SERVER = """
import json, os, sys, time
def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def ask():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit()
def refuse(request):
    say(id=request["id"], error={"code": -32601, "message": "Method not found"})
def start():
    refuse(ask())
    say(id=ask()["id"], result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "scripted", "version": "1.2"}})
    ask()
    return ask()["id"]
def tools(id, *names, **more):
    say(id=id, result={"tools": [{"name": name, "inputSchema": {}} for name in names], **more})
"""


def setUpModule():
    npm_servers.install()
    adopt_orphans()


def scripted(code):
    return python(SERVER + code)


def package(name, *arguments):
    return [launch.NODE, os.path.join(npm_servers.MODULES, f"{PACKAGES}{name}/dist/index.js"),
            *arguments]


MODERN = [launch.NODE, os.path.join(npm_servers.OWN, "modern.mjs")]
MODULES = f"fs:read:{npm_servers.MODULES}/**"


class InitCase(RunCase):
    def start_init(self, words, command, *, env=None):
        process = subprocess.Popen(
            [launch.CAPGATE, "init", *words, "--", *command], cwd=self.work,
            env=self.environment(**(env or {})), preexec_fn=lambda: launch.become(self.uid),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end, process)
        return process

    def init(self, words, command, *, code=0, **options):
        """What is written to stdout and stderr by an init that leaves nothing running."""
        process = self.start_init(words, command, **options)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, code, err)
        self.assert_nothing_left(process.pid)
        return out, err

    def failure(self, words, command, **options):
        """What a person is told of a server that gave no list."""
        out, err = self.init(words, command, code=NO_LIST, **options)
        self.assertEqual(out, "")
        return err

    def names(self, words, command, **options):
        """The tools of the server, in its order."""
        out, _ = self.init(["--json", *words], command, **options)
        manifest = json.loads(out)["manifest"]
        for tool in manifest["tools"]:
            self.assertEqual(tool["capabilities"], [])
        return [tool["name"] for tool in manifest["tools"]]

    def checked(self, path):
        """The manifest in a file, as `capgate check` and `compile` see it."""
        done = launch.capgate("check", "--json", path)
        self.assertEqual(done.returncode, 0, done.stdout)
        return json.loads(done.stdout)

    def path(self, name):
        return os.path.join(self.work, name)


@started_by_root_and_user
class RealServers(InitCase):
    def tools_outside(self, command, client):
        """What an official client is told by the same server without a sandbox."""
        order = {"client": client, "command": command, "env": {}, "cwd": "/usr",
                 "steps": [{"list": True}]}
        done = launch.run_outside([launch.NODE, npm_servers.DRIVE], env={"PATH": os.defpath},
                                  stdin=json.dumps(order).encode())
        answer = json.loads(done.stdout)
        self.assertNotIn("error", answer)
        return answer["results"][0], answer

    def assert_same_tools(self, command, client=1):
        expected, answer = self.tools_outside(command, client)
        self.assertGreater(len(expected), 0)
        file = self.path("server.yaml")
        self.init(["-o", file, *allow(MODULES)], command)
        found = self.checked(file)
        self.assertEqual((found["name"], found["version"]),
                         (answer["server"]["name"], answer["server"]["version"]))
        self.assertEqual((found["tools"], found["declared"]), (len(expected), 0))
        out, _ = self.init(["--json", *allow(MODULES)], command)
        told = json.loads(out)
        self.assertEqual([tool["name"] for tool in told["manifest"]["tools"]], expected)
        self.assertEqual(told["server"]["protocol"], answer["protocol"])
        return told

    def test_memory(self):
        told = self.assert_same_tools(package("memory"))
        self.assertEqual(told["server"]["era"], "legacy")
        hints = {tool["name"]: tool["annotations"] for tool in told["tools"]}
        self.assertIs(hints["read_graph"]["readOnlyHint"], True)
        self.assertIs(hints["delete_entities"]["destructiveHint"], True)

    def test_filesystem(self):
        self.assert_same_tools(package("filesystem", "/usr"))

    def test_everything(self):
        self.assert_same_tools(package("everything"))

    def test_the_modern_era(self):
        told = self.assert_same_tools(MODERN, client=2)
        self.assertEqual(told["server"]["era"], "modern")
        self.assertEqual(told["server"]["protocol"], "2026-07-28")


@started_by_user("test_yaml_on_stdout_passes_check", "test_a_file_is_yaml_or_json_by_its_name")
class Files(InitCase):
    command = scripted("tools(start(), 'read_file', 'run')")

    def test_yaml_on_stdout_passes_check(self):
        out, err = self.init([], self.command)
        self.assertEqual(err, "")
        self.assertIn("    #  - exec:spawn:PROGRAM", out)
        self.assertEqual(self.checked(self.file("m.yaml", out))["tools"], 2)

    def test_a_file_is_yaml_or_json_by_its_name(self):
        for name in ("m.yaml", "m.yml", "m.json", "manifest"):
            with self.subTest(name=name):
                out, err = self.init(["-o", name], self.command)
                self.assertEqual(out, "")
                self.assertIn("2 tools", err)
                found = self.checked(self.path(name))
                self.assertEqual((found["name"], found["version"]), ("scripted", "1.2"))
                is_yaml = name.startswith("m.y")
                self.assertEqual(self.text(name).startswith("#"), is_yaml)
                self.assertEqual(os.stat(self.path(name)).st_uid, self.uid)
        self.assertEqual(json.loads(self.text("m.json")),
                         {"name": "scripted", "version": "1.2", "serverCapabilities": [],
                          "tools": [{"name": "read_file", "capabilities": []},
                                    {"name": "run", "capabilities": []}]})
        self.assertEqual(sorted(os.listdir(self.work)), ["m.json", "m.yaml", "m.yml", "manifest"])

    def test_a_file_that_exists_stays(self):
        self.file("m.yaml", "mine")
        os.symlink("nowhere", self.path("link.yaml"))
        for name, words in (("m.yaml", "--force"), ("link.yaml", "no regular file")):
            _, err = self.init(["-o", name], self.command, code=USAGE)
            self.assertIn(words, err)
        self.assertEqual(self.text("m.yaml"), "mine")
        self.assertEqual(os.readlink(self.path("link.yaml")), "nowhere")
        _, err = self.init(["-o", "link.yaml", "--force"], self.command, code=USAGE)
        self.assertIn("no regular file", err)
        os.mkfifo(self.path("fifo"))
        self.init(["-o", "fifo", "--force"], self.command, code=USAGE)
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("fifo")).st_mode))
        self.init(["-o", "m.yaml", "--force"], self.command)
        self.assertEqual(self.checked(self.path("m.yaml"))["tools"], 2)

    def test_a_file_that_appears_meanwhile_stays(self):
        """The server itself puts a file where the manifest goes."""
        code = f"open({self.path('m.yaml')!r}, 'w').write('first'); tools(start(), 'a')"
        words = ["-o", "m.yaml", *allow(f"fs:write:{self.work}/**")]
        _, err = self.init(words, scripted(code), code=1)
        self.assertIn("File exists", err)
        self.assertEqual(self.text("m.yaml"), "first")
        self.assertEqual(os.listdir(self.work), ["m.yaml"])

    def test_a_profile_gives_the_name_and_the_home(self):
        code = "open(os.path.expanduser('~/mark'), 'a').write('x'); tools(start(), 'a')"
        out, _ = self.init(["--profile", "mine", "--json"], scripted(code))
        self.assertEqual(json.loads(out)["manifest"]["name"], "mine")
        with open(f"{self.home}/.local/state/capgate/mine/home/mark", encoding="utf-8") as file:
            self.assertEqual(file.read(), "x")


@started_by_root_and_user
class Sandboxed(InitCase):
    def test_there_is_no_network(self):
        code = ("import errno, socket\n"
                "try:\n"
                "    socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)\n"
                "    result = 'connected'\n"
                "except OSError as error:\n"
                "    result = errno.errorcode.get(error.errno, 'late')\n"
                "tools(start(), result)")
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (host, port):
            # The control: the same server is connected outside.
            outside = launch.run_outside(
                scripted(code) + [host, str(port)],
                stdin=b''.join(b'{"jsonrpc":"2.0","id":%d}\n' % n for n in range(1, 5)))
            self.assertIn(b'"name": "connected"', outside.stdout)
            # The service is a process of ours too: what is left is seen after its end.
            process = self.start_init(["--json"], scripted(code) + [host, str(port)])
            out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assert_nothing_left(process.pid)
        tool, = json.loads(out)["manifest"]["tools"]
        self.assertRegex(tool["name"], "^E[A-Z]+$")

    def test_variables_and_files_only_with_allow(self):
        note = self.file("note", "x")
        code = ("tools(start(), os.environ.get('TOKEN', 'none'),\n"
                "      'file' if os.path.exists(sys.argv[1]) else 'nothing')")
        command = scripted(code) + [note]
        env = {"TOKEN": "value"}
        self.assertEqual(self.names([], command, env=env), ["none", "nothing"])
        words = allow("env:inject:TOKEN", f"fs:read:{note}")
        self.assertEqual(self.names(words, command, env=env), ["value", "file"])

    def test_a_profile_grants_nothing(self):
        names = self.names(["--profile", "p"],
                           scripted(f"tools(start(), str(os.path.exists({self.work!r})))"))
        self.assertEqual(names, ["False"])


@started_by_user("test_requests_of_the_server_are_answered")
class Servers(InitCase):
    """What servers do that keep to the protocol, more or less."""

    def test_requests_of_the_server_are_answered(self):
        code = ("id = start()\n"
                "say(id='r', method='roots/list')\n"
                "say(id=5, method='ping')\n"
                "say(method='notifications/message', params={})\n"
                "roots, ping = ask(), ask()\n"
                "tools(id, str(roots['error']['code']), str(ping['result']), ping['id'] == 5 and 'b')")
        self.assertEqual(self.names([], scripted(code)), ["-32601", "{}", "b"])

    def test_pages(self):
        code = ("tools(start(), 'a', nextCursor='1')\n"
                "request = ask()\n"
                "tools(request['id'], 'page ' + request['params']['cursor'])")
        self.assertEqual(self.names([], scripted(code)), ["a", "page 1"])

    def test_a_banner_is_noted(self):
        _, err = self.init([], scripted("print('Welcome', flush=True); tools(start(), 'a')"))
        self.assertIn('note: its stdout also holds text that is no MCP message, first "Welcome"', err)

    def test_one_that_ends_on_the_question_of_the_modern_era_is_started_again(self):
        code = ("request = ask()\n"
                "if request['method'] != 'initialize': sys.exit(1)\n"
                "say(id=request['id'], result={'protocolVersion': '2024-11-05', 'capabilities': {}})\n"
                "ask()\n"
                "tools(ask()['id'], 'a')")
        self.assertEqual(self.names([], scripted(code)), ["a"])

    def test_its_words_cannot_leave_their_comment(self):
        code = ("text = 'x\\u2028serverCapabilities: [\"net:connect:*\"]\\nname: y\\x1b[31m'\n"
                "say(id=start(), result={'tools': [{'name': 'a', 'description': text}]})")
        out, _ = self.init([], scripted(code))
        self.assertNotIn("\x1b", out)
        self.assertNotIn("\u2028", out)
        found = self.checked(self.file("m.yaml", out))
        self.assertEqual((found["name"], found["declared"]), ("scripted", 0))


@started_by_user("test_one_that_ends_at_once", "test_nothing_is_written_for_it")
class BrokenServers(InitCase):
    def test_one_that_ends_at_once(self):
        said = self.failure([], python("import sys; sys.exit('no \\x1b[31mtoken')"))
        self.assertIn("ended without an answer to initialize (exit status 1)", said)
        self.assertIn("| no \\x1b[31mtoken", said)
        self.assertIn("--allow env:inject:NAME", said)
        self.assertIn("run --trace -", said)

    def test_one_that_is_not_there(self):
        said = self.failure([], [self.path("nothing")])
        self.assertIn("cannot be started in its sandbox", said)
        self.assertIn("no such file", said)
        self.assertEqual(said.count("help:"), 1)

    def test_a_capability_that_is_none(self):
        said = self.failure(allow("fs:look:/x"), python("pass"))
        self.assertIn("CAP_", said)

    def test_a_package_runner_is_to_be_installed(self):
        said = self.failure([], ["npx", "-y", "server"])
        self.assertIn("capgate install 'npm:server'", said)

    def test_one_that_is_silent(self):
        said = self.failure(["--timeout", "1"], scripted("time.sleep(1000)"))
        self.assertIn("no answer within 1 seconds to initialize", said)
        self.assertIn("--timeout", said)

    def test_one_that_floods(self):
        flood = "while True: sys.stdout.write('{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\\n' * 1000)"
        self.assertIn("it wrote more than", self.failure([], scripted(flood)))

    def test_one_that_writes_garbage(self):
        garbage = "while True: os.write(1, os.urandom(1000) + b'\\n')"
        self.assertIn("other text than MCP messages", self.failure([], scripted(garbage)))

    def test_one_with_an_endless_line(self):
        endless = "while True: os.write(1, b'x' * 100000)"
        self.assertIn("a line of more than 4194304 bytes", self.failure([], scripted(endless)))

    def test_one_with_a_line_of_10_mb(self):
        line = "tools(start(), 'a', filler='x' * 10_000_000)"
        self.assertIn("a line of more than 4194304 bytes", self.failure([], scripted(line)))

    def test_one_whose_pages_do_not_end(self):
        pages = ("id, n = start(), 0\n"
                 "while True:\n"
                 "    n += 1\n"
                 "    tools(id, f'tool{n}', nextCursor=str(n))\n"
                 "    id = ask()['id']")
        self.assertIn("does not end: page 1000", self.failure([], scripted(pages)))

    def test_one_that_floods_its_stderr(self):
        code = "os.write(2, b'x\\n' * 3_000_000); sys.exit('the end')"
        said = self.failure([], scripted(code))
        self.assertLess(len(said), 5000)

    def test_for_programs(self):
        out, err = self.init(["--json"], python("import sys; sys.exit('no token')"), code=NO_LIST)
        self.assertEqual(err, "")
        told = json.loads(out)
        self.assertEqual(told["schemaVersion"], 1)
        self.assertEqual(told["error"]["stderr"], ["no token"])

    def test_nothing_is_written_for_it(self):
        self.init(["-o", "m.yaml"], python("pass"), code=NO_LIST)
        self.assertEqual(os.listdir(self.work), [])


@started_by_root_and_user
class Ending(InitCase):
    """Whatever happens, the server ends, and so does everything that was made for it."""

    @contextlib.contextmanager
    def running(self, *words):
        """An init whose server runs, ignores every signal and never answers; and its `capgate run`."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        self.own(fifo, 0o600)
        code = ("import signal\n"
                "for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):\n"
                "    signal.signal(each, signal.SIG_IGN)\n"
                f"open({fifo!r}, 'w').close()\n"
                "while True: time.sleep(1000)")
        ready = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, ready)
        process = self.start_init([*words, *allow(f"fs:write:{self.work}/**")], scripted(code))
        poll = select.poll()
        poll.register(ready)
        self.assertTrue(poll.poll(launch.SECONDS * 1000), "the server does not start")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="utf-8") as file:
            supervisor, = map(int, file.read().split())
        yield process, supervisor

    def assert_clean(self, process, supervisor):
        process.communicate(timeout=60)
        self.assert_nothing_left(process.pid)
        self.assertEqual(cgroups_of(supervisor), [])
        self.assertFalse(os.path.exists(f"/proc/{supervisor}"))

    def test_a_server_that_ignores_every_signal(self):
        with self.running("--timeout", "1") as (process, supervisor):
            self.assert_clean(process, supervisor)
        self.assertEqual(process.returncode, NO_LIST)

    def test_an_interrupt(self):
        for wanted in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=wanted), self.running() as (process, supervisor):
                process.send_signal(wanted)
                self.assert_clean(process, supervisor)
                self.assertEqual(process.returncode, 128 + wanted)
            os.unlink(self.path("fifo"))

    def test_a_killed_init_takes_its_server_along(self):
        with self.running() as (process, supervisor):
            process.kill()
            process.communicate(timeout=60)
        reap_orphans()
        self.assertFalse(os.path.exists(f"/proc/{supervisor}"))
        # Who is killed cannot clean up: what is left is empty.
        for path in cgroups_of(supervisor):
            os.rmdir(path)


class Words(InitCase):
    def test_usage(self):
        for words, command, named in (([], [], "COMMAND"), (["--timeout", "0"], ["x"], "--timeout"),
                                      (["--timeout", "x"], ["x"], "--timeout"),
                                      (["-o", ""], ["x"], "--output"), (["--what"], ["x"], "--what")):
            with self.subTest(words=words):
                _, err = self.init(words, command, code=USAGE)
                self.assertIn(named, err)

    def test_help_has_examples(self):
        done = launch.capgate("init", "--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("capgate init -o server.yaml -- node server.js", done.stdout)


if __name__ == "__main__":
    unittest.main()
