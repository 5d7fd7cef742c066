"""seccomp, landlock, apparmor and firejail: parts of a sandbox, each taken by its real consumer."""

import base64
import glob
import json
import os
import re
import socket
import subprocess
import unittest

import launch
from cases import PROBE, Case, probe, quoted, service

CONFINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "confine.py")
NEW_USER = 0x10000000
# firejail wants a user that /etc/passwd knows; every Debian has this one.
DAEMON = 1


def goldens(name):
    return sorted(glob.glob(f"{launch.ROOT}/tests/golden/*/{name}"))


class PartCase(Case):
    """Tests of one target whose name is `target`."""

    target = None

    def compile(self, *capabilities, options=()):
        return launch.compile_manifest(launch.server(*capabilities), "--target", self.target,
                                       *options)

    def write_files(self, artifact):
        """The artifact's files in the tree; their paths by name."""
        paths = {}
        for file in artifact["files"]:
            data = base64.b64decode(file["base64"]) if "base64" in file else \
                file["contents"].encode()
            paths[file["name"]] = self.tree.path(file["name"])
            with open(paths[file["name"]], "wb") as out:
                out.write(data)
        return paths

    def confined(self, words, attempts, *, env=None):
        """The results of attempts after confine.py, as an ordinary user."""
        # A copy: the user must be able to read it, and -I keeps it from looking further.
        with open(CONFINE, encoding="utf-8") as source:
            confine = self.tree.file("confine.py", source.read())
        done = launch.run_outside([launch.PYTHON, "-I", "-S", confine, *words, "--",
                                   *probe(*attempts)], env=env)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)


class Seccomp(PartCase):
    """The filter in both forms, in the kernel."""

    target = "seccomp"

    def answers(self, *capabilities):
        """What the kernel's form and libseccomp's form answer, by attempt."""
        files = self.write_files(self.compile(*capabilities))
        own = self.tree.directory("own")
        # The thread comes last: a process that had one cannot make a user namespace.
        open_outside = {"fork": ["fork"], "namespace": ["unshare", NEW_USER],
                        "setuid": ["make_with_mode", f"{own}/x", 0o4755],
                        "inet": ["make_socket", "AF_INET"], "unix": ["make_socket", "AF_UNIX"],
                        "thread": ["thread"]}
        self.assert_open_outside(*open_outside.values())
        attempts = {"packet": ["make_socket", "AF_PACKET", "SOCK_RAW"], **open_outside}
        for mode, name in (("bpf", "seccomp.bpf"), ("libseccomp", "seccomp.json")):
            yield mode, dict(zip(attempts, self.confined([mode, files[name]], attempts.values())))

    def test_without_capabilities(self):
        for mode, got in self.answers():
            self.assertEqual((got["fork"], got["namespace"], got["setuid"]), ("EPERM",) * 3)
            self.assertEqual((got["inet"], got["thread"]), ("done", "done"))
            self.assertEqual(got["unix"], {"bpf": "EPERM", "libseccomp": "EACCES"}[mode])
            self.assertEqual(got["packet"], "EAFNOSUPPORT")

    def test_what_the_policy_opens(self):
        for _, got in self.answers("exec:spawn:git", "ipc:connect:self"):
            self.assertEqual((got["namespace"], got["setuid"]), ("EPERM", "EPERM"))
            self.assertEqual((got["fork"], got["inet"], got["unix"], got["thread"]), ("done",) * 4)
            self.assertEqual(got["packet"], "EAFNOSUPPORT")

    def test_the_kernel_and_libseccomp_take_every_golden(self):
        for mode, name in (("bpf", "seccomp.bpf"), ("libseccomp", "seccomp.json")):
            paths = goldens(f"seccomp/{name}")
            self.assertGreater(len(paths), 20)
            for path in paths:
                copy = self.tree.path(name)
                with open(path, "rb") as golden, open(copy, "wb") as out:
                    out.write(golden.read())
                self.assertEqual(self.confined([mode, copy], [["unshare", NEW_USER]]) == ["done"],
                                 "puppeteer" in path, path)


class Landlock(PartCase):
    """The flags mean in the kernel what the artifact says."""

    target = "landlock"

    def attempt(self, capabilities, *attempts, options=(), env=None):
        artifact = self.compile(*capabilities, options=options)
        argv = artifact["argv"]
        self.assertEqual(argv[-1], "--")
        # The probe asks who it is before it does anything.
        return self.confined(["landrun", *argv[:-1], "--ro", "/proc/self/uid_map"], attempts,
                             env=env)

    def test_files_are_those_of_the_grants(self):
        shown = self.tree.file("t/a b/x.txt", "granted")
        beside = self.tree.file("t/other.txt", "not granted")
        work = self.tree.directory("t/work")
        attempts = (["read", shown], ["write", shown], ["read", beside], ["write", f"{work}/n"],
                    ["read", "/etc/passwd"], ["names", "/proc"], ["names", self.tree.path("t")])
        self.assert_open_outside(*attempts)
        self.assertEqual(
            self.attempt([f"fs:read:{os.path.dirname(shown)}/**", f"fs:write:{work}/**"],
                         *attempts),
            ["written", "EACCES", "EACCES", "done", "EACCES", "EACCES", "EACCES"])

    def test_ports_are_those_of_the_endpoints(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            greeting = [["connect", "127.0.0.1", port]]
            self.assertEqual(self.attempt([], *greeting), ["EACCES"])
            self.assertEqual(self.attempt([f"net:connect:127.0.0.1:{port}"], *greeting),
                             ["hello from the host"])

    def test_programs_are_those_that_are_named(self):
        python = os.path.realpath(launch.PYTHON)
        spawns = (["spawn", "/usr/bin/id", "-u"], ["spawn", "/usr/bin/basename", "/a/b"])
        every = self.attempt(["exec:spawn:id"], *spawns)
        self.assertEqual(every, [f"{launch.ORDINARY}\n", "b\n"])
        named = self.attempt(["exec:spawn:id"], *spawns, options=["--program", python])
        self.assertEqual(named, [f"{launch.ORDINARY}\n", "EACCES"])

    def test_the_environment_is_what_is_declared(self):
        env = {"TOKEN": "value", "OTHER": "canary", "SEALED": "canary"}
        [seen] = self.attempt(["env:inject:TOKEN", "env:inject:SEALED?to=a.example:443",
                               "net:connect:a.example:443"], ["environment"], env=env)
        self.assertEqual(seen.get("TOKEN"), "value")
        self.assertEqual(set(seen) - {"LC_CTYPE"}, {"TOKEN", "PATH", "LANG"})


class AppArmor(PartCase):
    """apparmor_parser compiles the profiles; this kernel need not have AppArmor for it."""

    target = "apparmor"

    def parse(self, path, *options):
        done = subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache", *options,
                               path], capture_output=True, text=True, check=False,
                              timeout=launch.SECONDS)
        self.assertEqual(done.returncode, 0, f"{path}: {done.stderr}{done.stdout}")
        self.assertNotRegex(done.stderr + done.stdout, "(?i)error|deprecated|ignored")
        return done.stdout + done.stderr

    def test_the_parser_takes_every_golden(self):
        paths = goldens("apparmor/capgate.apparmor")
        self.assertGreater(len(paths), 20)
        for path in paths:
            self.parse(path)

    def test_the_parser_refuses_a_profile_that_is_none(self):
        """The control: without a comma at the end of a rule."""
        broken = self.tree.file("broken", "profile x {\n  /a r\n}\n")
        with self.assertRaises(AssertionError):
            self.parse(broken)

    def test_a_path_is_what_it_is_and_no_pattern(self):
        """The parser prints each rule as it understood it: as an expression over bytes."""
        for name in ("plain", "a b", 'with "quotes"', "back\\slash", "comma, /etc/x rw,", "at@b",
                     "hash#x", "caret^x", "größe", "(a|b)", "100%", "a'b", "~x"):
            path = f"/srv/{name}"
            files = self.write_files(self.compile(f"fs:read:{quoted(path)}"))
            shown = self.parse(files["capgate.apparmor"], "-D", "rule-exprs")
            rules = re.findall(r"^aare: .*?   ->   (/srv.*)$", shown, re.MULTILINE)
            understood = [re.sub(r"\\(.)", r"\1", rule) for rule in rules]
            self.assertIn(path, understood)

    def test_a_pattern_would_be_seen(self):
        """The control of the test above: what is not escaped is an expression."""
        profile = self.tree.file("pattern", 'profile x {\n  "/srv/a*" r,\n}\n')
        self.assertIn("[^/\\x00]*", self.parse(profile, "-D", "rule-exprs"))


class Firejail(PartCase):
    """The real firejail, started by an ordinary user."""

    target = "firejail"

    def setUp(self):
        super().setUp()
        # firejail makes /var/tmp anew.
        self.srv = self.make_tree("/srv")
        self.own_probe = self.srv.file("probe/probe.py", PROBE)

    def firejail(self, profile, command):
        words = ["setpriv", f"--reuid={DAEMON}", f"--regid={DAEMON}", "--clear-groups",
                 "firejail", "--quiet", f"--profile={profile}", *command]
        return subprocess.run(words, capture_output=True, timeout=launch.SECONDS, check=False,
                              stdin=subprocess.DEVNULL, cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": "/usr/sbin"})

    def attempt(self, capabilities, *attempts, options=()):
        probes = os.path.dirname(self.own_probe)
        artifact = self.compile(f"fs:read:{probes}/**", *capabilities, options=options)
        profile = self.write_files(artifact)["capgate.profile"]
        done = self.firejail(profile, [launch.PYTHON, "-I", "-S", self.own_probe,
                                       json.dumps(attempts)])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def test_files_are_those_of_the_grants(self):
        shown = self.srv.file("a b/x.txt", "granted")
        beside = self.srv.file("other.txt", "not granted")
        elsewhere = self.tree.file("secret.txt", "not granted")
        work = self.srv.directory("work")
        attempts = (["read", shown], ["read", beside], ["read", elsewhere], ["names", "/home"],
                    ["names", "/var"], ["names", "/run/lock"], ["names", "/sys"],
                    ["read", "/etc/passwd"])
        self.assert_open_outside(*attempts)
        got = self.attempt([f"fs:read:{os.path.dirname(shown)}/**", f"fs:write:{work}/**"],
                           *attempts, ["write", shown], ["write", f"{work}/new"])
        self.assertEqual(got, ["granted", "ENOENT", "EACCES", "EACCES", "EACCES", "EACCES",
                               "EACCES", "ENOENT", "EROFS", "done"])

    def test_credentials_and_hooks_inside_a_grant(self):
        home = self.srv.directory("home")
        ring = self.srv.file("home/.local/share/keyrings/login.keyring", "canary")
        hook = self.srv.file("home/p/.git/hooks/pre-commit", "true")
        self.assertEqual(
            self.attempt([f"fs:read:{home}/.local/share/**", f"fs:write:{home}/p/**"],
                         ["read", ring], ["write", hook], ["write", f"{home}/p/x"],
                         options=["--set", f"HOME={home}"]),
            ["EACCES", "EROFS", "done"])

    def test_privileges_network_and_calls(self):
        status, interfaces, namespace, thread, inet, unix, device = self.attempt(
            [], ["read", "/proc/self/status"], ["interfaces"], ["unshare", NEW_USER], ["thread"],
            ["make_socket", "AF_INET"], ["make_socket", "AF_UNIX"], ["read", "/dev/kmsg"])
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual((int(facts["CapBnd"], 16), facts["NoNewPrivs"], facts["Seccomp"]),
                         (0, "1", "2"))
        self.assertEqual((interfaces, namespace, thread, inet, device),
                         (["lo"], "ENOSYS", "done", "done", "ENOENT"))
        self.assertNotEqual(unix, "done")
        [granted] = self.attempt(["ipc:connect:self"], ["make_socket", "AF_UNIX"])
        self.assertEqual(granted, "done")

    def test_programs_are_those_that_are_named(self):
        spawns = (["names", "/usr/bin"],)
        [seen] = self.attempt(["exec:spawn:id"], *spawns, options=["--program", launch.PYTHON])
        self.assertLessEqual(set(seen), {"id", "python3", "python3.11"})

    def test_limits(self):
        [limits] = self.attempt(["limit:files:64"], ["read", "/proc/self/limits"])
        self.assertRegex(limits, r"Max open files +64 +64 ")

    def test_firejail_takes_every_golden(self):
        paths = goldens("firejail/capgate.profile")
        self.assertGreater(len(paths), 15)
        for path in paths:
            with open(path, encoding="utf-8") as golden:
                profile = self.tree.file("golden.profile", golden.read())
            done = self.firejail(profile, ["/usr/bin/true"])
            self.assertEqual(done.returncode, 0, f"{path}: {done.stderr.decode()}")


if __name__ == "__main__":
    unittest.main()
