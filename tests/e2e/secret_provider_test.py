"""Where secrets come from (`run --secret`), and where their values are not to be found."""

import ctypes
import json
import os
import pty
import re
import shutil
import subprocess
import unittest
from unittest import mock

import launch
from cases import started_by_root_and_user, stop
from run_cases import RunCase, adopt_orphans, allow, python

# Long enough that the C++ library keeps it on the heap, and short enough that it does not.
LONG = "hidden-value-0123456789-0123456789"
SHORT = "hidden-val"
TOKEN = allow("env:inject:TOKEN")
SHOW = ["/usr/bin/printenv", "TOKEN"]
KEY_SPEC_USER_KEYRING = -4
KEYCTL_UNLINK = 9
CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]


def setUpModule():
    adopt_orphans()


def as_user(uid, function):
    """Runs it in a process of this user, and gives what it returned, a number."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            launch.become(uid)
            os.write(writing, str(function()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return int(text)


def system_call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(number, *arguments)
    return result if result >= 0 else -ctypes.get_errno()


def add_key(name, value):
    return system_call(CALLS[0], b"user", name.encode(), value.encode(), len(value),
                       KEY_SPEC_USER_KEYRING)


def memory_of(pid):
    """Everything that a process has in its memory, as root sees it."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            start, stop, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if mode.startswith("r") and "[v" not in line:
                memory.seek(int(start, 16))
                found.append(memory.read(int(stop, 16) - int(start, 16)))
    return b"".join(found)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as children:
        return [int(word) for word in children.read().split()]


def command_lines():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    yield file.read()
            except (FileNotFoundError, ProcessLookupError):
                pass


class SecretCase(RunCase):
    def secret(self, reference, name="TOKEN"):
        return [*allow(f"env:inject:{name}"), "--secret", f"{name}={reference}"]

    def script(self, name, lines):
        return self.file(name, "#!/bin/sh\n" + lines, mode=0o700)

    def seen(self, reference, **options):
        """The value that the server finds in its environment."""
        return self.output(self.secret(reference), SHOW, **options)[:-1]

    def refused(self, reference, **options):
        said = self.refusal(self.secret(reference), **options)
        self.assertNotIn("hidden", said)
        self.assertRegex(said, r"(?m)^help: ")
        return said


@started_by_root_and_user
class Providers(SecretCase):
    def test_without_a_binding_the_variable_of_that_name(self):
        self.assertEqual(self.output(TOKEN, SHOW, env=self.environment(TOKEN=LONG)), LONG + "\n")

    def test_another_variable(self):
        env = self.environment(OTHER=LONG, TOKEN="not this")
        self.assertEqual(self.seen("env:OTHER", env=env), LONG)
        self.assertIn("OTHER is not set", self.refused("env:OTHER"))

    def test_a_variable_that_is_read_too_stays(self):
        words = [*self.secret("env:PLAIN"), *allow("env:read:PLAIN")]
        shown = self.output(words, ["/usr/bin/printenv", "PLAIN", "TOKEN"],
                            env=self.environment(PLAIN="both"))
        self.assertEqual(shown, "both\nboth\n")

    def test_a_file(self):
        self.assertEqual(self.seen("file:" + self.file("token", LONG + "\n")), LONG)
        several = "-----BEGIN X-----\nabc\n-----END X-----"
        self.assertEqual(self.seen("file:" + self.file("key", several + "\n")), several)

    def test_a_file_that_others_can_read_is_refused(self):
        for mode in (0o640, 0o604, 0o644):
            said = self.refused("file:" + self.file("token", LONG, mode=mode))
            self.assertIn("others than the owner", said)
            self.assertIn("chmod 600", said)

    def test_a_link_leads_to_a_file_that_decides(self):
        link = os.path.join(self.work, "link")
        os.symlink(self.file("token", LONG, mode=0o644), link)
        self.assertIn("others than the owner", self.refused("file:" + link))

    def test_a_file_that_is_not_there_or_none(self):
        self.assertIn("No such file", self.refused("file:/nonexistent"))
        self.assertIn("no regular file", self.refused("file:" + self.work))
        self.assertIn("no regular file", self.refused("file:/dev/zero"))

    def test_a_file_of_another_user(self):
        path = self.file("token", LONG, mode=0o600)
        os.chown(path, 54321, 54321)
        said = self.refused("file:" + path)
        self.assertIn("belongs to user 54321" if self.uid == 0 else "Permission denied", said)

    def test_a_command(self):
        path = self.file("token", LONG + "\n")
        self.assertEqual(self.seen(f"cmd:cat {path}"), LONG)
        self.assertEqual(self.seen("cmd:echo 'a  b' $HOME;ls"), "a  b $HOME;ls")

    def test_a_command_sees_the_callers_environment_and_no_input(self):
        program = self.script("ask", 'cat; printf %s "$VAULT_ADDR"\n')
        env = self.environment(VAULT_ADDR="https://vault")
        self.assertEqual(self.seen(f"cmd:{program}", env=env), "https://vault")
        words = self.secret(f"cmd:{program}")
        done = self.run_server(words, ["/usr/bin/cat"], env=env, stdin=b"for the server")
        self.assertEqual(done.stdout, b"for the server")

    def test_a_command_that_fails(self):
        program = self.script("fail", f"echo {LONG}; echo no such entry >&2; exit 7\n")
        said = self.refused(f"cmd:{program}")
        self.assertIn("exit status 7", said)
        self.assertIn("no such entry", said)
        self.assertIn("cannot be run: No such file", self.refused("cmd:capgate-no-such-program"))
        self.assertIn("more than", self.refused("cmd:yes hidden"))
        self.assertIn("is empty", self.refused("cmd:true"))

    def test_a_command_with_an_expiry(self):
        path = self.file("token", json.dumps({"value": LONG, "expires_in": 3600}))
        self.assertEqual(self.seen(f"cmd?json:cat {path}"), LONG)
        self.assertEqual(self.seen(f"cmd?ttl=60:echo {SHORT}"), SHORT)
        plain = self.file("plain", LONG)
        self.assertIn("cannot be used", self.refused(f"cmd?json:cat {plain}"))

    def test_a_credential_of_systemd(self):
        self.file("github", LONG, mode=0o400)
        env = self.environment(CREDENTIALS_DIRECTORY=self.work)
        self.assertEqual(self.seen("systemd-credential:github", env=env), LONG)
        self.assertIn("LoadCredential=github", self.refused("systemd-credential:github"))
        self.assertIn("names no secret", self.refused("systemd-credential:../github", env=env))

    def test_a_key_of_the_kernel(self):
        name = f"capgate-e2e-{os.getpid()}"
        key = as_user(self.uid, lambda: add_key(name, LONG))
        self.assertGreater(key, 0, "the kernel keeps no keys")
        self.addCleanup(as_user, self.uid, lambda: system_call(
            CALLS[1], KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING))
        self.assertEqual(self.seen(f"keyring:{name}"), LONG)
        self.assertIn(f"keyctl padd user {name}x @u", self.refused(f"keyring:{name}x"))

    def test_the_store_beside_capgate(self):
        programs = self.tree.directory("programs")
        copy = shutil.copy2(launch.CAPGATE, programs)
        with mock.patch.object(launch, "CAPGATE", copy):
            self.assertIn("cannot be run", self.refused("store:GITHUB"))
            store = self.tree.file("programs/capgate-store", '#!/bin/sh\necho "$@"\n')
            os.chmod(store, 0o755)
            manifest = self.file("m.json", json.dumps(launch.server("env:inject:TOKEN")))
            words = ["-m", manifest, "--secret", "TOKEN=store:GITHUB"]
            self.assertEqual(self.output(words, SHOW), "get --server e2e --name GITHUB\n")

    def test_several_secrets(self):
        words = [*self.secret("cmd:echo one"), *self.secret("cmd:echo two", name="OTHER")]
        shown = self.output(words, ["/usr/bin/printenv", "TOKEN", "OTHER"])
        self.assertEqual(shown, "one\ntwo\n")


class Words(SecretCase):
    def test_a_name_that_is_not_declared(self):
        said = self.refusal(["--secret", "TOKEN=env:A", *allow("env:inject:OTHER", "env:read:A")])
        self.assertIn("no env:inject:TOKEN is declared", said)
        self.assertIn("declared are: OTHER\n", said)
        self.assertIn("--allow env:inject:TOKEN", self.refusal(["--secret", "TOKEN=env:A"]))

    def test_a_name_twice(self):
        said = self.refusal([*TOKEN, "--secret", "TOKEN=env:A", "--secret", "TOKEN=env:A"])
        self.assertIn("--secret TOKEN is given twice", said)

    def test_a_value_instead_of_a_provider_is_not_repeated(self):
        for text in (LONG, f"{LONG}:{LONG}"):
            said = self.refused(text)
            self.assertRegex(said, "(?m)^help: write env:NAME, file:PATH")

    def test_the_help_names_the_providers(self):
        shown = launch.capgate("run", "--help").stdout
        for provider in ("env:", "file:", "cmd:", "systemd-credential:", "keyring:", "store:"):
            self.assertIn(provider, shown)


class Terminal(SecretCase):
    """A command may ask for a passphrase, though it is a process group of its own."""

    def test_a_command_asks_at_the_terminal_and_gives_it_back(self):
        ask = self.script("ask", "echo passphrase: > /dev/tty; read word < /dev/tty; echo $word\n")
        # The server's run ends well only if capgate may write to the terminal again.
        foreground = "import os; print(os.tcgetpgrp(0) == os.getpgrp())"
        pid, terminal = pty.fork()
        if pid == 0:
            try:
                launch.become(self.uid)
                os.chdir("/")
                words = [launch.CAPGATE, "run", *self.secret(f"cmd:{ask}"), "--", *SHOW]
                done = subprocess.run(["/bin/sh", "-c", 'set -e; "$@"; exec $AFTER "$CODE"', "sh",
                                       *words],
                                      env=self.environment(CODE=foreground, AFTER=f"{launch.PYTHON} -c"),
                                      check=False)
            finally:
                os._exit(done.returncode)
        shown = b""
        try:
            while b"passphrase:" not in shown:
                shown += os.read(terminal, 4096)
            os.write(terminal, b"open-sesame\n")
            while True:
                shown += os.read(terminal, 4096)
        except OSError:
            pass  # the last one has closed it
        finally:
            os.close(terminal)
            _, status = os.waitpid(pid, 0)
        self.assertEqual(status, 0, shown)
        self.assertEqual(shown.count(b"open-sesame"), 2, shown)  # echoed, and shown by the server
        self.assertIn(b"True", shown)


class Hidden(SecretCase):
    """A value is in the server's environment and nowhere else."""

    WAIT = python("import sys; print('ready', flush=True); sys.stdin.read()")

    def running(self, words, **options):
        process = self.start(words, self.WAIT, **options)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_not_in_plan_report_and_output(self):
        path = self.file("token", LONG)
        for words, env in ((self.secret("file:" + path), {}), (TOKEN, {"TOKEN": LONG}),
                           (self.secret(f"cmd:cat {path}"), {})):
            env = self.environment(**env)
            plan = self.run_server(["--dry-run", *words], SHOW, env=env)
            self.assertEqual(plan.returncode, 0)
            report = json.dumps(self.report(words, ["/usr/bin/true"], env=env))
            done = self.run_server(words, ["/usr/bin/true"], env=env)
            for text in (plan.stdout, plan.stderr, report.encode(), done.stdout, done.stderr):
                self.assertNotIn(LONG.encode(), text)
            self.assertIn("TOKEN", report)
            self.assertIn(b'"TOKEN"', plan.stdout)

    def test_a_dry_run_starts_no_command(self):
        made = os.path.join(self.work, "made")
        self.dry_run(self.secret(f"cmd:touch {made}"), SHOW)
        self.assertFalse(os.path.exists(made))

    def test_not_in_any_memory_but_the_servers(self):
        for value in (LONG, SHORT):
            for words, env in ((TOKEN, {"TOKEN": value}),
                               (self.secret("file:" + self.file("token", value)), {}),
                               (self.secret("cmd:cat " + self.file("token", value)), {})):
                with self.subTest(value=value, words=words):
                    self.look_into_memories(value.encode(), words, self.environment(**env))

    def look_into_memories(self, value, words, env):
        process = self.running(words, env=env)
        try:
            init, = children_of(process.pid)
            server, = children_of(init)
            self.assertTrue(value in memory_of(server), "the control: this is how it is found")
            for pid in (process.pid, init):
                self.assertFalse(value in memory_of(pid), "found in memory")
                with open(f"/proc/{pid}/environ", "rb") as file:
                    self.assertNotIn(value, file.read())
            for line in command_lines():
                self.assertNotIn(value, line)
        finally:
            process.communicate()  # else the next one would wait for it, too
        self.assertEqual(process.returncode, 0)

    def test_no_other_process_of_the_user_looks_into_the_supervisor(self):
        process = self.running(TOKEN, env=self.environment(TOKEN=LONG))
        self.assert_closed(process.pid)
        process.communicate()

    def test_nor_while_a_command_runs(self):
        started = os.path.join(self.work, "started")
        go = os.path.join(self.work, "go")
        for pipe in (started, go):
            os.mkfifo(pipe)
            self.own(pipe, 0o600)
        program = self.script("slow", f"echo > {started}; read go < {go}; echo {LONG}\n")
        process = self.start(self.secret(f"cmd:{program}"), SHOW)
        with open(started, "rb") as pipe:
            pipe.read()
        self.assert_closed(process.pid)
        with open(go, "wb") as pipe:
            pipe.write(b"\n")
        self.assertEqual(process.communicate()[0], LONG.encode() + b"\n")

    def assert_closed(self, pid):
        """To the same user, to whom another process of his is open."""
        def attempt(path):
            try:
                os.close(os.open(path, os.O_RDONLY))
            except PermissionError:
                return 1
            return 0
        control = subprocess.Popen(["/usr/bin/sleep", "1000"],
                                   preexec_fn=lambda: launch.become(self.uid))
        self.addCleanup(stop, control)
        for name in ("mem", "environ", "fd"):
            for at, refused in ((pid, 1), (control.pid, 0)):
                with self.subTest(name=name, at=at):
                    self.assertEqual(as_user(self.uid, lambda: attempt(f"/proc/{at}/{name}")),
                                     refused)

    def test_a_command_ends_with_capgate(self):
        started = os.path.join(self.work, "started")
        os.mkfifo(started)
        self.own(started, 0o600)
        program = self.script("slow", f"echo $$ > {started}; exec sleep 1000\n")
        process = self.start(self.secret(f"cmd:{program}"), SHOW)
        with open(started, encoding="utf-8") as pipe:
            command = int(pipe.read())
        process.kill()
        process.communicate()
        # It is ours now: adopted, and reaped here.
        _, status = os.waitpid(command, 0)
        self.assertEqual(os.WTERMSIG(status), 9)


if __name__ == "__main__":
    unittest.main()
