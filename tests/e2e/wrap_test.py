"""`capgate wrap` and `unwrap`: what they write into a client's file, and what they leave alone."""

import fcntl
import json
import os
import pty
import select
import signal
import stat
import subprocess
import termios
import time
import unittest

import launch
from wrap_cases import CLIENTS, TOKEN, WrapCase, commands_of, json_servers, parse

CURSOR = CLIENTS["cursor"][0]


class Person:
    """Runs capgate on a terminal, reads what it shows and types an answer."""

    def __init__(self, words, case):
        self.control, end = pty.openpty()

        def take_terminal():
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)
            launch.become(case.uid)

        self.process = subprocess.Popen([launch.CAPGATE, *words], stdin=end, stdout=end, stderr=end,
                                        env=case.environment(), cwd=case.home,
                                        preexec_fn=take_terminal)
        os.close(end)
        self.shown = b""
        case.addCleanup(self.close)

    def read(self):
        try:
            return os.read(self.control, 65536)
        except OSError:  # the other end is closed
            return b""

    def wait_for(self, text):
        deadline = time.monotonic() + launch.SECONDS
        while text.encode() not in self.shown:
            if not select.select([self.control], [], [], deadline - time.monotonic())[0]:
                raise AssertionError(f"no {text!r} in {self.shown.decode()}")
            more = self.read()
            if not more:
                raise AssertionError(f"no {text!r} in {self.shown.decode()}")
            self.shown += more

    def answer(self, text):
        os.write(self.control, text.encode() + b"\n")

    def finish(self):
        while more := self.read():
            self.shown += more
        return self.process.wait(timeout=launch.SECONDS), self.shown.decode()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.control)


class EveryClient:
    """For each client of the table."""

    def test_only_the_commands_change_and_unwrap_gives_the_same_bytes(self):
        for client in CLIENTS:
            with self.subTest(client):
                path = self.client(client, mode=0o640)
                before = self.read(path)
                info = os.stat(path)
                self.wrap(client, "--yes")
                rest, commands = commands_of(parse(path, before))
                new_rest, new_commands = commands_of(parse(path, self.read(path)))
                self.assertEqual(new_rest, rest)
                self.assertEqual(len(new_commands), len(commands))
                for old, new in zip(commands, new_commands):
                    self.assertEqual(new[:3], [os.path.realpath(launch.CAPGATE), "run",
                                               "--profile"])
                    self.assertEqual(new[4:], ["--", *old])
                    self.assertTrue(os.path.exists(self.policy_file(new[3])), new[3])
                backup = f"{path}.capgate-backup"
                self.assertEqual(self.read(backup), before)
                self.assertEqual(stat.S_IMODE(os.stat(backup).st_mode), 0o600)
                self.unwrap(client, "--yes")
                self.assertEqual(self.read(path), before)
                after = os.stat(path)
                self.assertEqual((after.st_mode, after.st_uid, after.st_gid),
                                 (info.st_mode, info.st_uid, info.st_gid))
                self.assertFalse(os.path.exists(backup))
                os.unlink(path)

    def test_a_file_that_is_wrapped_stays_as_it_is(self):
        for client in CLIENTS:
            with self.subTest(client):
                path = self.client(client)
                self.wrap(client, "--yes")
                wrapped = self.snapshot()
                out, err = self.wrap(client, "--yes")
                self.assertIn("nothing to wrap", err)
                self.assertIn("it is wrapped already", out)
                self.assertEqual(self.snapshot(), wrapped)
                self.unwrap(path, "--yes")
                self.assertIn("nothing is wrapped", self.unwrap(path, "--yes")[1])
                os.unlink(path)

    def test_a_dry_run_writes_nothing(self):
        for client in CLIENTS:
            self.client(client)
        before = self.snapshot()
        out, _ = self.wrap("--dry-run")
        for client, (name, _) in CLIENTS.items():
            self.assertIn(os.path.join(self.home, name), out, client)
        self.assertEqual(self.snapshot(), before)

    def test_all_at_once(self):
        paths = [self.client(client) for client in CLIENTS]
        before = {path: self.read(path) for path in paths}
        self.wrap("--yes")
        for path in paths:
            self.assertNotEqual(self.read(path), before[path], path)
        self.unwrap("--yes")
        for path in paths:
            self.assertEqual(self.read(path), before[path], path)


class Showing:
    """What is said, and to whom."""

    def test_the_whole_command_its_policy_and_the_diff(self):
        words = ["-y", "@modelcontextprotocol/server-filesystem", "/srv" + "/x" * 1500]
        self.config(CURSOR, json.dumps({"mcpServers": {"files": {"command": "npx", "args": words}}},
                                       indent=2))
        out, _ = self.wrap("cursor", "--dry-run")
        self.assertIn("npx " + " ".join(words), out)
        self.assertIn("catalog:filesystem", out)
        self.assertIn(f"fs:write:{words[-1]}/**", out)
        self.assertIn('-      "command": "npx"', out)
        self.assertIn(f'+      "command": "{os.path.realpath(launch.CAPGATE)}"', out)
        self.assertIn("@@", out)
        self.assertNotIn("\x1b", out)

    def test_an_unknown_server_gets_nothing_and_the_next_step(self):
        self.client("goose")
        out, err = self.wrap("goose", "--yes")
        self.assertIn("may nothing", out)
        self.assertIn("capgate run --profile notes --trace -", out)
        self.assertIn("capgate unwrap goose", err)
        self.assertIn(self.policy_file("notes"), err)
        self.assertIn("capabilities: []", self.read(self.policy_file("notes")))

    def test_servers_that_are_left_alone_have_a_reason(self):
        self.config(CURSOR, json.dumps({"mcpServers": {
            "far": {"url": "https://mcp.example.com", "headers": {"Authorization": TOKEN}},
            "off": {"command": "x", "disabled": True},
            "odd": {"command": "x", "args": "not an array"}}}))
        before = self.snapshot()
        out, err = self.wrap("cursor", "--yes")
        self.assertRegex(out, "far: left alone: .*its code does not run on this machine")
        self.assertRegex(out, "off: left alone: .*disabled")
        self.assertRegex(out, "odd: left alone: .*args")
        self.assertIn("nothing to wrap", err)
        self.assertEqual(self.snapshot(), before)

    def test_tokens_are_named_and_never_shown(self):
        self.client("cursor")  # as_user() looks for the value in everything that is printed
        out, _ = self.wrap("cursor", "--dry-run")
        self.assertRegex(out, "GITHUB_PERSONAL_ACCESS_TOKEN in plain text.*--seal")
        self.wrap("cursor", "--dry-run", "--json")
        name, text = CLIENTS["cursor"]
        self.config(name, json.dumps(parse(name, text)).replace("%TOKEN%", TOKEN))
        out, _ = self.wrap("cursor", "--yes")
        self.assertIn("***", out)

    def test_json(self):
        path = self.client("cursor")
        shown = json.loads(self.wrap("cursor", "--json", "--dry-run")[0])
        self.assertEqual((shown["schemaVersion"], shown["command"], shown["dryRun"]),
                         (1, "wrap", True))
        file, = shown["files"]
        self.assertEqual((file["client"], file["path"], file["written"], file["backup"]),
                         ("cursor", path, False, None))
        servers = {each["name"]: each for each in file["servers"]}
        self.assertEqual({name: each["action"] for name, each in servers.items()},
                         {"github": "wrap", "no args": "wrap", "files": "wrap", "remote": "http"})
        self.assertEqual(servers["files"]["manifest"], "catalog:filesystem")
        self.assertEqual(servers["files"]["command"][0], "npx")
        self.assertTrue(any("/srv/a b" in line for line in servers["files"]["policy"]))
        self.assertEqual(servers["no args"]["profile"], "no-args")
        self.assertEqual(servers["no args"]["policy"], [])
        self.assertEqual(servers["github"]["plainSecrets"], ["GITHUB_PERSONAL_ACCESS_TOKEN"])
        self.wrap("cursor", "--json", code=2)
        done = json.loads(self.wrap("cursor", "--json", "--yes")[0])["files"][0]
        self.assertEqual((done["written"], done["backup"]), (True, f"{path}.capgate-backup"))
        done = json.loads(self.unwrap("cursor", "--json", "--yes")[0])
        self.assertEqual(done["files"][0]["servers"][0]["action"], "unwrap")

    def test_nothing_is_asked_without_a_terminal(self):
        self.client("cursor")
        before = self.snapshot()
        _, err = self.wrap("cursor", code=2)
        self.assertIn("--yes", err)
        self.assertNotIn("[y/N]", err)
        self.assertEqual(self.snapshot(), before)
        self.wrap("cursor", "--yes")
        wrapped = self.snapshot()
        self.assertIn("--yes", self.unwrap("cursor", code=2)[1])
        self.assertEqual(self.snapshot(), wrapped)

    def test_words_that_mean_nothing(self):
        self.client("cursor")
        self.assertIn("did you mean cursor?", self.wrap("curser", code=2)[1])
        self.assertIn("did you mean github?", self.wrap("cursor", "githup", code=2)[1])
        self.assertIn(".codex/config.toml", self.wrap("codex", code=3)[1])
        self.assertIn("No such file", self.wrap("./nothing.json", code=3)[1])
        self.config("odd.json", '{"a": 1}')
        self.assertIn("no client's configuration", self.wrap("odd.json", code=3)[1])
        os.unlink(os.path.join(self.home, CURSOR))
        self.assertIn("no client's configuration was found", self.wrap(code=3)[1])


class Choosing:
    """Which servers, which files, which profiles."""

    def test_only_the_named_servers(self):
        path = self.client("cursor")
        before = parse(path, self.read(path))
        self.wrap("cursor", "github", "--yes")
        after = parse(path, self.read(path))
        self.assertNotEqual(after["mcpServers"].pop("github"), before["mcpServers"].pop("github"))
        self.assertEqual(after, before)
        self.wrap("cursor", "--yes")
        self.unwrap("cursor", "files", "no args", "--yes")
        after = parse(path, self.read(path))
        self.assertIn("capgate", after["mcpServers"].pop("github")["command"])
        self.assertEqual(after, before)

    def test_any_file(self):
        text = json_servers("mcpServers")
        path = self.config("somewhere/any name.json", text)
        self.wrap(path, "--yes")
        self.assertIn("--profile", self.read(path))
        self.unwrap("somewhere/any name.json", "--yes")
        self.assertEqual(self.read(path), text)

    def test_two_clients_share_a_profile_that_says_the_same(self):
        for name in (CURSOR, ".kimi/mcp.json"):
            self.config(name, '{"mcpServers": {"a": {"command": "a-server"}}}')
        self.config(".lmstudio/mcp.json", '{"mcpServers": {"a": {"command": "b-server"}}}')
        self.wrap("--yes")
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.policy_file("a")))),
                         ["a-lmstudio.yaml", "a.yaml"])
        self.assertIn("a-lmstudio", self.read(os.path.join(self.home, ".lmstudio/mcp.json")))

    def test_a_policy_that_a_person_changed_is_kept(self):
        path = self.config(CURSOR, '{"mcpServers": {"a": {"command": "a-server"}}}')
        self.wrap("cursor", "--yes")
        text = self.read(self.policy_file("a")).replace("capabilities: []",
                                                        'capabilities: ["fs:read:/srv/**"]')
        self.config(".config/capgate/servers/a.yaml", text, mode=0o600)
        self.unwrap("cursor", "--yes")
        out, _ = self.wrap("cursor", "--yes")
        self.assertIn("fs:read:/srv/**", out)
        self.assertEqual(self.read(self.policy_file("a")), text)
        self.assertIn('"a"', self.read(path))

    def test_an_entry_that_says_disabled_is_left_alone(self):
        self.config(".config/capgate/capgate.yaml",
                    "servers:\n  a:\n    command: [a-server]\n    sandbox: {enabled: false}\n")
        self.config(CURSOR, '{"mcpServers": {"a": {"command": "a-server"}}}')
        out, err = self.wrap("cursor", "--yes")
        self.assertIn("enabled: false", out)
        self.assertIn("nothing to wrap", err)

    def test_names_that_could_be_paths(self):
        path = self.config(CURSOR, json.dumps({"mcpServers": {
            "../../../x": {"command": "a"}, "..": {"command": "b"}, "": {"command": "c"},
            "x" * 300: {"command": "d"}}}))
        before = self.read(path)
        self.wrap("cursor", "--yes")
        for name in os.listdir(os.path.dirname(self.policy_file("a"))):
            self.assertRegex(name, r"^[A-Za-z0-9_][A-Za-z0-9._-]*\.yaml$")
        self.unwrap("cursor", "--yes")
        self.assertEqual(self.read(path), before)

    def test_five_hundred_servers(self):
        servers = {f"s{i}": {"command": "npx", "args": ["-y", f"pkg-{i}"]} for i in range(500)}
        path = self.config(CURSOR, json.dumps({"mcpServers": servers}, indent=1))
        before = self.read(path)
        self.wrap("cursor", "--yes")
        wrapped = parse(path, self.read(path))["mcpServers"]
        self.assertTrue(all(each["args"][0] == "run" for each in wrapped.values()))
        self.assertEqual(len(wrapped), 500)
        self.unwrap("cursor", "--yes")
        self.assertEqual(self.read(path), before)


class Refusing:
    """What is in the way leaves everything as it was."""

    def test_broken_syntax(self):
        for name, text, place in ((CURSOR, '{"mcpServers": {\n  "a": {"command": "x",, }}', ":2:"),
                                  (".codex/config.toml", "[mcp_servers.a]\ncommand = \n", ":2:"),
                                  (".config/goose/config.yaml", "extensions:\n  a: [\n", ":"),
                                  (CURSOR, f'{{"mcpServers": {{"{TOKEN}}}', ":1:")):
            with self.subTest(text):
                path = self.config(name, text)
                before = self.snapshot()
                _, err = self.wrap(path, "--yes", code=3)
                self.assertIn(f"{path}{place}", err)
                self.assertEqual(self.snapshot(), before)
                os.unlink(path)

    def test_a_broken_file_does_not_keep_others_from_it(self):
        self.config(".codex/config.toml", "[[[\n")
        path = self.client("cursor")
        self.wrap("--yes", code=3)
        self.assertIn("--profile", self.read(path))

    def test_read_only_files(self):
        self.client("cursor", mode=0o444)
        before = self.snapshot()
        _, err = self.wrap("cursor", "--yes", code=3)
        self.assertIn("is read-only", err)
        self.assertIn("chmod u+w", err)
        self.assertEqual(self.snapshot(), before)

    def test_links_stay_links(self):
        target = self.config("dotfiles/cursor.json", json_servers("mcpServers"), mode=0o600)
        before = self.read(target)
        link = os.path.join(self.home, CURSOR)
        self.own_directory(os.path.dirname(link))
        os.symlink("../dotfiles/cursor.json", link)
        self.wrap("cursor", "--yes")
        self.assertEqual(os.readlink(link), "../dotfiles/cursor.json")
        self.assertNotEqual(self.read(target), before)
        self.unwrap("cursor", "--yes")
        self.assertEqual(self.read(target), before)
        self.assertEqual(os.readlink(link), "../dotfiles/cursor.json")

    def test_a_file_in_the_way_of_a_policy(self):
        self.client("cursor")
        self.config(".config/capgate/servers", "no directory")
        before = self.snapshot()
        self.wrap("cursor", "--yes", code=3)
        self.assertEqual(self.snapshot(), before)


class Asking:
    """On a terminal there is one question for each file."""

    def person(self, *words):
        return Person([*words], self)

    def test_yes_writes(self):
        path = self.client("cursor")
        person = self.person("wrap", "cursor", "--no-install")
        person.wait_for("[y/N]")
        person.answer("y")
        code, shown = person.finish()
        self.assertEqual(code, 0, shown)
        self.assertIn("--profile", self.read(path))
        self.assertIn("\x1b[32m+", shown)
        self.assertIn("\x1b[31m-", shown)
        self.assertEqual(shown.count("[y/N]"), 1)
        self.assertNotIn(TOKEN, shown)

    def test_anything_else_does_not(self):
        self.client("cursor")
        before = self.snapshot()
        for answer in ("n", "", "maybe"):
            person = self.person("wrap", "cursor", "--no-install")
            person.wait_for("[y/N]")
            person.answer(answer)
            code, shown = person.finish()
            self.assertEqual(code, 0, shown)
            self.assertEqual(self.snapshot(), before)

    def test_a_file_that_changes_meanwhile_is_not_overwritten(self):
        path = self.client("cursor")
        for command in ("wrap", "unwrap"):
            with self.subTest(command):
                words = ["--no-install"] if command == "wrap" else []
                person = self.person(command, "cursor", *words)
                person.wait_for("[y/N]")
                with open(path, "a", encoding="utf-8") as file:
                    file.write("\n")
                before = self.snapshot()
                person.answer("y")
                code, shown = person.finish()
                self.assertEqual(code, 8, shown)
                self.assertIn("was changed meanwhile", shown)
                self.assertEqual({name: seen for name, seen in self.snapshot().items()
                                  if not os.path.isdir(name)},
                                 {name: seen for name, seen in before.items()
                                  if not os.path.isdir(name)})
                self.wrap("cursor", "--yes")


class Sealing:
    """Tokens go into the store, and come back."""

    def test_a_token_leaves_the_file_and_comes_back(self):
        for client in ("cursor", "codex", "goose", "opencode"):
            with self.subTest(client):
                path = self.client(client)
                before = self.read(path)
                self.assertIn(TOKEN, before)
                out, _ = self.wrap(client, "--yes", "--seal")
                self.assertIn("moves into the encrypted store", out)
                for name, (data, _, _, _) in self.snapshot().items():
                    # The header of cursor's HTTP server is not ours to move.
                    if isinstance(data, bytes) and client != "cursor":
                        self.assertNotIn(TOKEN.encode(), data, name)
                self.assertIn("store:", self.read(path))
                self.unwrap(client, "--yes")
                self.assertEqual(self.read(path), before)
                self.assertFalse(os.path.exists(f"{path}.capgate-backup"))
                os.unlink(path)

    def test_the_backup_does_not_hold_it(self):
        path = self.client("opencode")
        self.wrap("opencode", "--yes", "--seal")
        self.assertIn("store:MY_KEY", self.read(f"{path}.capgate-backup"))
        self.assertNotIn(TOKEN, self.read(f"{path}.capgate-backup"))

    def test_it_is_kept_under_the_name_of_the_profile(self):
        self.client("opencode")
        _, err = self.wrap("opencode", "--yes", "--seal")
        key = os.path.join(self.home, ".config/capgate/store.key")
        self.assertIn(key, err)
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        listed = json.loads(self.as_user("secret", "list", "--json")[0])
        self.assertEqual([(each["server"], each["name"]) for each in listed["secrets"]],
                         [("everything", "MY_KEY")])

    def test_nothing_moves_unless_it_is_asked_for(self):
        path = self.client("opencode")
        self.wrap("opencode", "--yes")
        self.assertIn(TOKEN, self.read(path))
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local/share/capgate")))

    def test_two_clients_with_two_tokens_keep_both(self):
        self.keep_both((("--yes", "--seal"),))

    def test_also_one_after_the_other(self):
        self.keep_both((("cursor", "--yes", "--seal"), ("kimi", "--yes", "--seal")))

    def keep_both(self, runs):
        paths = {}
        for name, token in ((CURSOR, "one-token"), (".kimi/mcp.json", "another-token")):
            server = {"command": "a-server", "env": {"A_TOKEN": token}}
            paths[name] = self.config(name, json.dumps({"mcpServers": {"a": server}}))
        before = {path: self.read(path) for path in paths.values()}
        for words in runs:
            self.wrap(*words)
        self.unwrap("--yes")
        for path, text in before.items():
            self.assertEqual(self.read(path), text)

    def test_a_later_client_leaves_the_policy_of_the_first(self):
        for name in (CURSOR, ".kimi/mcp.json"):
            server = {"command": "a-server", "env": {"A_TOKEN": "a-token"}}
            self.config(name, json.dumps({"mcpServers": {"a": server}}))
        self.wrap("cursor", "--yes", "--seal")
        profile = os.path.join(self.home, ".config/capgate/servers/a.yaml")
        before = self.read(profile)
        self.wrap("kimi", "--yes")
        self.assertEqual(self.read(profile), before)

    def test_a_token_goes_back_only_where_it_came_from(self):
        self.config(CURSOR, json.dumps({"mcpServers": {"a": {
            "command": "a-server", "env": {"A_TOKEN": "a-token"}}}}))
        self.wrap("cursor", "--yes", "--seal")
        # As a server could write it into a directory of its own.
        text = json.dumps({"mcpServers": {"b": {
            "command": "capgate", "args": ["run", "--profile", "a", "--", "a-server"],
            "env": {"A_TOKEN": "store:A_TOKEN"}}}})
        planted = self.config(".kimi/mcp.json", text)
        out, _ = self.unwrap("kimi", "--yes", code=3)
        self.assertIn("did not take its secrets from this file", out)
        self.assertEqual(self.read(planted), text)
        self.unwrap("kimi", "--yes", "--unseal")
        self.assertIn("a-token", self.read(planted))

    def test_a_server_whose_token_is_gone_stays_wrapped(self):
        path = self.client("opencode")
        self.wrap("opencode", "--yes", "--seal")
        self.as_user("secret", "rm", "MY_KEY", "--server", "everything")
        wrapped = self.read(path)
        _, err = self.unwrap("opencode", "--yes", code=3)
        self.assertIn("stays wrapped", err)
        self.assertEqual(self.read(path), wrapped)

    def test_a_reference_is_no_token(self):
        text = json.dumps({"mcpServers": {"a": {"command": "x", "env": {
            "A_TOKEN": "${A_TOKEN}", "B_TOKEN": "${input:b}", "EMPTY_KEY": "", "LEVEL": "debug"}}}})
        self.config(CURSOR, text)
        out, _ = self.wrap("cursor", "--dry-run", "--seal")
        self.assertNotIn("moves into", out)


class AsRoot(WrapCase):
    """Editing a client's file needs no privilege, so root starts only what meets owners and modes,
    and one test of each kind."""

    uid = 0
    person = Asking.person
    test_every_client = EveryClient.test_only_the_commands_change_and_unwrap_gives_the_same_bytes
    test_yes_writes = Asking.test_yes_writes
    test_links_stay_links = Refusing.test_links_stay_links
    test_read_only_files = Refusing.test_read_only_files
    test_a_token_leaves_the_file_and_comes_back = Sealing.test_a_token_leaves_the_file_and_comes_back

    def test_the_owner_of_a_file_stays(self):
        path = self.client("cursor")
        os.chown(path, launch.ORDINARY, launch.ORDINARY)
        self.wrap("cursor", "--yes")
        for each in (path, f"{path}.capgate-backup"):
            self.assertEqual(os.stat(each).st_uid, launch.ORDINARY)
        self.unwrap("cursor", "--yes")
        self.assertEqual(os.stat(path).st_uid, launch.ORDINARY)


class AsOrdinaryUser(EveryClient, Showing, Choosing, Refusing, Asking, Sealing, WrapCase):
    uid = launch.ORDINARY

    def test_a_directory_that_cannot_be_written(self):
        path = self.client("cursor")
        os.chmod(os.path.dirname(path), 0o555)
        before = self.snapshot()
        _, err = self.wrap("cursor", "--yes", code=3)
        self.assertIn("cannot be written", err)
        self.assertEqual(self.snapshot(), before)


del EveryClient, Showing, Choosing, Refusing, Asking, Sealing

if __name__ == "__main__":
    unittest.main()
