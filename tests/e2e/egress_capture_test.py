"""capgate run with net capabilities: what reaches the broker, with a stand-in for it."""

import errno
import glob
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import time
import unittest

import launch
from cases import started_by_root_and_user
from run_cases import REFUSED, RunCase, adopt_orphans, allow, python, reap_orphans

HERE = os.path.dirname(os.path.abspath(__file__))
# Asks HOST PORT by TCP, says a word, and prints what it gets or the name of the error.
CLIENT = """
import sys, socket, errno, json
def ask(host, port, word="hello"):
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(20)
            s.connect((host, port))
            s.sendall(word.encode())
            return s.recv(200).decode()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
"""


def client(*asked):
    """Prints a JSON list with what each (host, port) or (host, port, word) gives."""
    return python(CLIENT + "print(json.dumps([ask(*each) for each in json.loads(sys.argv[1])]))",
                  json.dumps(asked))


def setUpModule():
    adopt_orphans()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


# Raw sockets with the numbers of TCP, ICMP, TCP over IPv6 and ICMPv6.
REFUSALS = (("refusals", 6), ("refusals", 1), ("refusals", 6), ("refusals", 58))
# What every sandbox with a network has, whatever is declared.
SEEN = (*REFUSALS, ("dns_datagrams", 53), ("dns_streams", 53))

class BrokerCase(RunCase):
    """A copy of capgate with the stand-in beside it."""

    def setUp(self):
        super().setUp()
        self.programs = self.tree.directory("programs")
        os.chmod(self.programs, 0o755)
        self.original = launch.CAPGATE
        launch.CAPGATE = os.path.join(self.programs, "capgate")
        self.addCleanup(setattr, launch, "CAPGATE", self.original)
        shutil.copy(self.original, launch.CAPGATE)
        script = shutil.copy(os.path.join(HERE, "egress/stand_in.py"), self.programs)
        self.broker = self.build("stand_in.c", "capgate-broker", f'-DSCRIPT="{script}"')
        self.logs = self.own(self.tree.directory("logs"), 0o700)
        self.audit = os.path.join(self.logs, "audit.jsonl")

    def build(self, source, name, *flags):
        """The path of a program beside capgate, made from a source of tests/e2e/egress."""
        path = os.path.join(self.programs, name)
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", *flags,
                        os.path.join(HERE, "egress", source), "-o", path], check=True)
        os.chmod(path, 0o755)
        return path

    def set_mode(self, mode):
        self.tree.file("programs/mode", mode)

    def events(self, event=None):
        with open(self.audit, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [line for line in lines if event is None or line["event"] == event]

    def wait_for(self, event, count=1):
        """Until the stand-in has written down so many of these events."""
        for _ in range(3000):
            if os.path.exists(self.audit) and len(self.events(event)) >= count:
                return self.events(event)
            time.sleep(0.01)
        raise AssertionError(f"no {event} in {self.events()}")

    def words(self, *capabilities):
        return ["--audit", self.audit, *allow(*capabilities)]

    def ask(self, capabilities, *asked, more=()):
        return json.loads(self.output([*more, *self.words(*capabilities)], client(*asked)))


@started_by_root_and_user
class Capture(BrokerCase):
    def test_the_broker_gets_its_descriptors_and_nothing_else(self):
        self.output(self.words("net:connect:a.test:443"), ["/usr/bin/true"],
                    env=self.environment(SECRET="x"))
        start = self.events("start")[0]
        # The last one is that of the directory that is being listed.
        self.assertEqual(start["fds"][:6], [0, 1, 2, 3, 4, 5])
        self.assertEqual(len([fd for fd in start["fds"] if fd > 5]), 0)
        self.assertEqual(start["inputs"], ["/dev/null", "/dev/null"])
        self.assertNotIn("SECRET", start["environment"])
        self.assertTrue(start["session"])
        if self.uid == 0:
            self.assertGreater(start["uid"], 1_800_000_000)
            self.assertEqual(start["groups"], [])
        else:
            self.assertEqual(start["uid"], self.uid)
        policy = start["policy"]
        self.assertEqual([rule["capability"] for rule in policy["rules"]],
                         ["net:connect:a.test:443"])
        self.assertEqual(policy["limits"]["connections"], 512)
        self.assertRegex(policy["sandbox"], r"^[0-9a-f]{8}$")
        self.assertEqual(len(self.events("end")), 1)

    def test_a_declared_port_is_captured_at_every_address(self):
        got = self.ask(["net:connect:a.test:443", "net:connect:b.test:8443"],
                       ("28.18.0.1", 443), ("1.2.3.4", 8443), ("2d00:2::1", 443),
                       ("127.0.0.1", 443), ("::1", 8443))
        self.assertEqual([json.loads(text) for text in got],
                         [["capture", "28.18.0.1", 443], ["capture", "1.2.3.4", 8443],
                          ["capture", "2d00:2::1", 443], ["capture", "127.0.0.1", 443],
                          ["capture", "::1", 8443]])
        sockets = self.events("sockets")[0]
        self.assertEqual(sorted(map(tuple, sockets["list"])),
                         [("capture", 443), ("capture", 8443), ("dns_datagrams", 53),
                          ("dns_streams", 53), *sorted(REFUSALS)])
        self.assertEqual(sockets["ipv6"], 1)
        self.assertEqual(sockets["blocking"], [])

    def test_an_undeclared_port_is_refused_at_once_and_seen(self):
        got = self.ask(["net:connect:a.test:443"], ("1.2.3.4", 81), ("2d00:2::7", 82),
                       ("1.2.3.4", 443))
        self.assertEqual(got[:2], ["ECONNREFUSED", "ECONNREFUSED"])
        packets = [bytes.fromhex(each["packet"]) for each in self.events("refused")]
        self.assertEqual(len(packets), 2, packets)
        ipv4, ipv6 = packets
        self.assertEqual((ipv4[0] >> 4, ipv4[9], ipv4[12:16], ipv4[20:22], ipv4[33] & 0x3f),
                         (4, 6, bytes([1, 2, 3, 4]), (81).to_bytes(2, "big"), 0x14))
        self.assertEqual((ipv6[0:2], ipv6[13] & 0x3f), ((82).to_bytes(2, "big"), 0x14))
        self.assertEqual(self.events("refused")[1]["sender"], "2d00:2::7")

    def test_a_refused_datagram_is_seen(self):
        code = ("import socket\n"
                "for family, host in ((socket.AF_INET, '9.9.9.9'), (socket.AF_INET6, '2d00:2::9')):\n"
                "    s = socket.socket(family, socket.SOCK_DGRAM)\n"
                "    s.connect((host, 123))\n"
                "    s.send(b'x')\n"
                "    try:\n"
                "        s.recv(1)\n"
                "    except OSError as error:\n"
                "        print(error.errno)\n")
        got = self.output(self.words("net:connect:a.test:443"), python(code))
        self.assertEqual(got, "111\n111\n")
        packets = [bytes.fromhex(each["packet"]) for each in self.events("refused")]
        ipv4, ipv6 = packets
        self.assertEqual((ipv4[0] >> 4, ipv4[20:22], ipv6[:2]), (4, b"\x03\x03", b"\x01\x04"))
        self.assertTrue(all(len(packet) <= 128 for packet in packets))

    def test_other_packets_are_not_seen(self):
        self.ask(["net:connect:a.test:443"], ("1.2.3.4", 443), ("2d00:2::1", 443))
        self.assertEqual(self.events("refused"), [])

    def test_dns_is_captured_whatever_resolver_is_asked(self):
        code = ("import socket\n"
                "for family, host in ((socket.AF_INET, '127.0.0.53'), (socket.AF_INET, '8.8.8.8'),"
                " (socket.AF_INET6, '2001:4860:4860::8888')):\n"
                "    s = socket.socket(family, socket.SOCK_DGRAM)\n"
                "    s.settimeout(20)\n"
                "    s.connect((host, 53))\n"
                "    s.send(b'who')\n"
                "    print(s.recv(100).decode())\n")
        got = self.output(self.words("net:connect:a.test:443"), python(code))
        self.assertEqual(got, "answer to who\n" * 3)
        self.assertEqual([each["asked"] for each in self.events("dns_datagrams")],
                         ["127.0.0.53", "8.8.8.8", "2001:4860:4860::8888"])
        self.assertEqual(json.loads(self.ask(["net:connect:a.test:443"], ("8.8.8.8", 53))[0]),
                         ["dns_streams", "8.8.8.8", 53])

    def test_a_rule_without_a_port_redirects_every_port(self):
        got = self.ask(["net:connect:a.test"], ("1.2.3.4", 443), ("2d00:2::5", 22),
                       ("28.18.0.9", 61000), ("8.8.8.8", 53), ("127.0.0.1", 443), ("::1", 443))
        self.assertEqual([json.loads(text) for text in got[:4]],
                         [["redirect", "1.2.3.4", 443], ["redirect", "2d00:2::5", 22],
                          ["redirect", "28.18.0.9", 61000], ["dns_streams", "8.8.8.8", 53]])
        self.assertEqual(got[4:], ["ECONNREFUSED", "ECONNREFUSED"])

    def test_a_port_that_is_published_and_connected_to_is_redirected(self):
        port = free_port()
        code = CLIENT + ("listener = socket.create_server(('0.0.0.0', int(sys.argv[1])))\n"
                         "print(ask('1.2.3.4', int(sys.argv[1])))\n"
                         "print(ask('1.2.3.4', int(sys.argv[1]) + 1))\n")
        got = self.output(self.words(f"net:connect:a.test:{port}", f"net:listen:{port}"),
                          python(code, str(port)))
        self.assertEqual(json.loads(got.split("\n")[0]), ["redirect", "1.2.3.4", port])
        self.assertEqual(got.split("\n")[1], "ECONNREFUSED")

    def test_localhost_is_captured_beside_a_redirect(self):
        got = self.ask(["net:connect:a.test", "net:connect:localhost:5432"], ("127.0.0.1", 5432),
                       ("1.2.3.4", 5432))
        self.assertEqual([json.loads(text)[0] for text in got], ["capture", "redirect"])

    def test_the_proxy_has_a_port_and_variables(self):
        code = CLIENT + ("import os\nprint(json.dumps([dict(os.environ), ask('127.0.0.1', "
                         "int(os.environ['HTTP_PROXY'].rsplit(':')[-1]))]))\n")
        environment, answer = json.loads(self.output(
            ["--proxy-env", *self.words("net:connect:a.test:3128")], python(code)))
        self.assertEqual(json.loads(answer), ["proxy", "127.0.0.1", 3129])
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            self.assertEqual(environment[name], "http://127.0.0.1:3129")
        self.assertEqual(environment["NO_PROXY"], "localhost,127.0.0.1,::1")
        self.assertEqual(environment["no_proxy"], "localhost,127.0.0.1,::1")
        self.assertNotIn("ALL_PROXY", environment)
        without = self.attempt(self.words("net:connect:a.test:443"), "dict(os.environ)")
        self.assertNotIn("PROXY", without[0].upper())

    def test_a_trace_leaves_connections_to_the_broker(self):
        done = self.run_server(["--trace", "-", *self.words("net:connect:a.test:443")],
                               client(("1.2.3.4", 443), ("1.2.3.4", 80)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"denied connect", done.stderr)
        self.assertEqual(len(self.events("capture")), 1)

    def test_the_server_has_no_descriptor_of_the_network(self):
        got = self.attempt(self.words("net:connect:a.test:443", f"net:listen:{free_port()}"),
                           "[n for n in range(3, 1000) if os.path.exists(f'/proc/self/fd/{n}')]",
                           "sorted(os.listdir('/proc/1/fd'))")
        self.assertEqual(got, ["[]", "EACCES"])

    def test_a_server_listens_on_ports_of_its_own(self):
        code = CLIENT + ("import threading\n"
                         "listener = socket.create_server(('127.0.0.1', 8080))\n"
                         "def serve():\n"
                         "    with listener.accept()[0] as peer:\n"
                         "        peer.sendall(b'mine ' + peer.recv(100))\n"
                         "threading.Thread(target=serve).start()\n"
                         "print(ask('127.0.0.1', 8080))\n"
                         "try:\n"
                         "    socket.create_server(('127.0.0.1', 443))\n"
                         "except OSError as error:\n"
                         "    print(error.errno)\n")
        got = self.output(self.words("net:connect:a.test:443"), python(code))
        self.assertEqual(got, f"mine hello\n{errno.EACCES}\n")


@started_by_root_and_user
class Published(BrokerCase):
    SERVER = ("import socket, sys\n"
              "listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
              "print('up', flush=True)\n"
              "peer = listener.accept()[0]\n"
              "peer.sendall(b'inside got ' + peer.recv(100))\n"
              "sys.stdin.read()\n")

    def test_the_hosts_loopback_leads_inside(self):
        port = free_port()
        process = self.start(self.words(f"net:listen:{port}"), python(self.SERVER, str(port)))
        self.assertEqual(process.stdout.readline(), b"up\n")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            peer.sendall(b"a word")
            self.assertEqual(peer.recv(100), b"inside got a word")
        done = launch.finish(process)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.events("published"), [{"event": "published", "port": port,
                                                     "family": "04",
                                                     "answer": "inside got a word"}])
        sockets = [each for each in self.events("sockets")[0]["list"] if tuple(each) not in SEEN]
        self.assertEqual(sorted(sockets),
                         [["inner_sockets", 0], ["published", port], ["published", port]])

    def test_a_taken_port_is_refused(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            said = self.refusal(self.words(f"net:listen:{port}"))
        self.assertIn(f"net:listen:{port}", said)
        self.assertIn("ss -ltnp", said)


@started_by_root_and_user
class Life(BrokerCase):
    def test_a_broker_that_dies_is_replaced_and_has_the_sockets(self):
        got = self.ask(["net:connect:a.test:443"], ("1.2.3.4", 443, "die"), ("5.6.7.8", 443))
        self.assertEqual(json.loads(got[1]), ["capture", "5.6.7.8", 443])
        self.assertEqual(len(self.events("start")), 2)
        self.assertEqual(len(self.events("sockets")), 2)
        self.assertEqual(self.events("sockets")[0]["list"], self.events("sockets")[1]["list"])

    def test_a_restart_is_told(self):
        done = self.run_server(self.words("net:connect:a.test:443"),
                               client(("1.2.3.4", 443, "die"), ("1.2.3.4", 443)))
        self.assertIn(b"capgate-broker ended (exit status 3)", done.stderr)
        self.assertEqual(done.stderr.count(b"capgate-broker"), 1)

    def test_one_that_keeps_dying_ends_the_sandbox(self):
        self.set_mode("die")
        done = self.run_server(self.words("net:connect:a.test:443"),
                               python("import signal; signal.pause()"))
        self.assertEqual(done.returncode, 137, done.stderr)
        self.assertIn(b"ended 6 times within 10 s", done.stderr)
        self.assertEqual(len(self.events("start")), 6)

    def test_one_that_does_not_start_is_a_refusal(self):
        canary = os.path.join(self.work, "canary")
        for mode, words in (("fail", "no such"), ("exit", "exit status 4")):
            with self.subTest(mode):
                self.set_mode(mode)
                said = self.refusal(self.words("net:connect:a.test:443",
                                               f"fs:write:{self.work}/**"),
                                    ["/usr/bin/touch", canary])
                self.assertIn("capgate-broker does not start", said)
                self.assertIn(words, said)
                self.assertNotIn("\x1b", said)
                self.assertFalse(os.path.exists(canary))

    def test_one_that_says_nothing_is_a_refusal(self):
        self.set_mode("hang")
        self.assertIn("no answer for 10 s", self.refusal(self.words("net:connect:a.test:443")))

    def test_a_signal_ends_a_server_that_still_waits(self):
        self.set_mode("hang")
        process = self.start(self.words("net:connect:a.test:443"), ["/usr/bin/cat"])
        self.wait_for("start")
        process.terminate()
        self.assertEqual(launch.finish(process).returncode, 128 + signal.SIGTERM)

    def test_a_failure_behind_many_sockets_is_told(self):
        env = self.environment(CAPGATE_FAIL_STEP="host_name")
        ports = [f"net:connect:a.test:{port}" for port in range(1000, 1150)]
        self.assertIn("(step host_name)", self.refusal(self.words(*ports), env=env))

    def test_whichever_step_fails_nothing_is_left(self):
        for step in ("start_init", "network", "pivot", "landlock", "init_drop", "read_back"):
            with self.subTest(step):
                env = self.environment(CAPGATE_FAIL_STEP=step)
                process = self.start(self.words("net:connect:a.test:443", "net:connect:b.test"),
                                     ["/usr/bin/true"], env=env, stdin=subprocess.DEVNULL)
                done = launch.finish(process, None)
                self.assertEqual(done.returncode, REFUSED, done.stderr)
                self.assertIn(f"(step {step})".encode(), done.stderr)
                self.assert_nothing_left(process.pid)

    def test_many_ports_arrive(self):
        ports = list(range(1000, 1150))
        got = self.ask([f"net:connect:a.test:{port}" for port in ports],
                       *[("1.2.3.4", port) for port in ports])
        self.assertEqual([json.loads(text) for text in got],
                         [["capture", "1.2.3.4", port] for port in ports])

    def test_nothing_is_left(self):
        process = self.start(self.words("net:connect:a.test:443"), ["/usr/bin/true"])
        self.assertEqual(launch.finish(process).returncode, 0)
        self.assert_nothing_left(process.pid)

    def test_nothing_is_left_of_a_killed_supervisor(self):
        process = self.start(self.words("net:connect:a.test:443"), ["/usr/bin/cat"])
        self.wait_for("sockets")
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
            family = {int(word) for word in file.read().split()}
        self.assertGreaterEqual(len(family), 2, "init and the broker")
        process.kill()
        process.wait()
        # They are our children now. Each must end, though nobody is left to tell it so.
        end = time.monotonic() + launch.SECONDS
        while family:
            self.assertLess(time.monotonic(), end, f"still there: {family}")
            family -= {pid for pid in family if os.waitpid(pid, os.WNOHANG)[0] == pid}
            time.sleep(0.01)
        reap_orphans()

    def test_without_net_there_is_no_broker(self):
        os.remove(self.broker)
        self.output([], ["/usr/bin/true"])
        self.assertFalse(os.path.exists(self.audit))
        self.assertIn("--audit without net", self.refusal(["--audit", self.audit]))

    def test_a_missing_or_foreign_broker_is_a_refusal(self):
        os.chmod(self.broker, 0o775)
        self.assertIn("others than capgate's owner can write",
                      self.refusal(self.words("net:connect:a.test:443")))
        os.remove(self.broker)
        self.assertIn("capgate-broker: No such file",
                      self.refusal(self.words("net:connect:a.test:443")))
        os.symlink("/usr/bin/true", self.broker)
        self.assertIn("is no regular file", self.refusal(self.words("net:connect:a.test:443")))


@started_by_root_and_user
class Audit(BrokerCase):
    def test_a_file_of_its_own_is_made_for_the_user_alone(self):
        self.output(allow("net:connect:a.test:443"), ["/usr/bin/true"])
        found = glob.glob(f"{self.home}/.local/state/capgate/audit/*.jsonl")
        self.assertEqual(len(found), 1)
        self.assertRegex(os.path.basename(found[0]), r"^\d{8}T\d{6}Z-[\w-]+-[0-9a-f]{8}\.jsonl$")
        self.assertEqual(stat.S_IMODE(os.stat(found[0]).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(found[0])).st_mode), 0o700)

    def test_two_runs_do_not_share_one(self):
        first = self.start(self.words("net:connect:a.test:443"), ["/usr/bin/cat"])
        self.wait_for("sockets")
        self.assertIn("another run", self.refusal(self.words("net:connect:a.test:443")))
        self.assertEqual(launch.finish(first).returncode, 0)
        self.output(self.words("net:connect:a.test:443"), ["/usr/bin/true"])

    def test_one_that_the_server_can_write_is_refused(self):
        net = "net:connect:a.test:443"
        inside = os.path.join(self.own(self.tree.directory("work/deep"), 0o700), "audit.jsonl")
        for grant in (f"fs:write:{self.work}/**", f"fs:create:{self.work}/**"):
            said = self.refusal(["--audit", inside, *allow(net, grant)])
            self.assertIn("could change the audit log", said)
        self.output(["--audit", inside, *allow(net, f"fs:read:{self.work}/**")], ["/usr/bin/true"])
        self.audit = self.file("plain.jsonl")
        self.assertIn("could change", self.refusal(self.words(net, f"fs:write:{self.audit}")))

    def test_one_that_is_no_plain_file_is_refused(self):
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/null", path),
                     lambda path: os.link(self.file("other"), path)):
            make(self.audit)
            if not os.path.islink(self.audit):
                os.chown(self.audit, self.uid, self.uid)
            said = self.refusal(self.words("net:connect:a.test:443"))
            self.assertIn("--audit FILE", said)
            os.rmdir(self.audit) if os.path.isdir(self.audit) else os.remove(self.audit)

    def test_the_report_tells_of_it(self):
        report = self.report(self.words("net:connect:a.test:443"), ["/usr/bin/true"])
        self.assertEqual(report["audit"], self.audit)
        guarantees = [each["guarantee"] for each in report["guarantees"]]
        self.assertIn("net:connect:a.test:443 can be reached", guarantees)
        self.assertNotIn("no network but the sandbox's own loopback", guarantees)
        self.assertTrue(any("ECH" in each for each in report["notHeld"]))

    def test_a_dry_run_shows_the_capture(self):
        bound = self.dry_run(self.words("net:connect:a.test:443"), ["/usr/bin/true"])["bound"]
        self.assertEqual([each["kind"] for each in bound["capture"]["sockets"]],
                         ["capture", "dns-datagrams", "dns-streams", *["refusals"] * 4])
        self.assertFalse(os.path.exists(self.audit))


class WithoutIpv6(BrokerCase):
    """A filter answers in the place of a kernel that has no AF_INET6."""

    def setUp(self):
        super().setUp()
        launch.CAPGATE = self.build("without_ipv6.c", "without_ipv6",
                                    f'-DPROGRAM="{launch.CAPGATE}"')

    def test_ipv4_is_captured(self):
        got = self.ask(["net:connect:a.test:443"], ("1.2.3.4", 443), ("8.8.8.8", 53),
                       ("1.2.3.4", 80), ("2d00:2::1", 443))
        self.assertEqual([json.loads(text) for text in got[:2]],
                         [["capture", "1.2.3.4", 443], ["dns_streams", "8.8.8.8", 53]])
        self.assertEqual(got[2:], ["ECONNREFUSED", "EAFNOSUPPORT"])
        self.assertEqual(self.events("sockets")[0]["ipv6"], 0)
        self.assertEqual(len(self.events("refused")), 1)

    def test_ipv4_is_redirected(self):
        got = self.ask(["net:connect:a.test"], ("1.2.3.4", 8080), ("2d00:2::1", 443))
        self.assertEqual(json.loads(got[0]), ["redirect", "1.2.3.4", 8080])
        self.assertEqual(got[1], "EAFNOSUPPORT")
        self.assertEqual(self.events("sockets")[0]["ipv6"], 0)

    def test_a_port_is_published_at_ipv4(self):
        port = free_port()
        self.output(self.words(f"net:listen:{port}"), ["/usr/bin/true"])
        sockets = [each for each in self.events("sockets")[0]["list"] if tuple(each) not in SEEN]
        self.assertEqual(sockets, [["published", port], ["inner_sockets", 0]])


class Options(BrokerCase):
    def test_limits_reach_the_broker(self):
        words = [word for each in ("connections=7", "rate=8", "requests=12", "bytes=2M", "idle=9", "hello=10",
                                   "dial=11") for word in ("--net-limit", each)]
        self.output([*words, *self.words("net:connect:a.test:443")], ["/usr/bin/true"])
        self.assertEqual(self.events("start")[0]["policy"]["limits"],
                         {"connections": 7, "perSecond": 8, "requestsPerSecond": 12, "bytes": 2 << 20, "idleSeconds": 9,
                          "headBytes": 65536, "helloSeconds": 10, "dialSeconds": 11})

    def test_mistakes_are_explained(self):
        for text, words in (("conections=7", "did you mean connections?"), ("rate", "rate="),
                            ("rate=0", "rate="), ("rate=x", "rate="), ("idle=5000000000", "idle="),
                            ("bytes=99999999999999999999", "bytes=")):
            with self.subTest(text):
                said = self.refusal(["--net-limit", text, *self.words("net:connect:a.test:443")])
                self.assertIn("--net-limit", said)
                self.assertIn(words, said)

    def test_a_proxy_that_leads_nowhere_is_refused(self):
        self.assertIn("net:connect", self.refusal(["--proxy-env"]))


if __name__ == "__main__":
    unittest.main()
