"""seatbelt: the launcher, really run by two shells. sandbox-exec, which only macOS has, is a stub
that writes down what it was given and becomes the command; it exists in the test's own root alone."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

from launch import BWRAP, SECONDS, capgate

TOOLS = ["env", "mktemp", "chmod", "mkdir", "rm", "cat", "ls", "stat", "sleep"]
TOKEN = "t0ken-With_all"
STUB = """#!/bin/sh
for word; do printf '%s\\0' "$word"; done >/report/argv
/usr/bin/env -0 >/report/env
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


class Launcher(unittest.TestCase):
    """What holds for every POSIX shell."""

    shell = "dash"

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="capgate-seatbelt-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("report", "private", "out", "srv", "egress"):
            os.mkdir(self.path(name))
        self.write("stub", STUB, 0o755)
        self.write("egress/token", TOKEN + "\n")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)

    def compile(self, *capabilities):
        manifest = {"name": "s", "version": "1",
                    "tools": [{"name": "t", "capabilities": list(capabilities)}]}
        done = capgate("compile", "-", "--target", "seatbelt", "--script", "--program", "/bin/sh",
                       "--egress-dir", "/egress", "-o", self.path("out"),
                       text=json.dumps(manifest))
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.path("out/launch.sh")

    def command(self, *words, stub=True):
        """The launcher in a root that looks like macOS where it matters."""
        root = [BWRAP, "--unshare-pid", "--die-with-parent", "--ro-bind", "/usr", "/usr",
                "--tmpfs", "/usr/bin", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib",
                "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
                "--bind", self.path("private"), "/private/tmp", "--bind", self.path("report"),
                "/report", "--bind", self.path("srv"), "/srv", "--ro-bind", self.path("out"),
                "/out", "--ro-bind", self.path("egress"), "/egress"]
        for tool in TOOLS:
            root += ["--ro-bind", f"/usr/bin/{tool}", f"/usr/bin/{tool}"]
        root += ["--ro-bind", f"/usr/bin/{self.shell}", "/usr/bin/sh"]
        if stub:
            root += ["--ro-bind", self.path("stub"), "/usr/bin/sandbox-exec"]
        return [*root, "--remount-ro", "/usr/bin", "--", "/bin/sh", "/out/launch.sh", *words]

    def run_launcher(self, *words, stub=True, env=None, stdin=""):
        done = subprocess.run(self.command(*words, stub=stub), env=env or {}, input=stdin,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(os.listdir(self.path("private")), [], "a private directory is left")
        return done

    def report(self, name):
        with open(self.path("report", name), encoding="utf-8") as file:
            return file.read().split("\0")[:-1]

    def refused(self, reason, **options):
        done = self.run_launcher("/bin/sh", "-c", "echo started", **options)
        self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
        self.assertIn(reason, done.stderr)

    def test_sandbox_exec_gets_the_profile_the_parameters_and_the_command(self):
        odd = "it's \"a\" $(x) $1 `x` \\ (b);&é"
        os.mkdir(self.path("srv", odd))
        self.compile("fs:read:" + json.dumps(f"/srv/{odd}", ensure_ascii=False))
        done = self.run_launcher("/bin/sh", "-c", 'printf "<%s>" "$@"', "name", "a b", "", "*")
        self.assertEqual((done.returncode, done.stdout), (0, "<a b><><*>"), done.stderr)
        argv = self.report("argv")
        self.assertEqual(argv[:2], ["-f", "/out/server.sb"])
        self.assertIn(f"-DFS_1=/srv/{odd}", argv)
        self.assertRegex(argv[argv.index("--") - 1], r"^-DTMPDIR=/private/tmp/capgate\.\w{8}$")
        self.assertEqual(argv[argv.index("--") + 1:],
                         ["/bin/sh", "-c", 'printf "<%s>" "$@"', "name", "a b", "", "*"])

    def test_the_environment_holds_what_is_declared_and_nothing_else(self):
        self.compile("env:inject:KEY", "env:read:TZ")
        value = "line 1\n\n  'two' \"$x\" `y` \\\n"
        done = self.run_launcher("/bin/sh", "-c", "exit 0", env={
            "KEY": value, "TZ": "UTC", "SECRET": "s", "LD_PRELOAD": "", "ENV": "/x"})
        self.assertEqual(done.returncode, 0, done.stderr)
        env = dict(word.split("=", 1) for word in self.report("env"))
        for shells_own in ("PWD", "OLDPWD", "SHLVL", "_"):
            env.pop(shells_own, None)
        home = env.pop("HOME")
        tmp = env.pop("TMPDIR")
        self.assertEqual(home, tmp + "/home")
        self.assertEqual(env, {"PATH": "/bin:/usr/bin:/usr/sbin:/sbin", "LANG": "en_US.UTF-8",
                               "KEY": value, "TZ": "UTC"})
        self.assertNotIn(value, "\0".join(self.report("argv")))

    def test_the_token_reaches_the_proxy_variables_and_no_command_line(self):
        self.compile("net:connect:api.example.com:443")
        done = self.run_launcher("/bin/sh", "-c", "exit 0", env={"NO_PROXY": "*"})
        self.assertEqual(done.returncode, 0, done.stderr)
        env = dict(word.split("=", 1) for word in self.report("env"))
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy"):
            self.assertEqual(env[name], f"http://capgate:{TOKEN}@127.0.0.1:3128")
        self.assertEqual(env["NODE_USE_ENV_PROXY"], "1")
        self.assertFalse({"NO_PROXY", "no_proxy", "CAPGATE_EGRESS_TOKEN"} & set(env))
        self.assertNotIn(TOKEN, "\0".join(self.report("argv")))

    def test_a_missing_or_malformed_token_starts_nothing(self):
        self.compile("net:connect:api.example.com:443")
        self.write("egress/token", "a b\n")
        self.refused("token is missing or malformed")
        os.unlink(self.path("egress/token"))
        self.refused("/egress/token is missing")

    def test_streams_and_status_are_the_servers(self):
        self.compile()
        done = self.run_launcher("/bin/sh", "-c", "cat; echo err >&2; exit 7", stdin="in\n")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "in\n", "err\n"))
        self.assertEqual(self.run_launcher("/bin/sh", "-c", "kill -9 $$").returncode, 137)

    def test_the_private_directory_is_the_users_alone_and_goes_away(self):
        self.compile()
        done = self.run_launcher(
            "/bin/sh", "-c",
            'stat -c %a "$TMPDIR"; mkdir -p "$TMPDIR/a/b"; : >"$TMPDIR/a/b/c"; chmod 0 "$TMPDIR/a"')
        self.assertEqual((done.returncode, done.stdout), (0, "700\n"), done.stderr)

    def test_a_signal_reaches_the_server_which_ends_in_its_own_time(self):
        self.compile()
        # Inside, the launcher is the child of bwrap: a third party passes the signal on.
        script = ('/bin/sh /out/launch.sh /bin/sh -c "trap \'echo end; exit 5\' TERM; echo ready; '
                  'while :; do sleep 0.01; done" & launcher=$!; read -r line; '
                  'kill -"$line" "$launcher"; wait "$launcher"; exit $?')
        for name in ("TERM", "HUP"):
            command = self.command()
            command = command[:command.index("--") + 1] + ["/bin/sh", "-c", script]
            # A shell cannot trap what was ignored when it began, as HUP is below nohup.
            with subprocess.Popen(command, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, preexec_fn=lambda: signal.signal(
                                      signal.SIGHUP, signal.SIG_DFL)) as launched:
                killer = threading.Timer(SECONDS, launched.kill)
                killer.start()
                self.addCleanup(killer.cancel)
                self.assertEqual(launched.stdout.readline(), "ready\n")
                out, _ = launched.communicate(name + "\n", timeout=SECONDS)
                self.assertEqual((out, launched.returncode), ("end\n", 5), name)
            self.assertEqual(os.listdir(self.path("private")), [])

    def test_without_sandbox_exec_nothing_starts(self):
        self.compile()
        self.refused("/usr/bin/sandbox-exec is missing", stub=False)

    def test_a_granted_path_must_exist_under_its_real_name(self):
        self.compile("fs:read:/srv/there/x")
        self.refused("/srv/there/x is granted and does not exist")
        os.mkdir(self.path("srv/real"))
        self.write("srv/real/x", "")
        os.symlink("real", self.path("srv/there"))
        self.refused("leads through a symbolic link to /srv/real/x")
        os.unlink(self.path("srv/there"))
        os.mkdir(self.path("srv/there"))
        os.symlink("../real/x", self.path("srv/there/x"))
        self.refused("is a symbolic link")
        self.compile("fs:read:/srv/real/x/**")
        self.refused("is granted as a directory and is none")

    def test_a_server_that_could_write_its_own_profile_does_not_start(self):
        self.compile("fs:write:/out/**", "fs:read:/srv")
        self.refused("/out lies in /out, which the server may write")

    def test_a_missing_variable_and_a_relative_program_are_refused(self):
        self.compile("env:read:KEY")
        self.refused("the variable KEY is not set")
        done = self.run_launcher("sh", env={"KEY": "1"})
        self.assertEqual(done.returncode, 125)

    def test_a_limit_on_files_holds(self):
        self.compile("limit:files:77")
        done = self.run_launcher("/bin/sh", "-c", "ulimit -Hn; ulimit -Sn")
        self.assertEqual(done.stdout, "77\n77\n")


class LauncherInBash(Launcher):
    """The same as macOS runs it: its /bin/sh is bash."""

    shell = "bash"


class Text(unittest.TestCase):
    """What a reader of shell says about every launcher that was reviewed."""

    def test_shellcheck_finds_nothing(self):
        golden = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden")
        scripts = [os.path.join(golden, case, "seatbelt/launch.sh") for case in os.listdir(golden)]
        scripts = [script for script in scripts if os.path.exists(script)]
        self.assertGreaterEqual(len(scripts), 10)
        # Functions that a trap calls look unreachable; the words of -c are for the inner shell.
        done = subprocess.run(["shellcheck", "-s", "sh", "-e", "SC2317,SC2016,SC2015", *scripts],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


if __name__ == "__main__":
    unittest.main()
