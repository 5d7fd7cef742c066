"""A project's capgate.lock: what `approve --lock` writes, and who compares it."""

import json
import os
import shlex
import subprocess
import unittest

import launch
from approve_cases import INTEGRITY, SERVER, ApproveCase, tool
from run_cases import adopt_orphans
from starters import started_by_user

USAGE = 2
NO_LIST = 3


def setUpModule():
    adopt_orphans()


@started_by_user("test_of_a_project", "test_one_that_the_server_could_write_is_none")
class Lock(ApproveCase):
    def lock(self):
        return os.path.join(self.project, "capgate.lock")

    def test_of_a_project(self):
        self.user(x=self.entry())
        self.of_project(x=self.entry())
        self.approve("x", "--lock", "capgate.lock")
        with open(self.lock(), encoding="utf-8") as file:
            text = file.read()
        kept = json.loads(text)
        self.assertEqual((kept["schemaVersion"], [each["server"] for each in kept["servers"]]),
                         (1, ["x"]))
        self.approve("x", "--lock", "capgate.lock")
        with open(self.lock(), encoding="utf-8") as file:
            self.assertEqual(file.read(), text)
        # Another user has no record, but the lock.
        self.assertEqual(self.capgate("approve", "--revoke", "x").returncode, 0)
        self.runs()
        self.live()
        self.of_project(x={**self.entry(), "capabilities": [f"fs:read:{self.data}"]})
        self.assertIn("capgate.lock says", self.refused_entry())
        self.of_project(x=self.entry())
        self.say([tool(description="Another one.")])
        self.assertIn("capgate.lock says", self.live(code=INTEGRITY).stderr)

    def test_it_cannot_allow_anything(self):
        self.user(x=self.entry())
        self.of_project(x=self.entry())
        self.approve()
        self.of_project(x=self.entry(f"fs:read:{self.other}"))
        self.approve("x", "--lock", "capgate.lock")
        self.assertEqual(self.capgate("approve", "--revoke", "x").returncode, 0)
        self.assertIn("says more for x than your own configuration", self.refused_entry())

    def test_with_a_manifest_alone(self):
        manifest = self.written(os.path.join(self.project, "m.json"), json.dumps(
            {"name": "m", "version": "1", "tools": [],
             "serverCapabilities": [f"fs:read:{self.data}/**"]}))
        done = self.capgate("approve", "m", "-m", manifest, "--yes", "--", *self.server())
        self.assertEqual(done.returncode, USAGE)
        done = self.capgate("approve", "m", "-m", manifest, "--lock", self.lock(), "--yes", "--",
                            *self.server())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(self.approvals()))
        words = ["-m", manifest, "--locked", self.lock()]
        self.output(words, self.server())
        self.assertIn("command:", self.refusal(words, ["/usr/bin/true"]))
        self.live("--locked", self.lock(), "--", *self.server(), name=manifest)
        self.say([tool("other")])
        self.live("--locked", self.lock(), "--", *self.server(), name=manifest, code=INTEGRITY)
        self.written(manifest, json.dumps({"name": "n", "version": "1", "tools": []}))
        self.assertIn('has no server "n"', self.refusal(words, self.server()))

    def manifest(self, *capabilities, name="m.json"):
        return self.written(os.path.join(self.project, name), json.dumps(
            {"name": "m", "version": "1", "tools": [],
             "serverCapabilities": [f"fs:read:{self.data}/**", *capabilities]}))

    def script(self, *words):
        """The server as a file: its command has only words that can be shown."""
        command = self.server(*words)
        command[3:5] = [self.written(os.path.join(self.data, "server.py"), SERVER)]
        return command

    def approve_manifest(self, *words, code=0):
        done = self.capgate("approve", "m", "-m", "m.json", "--lock", "capgate.lock", *words, "--",
                            *self.script())
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def pinned(self):
        with open(self.lock(), encoding="utf-8") as file:
            [pin] = json.load(file)["servers"]
        return pin

    def test_pins_that_are_given_up_are_shown_and_asked_for(self):
        self.manifest()
        self.approve_manifest("--yes")
        given_up = 'the pins of its tools are given up: a change of them is not noticed any more\n  - 1: "search"\n'
        said = self.approve_manifest("--no-tools", code=USAGE)
        self.assertIn("Compared with what capgate.lock says, this changed:\n" + given_up, said)
        self.assertEqual(len(self.pinned()["tools"]), 1)
        self.assertIn(given_up, self.approve_manifest("--no-tools", "--yes"))
        self.assertNotIn("tools", self.pinned())
        self.assertIn('its tools are pinned from now on\n  + 1: "search"\n', self.approve_manifest("--yes"))
        # The same in the user's own record.
        self.user(x=self.entry())
        self.approve()
        done = self.capgate("approve", "x", "--no-tools", "--json")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(given_up, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["changed"], answer["change"]["texts"]),
                         (True, [{"what": "pinned tools", "before": '1: "search"', "after": ""}]))
        self.assertEqual(len(self.record()["pin"]["tools"]), 1)

    def test_the_lock_is_compared_besides_the_record(self):
        self.user(x=self.entry())
        self.approve("x", "--lock", "capgate.lock")
        self.approve("x", "--no-tools")
        said = self.approve("x", "--no-tools", "--lock", "capgate.lock").stderr
        self.assertRegex(said, "The same as what you approved on .*\n"
                               "Compared with what capgate.lock says, this changed:\nthe pins of its tools")

    def words_after(self, said):
        """The command of a help line, as a shell reads it."""
        return shlex.split(said.split("help: if this is meant: ")[1].split("\n")[0])

    def test_the_words_of_a_help_line_approve_what_was_given(self):
        self.manifest()
        command = self.script("it's")
        given = ["approve", "m", "-m", "m.json", "--lock", "capgate.lock", "--timeout", "50", "--allow",
                 f"fs:read:{self.other}/**"]
        done = self.capgate(*given, "--", *command)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        words = self.words_after(done.stderr)
        self.assertEqual(words[:3], ["capgate", "approve", "m"])
        self.assertEqual((words.count("--yes"), words[words.index("--") + 1:]), (1, command))
        self.assertEqual(self.capgate(*words[1:]).returncode, 0)
        live = ["check", "--live", "m.json", "--locked", "capgate.lock", "--", *command]
        self.assertEqual(self.capgate(*live).returncode, 0)
        # Another policy: both say what makes it the approved one.
        self.manifest("net:connect:evil.example:443")
        run = ["run", "-m", "m.json", "--locked", "capgate.lock", "--", *command]
        for given, code in ((live, INTEGRITY), (run, 125)):
            done = self.capgate(*given)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(self.words_after(done.stderr), [
                "capgate", "approve", "m", "-m", "m.json", "--lock", "capgate.lock", "--", *command])
        self.assertEqual(self.capgate(*self.words_after(done.stderr)[1:], "--yes").returncode, USAGE)
        words = self.words_after(done.stderr)
        self.assertEqual(self.capgate(*words[1:3], "--yes", *words[3:]).returncode, 0)
        self.assertEqual(self.capgate(*live).returncode, 0)
        # A line break would be another word where it is shown.
        done = self.capgate(*run[:-len(command)], *self.server())
        self.assertEqual(self.words_after(done.stderr)[-3:], ["--", "COMMAND", "ARGS..."])
        done = self.capgate("run", "--allow", "fs:read:/srv", "--locked", "capgate.lock", "--", *command)
        self.assertIn("a lock is of a manifest or an entry", done.stderr)

    def test_a_lock_that_is_not_there(self):
        self.manifest()
        for given, code in ((["run", "-m", "m.json", "--locked", "nope.lock", "--", "/usr/bin/true"], 125),
                            (["check", "m.json", "--locked", "nope.lock"], NO_LIST),
                            (["check", "--live", "m.json", "--locked", "nope.lock", "--", "/usr/bin/true"],
                             NO_LIST)):
            done = self.capgate(*given)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn('there is no lock "nope.lock"', done.stderr)

    def test_a_lock_has_a_name(self):
        self.manifest()
        for name in ("-", ""):
            done = self.capgate("approve", "m", "-m", "m.json", "--lock", name, "--yes", "--no-tools")
            self.assertEqual(done.returncode, USAGE, done.stderr)
            self.assertEqual(os.listdir(self.project), ["m.json"])

    def test_check_compares_without_starting_anything(self):
        self.manifest()
        self.approve_manifest("--yes")
        done = self.capgate("check", "m.json", "--locked", "capgate.lock")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("m.json: ok", done.stdout)
        self.manifest("net:connect:evil.example:443")
        done = self.capgate("check", "m.json", "--locked", "capgate.lock")
        self.assertEqual(done.returncode, INTEGRITY, done.stderr)
        self.assertIn("not as in the lock", done.stdout)
        self.assertIn("m is not what capgate.lock says:\npolicy:\n  + net:connect:evil.example:443\n", done.stderr)
        words = self.words_after(done.stderr)
        self.assertEqual(words[words.index("--") + 1:], self.script())
        answer = json.loads(self.capgate("check", "m.json", "--locked", "capgate.lock", "--json").stdout)
        self.assertEqual((answer["locked"], answer["file"]), (False, "m.json"))
        self.written(os.path.join(self.project, "n.json"), json.dumps({"name": "n", "version": "1", "tools": []}))
        done = self.capgate("check", "n.json", "--locked", "capgate.lock")
        self.assertEqual(done.returncode, INTEGRITY)
        self.assertIn('capgate.lock has no server "n"', done.stderr)
        # What is worse comes first, what is less later.
        self.written(os.path.join(self.project, "bad.json"), json.dumps(launch.server("fs:read:relative")))
        self.assertEqual(self.capgate("check", "m.json", "bad.json", "--locked", "capgate.lock").returncode, 4)
        self.manifest("net:connect:*")
        self.assertEqual(self.capgate("check", "m.json").returncode, 5)
        self.assertEqual(self.capgate("check", "m.json", "--locked", "capgate.lock").returncode, INTEGRITY)

    def test_what_a_killed_process_left_is_no_obstacle(self):
        self.manifest()
        # The child that becomes capgate knows its number before.
        code = ("import os, sys\n"
                "for name in ('capgate.lock', 'capgate.lock.new'):\n"
                "    open(f'{name}.{os.getpid()}', 'w'); open(f'{name}-{os.getpid()}', 'w')\n"
                "os.execv(sys.argv[1], sys.argv[1:])\n")
        done = subprocess.run(
            ["/usr/bin/python3", "-c", code, launch.CAPGATE, "approve", "m", "-m", "m.json", "--lock",
             "capgate.lock", "--yes", "--no-tools"], cwd=self.project, env=self.environment(),
            preexec_fn=lambda: launch.become(self.uid), check=False, capture_output=True, text=True,
            timeout=launch.SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.pinned()["server"], "m")

    def test_words_before_the_command(self):
        self.manifest()
        for given in (["approve", "-m", "m.json", "--lock", "capgate.lock", "--yes", "--", *self.server()],
                      ["approve", "m", "n", "-m", "m.json", "--lock", "capgate.lock", "--yes", "--", "true"],
                      ["check", "--live", "m.json", "n.json", "--", *self.server()],
                      ["check", "--live", "--", "m.json"]):
            done = self.capgate(*given)
            self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
            self.assertRegex(done.stderr, 'approve needs NAME|unexpected word "n"|--live takes one NAME or FILE')
        self.assertEqual(os.listdir(self.project), ["m.json"])

    def test_one_that_the_server_could_write_is_none(self):
        self.user(x=self.entry(f"fs:write:{self.project}/**"))
        self.approve("x", "--lock", "capgate.lock")
        self.runs()
        self.assertIn("could write it", self.refused_entry("--locked", self.lock()))

    def test_one_that_is_broken_is_a_refusal(self):
        self.user(x=self.entry())
        self.of_project(x=self.entry())
        self.runs()
        for text in ("", "{}", '{"schemaVersion": 1, "packages": []}'):
            with self.subTest(text=text):
                self.written(self.lock(), text)
                self.assertIn("cannot be read", self.refused_entry())
                done = self.capgate("approve", "x", "--yes", "--lock", "capgate.lock")
                self.assertEqual(done.returncode, NO_LIST)
        os.unlink(self.lock())
        os.symlink("/etc/hostname", self.lock())
        self.assertIn("cannot read", self.refused_entry())


if __name__ == "__main__":
    unittest.main()
