"""Attacks 4-6, 9-11, 14: the launcher and what it leaves open during set-up."""

import contextlib
import hashlib
import os
import shlex
import shutil
import socket
import stat
import unittest

from redteam import (CHILDREN, FILTER, HIDDEN, ORDINARY, READ_ONLY, REFUSED, Redteam, as_user,
                     canary, descendants, launch, sandboxed, started_by_root_and_user)

OTHER_USER = 54321
PROGRAMS = os.path.dirname(launch.CAPGATE)


@started_by_root_and_user
class InitOfTheSandbox(Redteam):
    """Attack 4: pid 1 is the only process inside that knew more than the server."""

    def test_04_no_process_shows_a_variable_of_the_launcher(self):
        secret = canary()
        env = {"SECRET": secret, "AWS_SECRET_ACCESS_KEY": secret, "LD_LIBRARY_PATH": secret}
        self.assert_open(self.outside(f"others_environ={secret}", env=env))
        for allow in ([], [CHILDREN]):
            (found,) = self.inside(f"others_environ={secret}", allow=allow, env=env)
            self.assert_shut([found], *HIDDEN, "EPERM")
            self.assertRegex(found.detail, "^of [12]$", "pid 1 must be among those that were tried")

    def test_04_no_memory_can_be_opened(self):
        self.assert_attack_fails(["others_mem"], *HIDDEN, "EPERM")

    def test_04_init_cannot_be_traced_or_robbed(self):
        attacks = ["seize", "getfd", "peek", "poke", "kcmp"]
        self.assert_open(self.outside(*[f"{name}=child" for name in attacks]))
        self.assert_shut(self.inside(*[f"{name}=1" for name in attacks]), *FILTER)

    def test_04_nothing_of_init_can_be_opened(self):
        names = ["environ", "mem", "maps", "root/", "cwd/", "fd", "fdinfo", "auxv", "stack",
                 "ns/mnt", "map_files"]
        parent = [f"open_read=/proc/self/{name}" for name in ("environ", "maps", "root/", "fd")]
        self.assert_open(self.outside(*parent))
        self.assert_shut(self.inside(*[f"open_read=/proc/1/{name}" for name in names]),
                         *HIDDEN, "EPERM")


class Programs(Redteam):
    """Attacks 6, 11, 14: the installed files."""

    def digests(self):
        out = {}
        for name in sorted(os.listdir(PROGRAMS)):
            with open(os.path.join(PROGRAMS, name), "rb") as file:
                out[name] = hashlib.sha256(file.read()).hexdigest()
        return out

    def is_privileged(self, path):
        """Whether a file gives its caller rights: a set-id bit or file capabilities."""
        bits = os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID)
        return bool(bits) or "security.capability" in os.listxattr(path)

    def test_06_no_program_is_setuid_or_has_capabilities(self):
        dummy = self.tree.file("dummy", "")
        os.chmod(dummy, 0o4755)
        self.assertTrue(self.is_privileged(dummy))
        for name in os.listdir(PROGRAMS):
            self.assertFalse(self.is_privileged(os.path.join(PROGRAMS, name)), name)

    def test_06_capgate_refuses_to_run_with_another_users_rights(self):
        place = self.tree.directory("bin")
        for name in os.listdir(PROGRAMS):
            shutil.copy(os.path.join(PROGRAMS, name), place)
        program = os.path.join(place, os.path.basename(launch.CAPGATE))
        command = as_user([program, "run", "--", self.probe, "ids"], OTHER_USER)
        os.chown(program, ORDINARY, ORDINARY)
        os.chmod(program, 0o755)
        self.assertEqual(self.finish(command).returncode, 0, "without the bit it works")
        os.chmod(program, 0o4755)
        done = self.finish(command)
        self.assertEqual((done.returncode, done.stdout), (REFUSED, b""), done.stderr.decode())

    def test_11_the_launcher_cannot_be_overwritten(self):
        before = self.digests()
        idle = shutil.copy(self.probe, self.tree.path("idle"))
        os.chown(idle, ORDINARY, ORDINARY)
        self.assert_open(self.outside(f"open_write={idle}"))
        self.assert_shut(self.inside("open_write=/proc/self/exe", "open_write=/proc/1/exe",
                                     f"open_write={self.probe}"), *HIDDEN, *READ_ONLY)
        self.assertEqual(self.digests(), before)

    def test_14_nothing_listens_that_could_be_joined(self):
        """No control socket at all: no verb joins a running sandbox."""
        path = self.tree.path("socket")
        with socket.socket(socket.AF_UNIX) as own:
            own.bind(path)
            own.listen()
            self.assertNotEqual(self.listening([os.getpid()]), set(), "the control")
            process = self.start_echo()
            self.assertEqual(self.listening(descendants(process.pid)), set())

    def listening(self, pids):
        """Inodes of listening Unix sockets that these processes hold, in their own networks."""
        found, target = set(), ""
        for pid in pids:
            with open(f"/proc/{pid}/net/unix", encoding="ascii") as file:
                listeners = {line.split()[6] for line in file if line.split()[3] == "00010000"}
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(FileNotFoundError):  # the one that lists them
                    target = os.readlink(f"/proc/{pid}/fd/{fd}")
                if target.startswith("socket:[") and target[8:-1] in listeners:
                    found.add(target)
        return found


class Links(Redteam):
    """Attack 5: a link where the set-up will mount something."""

    def test_05_set_up_follows_no_link_of_the_workspace(self):
        secret = canary()
        self.tree.file("outside/config", secret)
        self.tree.file("outside/hooks/pre-commit", secret)
        before = self.tree.snapshot()
        for name in (".git", ".vscode", ".env", ".ssh", ".mcp.json"):
            with self.subTest(name=name):
                link = self.tree.link(f"work/{name}", self.tree.path("outside"))
                (found,) = self.outside(f"read={link}/config")
                self.assertEqual(found.detail, secret)
                argv = self.sandboxed([self.probe, f"read={link}/config", f"list={link}",
                                       f"create={link}/new"], [f"fs:write:{self.work}"])
                done = self.finish(argv)
                error = "ENOTDIR" if name == ".env" else "ENOENT"
                self.assertEqual(done.stdout.decode().count(f" shut {error}\n"), 3, done)
                os.remove(link)
                self.assertEqual(self.tree.snapshot(), before)


class Arguments(Redteam):
    """Attack 9: text that looks like an option."""

    def test_09_option_text_in_capabilities_is_refused(self):
        for capability in ("--bind", "-x", "exec:spawn:--help", "exec:spawn:-c", "env:read:-x",
                           "env:inject:--setenv", "fs:read:--bind", "fs:read:-/etc"):
            with self.subTest(capability=capability):
                self.refused(allow=[capability])

    def test_09_a_command_is_never_an_option(self):
        for word in ("--allow", "-m", "--dry-run", "--help"):
            with self.subTest(word=word):
                done = self.finish(self.sandboxed([word]))
                self.assertEqual((done.returncode, done.stdout), (127, b""), done.stderr.decode())

    def test_09_a_strange_path_is_one_word_of_the_exported_argv(self):
        path = "/srv/a --bind b"
        self.assertGreater(len(shlex.split(f"--ro-bind {path} {path}")), 3, "the control")
        artifact = launch.compile_manifest(launch.server(f'fs:read:"{path}"'), "--target", "bwrap")
        self.assertIn(path, artifact["argv"])
        self.assertNotIn("--bind", artifact["argv"])

    def test_09_options_after_the_command_belong_to_the_server(self):
        """With a further grant among the server's own arguments nothing more is granted."""
        secret = self.tree.file("secret", canary())
        self.assert_open(self.outside(f"read={secret}"))
        done = self.finish(sandboxed([self.probe, f"read={secret}", "--allow",
                                      f"fs:read:{secret}"]))
        self.assertIn(b"shut ENOENT", done.stdout)


class MountCalls(Redteam):
    """Attack 10: ways to mount that a list of forbidden calls forgets."""

    CALLS = ["mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsconfig",
             "fsmount", "fspick", "mount_setattr", "open_tree_attr", "statmount", "listmount",
             "chroot", "io_setup"]

    def test_10_no_mount_call_reaches_the_kernel(self):
        self.assert_answered_by_the_filter(self.CALLS, *FILTER)


if __name__ == "__main__":
    unittest.main()
