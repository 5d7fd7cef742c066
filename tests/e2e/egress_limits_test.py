"""--net-limit and --audit: what a run may use of the network, and which log it may write."""

import os
import unittest

import launch
from egress_cases import API, EgressCase, open_lab, read_audit
from egress_lab import addresses

ECHO = "net:connect:raw.example.test:7000"
GREETER = "net:connect:raw.example.test:7001"
# For the programs below: a connection, which may be reset before it is known to stand; whether it
# greets; and whether so many thousand bytes come back.
HELPERS = ("import socket, sys, time\n"
           "def connect(port=7001):\n"
           "    connection = socket.socket()\n"
           "    connection.settimeout(10)\n"
           "    connection.connect_ex(socket.getaddrinfo('raw.example.test', port,"
           " socket.AF_INET)[0][4])\n"
           "    return connection\n"
           "def greets(connection):\n"
           "    try: return connection.recv(5) == b'hello'\n"
           "    except OSError: return False\n"
           "def echoed(connection, count):\n"
           "    try:\n"
           "        for _ in range(count):\n"
           "            connection.sendall(b'x' * 1000)\n"
           "            left = 1000\n"
           "            while left and (data := connection.recv(left)): left -= len(data)\n"
           "            if left: return 'ended'\n"
           "    except OSError: return 'ended'\n"
           "    return 'all'\n")


def setUpModule():
    open_lab()


class LimitCase(EgressCase):
    def limited(self, code, *limits, allow=(ECHO, GREETER)):
        options = [word for limit in limits for word in ("--net-limit", limit)]
        return self.inside([launch.PYTHON, "-I", "-c", HELPERS + code], allow, options)

    def assert_one_limit(self, run, name):
        """It is told once, in the log and on stderr, with the option that would change it."""
        self.assertEqual({line["reason"] for line in run.find(event="limit")}, {name}, run)
        told = [line for line in run.said.splitlines() if f"--net-limit {name}=" in line]
        self.assertEqual(len(told), 1, run)

    def assert_unlimited(self, run, output):
        self.assertEqual(run.output, output, run)
        run.assert_no_line(event="limit")


class Counts(LimitCase):
    def test_connections_at_once(self):
        code = ("kept = [connect() for _ in range(5)]\n"
                "print(*(greets(each) for each in kept))\n")
        self.assert_unlimited(self.limited(code, "connections=5"), "True " * 4 + "True\n")
        run = self.limited(code, "connections=3")
        self.assertEqual(run.output, "True True True False False\n", run)
        self.assert_one_limit(run, "connections")
        self.assertEqual(len(run.find(event="connect", verdict="allowed")), 3, run)

    def test_a_connection_that_ended_makes_room(self):
        # The broker hears of the end a moment later than the client.
        code = ("first = connect()\n"
                "print(greets(first), greets(connect()))\n"
                "first.close()\n"
                "print(any(greets(connect()) for _ in range(100)))\n")
        run = self.limited(code, "connections=1")
        self.assertEqual(run.output, "True False\nTrue\n", run)

    def test_new_connections_a_second(self):
        """The first second has twice as many. Later ones wait for their turn, and are served: at
        two a second the eighth waits for two seconds, however fast or slow the machine is."""
        code = ("address = socket.getaddrinfo('raw.example.test', 7001, socket.AF_INET)[0][4]\n"
                "start = time.monotonic()\n"
                "kept = [socket.create_connection(address, 25) for _ in range(8)]\n"
                "print(*(greets(each) for each in kept))\n"
                "print(time.monotonic() - start)\n")
        greeted = " ".join(["True"] * 8)
        run = self.limited(code, "rate=8")
        self.assertEqual(run.output.splitlines()[0], greeted, run)
        run.assert_no_line(event="limit")
        run = self.limited(code, "rate=2")
        answers, seconds = run.output.splitlines()
        self.assertEqual(answers, greeted, run)
        self.assertGreaterEqual(float(seconds), 1.9)
        self.assert_one_limit(run, "rate")

    def test_bytes_of_all_connections_together(self):
        code = ("print(*(echoed(connect(7000), 40) for _ in range(2)))\n"
                "print(echoed(connect(7000), 1))\n")
        self.assert_unlimited(self.limited(code, "bytes=1M"), "all all\nall\n")
        run = self.limited(code, "bytes=128K")
        self.assertEqual(run.output, "all ended\nended\n", run)
        closed = run.find(event="close")
        self.assertEqual([line["reason"] for line in closed], ["closed", "limit"], run)
        used = sum(line["sent"] + line["received"] for line in closed)
        self.assertGreaterEqual(used, 128 << 10)
        self.assertLess(used, (128 << 10) + 2000)
        self.assert_one_limit(run, "bytes")


class Waits(LimitCase):
    """What they end has a line of its own, which says why."""

    def ended(self, order, allow, limit):
        """The audit file of one conversation, which must not have waited for its own time. That is
        shorter than what the broker waits for without the option, so that the option did it."""
        run, (result,) = self.talk_inside({"seconds": 12, **order}, allow=[allow],
                                          options=["--net-limit", limit])
        self.assertNotEqual(result.get("error"), "silence", run)
        return run, result

    def test_an_idle_connection_is_ended_and_a_busy_one_is_not(self):
        code = ("idle, busy = connect(7000), connect(7000)\n"
                "print(echoed(idle, 1), flush=True)\n"
                "idle.settimeout(0.1)\n"
                "for _ in range(200):\n"
                "    if echoed(busy, 1) != 'all': break\n"
                "    try: print('end', idle.recv(1))\n"
                "    except TimeoutError: continue\n"
                "    except OSError as error: print(type(error).__name__)\n"
                "    break\n"
                "print(echoed(busy, 1))\n")
        run = self.limited(code, "idle=2")
        self.assertEqual(run.output, "all\nConnectionResetError\nall\n", run)
        closed = run.assert_line(event="close", reason="idle")
        self.assertEqual((closed["sent"], closed["received"]), (1000, 1000))
        self.assertGreaterEqual(closed["ms"], 2000)

    def test_a_client_that_does_not_say_what_it_speaks(self):
        order = {"to": ["api.example.test", 443], "send": "\x16\x03\x01"}
        run, result = self.ended(order, API, "hello=1")
        self.assertEqual(result["got"], "")
        run.assert_denied(event="connect", host="api.example.test", reason="silent")
        self.assertEqual(self.lab.far.at(addresses.API, 443), [])

    def test_an_origin_that_does_not_answer(self):
        order = {"to": ["silent.example.test", 7000]}
        run, result = self.ended(order, "net:connect:silent.example.test:7000", "dial=1")
        self.assertEqual(result["got"], "")
        closed = run.assert_line(event="close", host="silent.example.test")
        self.assertRegex(closed["reason"], "^unreachable: ")
        self.assertGreaterEqual(closed["ms"], 1000)


class BadLimits(EgressCase):
    WRONG = (
        ("connections=0", "write a number: --net-limit connections=512"),
        ("connections=", "write a number: --net-limit connections=512"),
        ("connections", "write a number: --net-limit connections=512"),
        ("rate=-1", "write a number: --net-limit rate=100"),
        ("idle=4294967296", "write a number: --net-limit idle=900"),
        ("hello=1s", "write a number: --net-limit hello=15"),
        ("dial=1.5", "write a number: --net-limit dial=20"),
        ("bytes=many", "write a number: --net-limit bytes=100M"),
        ("bytes=99999999999999999999", "write a number: --net-limit bytes=100M"),
        ("bytes=18446744073709551615K", "write a number: --net-limit bytes=100M"),
        ("conections=3", "did you mean connections?"),
        ("colour=3", "known are: connections, rate, requests, bytes, idle, hello, dial"),
        ("=3", "known are: connections, rate, requests, bytes, idle, hello, dial"),
    )

    def test_wrong_values_are_refused_with_the_right_form(self):
        audit = self.new_audit()
        for text, help_text in self.WRONG:
            with self.subTest(limit=text):
                said = self.refusal(allow=[API], options=["--net-limit", text, "--audit", audit])
                self.assertIn(help_text, said)
                self.assertIn("--net-limit", said.splitlines()[0])
        self.assertFalse(os.path.exists(audit))


class AuditPlace(EgressCase):
    """Where the log may be. A full disk is in egress_faults_test.py."""

    def refused_audit(self, path, *allow):
        return self.refusal(allow=[API, *allow], options=["--audit", path])

    def test_what_the_server_may_write_is_no_place_and_nothing_is_left_there(self):
        below = self.tree.directory("work/a")
        link = self.tree.path("link")
        os.symlink(self.work, link)
        for path in (f"{self.work}/audit.jsonl", f"{below}/audit.jsonl", f"{link}/audit.jsonl",
                     f"{below}/../audit.jsonl"):
            with self.subTest(path=path):
                said = self.refused_audit(path, f"fs:write:{self.work}/**")
                self.assertIn(f"it may write {self.work}", said)
                self.assertIn("--audit FILE", said)
                self.assertFalse(os.path.exists(path))
        run = self.inside(["/usr/bin/true"], [API, f"fs:read:{self.work}/**"],
                          audit=f"{self.work}/audit.jsonl")
        run.assert_line(event="end")

    def test_a_file_that_is_granted_itself(self):
        path = self.tree.file("log.jsonl", "")
        said = self.refused_audit(path, f"fs:write:{path}")
        self.assertIn(f"it may write {path}", said)

    def test_another_name_of_the_file(self):
        path = self.tree.file("log.jsonl", "")
        os.link(path, os.path.join(self.work, "other"))
        self.assertIn("one name", self.refused_audit(path, f"fs:write:{self.work}/**"))

    def test_no_links_and_no_pipes(self):
        link, pipe = self.tree.path("audit.link"), self.tree.path("audit.pipe")
        os.symlink(self.tree.file("elsewhere.jsonl", ""), link)
        os.mkfifo(pipe)
        os.chmod(pipe, 0o666)
        for path in (link, pipe):
            with self.subTest(path=path):
                self.assertIn(path, self.refused_audit(path))

    def test_a_file_that_another_run_writes(self):
        audit = self.new_audit()
        holder = self.start(self.sandboxed(["/bin/sh", "-c", "echo up; read line"], [API],
                                           audit=audit))
        self.assertEqual(holder.stdout.readline(), b"up\n")
        said = self.refused_audit(audit)
        self.assertIn("is written by another run", said)
        self.assertIn("a file of its own", said)
        self.assertEqual(launch.finish(holder, b"\n").returncode, 0)
        self.assertEqual([line["event"] for line in read_audit(audit)], ["start", "end"])
        self.inside(["/usr/bin/true"], [API], audit=audit)
        self.assertEqual([line["event"] for line in read_audit(audit)], ["start", "end"] * 2)

    def test_a_published_port_that_is_taken_leaves_no_log(self):
        audit = self.new_audit()
        said = self.refused_audit(audit, "net:listen:5432")  # the lab's host listens there
        self.assertIn("net:listen:5432", said)
        self.assertFalse(os.path.exists(audit))


if __name__ == "__main__":
    unittest.main()
