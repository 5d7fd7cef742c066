"""capgate.yaml, really used: `run --profile NAME`, what a project may say, and `approve`."""

import json
import os
import pty
import shutil
import stat
import subprocess
import unittest
from unittest import mock

import launch
from cases import started_by_root_and_user
from run_cases import RunCase, adopt_orphans, allow, python
from starters import started_by_user


def setUpModule():
    adopt_orphans()


READ = "import sys; print(open(sys.argv[1]).read())"


class ConfigCase(RunCase):
    """A user with a config directory, and a project that is the caller's directory."""

    def setUp(self):
        super().setUp()
        self.config = self.made("home/.config/capgate")
        self.project = self.made("project")
        self.data = self.made("data")
        self.other = self.made("other")
        for directory in (self.data, self.other):
            self.written(os.path.join(directory, "file"), "seen")

    def made(self, name):
        """A directory of the caller's, with its parents."""
        at = self.tree.root
        for part in name.split("/"):
            at = os.path.join(at, part)
            if not os.path.isdir(at):
                os.mkdir(at)
                self.own(at, 0o700)
        return at

    def written(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.own(path, 0o600)

    def write_config(self, path, **servers):
        """JSON is YAML."""
        return self.written(path, json.dumps({"servers": servers}))

    def user(self, **servers):
        return self.write_config(os.path.join(self.config, "capgate.yaml"), **servers)

    def of_project(self, **servers):
        return self.write_config(os.path.join(self.project, "capgate.yaml"), **servers)

    @property
    def reader(self):
        code = ("import sys\n"
                "for path in sys.argv[1:]:\n"
                "    try:\n"
                "        print(open(path + '/file').read())\n"
                "    except OSError:\n"
                "        print('-')\n")
        return python(code, self.data, self.other)

    def seen(self, *words, profile="x", command=()):
        """Which of the two directories the server reads."""
        command = command or self.reader
        return self.output(["--profile", profile, *words], command, cwd=self.project).split()

    def refused(self, *words, profile="x", command=("/usr/bin/true",)):
        return self.refusal(["--profile", profile, *words], command, cwd=self.project)

    def capgate(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([launch.CAPGATE, *words], cwd=self.project, env=self.environment(),
                              preexec_fn=lambda: launch.become(self.uid), check=False, text=True,
                              timeout=launch.SECONDS, **options)

    def approve(self, name="x", *words):
        done = self.capgate("approve", name, "--yes", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    @property
    def reads_data(self):
        return {"capabilities": [f"fs:read:{self.data}"]}

    @property
    def reads_other(self):
        return {"capabilities": [f"fs:read:{self.other}"]}

    @property
    def reads_both(self):
        return {"capabilities": [f"fs:read:{self.data}", f"fs:read:{self.other}"]}


@started_by_user("test_its_policy_is_enforced", "test_its_command_starts",
                 "test_sensitive_places_stay_hidden_in_a_blocks_paths")
class Profile(ConfigCase):
    def test_its_policy_is_enforced(self):
        self.user(x=self.reads_data, y=self.reads_other)
        self.assertEqual(self.seen(), ["seen", "-"])
        self.assertEqual(self.seen(profile="y"), ["-", "seen"])

    def test_without_an_entry_it_is_a_home_alone(self):
        self.user(y=self.reads_both)
        self.assertEqual(self.seen(), ["-", "-"])

    def test_its_command_starts(self):
        self.user(x={**self.reads_data, "command": python(READ, self.data + "/file")})
        self.assertEqual(self.seen(command=()), ["seen", "-"])
        done = self.run_server(["--profile", "x"], [], cwd=self.project)
        self.assertEqual((done.returncode, done.stdout), (0, b"seen\n"), done.stderr)

    def test_an_entry_without_a_command_needs_words(self):
        self.user(x=self.reads_data)
        self.assertIn("x has no command", self.refused(command=()))
        self.assertIn("run needs -- COMMAND", self.refusal([], ()))

    def test_a_manifest_is_found_beside_the_file(self):
        manifest = json.dumps(launch.server(f"fs:read:{self.data}"))
        self.written(os.path.join(self.config, "m.json"), manifest)
        self.user(x={"manifest": "m.json"})
        self.assertEqual(self.seen(), ["seen", "-"])

    def test_variables_and_set(self):
        self.user(x={"capabilities": ["fs:read:${DIR}"], "variables": {"DIR": self.data}})
        self.assertEqual(self.seen(), ["seen", "-"])
        self.assertEqual(self.seen("--set", f"DIR={self.other}"), ["-", "seen"])

    def test_both_forms_of_a_sandbox_block(self):
        self.user(x={"sandbox": {"paths": [self.data]}}, y={"sandbox": {"read": [self.other]}})
        self.assertEqual(self.seen(), ["seen", "-"])
        self.assertEqual(self.seen(profile="y"), ["-", "seen"])
        writing = python("import sys; print(open(sys.argv[1] + '/new', 'w').write('x'))", self.data)
        self.assertEqual(self.seen(command=writing), ["1"])

    def test_sensitive_places_stay_hidden_in_a_blocks_paths(self):
        secret = self.made("home/work/.ssh")
        self.written(os.path.join(secret, "id"), "key")
        inner = self.made("home/.ssh")
        self.written(os.path.join(inner, "id"), "key")
        self.user(x={"sandbox": {"read": ["~/.ssh"]}})
        self.assertIn("which a sandbox block cannot open", self.refused())
        env = self.written(os.path.join(self.data, ".env"), "TOKEN=1")
        self.user(x={"sandbox": {"paths": [self.data]}})
        code = "import sys\ntry:\n    print(open(sys.argv[1]).read())\nexcept OSError:\n    pass"
        self.assertEqual(self.seen(command=python(code, env)), [])
        self.assertEqual(self.seen(), ["seen", "-"])

    def test_disabled_is_refused(self):
        self.user(x={"sandbox": {"enabled": False, "paths": [self.data]}})
        self.assertIn("enabled: false", self.refused())

    def test_an_http_server_does_not_run_here(self):
        self.user(x={"url": "https://mcp.example"})
        self.assertIn("is an HTTP server", self.refused())

    def test_mistakes_are_shown_in_their_line(self):
        path = self.user(x={"comand": ["a"]})
        said = self.refused()
        self.assertIn(f"{path}:1:", said)
        self.assertIn("did you mean command?", said)
        self.user(x={"capabilities": ["fs:read:relative"]})
        self.assertIn(f"{path}:1:46: error[CAP_FS_RELATIVE]", self.refused())
        self.user(x={**self.reads_data, "variables": {"DIR": "/a"}})
        self.assertIn("the variable DIR is not used", self.refused())

    def test_a_config_needs_a_profile(self):
        said = self.refusal(["--config", "/nothing.yaml"])
        self.assertIn("--config without --profile", said)

    def test_no_config_is_read_without_a_profile(self):
        self.written(os.path.join(self.config, "capgate.yaml"), "servers: [")
        self.written(os.path.join(self.project, "capgate.yaml"), "servers: [")
        self.assertEqual(self.output([], ["/bin/echo", "started"], cwd=self.project), "started\n")
        self.assertIn("capgate.yaml", self.refused())

    def test_a_catalog_entry_is_for_its_packages(self):
        self.user(x={"manifest": "catalog:filesystem", "variables": {"ROOTS": self.data}})
        said = self.refused()
        self.assertIn("npm:@modelcontextprotocol/server-filesystem", said)
        self.assertIn("no package that is known", said)
        # The right package passes this check, and comes to the next one.
        command = ["npx", "-y", "@modelcontextprotocol/server-filesystem", self.data]
        self.assertIn("is not installed", self.refused(command=command))
        command[2] = "@modelcontextprotocol/server-filesystems"
        self.assertIn("starts npm:@modelcontextprotocol/server-filesystems",
                      self.refused(command=command))
        self.user(x={"manifest": "catalog:filesistem"})
        self.assertIn("did you mean catalog:filesystem?", self.refused())

    def test_its_name_is_the_state_directorys(self):
        self.user(x=self.reads_data)
        note = os.path.join(self.home, "note")
        self.seen(command=python("import sys; print(open(sys.argv[1], 'w').write('x'))", note))
        kept = os.path.join(self.home, ".local/state/capgate/x/home/note")
        self.assertTrue(os.path.exists(kept))


@started_by_user("test_flag_then_user")
class Precedence(ConfigCase):
    def test_flag_then_user(self):
        self.user(x=self.reads_data)
        given = self.write_config(os.path.join(self.work, "given.yaml"), x=self.reads_other,
                                  z=self.reads_other)
        self.assertEqual(self.seen("--config", given), ["-", "seen"])
        # What the flag's file does not have is the user's.
        self.user(x=self.reads_data, y=self.reads_data)
        self.assertEqual(self.seen("--config", given, profile="y"), ["seen", "-"])

    def test_the_flags_file_must_be_there(self):
        self.user(x=self.reads_data)
        self.assertIn("No such file", self.refused("--config", "/nothing.yaml"))

    def test_options_replace_the_policy(self):
        self.user(x={**self.reads_data, "command": ["/usr/bin/true"]})
        self.assertEqual(self.seen(*allow(f"fs:read:{self.other}")), ["-", "seen"])
        manifest = self.file("m.json", json.dumps(launch.server(f"fs:read:{self.other}")))
        self.assertEqual(self.seen("-m", manifest), ["-", "seen"])

    def test_one_file_a_server(self):
        directory = self.made("home/.config/capgate/servers")
        self.write_config(os.path.join(directory, "x.yaml"), x=self.reads_data)
        self.assertEqual(self.seen(), ["seen", "-"])
        self.user(x=self.reads_other)
        self.assertIn("stands in", self.refused())

    def test_xdg_config_home(self):
        self.user(x=self.reads_data)
        chosen = self.made("chosen/capgate")
        self.write_config(os.path.join(chosen, "capgate.yaml"), x=self.reads_other)
        env = self.environment(XDG_CONFIG_HOME=os.path.dirname(chosen))
        code = python(READ, self.other + "/file")
        self.assertEqual(self.output(["--profile", "x"], code, env=env), "seen\n")


@started_by_user("test_it_narrows", "test_it_widens_only_after_approval",
                 "test_what_a_server_writes_there_widens_nothing")
class Project(ConfigCase):
    def test_it_narrows(self):
        self.user(x=self.reads_both)
        self.assertEqual(self.seen(), ["seen", "seen"])
        self.of_project(x=self.reads_other)
        self.assertEqual(self.seen(), ["-", "seen"])
        self.of_project(x={})
        self.assertEqual(self.seen(), ["-", "-"])
        self.of_project(y={})
        self.assertEqual(self.seen(), ["seen", "seen"])

    def test_it_can_turn_a_server_off(self):
        self.user(x=self.reads_both)
        self.of_project(x={"sandbox": {"enabled": False}})
        self.assertIn("enabled: false", self.refused())

    def test_it_cannot_turn_one_on(self):
        self.user(x={"sandbox": {"enabled": False, "read": [self.data]}})
        self.of_project(x=self.reads_data)
        self.assertIn("enabled: false", self.refused())

    def test_what_it_leaves_out_is_the_users(self):
        self.user(x={"capabilities": ["fs:read:${DIR}", "limit:pids:40", "env:inject:TOKEN"],
                     "variables": {"DIR": self.data}, "secrets": {"TOKEN": "env:OTHER"},
                     "command": python("import os; print(os.environ['TOKEN'])")})
        self.of_project(x={"capabilities": ["fs:read:${DIR}/file", "env:inject:TOKEN"]})
        env = self.environment(OTHER="value")
        words = ["--profile", "x"]
        self.assertEqual(self.output(words, [], env=env, cwd=self.project), "value\n")
        plan = self.dry_run(words, [], env=env, cwd=self.project)
        self.assertEqual(plan["plan"]["limits"]["pids"]["value"], 40)

    def test_it_widens_only_after_approval(self):
        self.user(x=self.reads_data)
        self.of_project(x=self.reads_both)
        said = self.refused()
        self.assertIn(f"\n  fs:read:{self.other}\n", said)
        self.assertNotIn(f"fs:read:{self.data}\n", said)
        self.assertIn("capgate approve x", said)
        done = self.approve()
        self.assertIn(f"+ fs:read:{self.other}", done.stderr)
        self.assertEqual(self.seen(), ["seen", "seen"])
        # Another word, and it is asked for again.
        more = f"fs:read:{self.tree.root}/more"
        self.of_project(x={"capabilities": [more, f"fs:read:{self.other}"]})
        self.assertIn("has changed since you approved it", self.refused())
        self.of_project(x=self.reads_both)
        self.assertEqual(self.seen(), ["seen", "seen"])
        self.assertEqual(self.capgate("approve", "--revoke", "x").returncode, 0)
        self.assertIn("capgate approve x", self.refused())

    def test_without_an_entry_of_the_user_everything_is_beyond(self):
        self.of_project(x=self.reads_data)
        self.assertIn(f"  fs:read:{self.data}\n", self.refused())
        self.of_project(x={})
        self.assertEqual(self.seen(), ["-", "-"])

    def test_a_changed_manifest_variable_secret_or_command_is_asked_for_again(self):
        self.user(x=self.reads_data)
        manifest = os.path.join(self.project, "m.json")
        entry = {"manifest": "m.json", "variables": {"DIR": self.other},
                 "command": ["/usr/bin/true"]}
        self.written(manifest, json.dumps(launch.server("fs:read:${DIR}")))
        self.of_project(x=entry)
        self.refused()
        self.approve("x", "--no-tools", "--", *self.reader)
        self.assertEqual(self.seen(), ["-", "seen"])
        self.written(manifest, json.dumps(launch.server("fs:read:${DIR}", "fs:read:/usr/lib")))
        self.assertIn("has changed since you approved it", self.refused())
        self.written(manifest, json.dumps(launch.server("fs:read:${DIR}")))
        self.assertEqual(self.seen(), ["-", "seen"])
        for change in ({"variables": {"DIR": self.tree.root + "/work"}},
                       {"command": ["/usr/bin/false"]}, {"seal": True}):
            with self.subTest(change=change):
                self.of_project(x={**entry, **change})
                self.assertIn("has changed", self.refused())

    def test_it_shows_no_other_file_of_the_users(self):
        secret = self.written(os.path.join(self.other, "token"), "a-token\n")
        os.symlink(self.other, os.path.join(self.project, "link"))
        os.symlink(secret, os.path.join(self.project, "m.json"))
        for manifest in (secret, "../other/token", "link/token", "m.json", "~/token"):
            with self.subTest(manifest=manifest):
                self.of_project(x={"manifest": manifest})
                said = self.refused()
                self.assertIn("a project's manifest is a file in its directory", said)
                self.assertNotIn("a-token", said)

    def test_it_starts_no_program_for_a_secret(self):
        mark = os.path.join(self.tree.root, "home/mark")
        injects = {"capabilities": ["env:inject:TOKEN"]}
        self.user(x={**injects, "secrets": {"TOKEN": "env:HOME"}})
        self.of_project(x={**injects, "secrets": {"TOKEN": f"cmd:/usr/bin/touch {mark}"}})
        self.assertIn("secrets: TOKEN=cmd:", self.refused())
        self.assertFalse(os.path.exists(mark))

    def test_its_command_is_no_other(self):
        self.user(x={**self.reads_data, "command": ["/usr/bin/true"]})
        self.of_project(x={**self.reads_data, "command": ["/usr/bin/false"]})
        self.assertIn("command: /usr/bin/false", self.refused(command=()))
        # Where the caller says what starts, it does not matter.
        self.assertEqual(self.seen(), ["seen", "-"])

    def test_what_a_server_writes_there_widens_nothing(self):
        writes = {"capabilities": [f"fs:write:{self.project}"]}
        self.user(x=writes)
        self.of_project(x=writes)
        wider = json.dumps({"servers": {"x": {"capabilities": [
            f"fs:write:{self.project}", f"fs:read:{self.other}"]}}})
        code = "import sys; print(open('capgate.yaml', 'w').write(sys.argv[1]) > 0)"
        self.assertEqual(self.seen(command=python(code, wider)), ["True"])
        with open(os.path.join(self.project, "capgate.yaml"), encoding="utf-8") as file:
            self.assertEqual(file.read(), wider)
        self.assertIn(f"  fs:read:{self.other}\n", self.refused())
        # Narrowing works there, too.
        self.of_project(x={})
        self.assertEqual(self.seen(), ["-", "-"])

    def test_what_lies_there_neither_blocks_nor_leads_away(self):
        self.user(x=self.reads_data)
        path = os.path.join(self.project, "capgate.yaml")
        os.mkfifo(path)
        self.own(path, 0o600)
        self.assertIn("cannot read", self.refused())
        os.unlink(path)
        os.symlink(self.user(x=self.reads_data), path)
        self.assertIn("symbolic link", self.refused())

    def test_options_leave_it_out(self):
        self.user(x=self.reads_data)
        self.of_project(x=self.reads_both)
        self.assertEqual(self.seen(*allow(f"fs:read:{self.other}")), ["-", "seen"])


@started_by_root_and_user
class WritablePlaces(ConfigCase):
    def assert_not_its_own(self, said, path):
        self.assertIn("the server could write it", said)
        self.assertIn(path, said)

    def test_a_manifest_in_a_writable_place_is_refused(self):
        manifest = self.file("m.json", json.dumps(launch.server(f"fs:write:{self.work}")))
        said = self.refusal(["-m", manifest])
        self.assert_not_its_own(said, manifest)
        outside = self.written(os.path.join(self.other, "m.json"),
                               json.dumps(launch.server(f"fs:write:{self.work}")))
        self.assertEqual(self.output(["-m", outside], ["/bin/echo", "started"]), "started\n")

    def test_nor_the_one_that_a_project_is_measured_by(self):
        manifest = self.file("m.json", json.dumps(launch.server(f"fs:write:{self.work}")))
        self.user(x={"manifest": manifest})
        self.of_project(x={"capabilities": [f"fs:write:{self.work}"]})
        self.assert_not_its_own(self.refused(), manifest)
        self.of_project(x={"capabilities": [f"fs:read:{self.work}"]})
        self.assertEqual(self.seen(), ["-", "-"])

    def test_approvals_and_packages_are_no_place_to_write(self):
        for name, below in (("XDG_STATE_HOME", "capgate/approved"), ("XDG_DATA_HOME", "capgate")):
            for made in (below, ""):
                with self.subTest(variable=name, made=made):
                    base = self.made(f"{name}{len(made)}")
                    self.made(f"{name}{len(made)}/{made}".rstrip("/"))
                    env = self.environment(**{name: base})
                    words = ["--profile", "x", *allow(f"fs:write:{base}")]
                    said = self.refusal(words, env=env)
                    self.assert_not_its_own(said, os.path.join(base, below))

    def test_a_link_out_of_it_is_refused(self):
        outside = self.written(os.path.join(self.other, "m.json"),
                               json.dumps(launch.server(f"fs:write:{self.work}")))
        link = os.path.join(self.work, "link.json")
        os.symlink(outside, link)
        self.assert_not_its_own(self.refusal(["-m", link]), link)

    def test_a_config_in_a_writable_place_is_refused_and_starts_nothing(self):
        mark = os.path.join(self.home, "mark")
        entry = {"capabilities": [f"fs:write:{self.work}", "env:inject:TOKEN"],
                 "secrets": {"TOKEN": f"cmd:/usr/bin/touch {mark}"}}
        given = self.write_config(os.path.join(self.work, "given.yaml"), x=entry)
        self.assert_not_its_own(self.refused("--config", given), given)
        self.assertFalse(os.path.exists(mark))

    def test_the_users_directory_is_no_place_to_write(self):
        config = self.made("config/capgate")
        env = self.environment(XDG_CONFIG_HOME=os.path.dirname(config))
        words = ["--profile", "x", *allow(f"fs:write:{os.path.dirname(config)}")]
        said = self.refusal(words, env=env)
        self.assert_not_its_own(said, config)
        # Also where it is not there yet.
        os.rmdir(config)
        self.assert_not_its_own(self.refusal(words, env=env), config)
        words = ["--profile", "x", *allow(f"fs:write:{self.work}")]
        self.assertEqual(self.output(words, ["/bin/echo", "started"], env=env), "started\n")

    def test_an_approval_in_a_writable_place_is_none(self):
        state = self.made("state")
        env = self.environment(XDG_STATE_HOME=state)
        self.of_project(x={"capabilities": [f"fs:write:{state}"]})
        done = subprocess.run([launch.CAPGATE, "approve", "x", "--yes"], cwd=self.project, env=env,
                              preexec_fn=lambda: launch.become(self.uid), check=False,
                              capture_output=True, text=True, timeout=launch.SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = self.refusal(["--profile", "x"], env=env, cwd=self.project)
        self.assert_not_its_own(said, state)


@started_by_user("test_from_a_file_and_from_an_option")
class Secrets(ConfigCase):
    def injecting(self, provider, **more):
        return {"capabilities": ["env:inject:TOKEN"], "secrets": {"TOKEN": provider},
                "command": python("import os; print(os.environ['TOKEN'])"), **more}

    def test_from_a_file_and_from_an_option(self):
        path = self.written(os.path.join(self.home, "token"), "from-file\n")
        self.user(x=self.injecting(f"file:{path}"))
        self.assertEqual(self.seen(command=self.injecting("")["command"]), ["from-file"])
        env = self.environment(OTHER="from-env")
        words = ["--profile", "x", "--secret", "TOKEN=env:OTHER"]
        self.assertEqual(self.output(words, [], env=env), "from-env\n")

    def test_the_same_refusals_as_of_the_option(self):
        path = self.written(os.path.join(self.home, "token"), "from-file\n")
        os.chmod(path, 0o644)
        self.user(x=self.injecting(f"file:{path}"))
        self.assertIn("read", self.refused())
        self.user(x={"secrets": {"TOKEN": "env:HOME"}})
        self.assertIn("secrets: TOKEN: no env:inject:TOKEN is declared", self.refused())
        self.user(x=self.injecting("nothing:x"))
        self.assertIn("there is no such provider", self.refused())

    def test_a_value_in_the_file_is_not_shown(self):
        self.user(x=self.injecting("ghp_0123456789"))
        self.assertNotIn("ghp_", self.refused())

    def test_the_store_is_asked_for_the_entrys_own(self):
        """Not for that of the manifest's name, which many servers could share."""
        programs = self.tree.directory("programs")
        copy = shutil.copy2(launch.CAPGATE, programs)
        store = self.tree.file("programs/capgate-store", '#!/bin/sh\necho "$@"\n')
        os.chmod(store, 0o755)
        self.written(os.path.join(self.config, "m.json"),
                     json.dumps(launch.server("env:inject:TOKEN")))
        self.user(x={"manifest": "m.json", "secrets": {"TOKEN": "store:GITHUB"}})
        with mock.patch.object(launch, "CAPGATE", copy):
            shown = self.output(["--profile", "x"], ["/usr/bin/printenv", "TOKEN"])
        self.assertEqual(shown, "get --server x --name GITHUB\n")

    def test_a_policy_of_options_takes_only_what_it_declares(self):
        self.user(x=self.injecting("env:HOME"))
        self.assertEqual(self.seen(*allow(f"fs:read:{self.data}")), ["seen", "-"])


@started_by_user("test_a_terminal_is_asked", "test_what_is_kept")
class Approve(ConfigCase):
    def setUp(self):
        super().setUp()
        self.user(x=self.reads_data)
        self.of_project(x=self.reads_both)

    def approvals(self):
        return os.path.join(self.home, ".local/state/capgate/approved")

    def test_nobody_is_asked_without_a_terminal(self):
        done = self.capgate("approve", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no terminal", done.stderr)
        self.assertIn("--yes", done.stderr)
        self.assertFalse(os.path.exists(self.approvals()))

    def answer(self, text):
        """The exit code after this answer on a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [launch.CAPGATE, "approve", "x"], cwd=self.project, env=self.environment(),
            stdin=theirs, stdout=theirs, stderr=theirs,
            preexec_fn=lambda: launch.become(self.uid))
        os.close(theirs)
        try:
            said = b""
            while b"[y/N]" not in said:
                said += os.read(ours, 4096)
            os.write(ours, text)
            return process.wait(timeout=launch.SECONDS)
        finally:
            process.kill()
            process.wait()
            os.close(ours)

    def test_a_terminal_is_asked(self):
        for text in (b"\n", b"n\n", b"yess\n"):
            self.assertEqual(self.answer(text), 2)
            self.refused()
        self.assertEqual(self.answer(b"y\n"), 0)
        self.assertEqual(self.seen(), ["seen", "seen"])

    def test_what_is_kept(self):
        answer = json.loads(self.approve("x", "--json").stdout)
        self.assertEqual((answer["schemaVersion"], answer["approved"]), (1, True))
        self.assertEqual(answer["beyond"], [f"fs:read:{self.other}"])
        names = os.listdir(self.approvals())
        self.assertEqual(len(names), 1)
        path = os.path.join(self.approvals(), names[0])
        info = os.stat(path)
        self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid), (0o600, self.uid))
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual(kept["policy"], [f"fs:read:{self.data}", f"fs:read:{self.other}"])
        self.assertEqual((kept["hash"], kept["directory"]), (answer["hash"], self.project))
        self.assertRegex(kept["date"], r"^\d{4}-\d\d-\d\dT")

    def test_listed(self):
        self.approve()
        done = self.capgate("approve", "--list", "--json")
        listed = json.loads(done.stdout)["approvals"]
        self.assertEqual([(each["server"], each["directory"]) for each in listed],
                         [("x", self.project)])
        self.assertIn(self.project, self.capgate("approve", "--list").stdout)

    def test_what_narrows_needs_none_and_may_have_one(self):
        self.of_project(x=self.reads_data)
        self.assertEqual(self.seen(), ["seen", "-"])
        self.assertNotIn("Beyond", self.approve().stderr)
        self.assertEqual(self.seen(), ["seen", "-"])
        done = self.capgate("approve", "x")
        self.assertEqual(done.returncode, 0)
        self.assertIn("nothing to approve", done.stderr)

    def test_usage(self):
        for words in ([], ["x", "--list"], ["--revoke", "y"], ["nothing-here"]):
            with self.subTest(words=words):
                self.assertEqual(self.capgate("approve", *words).returncode, 2)


if __name__ == "__main__":
    unittest.main()
