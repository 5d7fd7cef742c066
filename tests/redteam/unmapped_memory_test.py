"""Memory that no process maps, or that no process shows: a stated limit holds it, or there is none.

Started by root a cgroup counts everything. An ordinary user here has no cgroup: what cannot be
counted from outside is refused, and everything else has a bound. The amounts are a few hundred MiB
at most, and gone when the attempt ends.
"""

import json
import os
import socket
import unittest

from redteam import ORDINARY, Redteam, as_user, signal_of, started_by_root_and_user

LIMIT = "limit:memory:128M"
PRELUDE = """
import ctypes, errno, mmap, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def must(result):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result
"""
ENDING = """
try:
    print("OPEN", attack(), flush=True)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
"""
# Each holds what it got for longer than a watchdog looks away.
MEMFD = """
def attack():
    file = os.memfd_create("hidden")
    for _ in range(160): os.write(file, bytes(1 << 20))
    time.sleep(1)
"""
SHMGET = "def attack(): must(libc.shmctl(must(libc.shmget(0, 1 << 20, 0o1600)), 0, None))"
SEMGET = "def attack(): must(libc.semctl(must(libc.semget(0, 32000, 0o1600)), 0, 0))"
MSGGET = "def attack(): must(libc.msgctl(must(libc.msgget(0, 0o1600)), 0, None))"
# Pages that left the tables of the process and not the memory.
DROPPED = """
def attack():
    memory = mmap.mmap(-1, 200 << 20)
    for at in range(0, len(memory), 4096): memory[at] = 1
    memory.madvise(mmap.MADV_DONTNEED)
    time.sleep(1)
"""
# A page of tables for each 2 MiB that is only read.
PAGE_TABLES = """
def attack():
    memory = mmap.mmap(-1, 96 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
    memory.madvise(15)
    for at in range(0, len(memory), 2 << 20): memory[at]
    time.sleep(1)
"""
NAMES = """
def attack():
    place = sys.argv[1]
    made = 0
    try:
        for made in range(4000): os.close(os.open(f"{place}/n{made}", os.O_CREAT | os.O_WRONLY))
    finally:
        for each in range(made): os.unlink(f"{place}/n{each}")
    return made
"""
# What a pair holds that nobody reads.
UNIX_BUFFER = """
def attack():
    one, other = socket.socketpair()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return fill(one)
"""
TCP_BUFFER = """
def attack():
    server = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(server.getsockname())
    other, _ = server.accept()
    return fill(one)
"""
FILL = """
def fill(one):
    one.setblocking(False)
    held, still = 0, 0
    while still < 20:
        try:
            held += one.send(bytes(65536))
            still = 0
        except BlockingIOError:
            still += 1
            time.sleep(0.01)
    return held
"""


class Scripts(Redteam):
    def words(self, attack, *arguments):
        return ["/usr/bin/python3", "-I", "-c", PRELUDE + FILL + attack + ENDING, *arguments]

    def try_outside(self, attack, *arguments):
        return self.judge(self.finish(as_user(self.words(attack, *arguments), ORDINARY)))

    def try_inside(self, attack, *arguments, allow=(), options=()):
        return self.judge(self.finish(self.sandboxed(self.words(attack, *arguments), allow, options)))

    @staticmethod
    def judge(done):
        """What the attack printed, or the signal that ended it."""
        return done.stdout.decode().strip() or signal_of(done.returncode) or done.stderr.decode()


@started_by_root_and_user
class Amounts(Scripts):
    """More than the limit, in a form that no status of a process shows."""

    def test_36_files_in_memory(self):
        self.assertEqual(self.try_outside(MEMFD), "OPEN None")
        expected = "SIGKILL" if self.uid == 0 else "ENOSYS"
        self.assertEqual(self.try_inside(MEMFD, allow=[LIMIT]), expected)

    def test_36_shared_pages_that_were_dropped(self):
        self.assertEqual(self.try_outside(DROPPED), "OPEN None")
        self.assertEqual(self.try_inside(DROPPED, allow=[LIMIT]), "SIGKILL")

    def test_36_page_tables(self):
        self.assertEqual(self.try_outside(PAGE_TABLES), "OPEN None")
        self.assertEqual(self.try_inside(PAGE_TABLES, allow=[LIMIT]), "SIGKILL")

    def test_36_names_in_private_directories(self):
        self.assertEqual(self.try_outside(NAMES, self.shared_directory()), "OPEN 3999")
        for place in ("/tmp", "/dev/shm"):
            self.assertEqual(self.try_inside(NAMES, place, allow=["limit:disk:1M"]), "ENOSPC")
        self.assertEqual(self.try_inside(NAMES, "/tmp", allow=["limit:disk:16M"]), "OPEN 3999")

    def shared_directory(self):
        place = self.tree.directory("names")
        os.chmod(place, 0o1777)
        return place


class WithoutCgroup(Scripts):
    """What has no bound of its own does not exist, and buffers have one."""

    def test_36_system_v_objects(self):
        for attack in (SHMGET, SEMGET, MSGGET):
            with self.subTest(attack=attack):
                self.assertEqual(self.try_outside(attack), "OPEN None")
                self.assertEqual(self.try_inside(attack), "ENOSYS")

    def held(self, text):
        self.assertRegex(text, r"^OPEN \d+$")
        return int(text.split()[1])

    def test_36_buffers_of_unix_sockets(self):
        with open("/proc/sys/net/core/wmem_max", encoding="ascii") as file:
            most = int(file.read())
        with socket.socket(socket.AF_UNIX) as plain:
            usual = plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        if most < 2 * usual:
            self.not_testable("needs net.core.wmem_max of twice net.core.wmem_default")
        self.assertGreater(self.held(self.try_outside(UNIX_BUFFER)), 2 * usual)
        # The last message may pass the size.
        self.assertLess(self.held(self.try_inside(UNIX_BUFFER)), usual + 65536)

    def test_36_buffers_of_tcp_sockets(self):
        self.assertGreater(self.held(self.try_outside(TCP_BUFFER)), 1 << 20)
        self.assertLessEqual(self.held(self.try_inside(TCP_BUFFER)), 2 * 425984)

    def test_36_the_report_adds_the_bounds_up(self):
        report = self.tree.path("home/report.json")
        self.finish(self.sandboxed([self.probe, "ids"], [LIMIT, "limit:disk:16M"],
                                   ["--report", report]))
        with open(report, encoding="utf-8") as file:
            worst = json.load(file)["memoryWorstCase"]
        parts = {part["what"]: part["most"] for part in worst["parts"]}
        self.assertEqual(parts["private memory of processes"], "128 MiB")
        self.assertEqual(parts["memfd, System V shared memory, semaphores and message queues"],
                         "0 B")
        self.assertRegex(worst["total"], r"^[\d.]+ GiB$")


if __name__ == "__main__":
    unittest.main()
