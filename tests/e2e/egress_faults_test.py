"""What goes wrong: no audit file, a full disk, limits, dead origins, a host that changes."""

import json
import os
import re
import shutil
import time
import unittest

import launch
from egress_cases import API, EgressCase, open_lab, read_audit, request
from egress_lab import Lab, addresses

STUB = "net:connect:stub.example.test:80"
RAW = "net:connect:raw.example.test:7001"
# Connects to NAME:PORT for each line of its input and says what came first.
ASKER = ("import socket, sys\n"
         "for line in sys.stdin:\n"
         "    host, port = line.split()\n"
         "    try:\n"
         "        with socket.create_connection((host, int(port)), 30) as connection:\n"
         "            head = f'GET / HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n'\n"
         "            connection.sendall(head.encode())\n"
         "            print('got', len(connection.recv(100)) > 0, flush=True)\n"
         "    except OSError as error:\n"
         "        print('error', type(error).__name__, flush=True)\n")


def setUpModule():
    open_lab()


def wait_until(condition):
    end = time.monotonic() + launch.SECONDS
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Asking(EgressCase):
    """A server that lives on and connects when it is told to."""

    def start_asker(self, *allow, audit=None):
        self.audit = audit or self.new_audit()
        command = [launch.PYTHON, "-I", "-c", ASKER]
        return self.start(self.sandboxed(command, allow, audit=self.audit))

    def ask(self, process, host, port=80):
        process.stdin.write(f"{host} {port}\n".encode())
        process.stdin.flush()
        said = process.stdout.readline().decode().strip()
        if not said:
            self.fail(process.stderr.read().decode())
        return said


class AuditFile(Asking):
    def test_without_a_writable_file_nothing_starts(self):
        closed = self.tree.directory("closed")
        os.chmod(closed, 0o555)
        for path in (self.tree.path("absent/audit.jsonl"), os.path.join(closed, "audit.jsonl"),
                     self.tree.directory("directory")):
            with self.subTest(path=path):
                said = self.refusal(allow=[API], options=["--audit", path])
                self.assertIn(path, said)

    def test_a_file_that_others_can_write_is_no_log(self):
        path = self.new_audit()
        self.inside(["/usr/bin/true"], [API], audit=path)
        (user, group), root = (os.stat(path).st_uid, os.stat(path).st_gid), (0, 0)
        for owner, mode in ((root, 0o666), ((user, group), 0o660), ((user, group), 0o602)):
            with self.subTest(owner=owner, mode=mode):
                os.chown(path, *owner)
                os.chmod(path, mode)
                said = self.refusal(allow=[API], options=["--audit", path])
                self.assertIn("can write the audit log", said)
        os.chmod(path, 0o644)
        self.inside(["/usr/bin/true"], [API], audit=path)

    def test_without_a_writable_state_directory_nothing_starts(self):
        os.chmod(self.home, 0o555)
        self.refusal(allow=[API])

    def test_the_state_directory_is_used_without_the_option(self):
        state = self.tree.directory("state")
        process = self.start(self.sandboxed(["/usr/bin/true"], [API]),
                             env={"XDG_STATE_HOME": state})
        self.assertEqual(launch.finish(process).returncode, 0)
        (name,) = os.listdir(os.path.join(state, "capgate/audit"))
        lines = read_audit(os.path.join(state, "capgate/audit", name))
        self.assertEqual([lines[0]["event"], lines[-1]["event"]], ["start", "end"])

    def test_without_net_no_file_is_needed(self):
        os.chmod(self.home, 0o555)
        done = launch.finish(self.start(self.sandboxed(["/usr/bin/true"])))
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_on_a_full_disk_no_connection_is_opened(self):
        disk = self.tree.directory("disk")
        self.lab.run_as_root("/usr/bin/mount", "-t", "tmpfs", "-o", "size=16k,mode=0777", "disk",
                             disk)
        self.addCleanup(self.lab.run_as_root, "/usr/bin/umount", disk)
        filler = os.path.join(disk, "filler")
        self.lab.run_as_root("/bin/sh", "-c", f"head -c 4096 /dev/zero >{filler}")
        server = self.start_asker(STUB, audit=os.path.join(disk, "audit.jsonl"))
        answers = []
        # A line has some 300 bytes, and a connection at least two lines.
        for _ in range(64):
            answers.append(self.ask(server, "stub.example.test"))
            if answers[-1].startswith("error") or answers[-1] == "got False":
                break
        self.assertEqual(answers[0], "got True")
        self.assertNotEqual(answers[-1], "got True", "16k were never full")
        opened = len(self.lab.far.at(addresses.STUB, 80))
        self.assertNotEqual(self.ask(server, "stub.example.test"), "got True")
        self.assertEqual(len(self.lab.far.at(addresses.STUB, 80)), opened)
        self.assertEqual(opened, answers.count("got True"))
        text = self.lab.run_as_root("/usr/bin/cat", self.audit)
        allowed = [line for line in map(json.loads, text.splitlines())
                   if line["event"] == "connect" and line["verdict"] == "allowed"]
        self.assertEqual(len(allowed), opened)
        # The reason is told, and with room again there are connections again.
        self.lab.run_as_root("/usr/bin/rm", filler)
        self.assertEqual(self.ask(server, "stub.example.test"), "got True")
        server.stdin.close()
        self.assertEqual(server.wait(launch.SECONDS), 0)
        self.assertIn("No space left on device", server.stderr.read().decode())
        text = self.lab.run_as_root("/usr/bin/cat", self.audit)
        lines = list(map(json.loads, text.splitlines()))
        self.assertEqual(lines[-1]["event"], "end")

    def test_lines_are_chained_and_tell_the_whole_flow(self):
        start = time.monotonic()
        run = self.inside([launch.PYTHON, "-I", "-c", ASKER], [STUB],
                          stdin=b"stub.example.test 80\nvictim.test 80\n")
        self.assertEqual(run.output, "got True\nerror gaierror\n", run)
        self.assertEqual([line["seq"] for line in run.lines], list(range(1, len(run.lines) + 1)))
        opened = run.assert_line(event="connect", verdict="allowed")
        closed = run.assert_line(event="close", flow=opened["flow"])
        self.assertEqual((opened["rule"], opened["address"], opened["serverName"]),
                         (STUB, addresses.STUB, "stub.example.test"))
        self.assertEqual((closed["sent"] > 40, closed["received"] > 40), (True, True))
        self.assertLessEqual(closed["ms"], 1000 * (time.monotonic() - start), "longer than the run")
        denied = run.assert_denied(event="dns", host="victim.test")
        self.assertEqual(denied["reason"], "no-rule")
        self.assertEqual([run.lines[0]["event"], run.lines[-1]["event"]], ["start", "end"])
        verified = self.lab.run([launch.CAPGATE, "audit", "verify",
                                 os.path.join(self.tree.path("audit"), "1.jsonl")])
        self.assertEqual(verified.returncode, 0, verified.stderr)


class Stderr(EgressCase):
    def test_a_denial_is_told_once_for_each_destination(self):
        orders = [{"to": ["api.example.test", 9000]},
                  {"to": [addresses.VICTIM, 443], "send": "x"},
                  {"to": ["victim.test", 80]}] * 4
        run, _ = self.talk_inside(*orders, allow=[API])
        for destination in ("api.example.test:9000", f"{addresses.VICTIM}:443", "victim.test"):
            told = [line for line in run.said.splitlines() if destination in line]
            self.assertEqual(len(told), 1, (destination, run.said))
            self.assertRegex(told[0], r"^capgate: ")
        self.assertEqual(len(run.find(event="connect", host=addresses.VICTIM)), 4, run)

    def test_the_log_keeps_count_to_the_end_of_the_run(self):
        """Refusals by the kernel share a line; the ones after it must not be lost."""
        run, _ = self.talk_inside(*[{"to": ["api.example.test", 9000]}] * 4, allow=[API])
        refused = run.find(event="refused", port=9000)
        self.assertEqual(sum(line.get("count", 1) for line in refused), 4, run)

    def test_foreign_text_is_escaped(self):
        order = {"to": ["api.example.test", 443], "send": request("evil\x1b[31m.test")}
        run, _ = self.talk_inside(order, allow=[API])
        run.assert_denied(event="connect", host="api.example.test", port=443)
        self.assertIsNone(re.search(r"[^\x20-\x7e\n]", run.said), run.said)


class Limits(EgressCase):
    """The broker's own: 512 live connections, 100 new ones a second, twice as many at first."""

    BURST = ("import errno, selectors, socket, sys\n"
             "wanted = int(sys.argv[1])\n"
             "address = socket.getaddrinfo('raw.example.test', 7001, socket.AF_INET)[0][4]\n"
             "kept, greeted = [], 0\n"
             "for _ in range(wanted):\n"
             "    connection = socket.socket()\n"
             "    connection.settimeout(25)\n"
             "    try: connection.connect(address)\n"
             "    except OSError: continue\n"
             "    kept.append(connection)\n"
             "for connection in kept:\n"
             "    try: greeted += connection.recv(100) != b''\n"
             "    except OSError: pass\n"
             "print(greeted)\n")

    def test_a_burst_of_connections(self):
        """All are served, and the last 200 wait for their turn: that takes two seconds."""
        control = self.outside([launch.PYTHON, "-I", "-c", self.BURST, "400"])
        self.assertEqual(control.output, "400\n", control)
        self.lab.far.clear()
        start = time.monotonic()
        run = self.inside([launch.PYTHON, "-I", "-c", self.BURST, "400"],
                          [RAW, "limit:files:4096"])
        self.assertGreaterEqual(time.monotonic() - start, 1.9)
        self.assertEqual(run.output, "400\n", run)
        reached = len(self.lab.far.at(addresses.RAW, 7001) + self.lab.far.at(addresses.RAW6, 7001))
        self.assertEqual(reached, 400)
        run.assert_line(event="limit", reason="rate")

    def test_one_sandbox_does_not_starve_another(self):
        """While one is at its limit the other connects as ever."""
        audit = self.new_audit()
        greedy = self.start(self.sandboxed(
            [launch.PYTHON, "-I", "-c", self.BURST + "sys.stdout.flush(); sys.stdin.read()", "600"],
            [RAW], ["--net-limit", "rate=1000"], audit))
        self.assertEqual(greedy.stdout.readline(), b"512\n")
        run, (talk,) = self.talk_inside({"to": ["raw.example.test", 7001], "until": 5}, allow=[RAW])
        self.assertTrue(talk["got"].startswith("hello"), run)


class HalfOpen(EgressCase):
    def test_silent_connections_do_not_stop_others(self):
        code = ("import socket, sys\n"
                "address = socket.getaddrinfo('api.example.test', 443, socket.AF_INET)[0][4]\n"
                "kept = [socket.create_connection(address, 5) for _ in range(120)]\n"
                "for each in kept[::2]: each.send(b'\\x16')\n"
                "greeter = socket.create_connection(('raw.example.test', 7001), 5)\n"
                "print(greeter.recv(5))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], [API, RAW])
        self.assertEqual(run.output, "b'hello'\n", run)


class Patience(EgressCase):
    """What never comes is waited for, but not for ever. Both waits run at once: they are long. Only
    the lower bounds are times; above them the broker must just be faster than the client."""

    CLIENT_SECONDS, HELLO_SECONDS, DIAL_SECONDS = 90, 15, 20

    def test_silent_clients_and_silent_origins_are_given_up(self):
        orders = {
            "client": {"to": ["api.example.test", 443], "send": "\x16\x03\x01"},
            "origin": {"to": ["silent.example.test", 7000], "send": "hello"}}
        started, runs = time.monotonic(), {}
        for name, order in orders.items():
            audit = self.new_audit()
            command = self.sandboxed(
                self.talk({**order, "seconds": self.CLIENT_SECONDS}),
                [API, "net:connect:silent.example.test:7000", *self.reads], audit=audit)
            runs[name] = (self.start(command), audit)
        for name, seconds in (("client", self.HELLO_SECONDS), ("origin", self.DIAL_SECONDS)):
            with self.subTest(silent=name):
                process, audit = runs[name]
                result = json.loads(process.communicate(timeout=2 * self.CLIENT_SECONDS)[0])
                self.assertGreaterEqual(time.monotonic() - started, seconds)
                self.assertEqual(result, {"error": "ECONNRESET", "got": ""})
                self.assert_given_up(name, read_audit(audit))
        self.assertNotIn("api.example.test", self.lab.far.questions())

    def assert_given_up(self, silent, lines):
        if silent == "client":
            denied = [line for line in lines if line.get("reason") == "silent"]
            self.assertEqual([line["host"] for line in denied], ["api.example.test"], lines)
        else:
            (closed,) = [line for line in lines if line["event"] == "close"]
            self.assertRegex(closed["reason"], "^unreachable: ")


class Origins(Asking):
    # Less than the 20 s that the broker waits for an address when it has no other one.
    CURL = ["/usr/bin/curl", "-sS", "--max-time", "15"]

    def fetch(self, name):
        return self.inside([*self.CURL, "--cacert", self.lab.ca, f"https://{name}/"],
                           [f"net:connect:{name}:443", *self.reads])

    def test_the_next_address_is_tried(self):
        for name in ("twin.example.test", "lost.example.test"):
            with self.subTest(name=name):
                run = self.fetch(name)
                self.assertIn(f"asked for {name}", run.output, run)
                run.assert_line(event=("connect", "close"), host=name, address=addresses.API)

    def test_a_name_that_does_not_exist(self):
        run = self.fetch("absent.example.test")
        self.assertEqual((run.code, run.output), (35, ""), run)
        self.assertIn("Connection reset by peer", run.said)
        self.assertIn("absent.example.test", self.lab.far.questions())

    def test_a_closed_port(self):
        server = self.start_asker("net:connect:raw.example.test:7009")
        self.assertEqual(self.ask(server, "raw.example.test", 7009), "error ConnectionResetError")


class ChangingHost(Asking):
    def test_a_new_resolver_is_used(self):
        server = self.start_asker(STUB, RAW)
        self.assertEqual(self.ask(server, "stub.example.test"), "got True")
        self.assertEqual({record["at"] for record in self.lab.far.all()
                          if record["kind"] == "dns"}, {addresses.RESOLVER})
        old = self.lab.replace("resolv.conf", f"nameserver {addresses.OTHER_RESOLVER}\n")
        self.addCleanup(self.lab.replace, "resolv.conf", old)

        def asks_the_new_one():
            self.assertEqual(self.ask(server, "raw.example.test", 7001), "got True")
            return any(record["at"] == addresses.OTHER_RESOLVER for record in self.lab.far.all())

        self.assertTrue(wait_until(asks_the_new_one))

    def test_a_new_line_of_hosts_is_used(self):
        server = self.start_asker("net:connect:added.example.test:80")
        self.assertNotEqual(self.ask(server, "added.example.test"), "got True")
        old = self.lab.replace("hosts", f"{addresses.STUB} added.example.test\n")
        self.addCleanup(self.lab.replace, "hosts", old)
        self.assertTrue(wait_until(lambda: self.ask(server, "added.example.test") == "got True"))

    def test_a_broker_that_dies_is_replaced(self):
        server = self.start_asker(STUB)
        self.assertEqual(self.ask(server, "stub.example.test"), "got True")
        self.lab.run_as_root("/bin/sh", "-c", "kill -9 $(pidof capgate-broker)")
        self.assertTrue(wait_until(lambda: self.ask(server, "stub.example.test") == "got True"))
        server.stdin.close()
        self.assertEqual(server.wait(launch.SECONDS), 0)
        events = [line["event"] for line in read_audit(self.audit)]
        self.assertEqual((events[0], events.count("restart"), events[-1]), ("start", 1, "end"))


class WithoutIpv6(EgressCase):
    """IPv6 switched off on the host must not break IPv4. A lab of its own: it stays off."""

    def setUp(self):
        super().setUp()
        self.lab = Lab()
        self.addCleanup(self.lab.close)
        shutil.copytree(self.clients, self.lab.tree.path("clients"))
        self.clients = self.lab.tree.path("clients")
        for name in ("all", "default"):
            self.lab.run_as_root("/bin/sh", "-c",
                                 f"echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6")

    def test_ipv4_works(self):
        command = ["/usr/bin/curl", "-sS", "--max-time", "10", "--cacert", self.lab.ca,
                   "https://api.example.test/"]
        self.assertIn("origin api", self.outside(command).output)
        run = self.inside(command, [API, *self.reads])
        self.assertIn("origin api", run.output, run)


if __name__ == "__main__":
    unittest.main()
