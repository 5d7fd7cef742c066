"""Ports: published ones, those of the host's loopback, every port, and the server's own."""

import unittest

import launch
from egress_cases import API, EgressCase, Run, open_lab
from egress_lab import addresses

GREETING = "hello from the lab\n"
# A server that says on which ports it listens, greets everyone once and ends with its input.
LISTENER = ("import os, socket, sys, threading\n"
            "def serve(listener):\n"
            "    while True:\n"
            "        with listener.accept()[0] as connection:\n"
            "            connection.sendall(b'hello from inside\\n')\n"
            "for word in sys.argv[1:]:\n"
            "    host, port = word.rsplit(':', 1)\n"
            "    listener = socket.create_server((host, int(port)), family=socket.AF_INET6 "
            "if ':' in host else socket.AF_INET)\n"
            "    threading.Thread(target=serve, args=(listener,), daemon=True).start()\n"
            "print('listening', flush=True)\n"
            "sys.stdin.read()\n")


def setUpModule():
    open_lab()


def greeting(host, port, **more):
    return {"to": [host, port], "until": 18, **more}


class Published(EgressCase):
    """net:listen: the host's loopback leads to the port inside; nothing else can enter."""

    def start_listener(self, words, allow):
        audit = self.new_audit()
        command = [launch.PYTHON, "-I", "-c", LISTENER, *words]
        process = self.start(self.sandboxed(command, allow, audit=audit))
        said = process.stdout.readline()
        self.assertEqual(said, b"listening\n", said or process.stderr.read())
        return process, audit

    def from_the_host(self, *orders):
        return self.outside(self.talk(*orders)).talks()

    def test_a_declared_port_is_reachable_at_loopback_only(self):
        before = self.from_the_host(greeting("127.0.0.1", 8123))
        self.assertEqual(before[0]["error"], "ECONNREFUSED")
        process, audit = self.start_listener(["127.0.0.1:8123", "127.0.0.1:8124"],
                                             ["net:listen:8123"])
        declared, other, elsewhere = self.from_the_host(
            greeting("127.0.0.1", 8123), greeting("127.0.0.1", 8124),
            greeting(addresses.HOST4, 8123))
        self.assertEqual(declared, {"got": "hello from inside\n"})
        for result in (other, elsewhere):
            self.assertEqual(result, {"error": "ECONNREFUSED", "got": ""})
        run = self.finished(process, audit)
        run.assert_line(event="inbound", port=8123, verdict="allowed")
        after = self.from_the_host(greeting("127.0.0.1", 8123))
        self.assertEqual(after[0]["error"], "ECONNREFUSED")

    def finished(self, process, audit):
        return Run(self, launch.finish(process), audit)

    def test_the_control_without_a_sandbox(self):
        process = self.start([launch.PYTHON, "-I", "-c", LISTENER, "127.0.0.1:8125",
                              "0.0.0.0:8126"])
        self.assertEqual(process.stdout.readline(), b"listening\n")
        results = self.from_the_host(greeting("127.0.0.1", 8125), greeting(addresses.HOST4, 8126))
        self.assertEqual(results, [{"got": "hello from inside\n"}] * 2)

    def test_a_server_that_listens_everywhere_or_by_ipv6(self):
        for host in ("0.0.0.0", "::", "::1"):
            with self.subTest(host=host):
                process, audit = self.start_listener([f"{host}:8123"], ["net:listen:8123"])
                (result,) = self.from_the_host(greeting("127.0.0.1", 8123))
                self.assertEqual(result, {"got": "hello from inside\n"})
                self.finished(process, audit)

    def test_a_port_that_the_host_uses_already(self):
        said = self.refusal(allow=["net:listen:5432"])
        self.assertIn("5432", said)

    def test_publishing_gives_no_way_out(self):
        run, talks = self.talk_inside(greeting("raw.example.test", 7001),
                                      greeting(addresses.RAW, 7001), greeting("127.0.0.1", 5432),
                                      allow=["net:listen:8123"])
        self.assertEqual([talk.get("error") for talk in talks],
                         ["no such name", "ECONNREFUSED", "ECONNREFUSED"], run)
        self.assertEqual(self.lab.far.all(), [])
        self.assertEqual(self.lab.near.all(), [])


class Loopback(EgressCase):
    RULE = "net:connect:localhost:5432"

    def test_one_port_of_the_hosts_loopback_and_nothing_else(self):
        reachable = [greeting("localhost", 5432), greeting("127.0.0.1", 5432)]
        forbidden = [greeting("localhost", 5433), greeting("127.0.0.1", 5433),
                     greeting(addresses.HOST4, 5432), greeting(addresses.HOST6, 5432)]
        self.talk_outside(*reachable, *forbidden)
        self.lab.near.clear()
        run, talks = self.talk_inside(*reachable, *forbidden, allow=[self.RULE])
        self.assertEqual([talk["got"] for talk in talks[:2]], [GREETING] * 2, run)
        for talk in talks[2:]:
            self.assertTrue("error" in talk and not talk["got"], run)
        seen = {record["at"] for record in self.lab.near.all()}
        self.assertLessEqual(seen, {"127.0.0.1:5432", "::1:5432"})
        run.assert_line(event="connect", host=("localhost", "127.0.0.1"), verdict="allowed")
        run.assert_denied(host=addresses.HOST4, port=5432)

    def test_a_name_that_leads_to_loopback_is_not_localhost(self):
        run, (talk,) = self.talk_inside(
            greeting("loopback.example.test", 5432),
            allow=[self.RULE, "net:connect:loopback.example.test:5432"])
        self.assertEqual(talk["got"], "", run)
        run.assert_denied(host="loopback.example.test", reason="private-address")
        self.assertEqual(self.lab.near.at("127.0.0.1", 5432), [])

    def test_without_a_rule_loopback_is_the_sandboxes_own(self):
        code = ("import socket\n"
                "listener = socket.create_server(('127.0.0.1', 5432))\n"
                "client = socket.create_connection(('localhost', 5432))\n"
                "listener.accept()[0].sendall(b'own')\n"
                "print(client.recv(3))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], [API])
        self.assertEqual(run.output, "b'own'\n", run)
        self.assertEqual(self.lab.near.all(), [])


class EveryPort(EgressCase):
    """Rules without a port: capture becomes a redirect."""

    ORDERS = [greeting("raw.example.test", 7001),
              {"to": ["raw.example.test", 7000], "send": "echo", "until": 4},
              greeting(addresses.RAW, 7001), greeting(addresses.RAW6, 7001)]

    def test_every_host_and_port(self):
        self.talk_outside(*self.ORDERS)
        run, talks = self.talk_inside(*self.ORDERS, allow=["net:connect:*"])
        self.assertEqual([talk.get("got") for talk in talks],
                         [GREETING, "echo", GREETING, GREETING], run)
        run.assert_line(event="connect", host="raw.example.test", port=7001, rule="net:connect:*")

    def test_every_port_of_one_host(self):
        run, talks = self.talk_inside(*self.ORDERS, greeting("127.0.0.1", 5432),
                                      allow=["net:connect:raw.example.test"])
        self.assertEqual([talk.get("got") for talk in talks], [GREETING, "echo", "", "", ""], run)
        run.assert_denied(event="connect", host=addresses.RAW, port=7001)
        self.assertEqual(self.lab.near.all(), [])

    def test_private_places_are_not_every_host(self):
        orders = [{"to": [host, 8080], "send": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "until": 1}
                  for host in (addresses.METADATA, addresses.PRIVATE, "metadata.example.test",
                               "private.example.test", "private6.example.test",
                               "carrier.example.test")]
        self.talk_outside(*orders)
        self.lab.far.clear()
        run, talks = self.talk_inside(*orders, allow=["net:connect:*"])
        for order, talk in zip(orders, talks):
            self.assertEqual(talk["got"], "", order)
            run.assert_denied(event="connect", host=order["to"][0], port=8080)
        self.assertEqual([record for record in self.lab.far.all() if record["kind"] == "tcp"], [])

    def test_a_server_of_its_own_on_any_port(self):
        code = ("import socket\n"
                "listener = socket.create_server(('127.0.0.1', 7001))\n"
                "own = socket.create_connection(('127.0.0.1', 7001), 5)\n"
                "listener.accept()[0].sendall(b'own')\n"
                "far = socket.create_connection(('raw.example.test', 7001), 5)\n"
                "print(own.recv(3), far.recv(5))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], ["net:connect:*"])
        self.assertEqual(run.output, "b'own' b'hello'\n", run)

    def test_a_published_port_that_is_connected_to_as_well(self):
        code = ("import socket\n"
                "listener = socket.create_server(('0.0.0.0', 7001))\n"
                "own = socket.create_connection(('127.0.0.1', 7001), 5)\n"
                "listener.accept()[0].sendall(b'own')\n"
                "far = socket.create_connection(('raw.example.test', 7001), 5)\n"
                "print(own.recv(3), far.recv(5))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code],
                          ["net:connect:raw.example.test:7001", "net:listen:7001"])
        self.assertEqual(run.output, "b'own' b'hello'\n", run)


class Undeclared(EgressCase):
    def test_an_undeclared_port_is_refused_without_a_dial_and_leaves_a_line(self):
        orders = [greeting("api.example.test", 9000), greeting(addresses.API, 9000),
                  greeting(addresses.RAW6, 7001), greeting(addresses.SILENT, 9000)]
        self.talk_outside(*(dict(order, send="hello from the lab") for order in orders[:3]))
        self.lab.far.clear()
        run, talks = self.talk_inside(*orders, allow=[API])
        # A dial would arrive at the first three. At the silent one it would last for 20 s and then
        # be a reset: the kernel of the sandbox refuses, and nobody waits for anything.
        self.assertEqual(self.lab.far.all(), [])
        self.assertEqual(talks, [{"error": "ECONNREFUSED", "got": ""}] * 4, run)
        run.assert_denied(event="refused", protocol="tcp", host="api.example.test", port=9000)
        run.assert_denied(event="refused", protocol="tcp", host=addresses.API, port=9000)
        run.assert_denied(event="refused", protocol="tcp", host=addresses.RAW6, port=7001)
        run.assert_denied(event="refused", protocol="tcp", host=addresses.SILENT, port=9000)

    def test_a_line_names_the_capability_that_would_allow_it(self):
        run, _ = self.talk_inside(greeting("api.example.test", 9000), allow=[API])
        line = run.assert_denied(event="refused", port=9000)
        self.assertEqual(line["remedy"], "net:connect:api.example.test:9000")

    def test_a_server_can_listen_without_a_capability(self):
        code = ("import socket\n"
                "listener = socket.create_server(('0.0.0.0', 9000))\n"
                "own = socket.create_connection(('127.0.0.1', 9000), 5)\n"
                "listener.accept()[0].sendall(b'own')\n"
                "print(own.recv(3))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], [API])
        self.assertEqual(run.output, "b'own'\n", run)


if __name__ == "__main__":
    unittest.main()
