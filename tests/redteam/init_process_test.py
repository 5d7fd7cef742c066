"""What root sees of capgate-init and its supervisor while a server runs."""

import os
import subprocess
import unittest

from redteam import Redteam, descendants, launch, started_by_root_and_user

VALUE = "value-that-only-the-server-holds"


def is_init(pid):
    """capgate-init has no name of its own in the file system."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read() == b"capgate-init\0"


@started_by_root_and_user
class Init(Redteam):
    def start_server(self, allow=()):
        """A server that runs: the pids of everything from capgate on, and of init."""
        process = self.start_echo(allow=allow, env={"TOKEN": VALUE})
        pids = descendants(process.pid)
        (init,) = [pid for pid in pids if is_init(pid)]
        return pids, init

    def memory(self, pid):
        """What is mapped in a process, with its contents."""
        found = b""
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
                open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            names = maps.read()
            for line in names.splitlines():
                span, rights = line.split()[:2]
                begin, end = (int(word, 16) for word in span.split("-"))
                if "r" in rights and not line.endswith(("[vvar]", "[vvar_vclock]", "[vsyscall]")):
                    file.seek(begin)
                    found += file.read(end - begin)
        return names, found

    def test_the_orders_are_gone_from_init(self):
        """They hold the server's environment with its secrets."""
        _, init = self.start_server(["env:inject:TOKEN"])
        (server,) = children(init)
        self.assertIn(VALUE.encode(), self.memory(server)[1], "the control: the server holds it")
        names, contents = self.memory(init)
        self.assertNotIn("capgate-orders", names)
        self.assertNotIn(VALUE.encode(), contents)

    def test_init_holds_the_control_socket_and_little_else(self):
        _, init = self.start_server()
        held = sorted(os.readlink(f"/proc/{init}/fd/{name}").split(":")[0]
                      for name in os.listdir(f"/proc/{init}/fd"))
        self.assertEqual(held, ["anon_inode", "socket"])  # the descriptor of its signals, and control

    def test_the_supervisor_is_closed_to_its_user(self):
        """Files of a process that is not dumpable belong to root. Without a secret: with one it is
        closed before it reads the secret."""
        pids, init = self.start_server()
        above = [pid for pid in pids if init in children(pid)]
        self.assertEqual([os.stat(f"/proc/{pid}/mem").st_uid for pid in above], [0])


class Groups(Redteam):
    uid = 0

    def test_root_passes_none_of_its_groups_on(self):
        groups = "7777,7778"
        with_groups = ["/usr/bin/setpriv", f"--groups={groups}", "--"]
        show = ["/usr/bin/grep", "Groups:", "/proc/self/status"]
        outside = subprocess.run([*with_groups, *show], capture_output=True, check=True, text=True)
        self.assertEqual(outside.stdout.split(), ["Groups:", "7777", "7778"])
        run = [launch.CAPGATE, "run", "--", *show]
        done = self.finish([*with_groups, *run])
        self.assertEqual(done.stdout.split(), [b"Groups:"], done.stderr)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


if __name__ == "__main__":
    unittest.main()
