"""Attacks 41, 42 and 44: plain HTTP, hostile spellings of hosts, ways from one to another."""

import json
import unittest

import hellos
from network_cases import (STUB, STUB_TLS, NetworkAttack, addresses, dns_wire, last_request, launch,
                           open_lab, request)

# An attack that neither passes nor is refused ends after this silence. What must come is waited for
# by `expected`.
TO_STUB = {"to": ["stub.example.test", 80], "seconds": 0.5}
NXDOMAIN = 3
HIDDEN = last_request("victim.test")


def setUpModule():
    open_lab()


def order(text, **more):
    return {**TO_STUB, "send": text, **more}


def expected(text):
    """A conversation that the origin must answer: it ends with the origin's end, not by time."""
    return {"to": TO_STUB["to"], "send": text, "half": True, "seconds": 25}


class PlainHttp(NetworkAttack):
    """The connection goes to the declared host; what is said on it names another one."""

    def assert_never_arrives(self, *texts, forbidden="victim.test", **more):
        """Each arrives outside. Inside, no origin sees a byte that names the other host."""
        orders = [order(text, **more) for text in texts]
        run, talks = self.attack(*orders, allow=[STUB])
        for record in self.seen():
            self.assertNotIn(forbidden, record["bytes"], run)
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [])
        return run, talks

    def test_44_the_honest_requests_arrive(self):
        body = "POST / HTTP/1.1\r\nHost: stub.example.test\r\n"
        texts = [request("stub.example.test"), request("STUB.example.test:80"),
                 body + "Content-Length: 4\r\n\r\nbody",
                 body + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                 request("stub.example.test") * 3]
        for text in texts:
            with self.subTest(text=text):
                self.clear()
                run, (talk,) = self.talk_inside(expected(text), allow=[STUB])
                self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)
                (seen,) = self.lab.far.at(addresses.STUB, 80)
                self.assertTrue(seen.endswith(text.split("\r\n\r\n", 1)[1]), run)

    def test_41_fronting_by_host(self):
        run, _ = self.assert_never_arrives(
            request("victim.test"), request("victim.test:80"),
            request("stub.example.test.victim.test"),
            request("44.128.0.41", "X: victim.test"))
        line = run.assert_denied(event="connect", serverName="victim.test", reason="other-name")
        self.assertEqual(line["host"], "stub.example.test")

    def test_41_no_host_at_all(self):
        run, _ = self.assert_never_arrives("GET /victim.test HTTP/1.1\r\nX: y\r\n\r\n",
                                           "GET /victim.test HTTP/1.0\r\n\r\n")
        self.assertEqual(self.seen(), [], run)

    def test_41_host_of_a_later_request(self):
        """On one connection, after an honest request was answered, and in one flight with it."""
        honest = request("stub.example.test")
        run, _ = self.assert_never_arrives(honest + request("victim.test"))
        run.assert_denied(serverName="victim.test", reason="other-name")
        run, _ = self.assert_never_arrives(honest, then=[request("victim.test")])
        run.assert_denied(serverName="victim.test", reason="other-name")
        self.assertEqual(len(self.lab.far.at(addresses.STUB, 80)), 1)

    def test_41_host_inside_tls_is_the_origins_to_check(self):
        """Not held without termination: the audit line shows the server name that was checked,
        and nothing claims that a Host header was. See docs/redteam.md."""
        to_api = {"to": ["api.example.test", 443], "send": last_request("hidden.test"),
                  "tls": {"name": "api.example.test", "ca": self.lab.ca}, "until": 1}
        self.talk_outside(to_api)
        run, _ = self.talk_inside(to_api, allow=["net:connect:api.example.test:443"])
        line = run.assert_line(event="connect", verdict="allowed")
        self.assertEqual(line["serverName"], "api.example.test")

    def test_44_absolute_form(self):
        self.assert_never_arrives(
            request("stub.example.test", target="http://victim.test/"),
            request("victim.test", target="http://stub.example.test/"),
            request("stub.example.test", target="http://stub.example.test@victim.test/"),
            request("stub.example.test", target="https://victim.test/"),
            request("stub.example.test", target="//victim.test/", method="OPTIONS X"))

    def test_44_nested_connect(self):
        run, talks = self.assert_never_arrives(
            request("victim.test:80", method="CONNECT", target="victim.test:80") + HIDDEN,
            request("stub.example.test", method="CONNECT", target="victim.test:80") + HIDDEN)
        self.assertEqual([talk["got"][:12] for talk in talks if "200" in talk["got"]], [], run)

    def test_44_smuggled_requests(self):
        start = "POST / HTTP/1.1\r\nHost: stub.example.test\r\n"
        both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assert_never_arrives(
            start + both + "0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + HIDDEN,
            start + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + HIDDEN,
            start + "Content-Length: 0, 5\r\n\r\n" + HIDDEN,
            start + "Content-Length: +0\r\n\r\n" + HIDDEN,
            start + "Content-Length : 0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"
            + HIDDEN,
            start + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + HIDDEN,
            start + "Transfer-Encoding: chunked\r\n\r\n0\r\nHost: victim.test\r\n\r\n" + HIDDEN)

    def test_44_heads_that_two_readers_read_differently(self):
        self.assert_never_arrives(
            "GET / HTTP/1.1\r\nHost: stub.example.test\r\nHost: victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: victim.test\r\nHost: stub.example.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: stub.example.test\r\n victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nX: y\r\n\tHost: victim.test\r\nHost: stub.example.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : victim.test\r\nHost: stub.example.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: stub.example.test\rHost: victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nX: a\rHost: victim.test\r\nHost: stub.example.test\r\n\r\n",
            "GET / HTTP/1.1\nHost: victim.test\n\n" + request("stub.example.test"),
            "GET / HTTP/1.1\r\nX: a\nHost: victim.test\r\nHost: stub.example.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: stub.example.test\x00victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: stub.example.test, victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: stub.example.test/victim.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: victim.test#stub.example.test\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: stub.example.test\r\nX-Host: victim.test\x01\r\n\r\n",
            "\r\nGET / HTTP/1.1\r\nHost: victim.test\r\n\r\n",
            "GET  http://victim.test/ HTTP/1.1\r\nHost: stub.example.test\r\n\r\n",
            "GET /\x00victim.test HTTP/1.1\r\nHost: stub.example.test\r\n\r\n")

    def test_44_http_2_without_tls(self):
        preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
        upgrade = request("stub.example.test", "Connection: Upgrade, HTTP2-Settings",
                          "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
                          target="/switch")
        run, talks = self.assert_never_arrives(preface, upgrade + preface, forbidden="PRI *")
        run.assert_denied(event="connect", reason="not-spoken-here")
        # An origin that agrees: neither its word nor what follows it passes.
        run, talks = self.assert_never_arrives(upgrade, then=[preface], forbidden="PRI *")
        self.assertNotIn(" 101 ", talks[0]["got"], run)

    def test_44_an_upgrade_that_was_not_granted(self):
        """The origin stays with HTTP/1.1: what follows is a request, and is checked as one."""
        asking = request("stub.example.test", "Connection: Upgrade", "Upgrade: websocket",
                         "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
                         target="/stay")
        run, _ = self.assert_never_arrives(asking, then=[HIDDEN])
        self.assertTrue(self.lab.far.at(addresses.STUB, 80), run)
        self.assert_never_arrives(asking + HIDDEN)

    def test_44_redirects(self):
        command = ["/usr/bin/curl", "-sSL", "--max-time", "25", "http://stub.example.test/redirect"]
        self.outside(command)
        self.assertEqual(len(self.lab.far.at(addresses.VICTIM, 80)), 1)
        self.clear()
        run = self.inside(command, [STUB])
        self.assertEqual(len(self.lab.far.at(addresses.STUB, 80)), 1, run)
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [])
        run.assert_denied(event="dns", host="victim.test")

    def test_44_methods_and_paths_of_a_rule(self):
        """Also of the second request, and whatever the spelling of the path."""
        rule = STUB + "?proto=http&methods=GET&paths=/open/**"
        honest = request("stub.example.test", target="/open/door")
        texts = [request("stub.example.test", method="POST", target="/open/x"),
                 request("stub.example.test", target="/closed"), honest + request(
                     "stub.example.test", target="/closed"),
                 request("stub.example.test", target="/open/../closed"),
                 request("stub.example.test", target="/open/%2e%2e/closed"),
                 request("stub.example.test", target="/open%2f../closed"),
                 request("stub.example.test", target="//closed")]
        self.assert_seen_outside(*map(order, texts))
        run, (talk,) = self.talk_inside(expected(honest), allow=[rule])
        self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)
        self.clear()
        run, _ = self.talk_inside(*map(order, texts), allow=[rule])
        for record in self.seen():
            self.assertNotIn("closed", record["bytes"], run)
            self.assertNotIn("POST", record["bytes"], run)

    def test_44_fields_that_replace_method_or_path(self):
        rule = STUB + "?proto=http&methods=GET&paths=/open/**"
        honest = request("stub.example.test", "X-Request-Id: closed", target="/open/door")
        texts = [request("stub.example.test", field, target="/open/door") for field in
                 ("X-HTTP-Method-Override: DELETE", "x-http-method: DELETE", "X_METHOD_OVERRIDE: DELETE",
                  "X-Original-URL: /closed", "X-Rewrite-URL: /closed", "Destination: /closed")]
        self.assert_seen_outside(*map(order, texts))
        run, (talk,) = self.talk_inside(expected(honest), allow=[rule])
        self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)
        self.clear()
        run, _ = self.talk_inside(*map(order, [*texts, honest + texts[0]]), allow=[rule])
        for record in self.seen():
            self.assertNotIn("DELETE", record["bytes"], run)
            self.assertNotIn("/closed", record["bytes"], run)
        run.assert_denied(event="connect", reason="override-field")


class OtherPorts(NetworkAttack):
    """Where anything may be spoken, TLS and HTTP must still name the declared host, in whatever
    pieces they come: the origin answers each piece before the next one is sent."""

    RULE = "net:connect:raw.example.test:7000"
    HIDDEN_HEAD = "GET / HTTP/1.1\r\nHost: victim.test\r\n"

    def assert_not_named(self, *pieces, **more):
        told = {"to": ["raw.example.test", 7000], "seconds": 1, "send": pieces[0],
                "then": list(pieces[1:]), **more}
        run, _ = self.attack(told, allow=[self.RULE])
        for record in self.seen():
            self.assertNotIn("victim.test", record["bytes"], run)
        run.assert_denied(event="connect", host="raw.example.test")

    def test_41_the_start_of_a_request_in_pieces(self):
        self.assert_not_named("\r\n", self.HIDDEN_HEAD + "\r\n")
        self.assert_not_named("PROPFIND", " / HTTP/1.1\r\nHost: victim.test\r\n\r\n")
        self.assert_not_named("PROPFIND / HTTP/1.1", "\r\nHost: victim.test\r\n\r\n")

    def test_41_a_request_that_ends_without_its_end(self):
        self.assert_not_named(self.HIDDEN_HEAD, half=True)

    def test_41_hello_after_what_postgresql_asks(self):
        hello = hellos.client_hello("victim.test").decode("latin-1")
        asks_tls, asks_gss = "\0\0\0\x08\x04\xd2\x16\x2f", "\0\0\0\x08\x04\xd2\x16\x30"
        self.assert_not_named(asks_tls, hello)
        self.assert_not_named(asks_tls[:1], asks_tls[1:], hello)
        self.assert_not_named(asks_gss, asks_tls, hello)

    def test_41_hello_after_an_alert(self):
        warning = "\x15\x03\x01\0\x02\x01\x5a"
        self.assert_not_named(warning + hellos.client_hello("victim.test").decode("latin-1"))

    def test_41_pieces_that_name_nobody_are_answered(self):
        for pieces in (["JDWP-Handshake", "\0\0\0\x0b\0\0\0\x01\0\x01\x01"], ["\r\n", "a\r\n"],
                       ["PROPFIND", " / HTTP/1.1\r\nHost: raw.example.test:7000\r\n\r\n"]):
            with self.subTest(pieces=pieces):
                told = {"to": ["raw.example.test", 7000], "send": pieces[0], "then": pieces[1:],
                        "until": sum(map(len, pieces))}
                run, (talk,) = self.talk_inside(told, allow=[self.RULE])
                self.assertEqual(talk, {"got": "".join(pieces)}, run)


# Spellings of a host that is not declared, or of the declared one that no parser may accept.
HOSTILE = (
    "stub.example.test\0.victim.test", "victim.test\0.stub.example.test",
    "stub.example.test\r\nX-Injected: victim.test", "stub.example.test\nvictim.test",
    "stub.example.test@victim.test", "victim.test#stub.example.test", "victim.test?.example.test",
    "stub.example.test:80@victim.test", " victim.test", "stub.example.test victim.test",
    "victim.test.", "VICTIM.test", "victim\u00b7test", "v\u00edctim.test", "\xff\xfe.test",
    "*.example.test", "%73tub.example.test", "stub.example.test%00.victim.test",
    "44.128.0.41", "044.0200.0.051", "0x2c.0x80.0.0x29", "0x2c800029", "746586153", "44.8388649",
    "44.128.41", "[::ffff:44.128.0.41]", "[::ffff:2c80:29]", "::ffff:44.128.0.41",
    "[fe80::1%25eth0]", "127.1", "0", "0.0.0.0", "[::]", "localhost", "2130706433", "0177.0.0.1",
    "[::1]", "127.0.0.1", "169.254.169.254", "a" * 64 + ".example.test", "a." * 200 + "test", "",
    ".", "..", "-stub.example.test-", "stub..example.test",
)


class Spellings(NetworkAttack):
    """Attack 42: the same table through every place where a host is named."""

    def assert_all_refused(self, run):
        self.assertEqual(self.lab.far.questions(), [], run)
        self.assertEqual(self.seen(), [], run)

    def test_42_in_the_host_header(self):
        # With a whole end of line in it, it is one more header, and the program's own affair.
        orders = [order(last_request(host), seconds=0.5) for host in HOSTILE if "\r\n" not in host]
        run, _ = self.attack(*orders, allow=[STUB])
        self.assertEqual(self.seen(), [], run)

    def test_42_in_the_server_name(self):
        texts = [hellos.with_names(host.encode("latin-1")) for host in HOSTILE if host]
        orders = [{"to": ["stub.example.test", 443], "seconds": 0.5,
                   "send": text.decode("latin-1")} for text in texts]
        run, _ = self.attack(*orders, allow=[STUB_TLS])
        self.assertEqual(self.seen(), [], run)

    def test_42_in_questions_of_dns(self):
        hosts = [host for host in HOSTILE
                 # The sandbox's own loopback has its name.
                 if host != "localhost" and host.strip(".")
                 and all(len(part) < 64 for part in host.split("."))
                 and ".." not in host.strip(".") and len(host) < 250]
        orders = [{"to": [addresses.RESOLVER, 53], "udp": True,
                   "send": dns_wire.question(host.strip(".")).decode("latin-1")} for host in hosts]
        self.talk_outside(*orders)
        self.assertEqual(len(self.lab.far.questions()), len(orders))
        self.clear()
        run, talks = self.talk_inside(*orders, allow=[STUB])
        self.assert_all_refused(run)
        for host, talk in zip(hosts, talks):
            self.assertEqual(ord(talk["got"][3]) & 15, NXDOMAIN, host)
            self.assertEqual(talk["got"][6:8], "\0\0", host)  # no answers

    def proxied(self, texts):
        """Each text to the proxy on a connection of its own; what it answers."""
        code = ("import json, os, socket, sys\n"
                "place = os.environ['HTTP_PROXY'].removeprefix('http://').strip('/').split(':')\n"
                "for text in json.load(sys.stdin):\n"
                "    got = b''\n"
                "    with socket.create_connection((place[0], int(place[1])), 5) as connection:\n"
                "        try:\n"
                "            connection.sendall(text.encode('latin-1'))\n"
                "            connection.shutdown(socket.SHUT_WR)\n"
                "            while data := connection.recv(65536): got += data\n"
                "        except OSError: pass\n"
                "    print(json.dumps(got.decode('latin-1')))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], [STUB], ["--proxy-env"],
                          stdin=json.dumps(texts).encode())
        answers = [json.loads(line) for line in run.output.splitlines()]
        self.assertEqual(len(answers), len(texts), run)
        return run, answers

    def test_42_through_the_proxy(self):
        """CONNECT, absolute form and SOCKS5. The control is the declared name the same way."""
        def socks(host):
            return "\5\1\0\5\1\0\3" + chr(len(host)) + host + "\0\x50"

        honest = "stub.example.test"
        run, answers = self.proxied([
            request(f"{honest}:80", method="CONNECT", target=f"{honest}:80") + last_request(honest),
            last_request(honest, target=f"http://{honest}/"),
            socks(honest) + last_request(honest)])
        for answer in answers:
            self.assertIn("stub\n", answer, run)
        self.assertEqual(len(self.lab.far.at(addresses.STUB, 80)), 3)
        self.clear()

        texts = []
        for host in HOSTILE:
            texts += [request(honest, method="CONNECT", target=f"{host}:80") + HIDDEN,
                      last_request(honest, target=f"http://{host}/")]
            if len(host) < 256:
                texts.append(socks(host) + HIDDEN)
        run, answers = self.proxied(texts)
        self.assert_all_refused(run)
        for text, answer in zip(texts, answers):
            self.assertNotRegex(answer, r"^HTTP/1\.1 2|^\x05\x00\x05\x00", text)


if __name__ == "__main__":
    unittest.main()
