"""The command line as a process: its outputs, terminals, bounded memory, shells, and bytes that depend on
nothing but the input. Words and exit codes: src/cli/commands_test.cc."""

import json
import os
import pty
import re
import resource
import shutil
import subprocess
import unittest
import zipfile

import launch
from cases import Case

COMMANDS = ["wrap", "unwrap", "install", "catalog", "approve", "init", "compile", "check",
            "explain", "doctor", "audit", "secret", "egress", "targets", "version", "completion"]
# Sorted by bytes these are in order; Danish sorts aa after z, Czech sorts ch after h.
PATHS = ["/srv/Z", "/srv/aa", "/srv/c", "/srv/ch", "/srv/d", "/srv/h", "/srv/z", "/srv/ä"]
GOOD = launch.server(*[f"fs:read:{path}" for path in reversed(PATHS)], "env:inject:TOKEN",
                     "net:connect:api.example:443")
BAD = launch.server("fs:read:relative", "gpu:access:all")


class CliCase(Case):
    """Tests of single commands on files in a tree."""

    def setUp(self):
        super().setUp()
        self.good = self.tree.file("good.json", json.dumps(GOOD))
        self.bad = self.tree.file("bad.json", json.dumps(BAD))

    def run_capgate(self, *words, code, **options):
        """The finished command, which must end with this exit code."""
        done = launch.capgate(*words, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        return done


class Help(CliCase):
    def test_the_examples_of_import_and_export_work(self):
        def prepare():
            root = self.tree.directory("examples")
            for name, source in (("github.json", "examples/github.json"),
                                 ("server.json", "tests/import/samples/server-json/stars-npm.json"),
                                 ("manifest.json", "tests/import/samples/mcpb/notes-node-0.3.json")):
                shutil.copy(os.path.join(launch.ROOT, source), os.path.join(root, name))
            with zipfile.ZipFile(os.path.join(root, "notes.mcpb"), "w") as archive:
                archive.write(os.path.join(root, "manifest.json"), "manifest.json")
            return root
        root = prepare()
        for command in ("import", "export"):
            text = self.run_capgate(command, "--help", code=0).stdout.split("examples:")[1]
            lines = re.findall(r"(?m)^  (capgate .*)$", re.sub(r"\\\n +", "", text))
            self.assertGreater(len(lines), 2, text)
            for line in lines:
                with self.subTest(line=line):
                    words = re.split(r" {3,}", line)[0].split()
                    done = subprocess.run([launch.CAPGATE, *words[1:]], cwd=root, check=False,
                                          capture_output=True, timeout=launch.SECONDS)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class ExitCodes(CliCase):
    def test_a_file_of_someone_else_is_unreadable(self):
        secret = self.tree.file("secret.json", json.dumps(GOOD))
        os.chown(secret, 0, 0)
        os.chmod(secret, 0o600)
        done = run_as_user(self.tree, ["check", secret])
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn("Permission denied", done.stderr.decode())


class Streams(CliCase):
    """Data goes to stdout, words to stderr, and a lost byte is no success."""

    def test_a_full_disk_is_no_success(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            for words in (["compile", self.good], ["--help"], ["version"], ["check", self.good],
                          ["schema"]):
                done = subprocess.run([launch.CAPGATE, *words], stdout=full, check=False,
                                      stderr=subprocess.PIPE, timeout=launch.SECONDS)
                self.assertEqual(done.returncode, 1, words)
                self.assertIn(b"capgate: cannot write to standard output: No space left",
                              done.stderr, words)

    def test_a_closed_output_is_no_success(self):
        for redirect in (">&-", ">&- 2>&-", "<&- >&- 2>&-"):
            done = subprocess.run(["sh", "-c", f'exec "$0" compile "$1" {redirect}', launch.CAPGATE,
                                   self.good], check=False, timeout=launch.SECONDS)
            self.assertEqual(done.returncode, 1, redirect)

    def test_a_reader_that_went_away_is_no_success(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "wb") as broken:
            done = subprocess.run([launch.CAPGATE, "compile", self.good], stdout=broken,
                                  stderr=subprocess.PIPE, check=False, timeout=launch.SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr, b"")  # it knows


class EndlessInput(CliCase):
    """Whatever is read, memory and time are bounded."""

    def run_bounded(self, *words, **options):
        def limit_memory():
            resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
        return subprocess.run([launch.CAPGATE, *words], capture_output=True, text=True, check=False,
                              timeout=launch.SECONDS, preexec_fn=limit_memory, **options)

    def test_an_endless_file_is_refused(self):
        done = self.run_bounded("check", "/dev/zero")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("DOC_SIZE", done.stderr)

    def test_an_endless_pipe_is_refused(self):
        with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as source:
            done = self.run_bounded("check", "-", stdin=source.stdout)
            source.kill()
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_deep_nesting_is_refused(self):
        done = self.run_bounded("check", self.tree.file("deep.json", "[" * 1_000_000))
        self.assertEqual((done.returncode, done.stdout), (3, ""))

    def test_many_mistakes_are_shown_in_part_and_complete_as_json(self):
        count = 5000
        path = self.tree.file("many.json", json.dumps(launch.server(*["bad"] * count)))
        done = self.run_bounded("check", path)
        self.assertEqual(done.returncode, 4)
        self.assertLess(len(done.stderr), 100_000)
        self.assertIn("more", done.stderr.splitlines()[-1])
        done = self.run_bounded("check", path, "--json")
        self.assertEqual(len(json.loads(done.stdout)["diagnostics"]), count)


class Colour(CliCase):
    """Colours only for a person at a terminal who did not decline them."""

    def said_on_terminal(self, **env):
        """What an error looks like on a terminal."""
        control, terminal = pty.openpty()
        with open(control, "rb", buffering=0) as screen:
            with open(terminal, "wb", buffering=0) as stderr:
                done = subprocess.run([launch.CAPGATE, "check", self.bad], stderr=stderr, env=env,
                                      stdout=subprocess.PIPE, check=False, timeout=launch.SECONDS)
            self.assertEqual(done.returncode, 4)
            return screen.read(65536).decode()

    def test_a_terminal_gets_colours(self):
        self.assertIn("\x1b[", self.said_on_terminal(TERM="xterm"))

    def test_colours_can_be_declined(self):
        for env in ({"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}):
            said = self.said_on_terminal(**env)
            self.assertNotIn("\x1b", said)
            self.assertIn("CAP_FS_RELATIVE", said)

    def test_a_pipe_gets_none(self):
        done = self.run_capgate("check", self.bad, code=4, env={"TERM": "xterm"})
        self.assertNotIn("\x1b", done.stderr)


class SameBytes(CliCase):
    """The same input gives the same bytes, whoever asks, wherever, however often."""

    def artifacts(self, **options):
        return [self.run_capgate("compile", self.good, "--target", target, code=0, **options).stdout
                for target in ("bwrap", "docker", "plan")]

    def test_repeated_runs_agree(self):
        first = self.artifacts()
        for _ in range(4):
            self.assertEqual(self.artifacts(), first)

    def test_the_environment_does_not_matter(self):
        self.assertEqual(self.artifacts(env={}), self.artifacts(
            env={"HOME": "/somewhere", "TZ": "Asia/Tokyo", "XDG_RUNTIME_DIR": "/run/user/7",
                 "LANG": "C.UTF-8", "TERM": "xterm", "TOKEN": "x"}))

    def test_the_locale_does_not_matter(self):
        """D27. sort is the control: it does follow these locales."""
        expected = self.artifacts(env={"LC_ALL": "C"})
        for locale, early, late in (("da_DK", "/srv/z", "/srv/aa"), ("cs_CZ", "/srv/h", "/srv/ch")):
            with self.subTest(locale=locale):
                env = {"LOCPATH": self.make_locale(locale), "LC_ALL": locale, "LANG": locale}
                control = subprocess.run(["/usr/bin/sort"], input=f"{early}\n{late}\n", text=True,
                                         env=env, capture_output=True, check=True).stdout
                self.assertEqual(control.split(), [early, late])
                self.assertGreater(early, late)
                self.assertEqual(self.artifacts(env=env), expected)

    def make_locale(self, name):
        subprocess.run(["localedef", "--no-archive", "--inputfile", name, "--charmap", "UTF-8",
                        self.tree.path(name)], check=True, capture_output=True, timeout=60)
        return self.tree.root

    def test_an_ordinary_user_without_a_name_gets_the_same(self):
        done = run_as_user(self.tree, ["compile", self.good])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout.decode(), self.artifacts()[0])

    def test_the_directory_does_not_matter(self):
        directory = self.tree.directory("gone")
        command = 'cd "$1" && rmdir "$1" && exec "$0" compile "$2"'
        done = subprocess.run(["sh", "-c", command, launch.CAPGATE, directory, self.good],
                              capture_output=True, text=True, check=False, timeout=launch.SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, self.artifacts()[0])


class Completion(CliCase):
    """The printed scripts work in their shells."""

    def complete_in_bash(self, *words):
        """What the last word can become. The shell is as bare as it can be."""
        script = f"""
source <({launch.CAPGATE} completion bash) || exit 1
function=$(complete -p capgate | sed 's/.*-F \\([^ ]*\\).*/\\1/')
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$function capgate "${{@: -1}}" "${{@: -2:1}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", "capgate", *words],
                              cwd=self.tree.root, capture_output=True, text=True, check=False,
                              timeout=launch.SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_bash_completes_commands_options_values_and_files(self):
        self.assertEqual(self.complete_in_bash("comp"), ["compile", "completion"])
        self.assertEqual(set(self.complete_in_bash("")) & set(COMMANDS), set(COMMANDS))
        self.assertEqual(self.complete_in_bash("compile", "--ta"), ["--target"])
        self.assertEqual(self.complete_in_bash("compile", "x.json", "--target", "d"), ["docker"])
        self.assertEqual(self.complete_in_bash("check", "--p"), [])
        self.assertEqual(self.complete_in_bash("compile", "go"), ["good.json"])
        self.assertEqual(self.complete_in_bash("audit", "s"), ["search", "stats"])
        self.assertEqual(self.complete_in_bash("secret", "r"), ["rm", "rotate"])
        self.assertEqual(self.complete_in_bash("audit", "verify", "go"), ["good.json"])
        self.assertEqual(self.complete_in_bash("audit", "search", "--event", "c"),
                         ["connect", "close"])

    def test_every_option_of_the_help_is_completed(self):
        for command in COMMANDS:
            text = self.run_capgate(command, "--help", code=0).stdout
            options = re.findall(r"(?m)^  (?:-[a-z], )?(--[a-z-]+)", text)
            self.assertEqual(sorted(self.complete_in_bash(command, "--")), sorted(options))

    def test_other_shells_accept_their_scripts(self):
        for shell in ("zsh", "fish"):
            with self.subTest(shell=shell):
                text = self.run_capgate("completion", shell, code=0).stdout
                for command in COMMANDS:
                    self.assertIn(command, text)
                if shutil.which(shell):
                    path = self.tree.file(f"completion.{shell}", text)
                    subprocess.run([shell, "--no-execute", path], check=True,
                                   timeout=launch.SECONDS)


def run_as_user(tree, words):
    """capgate started by an ordinary user, from a copy that it can reach."""
    copy = tree.path("capgate")
    shutil.copy(launch.CAPGATE, copy)
    os.chmod(copy, 0o755)
    return launch.run_outside([copy, *words])


if __name__ == "__main__":
    unittest.main()
