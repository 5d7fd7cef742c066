"""The lab of the egress tests itself: what it promises to them, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import unittest

import launch
from egress_lab import HERE, Lab, addresses
from run_cases import reap_orphans, set_subreaper

CURL = ["/usr/bin/curl", "-sS", "--max-time", "25"]


def processes_of(marker):
    """Every process of the machine whose arguments or memory of files name the marker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if marker.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def network_of(pid):
    return os.readlink(f"/proc/{pid}/ns/net")


class Promises(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = Lab()
        cls.addClassCleanup(cls.lab.close)

    def output(self, *command, **options):
        done = self.lab.run(command, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_everyone_is_an_ordinary_user_of_the_machine(self):
        for pid in processes_of(self.lab.root):
            self.assertEqual(os.stat(f"/proc/{pid}").st_uid, launch.ORDINARY, pid)
        self.assertEqual(self.output("/usr/bin/id", "-u"), "1000\n")
        status = self.output("/usr/bin/cat", "/proc/self/status")
        self.assertIn("CapEff:\t0000000000000000", status)

    def test_there_are_two_networks_and_neither_is_the_machines(self):
        networks = {network_of(pid) for pid in processes_of(self.lab.inner)}
        self.assertEqual(len(networks - {network_of("self")}), 2)
        routes = self.output("/usr/sbin/ip", "route") + self.output("/usr/sbin/ip", "-6", "route")
        self.assertNotIn("default", routes)
        seen = self.output("/usr/bin/readlink", "/proc/self/ns/net", internet=True)
        self.assertNotEqual(seen, self.output("/usr/bin/readlink", "/proc/self/ns/net"))

    def test_origins_answer_by_name_over_both_families(self):
        for name, version in (("v4.example.test", "-4"), ("v6.example.test", "-6")):
            said = self.output(*CURL, version, "--cacert", self.lab.ca, f"https://{name}/")
            self.assertEqual(said, f"origin api.example.test, asked for {name}, by HTTP/2.0\n")

    def test_the_resolver_records_every_question_and_takes_turns(self):
        self.lab.far.clear()
        self.lab.far.set_names({"turns.test": [["44.128.0.40"]] * 2 + [["127.0.0.1"]]})
        lookup = [launch.PYTHON, "-c", "import socket\n"
                  "for _ in range(2): print(socket.gethostbyname('turns.test'))"]
        self.assertEqual(self.output(*lookup), "44.128.0.40\n44.128.0.40\n")
        self.assertEqual(self.output(*lookup), "127.0.0.1\n127.0.0.1\n")
        self.assertEqual(self.lab.far.questions(), ["turns.test"] * 4)

    def test_stubs_record_what_arrives(self):
        self.lab.far.clear()
        self.output(*CURL, f"http://{addresses.STUB}/stubbed")
        (seen,) = self.lab.far.at(addresses.STUB, 80)
        self.assertIn("GET /stubbed", seen)
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [])

    def test_a_silent_address_stays_silent_and_a_closed_one_refuses(self):
        for address, seconds, code in ((addresses.SILENT, "0.3", 28), (addresses.CLOSED, "25", 7)):
            done = self.lab.run([*CURL, "--max-time", seconds, f"http://{address}/"])
            self.assertEqual(done.returncode, code, done.stderr.decode())

    def test_a_file_of_etc_can_be_replaced(self):
        old = self.lab.replace("hosts", "44.128.0.40 added.test\n")
        try:
            self.assertIn("44.128.0.40", self.output("/usr/bin/getent", "hosts", "added.test"))
        finally:
            self.lab.replace("hosts", old)
        self.assertNotIn("added.test", self.output("/usr/bin/cat", "/etc/hosts"))

    def test_a_command_that_is_killed_takes_its_own_with_it(self):
        marker = f"{self.lab.root}/killed"
        process = self.lab.start([launch.PYTHON, "-c", "import signal; print(1, flush=True); "
                                  "signal.pause()", marker], stderr=subprocess.DEVNULL)
        process.stdout.readline()
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        ended = [launch.PYTHON, "-c", "import os, sys, time\n"
                 "def left():\n"
                 "    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
                 "        try: words = open(f'/proc/{pid}/cmdline').read()\n"
                 "        except OSError: continue\n"
                 "        if sys.argv[1] in words and int(pid) != os.getpid(): return True\n"
                 "end = time.monotonic() + 25\n"
                 "while left() and time.monotonic() < end: time.sleep(0.01)\n"
                 "sys.exit(1 if left() else 0)\n", marker]
        self.assertEqual(self.lab.run(ended).returncode, 0)


class Leavings(unittest.TestCase):
    def test_a_closed_lab_leaves_no_process_mount_or_file(self):
        lab = Lab()
        root, server = lab.root, None
        try:
            # A daemon of a session of its own, deaf to what could end it politely.
            server = lab.start(["/usr/bin/setsid", "--fork", launch.PYTHON, "-c",
                                "import signal, sys\n"
                                "for each in (1, 2, 15): signal.signal(each, signal.SIG_IGN)\n"
                                "print('deaf', flush=True)\n"
                                "signal.pause()", root])
            self.assertEqual(server.stdout.readline(), b"deaf\n")
            self.assertGreater(len(processes_of(root)), 3)
        finally:
            lab.close()
            if server:
                server.communicate()
        self.assertEqual(processes_of(root), [])
        self.assertFalse(os.path.exists(root))
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            self.assertNotIn(root, table.read())

    def test_a_killed_test_leaves_no_process(self):
        set_subreaper(1)
        self.addCleanup(set_subreaper, 0)
        code = ("import sys\n"
                f"sys.path.insert(0, {HERE!r})\n"
                "from egress_lab import Lab\n"
                "lab = Lab()\n"
                "print(lab.root, flush=True)\n"
                "sys.stdin.read()\n")
        test = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=os.environ)
        root = test.stdout.readline().decode().strip()
        try:
            self.assertGreater(len(processes_of(root)), 3)
        finally:
            test.send_signal(signal.SIGKILL)
            test.communicate()
            reap_orphans()
            subprocess.run(["/usr/bin/rm", "-rf", "--", root], check=True)
        self.assertEqual(processes_of(root), [])


if __name__ == "__main__":
    unittest.main()
