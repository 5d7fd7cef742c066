"""capgate run: the command itself. Streams, exit statuses, mistakes, the plan and the report."""

import ctypes
import json
import os
import random
import re
import signal
import subprocess
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import NOT_EXECUTABLE, NOT_FOUND, PATH, RunCase, adopt_orphans, allow, python

MEGABYTE = 1 << 20
OWN_VARIABLES = {"PATH", "HOME", "TMPDIR", "LANG"}
SYS_LANDLOCK_CREATE_RULESET = 444
WITHOUT_ACCOUNT = 54321


def setUpModule():
    adopt_orphans()


def landlock_abi():
    return ctypes.CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1)


@started_by_root_and_user
class Streams(RunCase):
    def test_every_byte_passes_in_both_directions(self):
        sent = random.Random(3).randbytes(MEGABYTE)
        done = self.run_server([], ["/usr/bin/cat"], stdin=sent)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertTrue(done.stdout == sent, f"{len(done.stdout)} of {len(sent)} bytes")
        self.assertEqual(done.stderr, b"")

    def test_the_streams_are_the_callers_own(self):
        """No relay: stdin and stdout inside are the very same pipes."""
        process = self.start([], python("import os\n"
                                        "print(os.fstat(0).st_ino, os.fstat(1).st_ino)"))
        inodes = [os.fstat(end.fileno()).st_ino for end in (process.stdin, process.stdout)]
        done = launch.finish(process)
        self.assertEqual(done.stdout.decode().split(), [str(inode) for inode in inodes])

    def test_stderr_is_copied_through_a_pipe_of_its_own(self):
        process = self.start([], python("import os\n"
                                        "os.write(2, bytes(range(256)) * 100)\n"
                                        "print(os.fstat(2).st_ino)"))
        inode = os.fstat(process.stderr.fileno()).st_ino
        done = launch.finish(process)
        self.assertEqual(done.stderr, bytes(range(256)) * 100)
        self.assertNotEqual(done.stdout.decode().strip(), str(inode))

    def test_what_is_written_to_stderr_last_is_not_lost(self):
        done = self.run_server([], python("import os\n"
                                          "os.write(2, b'x' * 60000 + b'the end')\n"
                                          "os._exit(3)"))
        self.assertEqual(done.returncode, 3)
        self.assertEqual(len(done.stderr), 60007)
        self.assertTrue(done.stderr.endswith(b"the end"))


    def test_a_reader_that_is_gone_ends_the_server_as_without_capgate(self):
        process = self.start([], ["/usr/bin/yes"])
        self.assertEqual(process.stdout.read(2), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(launch.SECONDS), 128 + signal.SIGPIPE)
        process.stdout = None  # communicate() would read it

    def test_arguments_pass_whole(self):
        sent = ["", "é\n\t\"'$HOME`", "--", "-x", "x" * 100_000, *map(str, range(3000))]
        code = "import sys, json; print(json.dumps(sys.argv[1:]))"
        self.assertEqual(json.loads(self.output([], python(code, *sent))), sent)


@started_by_root_and_user
class ExitStatus(RunCase):
    def status_of(self, code, **options):
        return self.run_server([], python(code), **options).returncode

    def test_the_servers_status_is_passed_on(self):
        for status in (0, 1, 7, 125, 255):
            self.assertEqual(self.status_of(f"import os; os._exit({status})"), status)

    def test_a_signal_is_128_and_its_number(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            code = f"import os; os.kill(os.getpid(), {int(number)})"
            self.assertEqual(self.status_of(code), 128 + number)

    def test_signals_reach_the_server(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process = self.start([], python(
                "import os, signal, sys\n"
                f"signal.signal({int(number)}, lambda *_: os._exit(40))\n"
                # A signal that comes just before a wait ends it: pause() would sleep through.
                "read, write = os.pipe()\n"
                "os.set_blocking(write, False)\n"
                "signal.set_wakeup_fd(write)\n"
                "os.write(1, b'ready')\n"
                "while True: os.read(read, 1)\n"))
            self.assertEqual(process.stdout.read(5), b"ready")
            process.send_signal(number)
            self.assertEqual(process.wait(launch.SECONDS), 40, number)

    def test_a_command_that_is_not_there_is_127(self):
        for command in ("no-such-command", "/no/such/command"):
            said = self.refusal([], [command], code=NOT_FOUND)
            self.assertIn(command, said)
            self.assertRegex(said, r"(?m)^capgate: ")
            self.assertRegex(said, r"(?m)^help: ")

    def test_a_command_that_cannot_be_run_is_126(self):
        text = self.file("text", "words", 0o644)
        for command in (text, self.work):
            said = self.refusal([], [command], code=NOT_EXECUTABLE)
            self.assertIn(command, said)

    def test_a_file_that_the_kernel_cannot_run_is_126(self):
        words = self.file("words", "just words", 0o755)
        self.refusal(allow(f"fs:read:{words}"), [words], code=NOT_EXECUTABLE)

    def test_nothing_is_left_after_a_run(self):
        process = self.start(allow(f"fs:write:{self.work}/**"), ["/usr/bin/true"],
                             stdin=subprocess.DEVNULL)
        self.assertEqual(launch.finish(process, None).returncode, 0)
        self.assert_nothing_left(process.pid)


@started_by_root_and_user
class Programs(RunCase):
    def test_a_name_is_looked_up_in_the_callers_path(self):
        tool = self.file("bin/tool", "#!/usr/bin/cat\nthe tool\n", 0o755)
        env = self.environment(PATH=f"{os.path.dirname(tool)}:{PATH}")
        self.assertIn("the tool", self.output([], ["tool"], env=env))

    def test_a_relative_command_starts_where_the_caller_is(self):
        self.file("tool", "#!/usr/bin/cat\nthe tool\n", 0o755)
        self.assertIn("the tool", self.output([], ["./tool"], cwd=self.work))

    def test_a_script_of_env_runs(self):
        self.file("tool", "#!/usr/bin/env -S python3 -I\nimport sys; print(sys.argv[1:])\n", 0o755)
        self.assertEqual(self.output([], ["./tool", "a", "b c"], cwd=self.work), "['a', 'b c']\n")

    def test_a_link_to_a_program_works(self):
        self.file("lib/tool", "#!/usr/bin/cat\nthe tool\n", 0o755)
        os.symlink("lib/tool", os.path.join(self.work, "tool"))
        self.assertIn("the tool", self.output([], ["./tool"], cwd=self.work))

    def test_a_link_to_the_directory_of_a_program_works(self):
        """/opt/current -> /opt/v22 and the like."""
        self.file("v22/bin/tool", "#!/usr/bin/cat\nthe tool\n", 0o755)
        os.symlink("v22", os.path.join(self.work, "current"))
        self.assertIn("the tool", self.output([], ["./current/bin/tool"], cwd=self.work))

    def test_a_binary_behind_a_link_to_its_directory_works(self):
        self.file("v22/bin/x")
        real = os.path.join(self.work, "v22/bin/cat")
        with open("/usr/bin/cat", "rb") as source, open(real, "wb") as copy:
            copy.write(source.read())
        self.own(real, 0o755)
        os.symlink("v22", os.path.join(self.work, "current"))
        done = self.run_server([], ["./current/bin/cat"], cwd=self.work, stdin=b"passed")
        self.assertEqual((done.returncode, done.stdout), (0, b"passed"), done.stderr.decode())


@started_by_root_and_user
class Environment(RunCase):
    PRINT = python("import os, json; print(json.dumps(dict(os.environ)))")

    def variables(self, words, **env):
        return json.loads(self.output(words, self.PRINT, env=self.environment(**env)))

    def test_nothing_passes_that_is_not_declared(self):
        seen = self.variables([], TOKEN="secret", LD_LIBRARY_PATH="/x", CAPGATE_X="1")
        self.assertEqual(set(seen), OWN_VARIABLES)
        self.assertEqual(seen["HOME"], self.home)
        self.assertEqual(seen["TMPDIR"], "/tmp")

    def test_declared_variables_pass_whole(self):
        odd = "a=b\n\"c\" \t${HOME} é"
        seen = self.variables(allow("env:read:PLAIN", "env:inject:TOKEN"), PLAIN=odd, TOKEN="t",
                              OTHER="o")
        self.assertEqual(set(seen), OWN_VARIABLES | {"PLAIN", "TOKEN"})
        self.assertEqual((seen["PLAIN"], seen["TOKEN"]), (odd, "t"))

    def test_an_empty_value_is_a_value(self):
        self.assertEqual(self.variables(allow("env:read:EMPTY"), EMPTY="")["EMPTY"], "")

    def test_a_declared_variable_that_is_not_set_is_refused(self):
        for capability in ("env:read:TOKEN", "env:inject:TOKEN"):
            said = self.refusal(allow(capability))
            self.assertIn("TOKEN is not set", said)
            self.assertRegex(said, r"(?m)^help: set TOKEN")

    def test_a_name_that_starts_like_another_is_not_it(self):
        said = self.refusal(allow("env:read:TOK"), env=self.environment(TOKEN="secret"))
        self.assertNotIn("secret", said)

    def test_values_are_shown_nowhere(self):
        words = allow("env:inject:TOKEN")
        env = self.environment(TOKEN="hidden-value")
        plan = self.output(["--dry-run", *words], ["/usr/bin/true"], env=env)
        report = json.dumps(self.report(words, ["/usr/bin/true"], env=env))
        for text in (plan, report):
            self.assertIn("TOKEN", text)
            self.assertNotIn("hidden-value", text)

    def test_without_a_home_there_is_one(self):
        for home in (None, "", "/", "relative"):
            seen = json.loads(self.output([], self.PRINT, env=self.environment(HOME=home)))
            self.assertEqual(seen["HOME"], "/home/user", home)

    def test_without_a_path_the_systems_programs_are_found(self):
        self.output([], ["true"], env={"HOME": self.home})


class WithoutAccount(RunCase):
    """A user that /etc/passwd does not know, without a home."""

    uid = WITHOUT_ACCOUNT

    def test_the_server_has_an_account_and_a_home(self):
        code = ("import os, pwd\n"
                "me = pwd.getpwuid(os.getuid())\n"
                "open(os.path.expanduser('~/note'), 'w').write('x')\n"
                "print(os.getuid(), os.getgid(), me.pw_dir, os.getcwd())\n")
        said = self.output([], [launch.PYTHON, "-I", "-c", code], env={"PATH": PATH})
        self.assertEqual(said.split(), ["1000", "1000", "/home/user", "/home/user"])

    def test_grants_are_its_own(self):
        self.output(allow(f"fs:write:{self.work}/**"), ["/usr/bin/touch", f"{self.work}/made"],
                    env={"PATH": PATH})
        info = os.stat(os.path.join(self.work, "made"))
        self.assertEqual((info.st_uid, info.st_gid), (WITHOUT_ACCOUNT, WITHOUT_ACCOUNT))


@started_by_root_and_user
class Directory(RunCase):
    PRINT = python("import os; print(os.getcwd())")

    def directory_from(self, cwd, *capabilities):
        return self.output(allow(*capabilities), self.PRINT, cwd=cwd).strip()

    def test_a_granted_directory_stays_the_servers(self):
        os.mkdir(os.path.join(self.work, "deep"))
        self.own(os.path.join(self.work, "deep"), 0o700)
        for cwd in (self.work, os.path.join(self.work, "deep")):
            self.assertEqual(self.directory_from(cwd, f"fs:read:{self.work}/**"), cwd)

    def test_any_other_becomes_the_home(self):
        for cwd in ("/", "/usr", self.work):
            self.assertEqual(self.directory_from(cwd), self.home, cwd)

    def test_one_beside_a_grant_becomes_the_home(self):
        beside = self.own(self.tree.directory("work-beside"), 0o700)
        self.assertEqual(self.directory_from(beside, f"fs:read:{self.work}/**"), self.home)


@started_by_root_and_user
class DryRun(RunCase):
    def test_it_prints_the_bound_plan(self):
        note = self.file("note", "text")
        shown = self.dry_run(allow(f"fs:read:{note}"), ["cat", "-n"])
        self.assertEqual(shown["bound"]["program"], "/usr/bin/cat")
        self.assertEqual(shown["bound"]["arguments"], ["cat", "-n"])
        self.assertEqual(set(shown["bound"]["environment"]), OWN_VARIABLES)
        binds = {mount["target"]: mount for mount in shown["bound"]["mounts"]
                 if mount["kind"] == "bind"}
        self.assertEqual(binds[note]["source"], note)
        self.assertIn("ro", binds[note]["attributes"].split(","))
        self.assertIn(note, [rule["path"] for rule in shown["bound"]["landlock"]])
        self.assertIn("plan", shown)
        self.assertRegex(shown["policyHash"], r"[0-9a-f]{64}")

    def test_it_starts_nothing(self):
        canary = os.path.join(self.work, "canary")
        self.dry_run(allow(f"fs:write:{self.work}/**"), ["/usr/bin/touch", canary])
        self.assertFalse(os.path.exists(canary))

    def test_it_makes_nothing(self):
        before = self.tree.snapshot()
        self.dry_run(allow(f"fs:write:{self.work}/missing"), ["/usr/bin/true"])
        self.assertEqual(self.tree.snapshot(), before)

    def test_it_refuses_what_a_run_would_refuse(self):
        self.refusal(["--dry-run", *allow("fs:read:/no/such/file")])
        self.refusal(["--dry-run"], ["no-such-command"], code=NOT_FOUND)


@started_by_root_and_user
class Report(RunCase):
    def guarantees(self, report):
        return {each["guarantee"]: each["by"] for each in report["guarantees"]}

    def test_it_lists_what_held_and_by_what(self):
        report = self.report(allow(f"fs:write:{self.work}/**"), python("import os; os._exit(7)"),
                             code=7)
        held = self.guarantees(report)
        self.assertIn(f"{self.work} can be read and written", held)
        self.assertEqual("idmapped" in held[f"{self.work} can be read and written"], self.uid == 0)
        self.assertTrue(any("no other file of the host can be seen" in line for line in held), held)
        self.assertIn("no child process, no second exec", held)
        self.assertTrue(all(held.values()), held)
        self.assertEqual(report["exit"], {"status": 7})
        self.assertEqual(report["landlockAbi"], landlock_abi())
        self.assertEqual(report["program"], "/usr/bin/python3")
        self.assertEqual(set(report["environment"]), OWN_VARIABLES)

    def test_it_says_the_same_policy_as_the_plan(self):
        words = allow(f"fs:read:{self.work}/**")
        plan = self.dry_run(words, ["/usr/bin/true"])
        self.assertEqual(self.report(words, ["/usr/bin/true"])["policyHash"], plan["policyHash"])

    def test_what_it_says_about_files_is_true(self):
        note = self.file("note", "text")
        other = self.file("other", "text")
        report = self.report(allow(f"fs:read:{note}"), ["/usr/bin/true"])
        self.assertIn(f"{note} can be read", self.guarantees(report))
        seen = self.attempt(allow(f"fs:read:{note}"), f"open({note!r}).read()",
                            f"open({note!r}, 'a')", f"open({other!r})",
                            f"os.listdir({self.work!r})")
        self.assertEqual(seen, ["'text'", "EROFS", "ENOENT", "['note']"])

    def test_what_it_says_about_processes_is_true(self):
        with_git = self.report(allow("exec:spawn:git"), ["/usr/bin/true"])
        self.assertIn("only declared programs can be run", self.guarantees(with_git))
        self.assertEqual(self.attempt([], "os.fork()", "os.execv('/usr/bin/python3', ['x'])"),
                         ["EPERM", "EPERM"])

    def test_what_it_says_about_limits_is_true(self):
        report = self.report(allow("limit:files:77"), ["/usr/bin/true"])
        limits = {each["name"]: each for each in report["limits"]}
        self.assertEqual(limits["files"], {"name": "files", "value": "77", "by": "rlimit"})
        self.assertEqual(limits["memory"]["value"], "2G")
        inside = self.output(allow("limit:files:77"), [launch.PYTHON, "-I", "-c", (
            "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))")])
        self.assertEqual(inside.strip(), "(77, 77)")

    def test_it_is_private(self):
        self.report([], ["/usr/bin/true"])
        self.assertEqual(os.stat(self.tree.path("reports/report.json")).st_mode & 0o777, 0o600)

    def test_a_place_that_cannot_be_written_is_refused_before_the_server_runs(self):
        canary = os.path.join(self.work, "canary")
        said = self.refusal(["--report", "/no/such/place", *allow(f"fs:write:{self.work}/**")],
                            ["/usr/bin/touch", canary])
        self.assertIn("/no/such/place", said)
        self.assertFalse(os.path.exists(canary))


@started_by_root_and_user
class Mistakes(RunCase):
    def test_capabilities_with_mistakes_are_refused_readably(self):
        for capability, code in (("fs:read:relative", "CAP_FS_RELATIVE"),
                                 ("gpu:access:all", "CAP_"), ("fs:fly:/srv", "CAP_"),
                                 ("", "CAP_"), ("fs:read:/", "CAP_SCOPE_REFUSED"),
                                 ("limit:memory:lots", "CAP_")):
            said = self.refusal(allow(capability))
            self.assertRegex(said, rf"error\[{code}", capability)
            self.assertRegex(said, r"(?m)^help: ", capability)
            self.assertIn("--allow", said, capability)

    def test_every_mistake_is_told(self):
        said = self.refusal(allow("fs:read:relative", f"fs:read:{self.work}/**", "gpu:access:all"))
        self.assertEqual(len(re.findall(r"error\[", said)), 2, said)

    def test_other_words_with_mistakes_are_refused(self):
        for words in (["--grace", "soon"], ["--grace", "-1"], ["--no-such-option"],
                      ["--set", "NOTHING"], ["-m", "/no/such/manifest.json"], ["--allow"]):
            self.assertNotEqual(self.refusal(words), "", words)

    def test_a_command_is_needed(self):
        for words in (["run"], ["run", "--"]):
            done = subprocess.run([launch.CAPGATE, *words], capture_output=True, check=False,
                                  stdin=subprocess.DEVNULL, timeout=launch.SECONDS)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertIn(b"COMMAND", done.stderr)

    def test_a_grant_that_is_missing_is_refused_with_a_remedy(self):
        missing = os.path.join(self.work, "missing")
        for capability in (f"fs:read:{missing}", f"fs:read:{missing}/**",
                           f"fs:read:{missing}/*.md"):
            said = self.refusal(allow(capability))
            self.assertIn(f"cannot open {missing}: No such file or directory", said)
            self.assertRegex(said, r"(?m)^help: create it")
            self.assertFalse(os.path.exists(missing))

    def test_a_grant_that_is_a_link_names_what_it_stands_for(self):
        real = self.file("real", "text")
        link = os.path.join(self.work, "link")
        os.symlink("real", link)
        said = self.refusal(allow(f"fs:read:{link}"))
        self.assertIn(f"symbolic link {link}", said)
        self.assertRegex(said, rf"(?m)^help: .*{re.escape(real)}$")

    def test_what_is_neither_file_nor_directory_is_refused(self):
        fifo = os.path.join(self.work, "fifo")
        os.mkfifo(fifo)
        self.own(fifo, 0o600)
        self.assertIn("neither a file nor a directory", self.refusal(allow(f"fs:read:{fifo}")))

    def test_a_manifest_is_enough_and_more_can_be_allowed(self):
        note, other = self.file("note", "text"), self.file("other", "text")
        manifest = self.own(self.tree.file("manifest.json", json.dumps(
            launch.server(f"fs:read:{note}"))), 0o600)
        seen = self.attempt(["-m", manifest, *allow(f"fs:read:{other}")],
                            f"open({note!r}).read()", f"open({other!r}).read()")
        self.assertEqual(seen, ["'text'", "'text'"])


if __name__ == "__main__":
    unittest.main()
