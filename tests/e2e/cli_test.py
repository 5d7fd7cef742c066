"""The command line: words, exit codes, streams, and bytes that depend on nothing but the input."""

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


def words_of_target(name):
    """What a target needs besides the manifest, as the golden tests say it."""
    path = os.path.join(launch.ROOT, "tests/golden", f"{name}.options.txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


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

    def assert_usage_error(self, words, *said):
        """Exit 2, nothing on stdout, and these texts on stderr."""
        done = self.run_capgate(*words, code=2)
        self.assertEqual(done.stdout, "")
        for text in said:
            self.assertIn(text, done.stderr)


class Help(CliCase):
    """Help is data when it was asked for, and an error when it was not."""

    def test_help_lists_every_command(self):
        for words in (["--help"], ["-h"], ["help"]):
            done = self.run_capgate(*words, code=0)
            self.assertEqual(done.stderr, "")
            for command in COMMANDS:
                self.assertRegex(done.stdout, rf"(?m)^  {command} +[A-Z].*\.$")

    def test_every_command_has_help_with_usage_and_examples(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                done = self.run_capgate(command, "--help", code=0)
                self.assertIn(f"usage: capgate {command}", done.stdout)
                self.assertIn("--help", done.stdout)
                self.assertIn(f"capgate {command}", done.stdout.split("examples:")[1])
                self.assertEqual(self.run_capgate("help", command, code=0).stdout, done.stdout)

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

    def test_the_help_of_import_lists_its_formats(self):
        text = self.run_capgate("import", "--help", code=0).stdout
        known = self.run_capgate("import", self.good, "--from", "tar", code=2).stderr
        with open(os.path.join(launch.ROOT, "docs/import.md"), encoding="utf-8") as file:
            table = file.read()
        names = sorted(os.listdir(os.path.join(launch.ROOT, "tests/import/samples")))
        self.assertEqual(len(names), 10)
        for name in names:
            self.assertRegex(text, rf"(?m)^  {name}  +[a-z]")
            self.assertIn(name, known)
            self.assertIn(f"| `{name}` |", table)

    def test_help_wins_over_other_words(self):
        done = self.run_capgate("compile", "missing.json", "--help", code=0)
        self.assertIn("usage: capgate compile", done.stdout)

    def test_a_command_stands_after_two_dashes(self):
        for words in (["why", self.good, "n.json", "--path", "/x"],
                      ["why", self.good, "n.json", "--path", "/x", "--", "/usr/bin/true"],
                      ["compile", self.good, "n.json"], ["export", self.good, "n.json", "--to", "vscode"]):
            self.assert_usage_error(words, 'unexpected word "n.json"', "a command stands after --")
        for words in (["why", "--path", "/x", "--", self.good], ["compile", "--", self.good]):
            self.assert_usage_error(words, "needs FILE")
        self.assert_usage_error(["catalog", "bind", "git", "x", "--", "y"], "one NAME or PACKAGE before --")

    def test_no_command_shows_help_as_an_error(self):
        self.assert_usage_error([], "usage: capgate COMMAND")

    def test_the_version_is_one_line(self):
        done = self.run_capgate("--version", code=0)
        self.assertRegex(done.stdout, r"^capgate \d+\.\d+\.\d+\S* \(grammar 0\.1\)\n$")
        self.assertEqual(self.run_capgate("version", code=0).stdout, done.stdout)

    def test_the_targets_can_be_used(self):
        """With what every target keeps: not each knows variables."""
        plain = self.tree.file("plain.json", json.dumps(launch.server("fs:read:/srv/a")))
        for target in json.loads(self.run_capgate("targets", "--json", code=0).stdout):
            self.run_capgate("compile", plain, "--target", target["name"],
                             *words_of_target(target["name"]), code=0)


class UsageErrors(CliCase):
    """D26: an unknown or extra word is never ignored."""

    def test_unknown_words_are_refused_with_the_nearest_known_one(self):
        for words, meant in ((["complie", self.good], "compile"),
                             (["compile", self.good, "--taget", "docker"], "--target"),
                             (["compile", self.good, "--target", "dokcer"], "docker"),
                             (["compile", self.good, "--target=dokcer"], "docker"),
                             (["help", "chek"], "check"),
                             (["explain", "CAP_FS_RELATIV"], "CAP_FS_RELATIVE")):
            with self.subTest(words=words):
                self.assert_usage_error(words, f"did you mean {meant}?")

    def test_words_that_match_nothing_are_refused(self):
        for words in (["frobnicate"], ["compile", self.good, "--frobnicate"],
                      ["compile", "--foo", self.good], ["compile", self.good, "-x"],
                      ["compile", self.good, "--target", "xyzzy"], ["completion", "tcsh"]):
            with self.subTest(words=words):
                self.assert_usage_error(words, "capgate: ")

    def test_words_that_exclude_each_other_are_refused(self):
        self.assert_usage_error(["explain", "--textconv", "--json", self.good],
                                "--textconv and --json exclude each other")

    def test_extra_missing_and_repeated_words_are_refused(self):
        self.assert_usage_error(["compile"], "compile needs FILE")
        self.assert_usage_error(["compile", self.good, "extra"], '"extra"')
        self.assert_usage_error(["version", "extra"], '"extra"')
        self.assert_usage_error(["compile", self.good, "--target"], "--target needs a value")
        self.assert_usage_error(["compile", self.good, "--pretty=yes"], "--pretty takes no value")
        self.assert_usage_error(["compile", self.good, "--target", "bwrap", "--target", "docker"],
                                "--target is given twice")

    def test_bad_values_are_refused(self):
        for option, value in (("--set", "lower=x"), ("--set", "NOEQUALS"), ("--set", "UNUSED=/x"),
                              ("--set", "HOME=relative"), ("--program", "node"), ("--program", "/"),
                              ("--user", "root"), ("--user", "1000"), ("--user", "1:2:3"),
                              ("--user", "-1:0"), ("--arch", "mips"),
                              ("--accept-unenforced", "nonsense")):
            with self.subTest(option=option, value=value):
                self.assert_usage_error(["compile", self.good, option, value], option)

    def test_both_spellings_of_a_value_mean_the_same(self):
        joined = self.run_capgate("compile", self.good, "--target=docker", code=0).stdout
        separate = self.run_capgate("compile", "--target", "docker", self.good, code=0).stdout
        self.assertEqual(joined, separate)
        self.assertIn("--cap-drop", joined)

    def test_a_file_may_be_named_like_an_option(self):
        self.tree.file("--pretty", json.dumps(GOOD))
        done = self.run_capgate("check", "--", "--pretty", code=0, cwd=self.tree.root)
        self.assertIn("--pretty: ok", done.stdout)


class ExitCodes(CliCase):
    """3: cannot be read or is no document. 4: says something that is refused."""

    def test_what_cannot_be_read_is_named(self):
        missing = self.tree.path("missing.json")
        for path in (missing, self.tree.root):
            done = self.run_capgate("compile", path, code=3)
            self.assertEqual(done.stdout, "")
            self.assertIn(path, done.stderr)

    def test_a_file_of_someone_else_is_unreadable(self):
        secret = self.tree.file("secret.json", json.dumps(GOOD))
        os.chown(secret, 0, 0)
        os.chmod(secret, 0o600)
        done = run_as_user(self.tree, ["check", secret])
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn("Permission denied", done.stderr.decode())

    def test_what_is_no_document_is_3(self):
        for name, text in (("empty", ""), ("open", "{"), ("comma", '{"name":"a",}'),
                           ("two", "{}{}"), ("bom", "\ufeff{}"), ("tab.yaml", "a:\n\t- b")):
            with self.subTest(name=name):
                self.run_capgate("check", self.tree.file(name, text), code=3)

    def test_what_is_no_text_is_3(self):
        for name, data in (("latin", b'{"name":"\xe9"}'), ("zeros", bytes(100)),
                           ("utf16", "{}".encode("utf-16"))):
            path = self.tree.path(name)
            with open(path, "wb") as file:
                file.write(data)
            with self.subTest(name=name):
                self.run_capgate("check", path, code=3)

    def test_what_is_refused_is_4_and_every_mistake_is_shown(self):
        for command in ("check", "compile", "explain"):
            done = self.run_capgate(command, self.bad, code=4)
            self.assertEqual(done.stdout, "")
            for said in ("CAP_FS_RELATIVE", "CAP_UNKNOWN_KIND", f"{self.bad}:1:"):
                self.assertIn(said, done.stderr)

    def test_shapes_that_crashed_the_earlier_compiler_are_4(self):
        """D26: serverCapabilities of "", 0 or false."""
        for value in ('""', "0", "false", "{}"):
            text = f'{{"name":"a","version":"1","tools":[],"serverCapabilities":{value}}}'
            done = self.run_capgate("check", "-", code=4, text=text)
            self.assertIn("MANIFEST_SHAPE", done.stderr)

    def test_an_unenforceable_capability_is_4(self):
        path = self.tree.file("exec.json", json.dumps(launch.server("exec:spawn:git")))
        done = self.run_capgate("compile", path, "--target", "docker", code=4)
        self.assertIn("ADAPTER_UNSUPPORTED", done.stderr)


class Streams(CliCase):
    """Data goes to stdout, words to stderr, and a lost byte is no success."""

    def test_standard_input_is_read(self):
        done = self.run_capgate("compile", "-", code=0, text=json.dumps(GOOD))
        named = self.run_capgate("compile", self.good, code=0)
        self.assertEqual(done.stdout, named.stdout)
        done = self.run_capgate("check", "-", code=4, text=json.dumps(BAD))
        self.assertIn("<stdin>:1:", done.stderr)

    def test_yaml_compiles_to_the_same_artifact(self):
        lines = ["name: e2e", "version: 1.0.0", "tools:", "  - name: tool", "    capabilities:"]
        lines += [f"      - {json.dumps(text)}" for text in GOOD["tools"][0]["capabilities"]]
        path = self.tree.file("good.yaml", "\n".join(lines) + "\n")
        self.assertEqual(self.run_capgate("compile", path, code=0).stdout,
                         self.run_capgate("compile", self.good, code=0).stdout)

    def test_diagnostics_are_also_json(self):
        for command in ("check", "compile", "explain"):
            done = self.run_capgate(command, self.bad, "--json", code=4)
            self.assertEqual(done.stderr, "")
            diagnostics = json.loads(done.stdout)["diagnostics"]
            self.assertEqual([each["code"] for each in diagnostics],
                             ["CAP_FS_RELATIVE", "CAP_UNKNOWN_KIND"])
            first = diagnostics[0]
            begin, length = first["offset"], first["length"]
            self.assertEqual(json.dumps(BAD)[begin:begin + length], "relative")
            self.assertEqual((first["file"], first["line"], first["column"]),
                             (self.bad, 1, begin + 1))
            self.assertTrue(first["message"] and first["help"])

    def test_success_is_also_json(self):
        for words in (["check", self.good], ["explain", self.good], ["version"], ["targets"],
                      ["explain", "CAP_FS_RELATIVE"], ["explain", "net:connect:*.example:443"]):
            done = self.run_capgate(*words, "--json", code=0)
            self.assertTrue(json.loads(done.stdout))
            self.assertEqual(done.stderr, "")

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

    def test_control_characters_of_the_input_never_reach_the_terminal(self):
        manifest = launch.server("fs:read:/a\x1b[31m", "gpu:\u202e\x07:x")
        manifest["tools"][0]["name"] = "\x1b]0;title\x07"
        path = self.tree.file("escape\x1b[2J.json", json.dumps(manifest))
        said = self.run_capgate("check", path, code=4).stderr
        self.assertEqual(re.findall(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", said), [])
        self.assertIn("CAP_FS_PATH", said)


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

    def test_files_are_sorted_by_bytes(self):
        argv = json.loads(self.artifacts()[0])["argv"]
        granted = [word for word in argv if word.startswith("/srv/")]
        self.assertEqual(granted[::2], sorted(PATHS, key=lambda path: path.encode()))

    def test_the_order_of_capabilities_does_not_change_the_policy(self):
        reverse = launch.server(*reversed(GOOD["tools"][0]["capabilities"]))
        path = self.tree.file("reverse.json", json.dumps(reverse))
        first, second = (json.loads(self.run_capgate("compile", each, code=0).stdout)
                         for each in (self.good, path))
        hashes = [(each["provenance"]["policyHash"], each["provenance"]["manifestHash"])
                  for each in (first, second)]
        self.assertEqual(hashes[0][0], hashes[1][0])
        self.assertNotEqual(hashes[0][1], hashes[1][1])
        self.assertEqual({**first, "provenance": None}, {**second, "provenance": None})

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
