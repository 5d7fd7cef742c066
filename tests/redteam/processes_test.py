"""Attacks 33, 37, 38 and weaknesses G1, G2, G3, G10: other processes, and who the server is."""

import os
import unittest

from redteam import (CHILDREN, FILTER, Redteam, canary, descendants, is_dead, is_gone, launch,
                     started_by_root_and_user, wait_until)

NO_CAPABILITY = "0" * 16


@started_by_root_and_user
class Identity(Redteam):
    """Whoever starts it, the server is nobody."""

    def test_g10_ids_and_capabilities(self):
        fields = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"]
        for allow in ([], [CHILDREN]):
            details = self.details("ids", *[f"status={field}" for field in fields], allow=allow)
            self.assertEqual(details[0], "1000 1000 1000 1000 1000 1000 groups 0")
            self.assertEqual(details[1:], [NO_CAPABILITY] * 5 + ["1", "2"])

    def test_g10_the_server_cannot_become_root(self):
        self.assert_open(self.outside("become_root", userns=True))
        self.assert_shut(self.inside("become_root"), "EPERM", "EINVAL")

    def test_g10_on_the_host_it_is_never_root(self):
        """As the host sees it: an id without rights, also when root started capgate."""
        process = self.start_echo()
        server = [pid for pid in descendants(process.pid) if self.program(pid) == self.probe]
        self.assertEqual(len(server), 1)
        with open(f"/proc/{server[0]}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
        ids = {int(word) for word in (status["Uid"] + status["Gid"]).split()}
        self.assertNotIn(0, ids)
        if self.uid != 0:
            self.assertEqual(ids, {self.uid})
        self.assertEqual(status["Groups"].split(), [])

    def program(self, pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].decode()

    def test_g3_the_environment_is_the_declared_one(self):
        secret = canary()
        env = {"AWS_SECRET_ACCESS_KEY": secret, "LD_PRELOAD": "", "NODE_OPTIONS": secret,
               "PYTHONSTARTUP": secret, "GITHUB_TOKEN": secret, "DECLARED": "yes"}
        (outside,) = self.outside("env", env=env)
        self.assertIn("GITHUB_TOKEN", outside.detail)
        (names,) = self.details("env", env=env, allow=["env:read:DECLARED"])
        seen = set(names.strip(",").split(","))
        self.assertEqual(seen - {"PWD"}, {"PATH", "HOME", "TMPDIR", "LANG", "DECLARED"})

    def test_g1_every_namespace_is_its_own(self):
        kinds = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"]
        attempts = [f"readlink=/proc/self/ns/{kind}" for kind in kinds]
        outside = self.assert_open(self.outside(*attempts))
        inside = self.assert_open(self.inside(*attempts))
        for there, here in zip(outside, inside):
            self.assertNotEqual(there.detail, here.detail)


@started_by_root_and_user
class Others(Redteam):
    """Processes of the host are neither seen nor signalled."""

    def test_g1_only_the_sandboxs_processes_are_visible(self):
        (outside,) = self.outside("processes")
        self.assertIn(str(os.getpid()), outside.detail.split(","))
        self.assertEqual(self.details("processes"), ["1,2,"])

    def test_38_no_process_outside_can_be_signalled(self):
        """A process of the same user, whose number the server is told."""
        host = self.start_echo(outside=True)
        attempts = [f"kill0={host.pid}", f"pidfd_kill0={host.pid}", f"prlimit={host.pid}"]
        self.assert_open(self.outside(*attempts))
        self.assert_shut(self.inside(*attempts), "ESRCH", "EPERM")

    def test_g2_two_sandboxes_neither_see_nor_signal_each_other(self):
        first = self.start_echo()
        others = descendants(first.pid)
        self.assertGreater(len(others), 1)
        attempts = [f"kill0={pid}" for pid in others if pid > 2]
        self.assert_shut(self.inside(*attempts), "ESRCH", "EPERM")
        self.assertEqual(self.details("processes"), ["1,2,"])
        self.assertIsNone(first.poll())


class OwnChildren(Redteam):
    """Attack 33: not even an own child can be looked into."""

    def test_33_children_cannot_be_traced_read_or_robbed(self):
        attempts = [f"{name}=child" for name in ("seize", "getfd", "peek", "poke", "kcmp")]
        self.assert_open(self.outside(*attempts))
        self.assert_shut(self.inside(*attempts, allow=[CHILDREN]), *FILTER)
        self.assert_open(self.inside("kill0=child", allow=[CHILDREN]))


class Outliving(Redteam):
    """Attack 37, G12: a grandchild in a session of its own, which ignores TERM and HUP."""

    def setUp(self):
        super().setUp()
        self.beat = self.tree.file("work/beat", "")

    def start_heart(self, inside):
        if inside:
            process = self.start_inside(f"heartbeat={self.beat}",
                                        allow=[CHILDREN, f"fs:write:{self.work}"])
        else:
            process = self.start_outside(f"heartbeat={self.beat}")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        self.assertTrue(wait_until(lambda: os.path.getsize(self.beat) > 2), "it beats")
        return process

    def beats_within(self, seconds):
        before = os.path.getsize(self.beat)
        return wait_until(lambda: os.path.getsize(self.beat) > before + 1, seconds)

    def test_37_outside_it_outlives_its_parent(self):
        """The control. It ends by itself after 25 s; the test ends it by its number."""
        process = self.start_heart(inside=False)
        process.kill()
        process.wait()
        self.assertTrue(self.beats_within(launch.SECONDS))
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if file.read().startswith(self.probe.encode()):
                        os.kill(pid, 9)
            except OSError:
                continue

    def assert_dies(self, end, ended=is_gone):
        process = self.start_heart(inside=True)
        family = descendants(process.pid)
        self.assertGreaterEqual(len(family), 4, "capgate, init, server, grandchild")
        end(process)
        process.wait(timeout=launch.SECONDS)
        self.assertTrue(wait_until(lambda: all(ended(pid) for pid in family[1:])), family)
        self.assertFalse(self.beats_within(1))

    def test_37_it_dies_when_the_launcher_is_killed(self):
        self.assert_dies(lambda process: process.kill(), is_dead)

    def test_g12_it_dies_when_the_launcher_is_terminated(self):
        self.assert_dies(lambda process: process.terminate())

    def test_g12_it_dies_when_the_server_ends(self):
        self.assert_dies(lambda process: process.stdin.close())

    def test_orphans_are_reaped(self):
        argv = ["/usr/bin/unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc",
                self.probe, "--direct", "zombies=3,500"]
        control = self.finish(["/usr/bin/setpriv", f"--reuid={launch.ORDINARY}",
                               f"--regid={launch.ORDINARY}", "--clear-groups", *argv])
        self.assertIn(b"OPEN 3", control.stdout, "an init that does not reap")
        self.assert_shut(self.inside("zombies=3,20000", allow=[CHILDREN], direct=True), "ESRCH")


if __name__ == "__main__":
    unittest.main()
