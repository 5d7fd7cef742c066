"""`capgate secret` and capgate-store: what is kept, who can open it, and that no value is shown."""

import fcntl
import json
import os
import pty
import resource
import select
import shutil
import signal
import stat
import subprocess
import termios
import time
import unittest

import launch
from cases import Case

STORE = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-store")
VALUE = "ghp_Zx81-value.that/nobody+sees="
PHRASE = "correct horse battery"
KEY = b"k" * 32

# Adds to, finds in or takes from the keyring of whoever runs it.
KERNEL_KEY = """
import ctypes, sys
call = ctypes.CDLL(None, use_errno=True).syscall
ADD_KEY, KEYCTL, UNLINK, SEARCH, USER_RING = 248, 250, 9, 10, -4
name = sys.argv[2].encode()
if sys.argv[1] == "add":
    sys.exit(call(ADD_KEY, b"user", name, sys.argv[3].encode(), len(sys.argv[3]), USER_RING) < 0)
key = call(KEYCTL, SEARCH, USER_RING, b"user", name, 0)
if key > 0 and sys.argv[1] == "remove":
    call(KEYCTL, UNLINK, key, USER_RING)
sys.exit(key < 0)
"""


class Terminal:
    """A program with a terminal of its own, on which a person types."""

    def __init__(self, command, *, uid, env, stdin=None, stdout=subprocess.PIPE):
        self.control, self.end = pty.openpty()

        def take_terminal():
            # Whoever runs the tests in the background ignores some of them, and so would this.
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(self.end, termios.TIOCSCTTY, 0)
            launch.become(uid)

        self.process = subprocess.Popen(
            command, env=env, stdin=self.end if stdin is None else stdin,
            stdout=self.end if stdout is None else stdout, stderr=subprocess.PIPE,
            preexec_fn=take_terminal)
        self.shown = b""

    def wait_for(self, text):
        deadline = time.monotonic() + launch.SECONDS
        while text.encode() not in self.shown:
            if not select.select([self.control], [], [], deadline - time.monotonic())[0]:
                raise AssertionError(f"no {text!r} in {self.shown!r}")
            self.shown += os.read(self.control, 4096)

    def answer(self, prompt, text):
        """Types a line as soon as it is asked for."""
        self.wait_for(prompt)
        self.shown = self.shown.split(prompt.encode(), 1)[1]
        os.write(self.control, text.encode() + b"\n")

    def echoes(self):
        return bool(termios.tcgetattr(self.end)[3] & termios.ECHO)

    def finish(self):
        """Its exit code, standard output and standard error."""
        out, err = self.process.communicate(timeout=launch.SECONDS)
        while select.select([self.control], [], [], 0)[0]:
            self.shown += os.read(self.control, 4096)
        return self.process.returncode, (out or b"").decode(), err.decode()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        os.close(self.control)
        os.close(self.end)


class StoreCase(Case):
    """One user with a store in a tree of files; `uid` is who that is."""

    uid = 0

    def setUp(self):
        super().setUp()
        self.home = self.own_directory("home")
        self.key = self.own_file("key", KEY)
        self.store = os.path.join(self.home, "capgate/secrets.json")

    def own_directory(self, name):
        path = self.tree.path(name)
        os.mkdir(path, 0o700)
        os.chown(path, self.uid, self.uid)
        return path

    def own_file(self, name, data, mode=0o600):
        path = self.tree.path(name)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        os.chown(path, self.uid, self.uid)
        return path

    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "XDG_DATA_HOME": self.home}

    def as_user(self, command, *, stdin=b"", **options):
        """The finished run of a command without a terminal."""
        def become():
            os.setsid()
            launch.become(self.uid)

        return subprocess.run(command, input=stdin, capture_output=True, check=False,
                              env=self.environment(), timeout=launch.SECONDS,
                              preexec_fn=become, **options)

    def secret(self, *words, stdin="", code=0):
        """What `capgate secret` prints; it must end with this exit code."""
        done = self.as_user([launch.CAPGATE, "secret", *words], stdin=stdin.encode())
        err = done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{words}: {err}")
        self.assertNotIn(VALUE, err)
        return done.stdout.decode() if code == 0 else err

    def on_terminal(self, *words, **options):
        terminal = Terminal([launch.CAPGATE, "secret", *words], uid=self.uid,
                            env=self.environment(), **options)
        self.addCleanup(terminal.close)
        return terminal

    def fill(self, *names, value=VALUE):
        for name in names or ("TOKEN",):
            self.secret("set", name, "--key", f"file:{self.key}", stdin=value)

    def stored(self):
        with open(self.store, "rb") as file:
            return file.read()

    def assert_unchanged_by(self, code, *runs):
        """Each of these is refused with this exit code, and leaves the store as it is."""
        before = self.stored()
        for words in runs:
            self.secret(*words, stdin=VALUE, code=code)
            self.assertEqual(self.stored(), before, words)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.store))),
                         ["secrets.json", "secrets.lock"])


class Keeping:
    """What is set is given back, and only that."""

    def test_a_value_comes_back_to_the_byte(self):
        self.fill()
        self.assertEqual(self.secret("get", "TOKEN"), VALUE)
        self.assertNotIn(VALUE.encode(), self.stored())
        self.assertNotIn(KEY, self.stored())

    def test_one_newline_at_the_end_is_not_part_of_it(self):
        self.secret("set", "A", "--key", f"file:{self.key}", stdin=VALUE + "\n")
        self.assertEqual(self.secret("get", "A"), VALUE)

    def test_the_servers_own_goes_first(self):
        self.fill(value="for any")
        self.secret("set", "TOKEN", "--server", "github", stdin="for github")
        for server, value in (("github", "for github"), ("gitlab", "for any"), ("*", "for any")):
            self.assertEqual(self.secret("get", "TOKEN", "--server", server), value)
        self.secret("rm", "TOKEN", "--server", "github")
        self.assertEqual(self.secret("get", "TOKEN", "--server", "github"), "for any")
        self.assertIn("the store has no", self.secret("rm", "TOKEN", "--server", "github", code=3))

    def test_what_run_asks_for(self):
        self.fill()
        done = self.as_user([STORE, "get", "--server", "a server", "--name", "TOKEN"])
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, VALUE.encode(), b""))
        done = self.as_user([STORE, "get", "--server", "a server", "--name", "OTHER"])
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn(b'the store has no "OTHER" for "a server"', done.stderr)
        done = self.as_user([STORE, "--version"])
        self.assertRegex(done.stdout.decode(), r"^capgate \d+\.\d+\.\d+\n$")

    def test_list_shows_names_and_no_value(self):
        self.assertEqual(json.loads(self.secret("list", "--json")),
                         {"schemaVersion": 1, "key": None, "secrets": []})
        self.fill("B", "A")
        self.secret("set", "A", "--server", "github", stdin=VALUE)
        listed = json.loads(self.secret("list", "--json"))
        self.assertEqual([(each["server"], each["name"]) for each in listed["secrets"]],
                         [("*", "A"), ("*", "B"), ("github", "A")])
        self.assertEqual(listed["key"]["source"], f"file:{self.key}")
        for each in listed["secrets"]:
            self.assertRegex(each["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(set(each), {"server", "name", "created", "changed"})
        text = self.secret("list")
        self.assertRegex(text, r"(?m)^A +github +created ")
        self.assertNotIn(VALUE, text)
        only = json.loads(self.secret("list", "--json", "--server", "github"))["secrets"]
        self.assertEqual([each["name"] for each in only], ["A"])

    def test_rotate_changes_every_sealed_byte(self):
        self.fill("A", "B")
        before = json.loads(self.stored())
        self.secret("rotate")
        after = json.loads(self.stored())
        self.assertNotEqual(before["key"]["id"], after["key"]["id"])
        for old, new in zip(before["entries"], after["entries"]):
            self.assertNotEqual(old["sealed"], new["sealed"])
        self.assertEqual(self.secret("get", "B"), VALUE)

    def test_rotate_takes_another_key_file(self):
        self.fill("A", "B")
        other = self.own_file("other", b"another key, of thirty-two bytes or more")
        self.secret("rotate", "--key", f"file:{other}")
        os.unlink(self.key)
        self.assertEqual(self.secret("get", "A"), VALUE)

    def test_a_relative_key_file_is_found_from_everywhere(self):
        done = self.as_user([launch.CAPGATE, "secret", "set", "A", "--key", "file:key"],
                            stdin=VALUE.encode(), cwd=self.tree.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.secret("get", "A"), VALUE)

    def test_files_are_of_the_user_alone_whatever_the_umask(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.fill()
        for path, mode in ((self.store, 0o600), (os.path.dirname(self.store), 0o700),
                           (os.path.join(self.home, "capgate/secrets.lock"), 0o600)):
            info = os.lstat(path)
            self.assertEqual((stat.S_IMODE(info.st_mode), info.st_uid), (mode, self.uid), path)

    def test_values_that_nothing_can_carry(self):
        for value, why in (("", "empty"), ("\n", "empty"), ("a\nb", "line break"),
                           ("a\r\n", "line break"), ("a\0b", "NUL"), ("v" * 32769, "longer")):
            self.assertIn(why, self.secret("set", "A", "--key", f"file:{self.key}", stdin=value,
                                           code=2))
        self.assertFalse(os.path.exists(self.store))
        self.fill(value="v" * 32768)
        self.assertEqual(self.secret("get", "TOKEN"), "v" * 32768)

    def test_a_value_on_the_command_line_is_refused_and_not_repeated(self):
        for words in (["set", "A", VALUE], ["set", f"A={VALUE}"], ["set", "A", f"--{VALUE}"],
                      ["set", "A", "--value", VALUE], [VALUE], ["get", "A", VALUE],
                      ["set", "A", "--key", VALUE], ["set", "A", f"--value={VALUE}"],
                      ["list", VALUE], ["set", "A", "--json"], ["get"]):
            self.secret(*words, code=2)
        self.assertIn("does not stand on the command line", self.secret("set", "A", "x", code=2))


class Refusing:
    """A store that may be someone else's, or is not what was written, is not touched."""

    def test_modes_that_let_others_in(self):
        self.fill()
        for path, mode in ((self.store, 0o640), (self.store, 0o602), (self.key, 0o604),
                           (os.path.dirname(self.store), 0o750)):
            right = stat.S_IMODE(os.stat(path).st_mode)
            os.chmod(path, mode)
            self.assertIn("others can use it", self.secret("get", "TOKEN", code=3))
            self.assert_unchanged_by(3, ["set", "A"], ["rm", "TOKEN"], ["rotate"])
            os.chmod(path, right)
        self.assertEqual(self.secret("get", "TOKEN"), VALUE)

    def test_files_of_another_user(self):
        self.fill()
        other = 54321
        for path in (self.store, self.key, os.path.dirname(self.store)):
            os.chown(path, other, other)
            said = self.secret("get", "TOKEN", code=3)
            self.assertIn("belongs to another user" if self.uid == 0 else "Permission denied", said)
            os.chown(path, self.uid, self.uid)

    def test_a_link_instead_of_the_store(self):
        self.fill()
        os.rename(self.store, self.tree.path("home/elsewhere"))
        os.symlink(self.tree.path("home/elsewhere"), self.store)
        self.assertIn("symbolic links", self.secret("get", "TOKEN", code=3))
        self.secret("set", "A", stdin=VALUE, code=3)
        self.assertTrue(os.path.islink(self.store))

    def test_a_damaged_store_is_never_overwritten(self):
        self.fill()
        whole = self.stored()
        changed = json.loads(whole)
        changed["entries"][0]["name"] = "OTHER"
        for text in (b"", b"{", whole[:-2], whole + b" ", whole.replace(b"TOKEN", b"TAKEN"),
                     json.dumps(changed).encode(), b"\xff" + whole):
            with open(self.store, "wb") as file:
                file.write(text)
            said = self.secret("get", "TAKEN" if b"TAKEN" in text else "TOKEN", code=8)
            self.assertIn(f"{self.store}: " if b"TAKEN" not in text else "damaged", said)
            self.assert_unchanged_by(8, ["set", "A"], ["rm", "TAKEN"], ["rotate"])

    def test_a_format_of_the_future(self):
        self.fill()
        later = self.stored().replace(b'"version": 1,', b'"version": 2,')
        with open(self.store, "wb") as file:
            file.write(later)
        self.assertIn('the store has format "2"', self.secret("list", code=3))
        self.assert_unchanged_by(3, ["set", "A"], ["rm", "TOKEN"], ["rotate"], ["get", "TOKEN"])

    def test_another_key(self):
        self.fill()
        self.own_file("key", b"K" + KEY[1:])
        self.assertIn("this key does not open the store", self.secret("get", "TOKEN", code=3))
        self.assert_unchanged_by(3, ["set", "A"], ["rm", "TOKEN"], ["rotate"])

    def test_another_key_source_for_set(self):
        self.fill()
        other = self.own_file("other", KEY)
        self.assertIn("rotate --key", self.secret("set", "A", "--key", f"file:{other}",
                                                  stdin=VALUE, code=3))

    def test_key_files_that_are_none(self):
        for data, mode, why in ((b"short", 0o600, "fewer than 32"), (KEY, 0o644, "others"),
                                (b"k" * 70000, 0o600, "too large")):
            path = self.own_file("bad", data, mode)
            self.assertIn(why, self.secret("set", "A", "--key", f"file:{path}", stdin=VALUE,
                                           code=3))
        self.assertIn("No such file", self.secret("set", "A", "--key", "file:/nonexistent",
                                                  stdin=VALUE, code=3))
        self.assertFalse(os.path.exists(self.store))

    def test_a_write_that_fails_leaves_the_old_store(self):
        self.fill()
        before = self.stored()

        def short_files():
            launch.become(self.uid)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

        done = subprocess.run([launch.CAPGATE, "secret", "set", "A"], input=VALUE.encode(),
                              env=self.environment(), preexec_fn=short_files, check=False,
                              capture_output=True, timeout=launch.SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.stored(), before)
        self.secret("set", "A", stdin=VALUE)
        self.assertEqual(self.secret("get", "A"), VALUE)

    def test_without_a_terminal_it_says_what_to_do(self):
        said = self.secret("set", "A", stdin=VALUE, code=3)
        self.assertIn("there is no terminal", said)
        self.assertIn("--key file:PATH", said)
        self.assertFalse(os.path.exists(self.store))

    def test_no_place_for_a_store(self):
        done = self.as_user(["/usr/bin/env", "-i", launch.CAPGATE, "secret", "list"])
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"set HOME or XDG_DATA_HOME", done.stderr)


class Together:
    """Several at a time."""

    def start(self, *words, value=""):
        def become():
            launch.become(self.uid)

        process = subprocess.Popen([launch.CAPGATE, "secret", *words], env=self.environment(),
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, preexec_fn=become)
        process.stdin.write(value.encode())
        process.stdin.close()
        self.addCleanup(process.stderr.close)
        return process

    def end(self, processes):
        for process in processes:
            code = process.wait(timeout=launch.SECONDS)
            self.assertEqual(code, 0, process.stderr.read())

    def test_no_writer_loses_what_another_wrote(self):
        names = [f"NAME_{number}" for number in range(12)]
        writers = [self.start("set", name, "--key", f"file:{self.key}", value=name + VALUE)
                   for name in names]
        self.end(writers)
        self.end([self.start("rotate") for _ in range(3)] +
                 [self.start("rm", name) for name in names[:3]])
        listed = json.loads(self.secret("list", "--json"))["secrets"]
        self.assertEqual([each["name"] for each in listed], sorted(names[3:]))
        for name in names[3:]:
            self.assertEqual(self.secret("get", name), name + VALUE)

    def test_a_reader_sees_the_old_store_or_the_new_one(self):
        self.fill()
        writers = [self.start("rotate") for _ in range(6)]
        for _ in range(12):
            self.assertEqual(self.secret("get", "TOKEN"), VALUE)
        self.end(writers)

    def test_first_writers_agree_on_one_kernel_key(self):
        name = f"capgate-test-{os.getpid()}-{self.uid}-first"
        self.addCleanup(self.as_user, [launch.PYTHON, "-c", KERNEL_KEY, "remove", name])
        self.end([self.start("set", f"N{number}", "--key", f"keyring:{name}", value=VALUE)
                  for number in range(6)])
        for number in range(6):
            self.assertEqual(self.secret("get", f"N{number}"), VALUE)


class Kernel:
    """A key of the kernel's keyring."""

    def setUp(self):
        super().setUp()
        self.name = f"capgate-test-{os.getpid()}-{self.uid}"
        self.addCleanup(self.kernel_key, "remove")

    def kernel_key(self, *words):
        return self.as_user([launch.PYTHON, "-c", KERNEL_KEY, words[0], self.name,
                             *words[1:]]).returncode == 0

    def test_set_makes_the_key_and_says_how_long_it_lasts(self):
        done = self.as_user([launch.CAPGATE, "secret", "set", "A", "--key",
                             f"keyring:{self.name}"], stdin=VALUE.encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"gone with the next boot", done.stderr)
        self.assertTrue(self.kernel_key("find"))
        self.assertEqual(self.secret("get", "A"), VALUE)
        self.secret("set", "B", stdin=VALUE)

    def test_without_its_key_the_store_stays_closed_and_no_other_key_is_made(self):
        self.secret("set", "A", "--key", f"keyring:{self.name}", stdin=VALUE)
        self.assertTrue(self.kernel_key("remove"))
        self.assertIn("the kernel has no key", self.secret("get", "A", code=3))
        self.assert_unchanged_by(3, ["set", "B"], ["rm", "A"], ["rotate"])
        self.assertFalse(self.kernel_key("find"))

    def test_a_key_that_is_there_is_used(self):
        self.assertTrue(self.kernel_key("add", "k" * 31))
        self.assertIn("fewer than 32", self.secret("set", "A", "--key", f"keyring:{self.name}",
                                                   stdin=VALUE, code=3))
        self.assertTrue(self.kernel_key("add", "k" * 32))
        self.secret("set", "A", "--key", f"keyring:{self.name}", stdin=VALUE)
        self.secret("rotate", "--key", f"file:{self.key}")
        self.assertTrue(self.kernel_key("remove"))
        self.assertEqual(self.secret("get", "A"), VALUE)


class Typing:
    """A passphrase and a value are asked for on the terminal, and nothing of them is shown."""

    def make_store(self):
        terminal = self.on_terminal("set", "TOKEN", stdin=subprocess.PIPE)
        terminal.process.stdin.write(VALUE.encode())
        terminal.process.stdin.close()
        terminal.process.stdin = None
        terminal.answer("A new passphrase for the store: ", PHRASE)
        terminal.answer("The same again: ", PHRASE)
        self.assert_ended(terminal)

    def assert_ended(self, terminal, code=0, said=""):
        """It ended with this code, and the terminal is as it was, without a word of a secret."""
        got, out, err = terminal.finish()
        self.assertEqual(got, code, err)
        self.assertIn(said, err)
        self.assertTrue(terminal.echoes())
        for hidden in (PHRASE, VALUE):
            self.assertNotIn(hidden.encode(), terminal.shown)
            self.assertNotIn(hidden, err)
        return out

    def test_a_passphrase_opens_the_store(self):
        self.make_store()
        self.assertEqual(json.loads(self.stored())["key"]["scryptN"], 1 << 17)
        terminal = self.on_terminal("get", "TOKEN")
        terminal.answer("The passphrase of the store: ", PHRASE)
        self.assertEqual(self.assert_ended(terminal), VALUE)
        terminal = self.on_terminal("get", "TOKEN")
        terminal.answer("The passphrase of the store: ", PHRASE + "!")
        self.assertEqual(self.assert_ended(terminal, 3, "this key does not open the store"), "")
        # The way to a server that is started without a terminal.
        self.assertIn("rotate --key file:PATH", self.secret("get", "TOKEN", code=3))
        terminal = self.on_terminal("rotate", "--key", f"file:{self.key}")
        terminal.answer("The passphrase of the store: ", PHRASE)
        self.assert_ended(terminal)
        self.assertEqual(self.secret("get", "TOKEN"), VALUE)

    def test_nobody_is_asked_for_a_secret_that_is_not_there(self):
        self.make_store()
        self.assert_ended(self.on_terminal("get", "OTHER"), 3, "the store has no")

    def test_rotate_changes_the_passphrase(self):
        self.make_store()
        terminal = self.on_terminal("rotate", "--key", "passphrase")
        terminal.answer("The passphrase of the store: ", PHRASE)
        terminal.answer("A new passphrase for the store: ", "another one")
        terminal.answer("The same again: ", "another one")
        self.assert_ended(terminal)
        terminal = self.on_terminal("get", "TOKEN")
        terminal.answer("The passphrase of the store: ", "another one")
        self.assertEqual(self.assert_ended(terminal), VALUE)

    def test_new_passphrases_that_differ_or_are_short(self):
        for first, second, why in ((PHRASE, PHRASE + "?", "differ"), ("seven b", None, "shorter")):
            terminal = self.on_terminal("set", "TOKEN", stdin=subprocess.PIPE)
            terminal.process.stdin.write(VALUE.encode())
            terminal.process.stdin.close()
            terminal.process.stdin = None
            terminal.answer("A new passphrase for the store: ", first)
            if second:
                terminal.answer("The same again: ", second)
            self.assert_ended(terminal, 3, why)
        self.assertFalse(os.path.exists(self.store))

    def test_a_value_is_typed(self):
        terminal = self.on_terminal("set", "TOKEN", "--key", f"file:{self.key}")
        terminal.answer("The value of TOKEN: ", VALUE)
        self.assert_ended(terminal)
        self.assertEqual(self.secret("get", "TOKEN"), VALUE)

    def test_a_typed_line_that_the_terminal_would_cut(self):
        terminal = self.on_terminal("set", "TOKEN", "--key", f"file:{self.key}")
        terminal.answer("The value of TOKEN: ", "v" * 5000)
        self.assert_ended(terminal, 3, "the line is too long")
        self.assertFalse(os.path.exists(self.store))

    def test_a_value_is_shown_on_a_terminal_only_if_asked_for(self):
        self.fill()
        self.assert_ended(self.on_terminal("get", "TOKEN", stdout=None), 2, "--reveal")
        terminal = self.on_terminal("get", "TOKEN", "--reveal", stdout=None)
        code, _, err = terminal.finish()
        self.assertEqual((code, terminal.shown), (0, VALUE.encode() + b"\r\n"), err)

    def test_a_signal_at_the_prompt_gives_the_terminal_back(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            terminal = self.on_terminal("set", "TOKEN", "--key", f"file:{self.key}")
            terminal.wait_for("The value of TOKEN: ")
            self.assertFalse(terminal.echoes())
            if number == signal.SIGINT:
                os.write(terminal.control, b"\x03")
            else:
                terminal.process.send_signal(number)
            self.assert_ended(terminal, -number)

    def test_what_waits_at_a_prompt_shows_nothing_to_its_own_user(self):
        """The value is read already, and the passphrase is asked for."""
        terminal = self.on_terminal("set", "TOKEN", stdin=subprocess.PIPE)
        terminal.process.stdin.write(VALUE.encode())
        terminal.process.stdin.close()
        terminal.process.stdin = None
        terminal.wait_for("A new passphrase for the store: ")
        proc = f"/proc/{terminal.process.pid}"
        with open(f"{proc}/cmdline", "rb") as file:
            self.assertNotIn(VALUE.encode(), file.read())
        with open(f"{proc}/environ", "rb") as file:
            self.assertNotIn(VALUE.encode(), file.read())
        with open(f"{proc}/limits", encoding="utf-8") as file:
            self.assertRegex(file.read(), r"Max core file size +0 +0 ")
        # As an ordinary user: root can look into everything.
        if self.uid != 0:
            self.assertEqual(self.as_user(["/usr/bin/cat", "/proc/self/environ"]).returncode, 0)
            denied = self.as_user(["/usr/bin/cat", f"{proc}/environ"])
            self.assertIn(b"Permission denied", denied.stderr)
        terminal.process.kill()
        terminal.finish()


class Beside(Case):
    """capgate-store is the file beside capgate, and nobody else's."""

    def setUp(self):
        super().setUp()
        self.program = shutil.copy(launch.CAPGATE, self.tree.path("capgate"))
        os.chown(self.program, 0, 0)

    def said(self, code):
        done = subprocess.run([self.program, "secret", "list"], capture_output=True, text=True,
                              check=False, timeout=launch.SECONDS,
                              env={"XDG_DATA_HOME": self.tree.path("data")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def test_it_is_missing(self):
        self.assertIn("capgate secret needs", self.said(1))

    def test_it_is_another_ones(self):
        program = shutil.copy(STORE, self.tree.path("capgate-store"))
        os.chmod(program, 0o755)
        self.assertEqual(self.said(0), "")
        os.chmod(program, 0o775)
        self.assertIn("others than capgate's owner can write", self.said(1))
        os.chmod(program, 0o755)
        os.chown(program, launch.ORDINARY, launch.ORDINARY)
        self.assertIn("others than capgate's owner can write", self.said(1))
        os.unlink(program)
        self.tree.link("capgate-store", STORE)
        self.assertIn("no regular file", self.said(1))


def as_root_and_user(tests):
    """Two classes of these tests: started by root, and by an ordinary user."""
    for who, uid in (("Root", 0), ("User", launch.ORDINARY)):
        name = f"{tests.__name__}As{who}"
        globals()[name] = type(name, (tests, StoreCase), {"uid": uid, "__doc__": tests.__doc__})


for each_class in (Keeping, Refusing, Together, Kernel, Typing):
    as_root_and_user(each_class)

if __name__ == "__main__":
    unittest.main()
