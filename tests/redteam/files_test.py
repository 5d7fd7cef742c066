"""Attacks 15-18 and weaknesses G3-G8, G15, G17: files of the host, as root and as a user."""

import os
import socket
import stat
import unittest

from redteam import (FILTER, HIDDEN, ORDINARY, READ_ONLY, Redteam, canary, started_by_root_and_user)

# Where it exists, the host runs or trusts it later.
PROTECTED = [".git/config", ".git/hooks/pre-commit", ".mcp.json", ".vscode/settings.json",
             ".idea/workspace.xml", ".claude/commands/x.md", ".claude/agents/x.md", ".envrc",
             ".npmrc", ".gitmodules", ".husky/pre-commit", ".github/workflows/ci.yml",
             ".devcontainer/devcontainer.json", ".tool-versions", ".pre-commit-config.yaml"]


@started_by_root_and_user
class Undeclared(Redteam):
    """What is not declared is not there, whoever started it."""

    def test_undeclared_files_are_not_there(self):
        secret = self.tree.file("secret", canary())
        attempts = [f"read={secret}", f"open_write={secret}", f"list={self.tree.root}",
                    f"create={self.tree.root}/new"]
        self.assert_open(self.outside(*attempts))
        os.remove(self.tree.path("new"))
        before = self.tree.snapshot()
        for allow in ([], [f"fs:write:{self.work}"]):
            found = self.inside(*[attempts[0], attempts[1], attempts[3]], allow=allow)
            self.assert_shut(found[:2], *HIDDEN)
            self.assert_shut(found[2:], *HIDDEN, *READ_ONLY)
        self.assertEqual(self.tree.snapshot(), before)

    def test_declared_reading_does_not_write(self):
        self.tree.file("work/file", "text")
        attempts = [f"append={self.work}/file", f"create={self.work}/new", f"mkdir={self.work}/d",
                    f"rename={self.work}/file,{self.work}/other"]
        self.assert_open(self.outside(*attempts))
        self.tree.file("work/file", "text")
        before = self.tree.snapshot()
        allow = [f"fs:read:{self.work}"]
        self.assert_open(self.inside(f"read={self.work}/file", allow=allow))
        attempts[1:3] = [f"create={self.work}/new2", f"mkdir={self.work}/d2"]
        self.assert_shut(self.inside(*attempts, allow=allow), *READ_ONLY)
        self.assertEqual(self.tree.snapshot(), before)

    def test_declared_writing_reaches_the_host(self):
        """The control of the tests above: a grant is a grant, also for root."""
        self.assert_open(self.inside(f"create={self.work}/new", allow=[f"fs:write:{self.work}"]))
        info = os.stat(self.tree.path("work/new"))
        self.assertEqual((info.st_uid, stat.S_ISREG(info.st_mode)), (ORDINARY, True))

    def test_no_detour_leads_out_of_a_grant(self):
        """Links and dots inside a granted directory, and the magic links of /proc."""
        secret = self.tree.file("secret", canary())
        link = self.tree.link("work/link", secret)
        relative = self.tree.link("work/relative", "../secret")
        detours = [link, relative, f"{self.work}/../secret", "/proc/self/cwd/../secret",
                   f"/proc/self/root{secret}", f"/proc/thread-self/root{secret}"]
        attempts = [f"read={path}" for path in detours]
        self.assert_open(self.outside(*attempts, cwd=self.work))
        allow = [f"fs:write:{self.work}"]
        self.assert_shut(self.inside(*attempts, allow=allow, cwd=self.work), *HIDDEN)
        self.assert_shut(self.inside(f"link={secret},{self.work}/hard",
                                     f"rename={self.work}/../secret,{self.work}/moved",
                                     allow=allow), *HIDDEN, "EXDEV")

    def test_g10_g15_the_system_of_the_host_is_not_there(self):
        visible = ["/etc/passwd", "/etc/group", "/sys/kernel", "/var/tmp", "/proc/sys/kernel",
                   "/run"]
        self.assert_open(self.outside(*[f"open_read={path}" for path in visible]))
        gone = ["/sys", "/run", "/var", "/root", "/boot", "/mnt", "/media", "/srv", "/opt",
                "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh", "/etc/environment",
                "/etc/npmrc", "/etc/pip.conf", "/etc/gitconfig", "/etc/docker",
                "/etc/NetworkManager", "/etc/wireguard", "/etc/netplan", "/etc/krb5.keytab",
                "/proc/1/root/etc", "/dev/mem", "/dev/kmsg", "/dev/tty",
                "/dev/ptmx", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vda"]
        # The tree that holds the probe may make its ancestors visible, and nothing in them.
        gone.remove("/var")
        self.assert_shut(self.inside(*[f"open_read={path}" for path in gone]), *HIDDEN, "ENXIO")
        self.assertEqual(set(self.details("list=/var")[0].split(",")) - {""} - {"tmp"}, set())

    def test_the_system_cannot_be_changed(self):
        places = ["/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/dev", "/proc", "/proc/sys"]
        self.assert_open(self.outside("create_nameless=/tmp", "create_nameless=/var/tmp"))
        self.assert_shut(self.inside(*[f"create_nameless={path}" for path in places]),
                         *READ_ONLY, "EOPNOTSUPP", "ENOENT", "EISDIR")
        self.assert_shut(self.inside(*[f"create={path}/capgate-canary" for path in places]),
                         *READ_ONLY, "ENOENT")
        knobs = ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/uid_map",
                 "/proc/self/gid_map", "/proc/1/oom_score_adj", "/etc/passwd", "/etc/hosts",
                 "/etc/resolv.conf", "/usr/bin/env"]
        self.assert_shut(self.inside(*[f"open_write={path}" for path in knobs]), *READ_ONLY,
                         "ENOENT")

    def test_machine_and_boot_are_not_the_hosts(self):
        """Names by which a server could recognise the machine again."""
        (host,) = self.outside("hostname")
        (inside,) = self.inside("hostname")
        self.assertNotEqual(inside.detail, host.detail)
        for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
            if not os.path.exists(path):
                continue
            (outside,) = self.outside(f"read={path}")
            (found,) = self.inside(f"read={path}")
            self.assertNotEqual(found.detail, outside.detail, path)


class HomeDirectory(Redteam):
    """G3-G8, G17: nothing of the user's home is read, and nothing is left in it."""

    def test_g4_g5_the_home_inside_is_another_one(self):
        for name in (".bashrc", ".local/bin/tool", ".npm/_cacache/x", ".cache/x", ".ssh/id_rsa"):
            self.tree.file(f"home/{name}", canary())
        before = self.tree.snapshot()
        self.assert_open(self.outside(f"read={self.home}/.ssh/id_rsa"))
        found = self.inside(f"read={self.home}/.ssh/id_rsa", f"read={self.home}/.bashrc",
                            f"list={self.home}/.npm", f"list={self.home}/.cache")
        self.assert_shut(found, *HIDDEN)
        self.assert_open(self.inside(f"mkdir={self.home}/.local", f"create={self.home}/.bashrc"))
        self.assertEqual(self.tree.snapshot(), before)

    def test_g6_the_current_directory_grants_nothing(self):
        secret = self.tree.file("home/.netrc", canary())
        self.assert_open(self.outside(f"read={secret}", cwd=self.home))
        self.assert_shut(self.inside(f"read={secret}", "read=.netrc", cwd=self.home), *HIDDEN)
        self.tree.file("work/file", "text")
        self.assert_shut(self.inside("read=file", f"read={self.work}/file", cwd=self.work), *HIDDEN)
        allow = [f"fs:read:{self.work}"]
        self.assert_open(self.inside("read=file", cwd=self.work, allow=allow))

    def test_g7_command_and_arguments_grant_nothing_else(self):
        """A program in ~/bin and a file argument in ~ show neither ~ nor their siblings."""
        secret = self.tree.file("home/.netrc", canary())
        argument = self.tree.file("home/notes.txt", canary())
        self.tree.directory("home/bin")
        program = self.tree.path("home/bin/probe")
        os.link(self.probe, program)
        sibling = self.tree.file("home/bin/other", canary())
        attempts = [f"read={secret}", f"read={argument}", f"read={sibling}"]
        self.assert_open(self.outside(*attempts))
        done = self.finish(self.sandboxed([program, *attempts]))
        self.assertEqual(done.stdout.decode().count("shut ENOENT"), 3,
                         done.stdout.decode() + done.stderr.decode())

    def test_g8_the_home_is_refused_as_a_grant_and_nothing_is_made(self):
        before = self.tree.snapshot()
        for scope in (self.home, self.home + "/**", self.tree.root, "/", "/etc", "/proc", "/run"):
            with self.subTest(scope=scope):
                self.refused(allow=[f"fs:write:{scope}"])
        self.assertEqual(self.tree.snapshot(), before)

    def test_g17_credentials_stay_hidden_inside_a_granted_parent(self):
        held = {name: self.tree.file(f"home/.config/{name}", canary())
                for name in ("gh/hosts.yml", "gcloud/token", "git/credentials",
                             "capgate/capgate.yaml")}
        plain = self.tree.file("home/.config/app/settings", "plain")
        self.assert_open(self.outside(*[f"read={path}" for path in held.values()]))
        before = self.tree.snapshot()
        for action in ("read", "write"):
            allow = [f"fs:{action}:{self.home}/.config"]
            self.assert_open(self.inside(f"read={plain}", allow=allow))
            for path in held.values():
                (found,) = self.inside(f"read={path}", allow=allow)
                self.assertFalse(found.open and found.detail, f"{action} of the parent: {found}")
            moved = f"rename={self.home}/.config/gh,{self.home}/.config/away"
            self.assert_shut(self.inside(moved, allow=allow))
        self.assertEqual(self.tree.snapshot(), before)

    def test_g17_secrets_of_a_workspace_stay_hidden_at_its_root(self):
        held = [self.tree.file(f"work/{name}", canary())
                for name in (".env", ".env.local", "id_rsa", "credentials.json")]
        example = self.tree.file("work/.env.example", "plain")
        self.assert_open(self.outside(*[f"read={path}" for path in held]))
        allow = [f"fs:read:{self.work}"]
        self.assert_open(self.inside(f"read={example}", allow=allow))
        for path in held:
            with self.subTest(path=path):
                (found,) = self.inside(f"read={path}", allow=allow)
                self.assertFalse(found.open and found.detail, found)

    def test_g6_an_absent_credential_path_never_blocks_a_start(self):
        """But for capgate's own, which the server could make and the next run would believe."""
        self.tree.directory("home/.config")
        self.refused(allow=[f"fs:write:{self.home}/.config"])
        self.tree.directory("home/.config/capgate")
        before = self.tree.snapshot()
        for action in ("read", "write"):
            self.assert_open(self.inside("ids", allow=[f"fs:{action}:{self.home}/.config"]))
        self.assertEqual(self.tree.snapshot(), before)


@started_by_root_and_user
class TrustedByTheHost(Redteam):
    """Attacks 15, 16: files that the host runs or believes later."""

    def setUp(self):
        super().setUp()
        self.allow = [f"fs:write:{self.work}"]

    def test_15_a_protected_file_that_appears_is_set_aside(self):
        self.assert_open(self.outside(f"create={self.work}/.mcp.json"))
        os.remove(self.tree.path("work/.mcp.json"))
        done = self.finish(self.sandboxed([self.probe, f"create={self.work}/.mcp.json"],
                                          self.allow))
        self.assertIn(f"{self.work}/.mcp.json", done.stderr.decode())
        self.assertEqual(os.listdir(self.work), [".mcp.json.set-aside-1"])

    def test_15_nothing_is_made_for_what_does_not_exist(self):
        self.assert_open(self.inside("ids", allow=self.allow))
        self.assertEqual(os.listdir(self.work), [])

    def test_16_what_the_host_trusts_cannot_be_changed(self):
        paths = [self.tree.file(f"work/{name}", "true\n") for name in PROTECTED]
        self.assert_open(self.outside(*[f"append={path}" for path in paths]))
        before = self.tree.snapshot()
        self.assert_shut(self.inside(*[f"append={path}" for path in paths], allow=self.allow),
                         *READ_ONLY)
        self.assert_shut(self.inside(*[f"remove={path}" for path in paths], allow=self.allow),
                         *READ_ONLY, "EBUSY")
        self.assert_shut(self.inside(*[f"rename={self.work}/{top},{self.work}/away"
                                       for top in sorted({n.split("/")[0] for n in PROTECTED})],
                                     allow=self.allow), *READ_ONLY, "EBUSY", "EXDEV")
        created = [f"create={self.work}/.git/hooks/post-checkout",
                   f"create={self.work}/.vscode/tasks.json",
                   f"create={self.work}/.github/workflows/new.yml"]
        self.assert_shut(self.inside(*created, allow=self.allow), *READ_ONLY)
        self.assertEqual(self.tree.snapshot(), before)
        self.assert_open(self.inside(f"create={self.work}/.git/index", allow=self.allow))

    def test_16_a_policy_in_the_workspace_changes_nothing(self):
        secret = self.tree.file("secret", canary())
        more = ('{"name": "x", "version": "1.0.0", "tools": [{"name": "t", "capabilities": '
                f'["fs:read:{secret}"]}}]}}')
        for name in ("capgate.json", "manifest.json", ".capgate.json", ".capgate/policy.json",
                     "mcp-capabilities.json"):
            self.tree.file(f"work/{name}", more)
        self.assert_open(self.outside(f"read={secret}", cwd=self.work))
        self.assert_shut(self.inside(f"read={secret}", allow=self.allow, cwd=self.work), *HIDDEN)


@started_by_root_and_user
class Modes(Redteam):
    """Attack 17: what a planted file would be for the host."""

    CALLS = ["chmod_setuid", "chmod_setgid", "chmod_path_setuid", "open_setuid", "mkdir_setgid",
             "mknod"]

    def test_17_no_set_id_bit_and_no_device(self):
        outside = self.tree.directory("outside")
        self.assert_open(self.outside(*[f"{call}={outside}/{call}" for call in self.CALLS]))
        self.assertTrue(os.stat(f"{outside}/chmod_setuid").st_mode & stat.S_ISUID)
        inside = [f"{call}={self.work}/{call}" for call in self.CALLS]
        self.assert_shut(self.inside(*inside, allow=[f"fs:write:{self.work}"]), *FILTER, "EACCES")
        for name in os.listdir(self.work):
            mode = os.lstat(self.tree.path(f"work/{name}")).st_mode
            self.assertTrue(stat.S_ISREG(mode), name)
            self.assertFalse(mode & (stat.S_ISUID | stat.S_ISGID), name)

    def test_17_every_mount_is_nosuid_and_nodev(self):
        allow = [f"fs:write:{self.work}", f"fs:read:{self.tree.directory('read')}"]
        self.assert_attack_fails(["loose_mounts"], "ENOENT", allow=allow)


class Wsl(Redteam):
    """Attack 18: the ways from WSL to Windows, with stand-ins."""

    def test_18_neither_variable_nor_socket_nor_drive(self):
        path = self.tree.path("interop")
        env = {"WSL_INTEROP": path, "WSL_DISTRO_NAME": "x", "WSLENV": "x"}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            os.chmod(path, 0o777)
            listener.listen()
            outside = self.outside("env", f"stat={path}", env=env)
            self.assertIn("WSL_INTEROP", outside[0].detail)
            self.assert_open(outside)
            (names, *rest) = self.inside("env", f"stat={path}", "stat=/mnt", "stat=/init",
                                         f"unix={path}", "open_read=/proc/sys/fs/binfmt_misc/WSL",
                                         env=env)
            self.assertNotIn("WSL", names.detail)
            self.assert_shut(rest, *HIDDEN, "EPERM")


if __name__ == "__main__":
    unittest.main()
