"""--proxy-env: the same decisions for programs that insist on a proxy."""

import json
import unittest

import launch
from egress_cases import API, EgressCase, last_request, open_lab, request
from egress_lab import addresses

PLAIN = "net:connect:stub.example.test:80"
RAW = "net:connect:raw.example.test:7000"
CURL = "/usr/bin/curl -sS --max-time 25 -o /dev/null -w '%{http_code} %{http_connect}\\n'"
# The proxy's address as host:port, in the shell of a sandboxed server.
PROXY = '"${HTTPS_PROXY#http://}"'


def setUpModule():
    open_lab()


class Variables(EgressCase):
    NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")

    def variables(self, *options):
        code = "import os, json; print(json.dumps(dict(os.environ)))"
        run = self.inside([launch.PYTHON, "-I", "-c", code], [API], options)
        return {name.upper(): value for name, value in json.loads(run.output).items()
                if name.upper() in self.NAMES}

    def test_without_the_option_no_variable_is_set(self):
        self.assertEqual(self.variables(), {})

    def test_with_it_the_proxy_is_named_and_loopback_is_left_out(self):
        found = self.variables("--proxy-env")
        self.assertEqual(sorted(found), ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"])
        self.assertRegex(found["HTTP_PROXY"], r"^http://127\.0\.0\.1:\d+/?$")
        self.assertEqual(found["HTTP_PROXY"], found["HTTPS_PROXY"])
        for name in ("localhost", "127.0.0.1", "::1"):
            self.assertIn(name, found["NO_PROXY"])


class Clients(EgressCase):
    def shell(self, script, *allow):
        """A script in a sandbox with a proxy."""
        return self.inside(["/bin/sh", "-c", script],
                           [API, PLAIN, RAW, "exec:spawn:curl", *self.reads, *allow],
                           ["--proxy-env"])

    def test_connect(self):
        trust = f"--cacert {self.lab.ca}"
        run = self.shell(f"{CURL} {trust} -x http://{PROXY} https://api.example.test/\n"
                         f"{CURL} {trust} -x http://{PROXY} https://other.example.test/\n"
                         f"{CURL} {trust} -x http://{PROXY} https://api.example.test:8443/\n"
                         f"{CURL} {trust} -x http://{PROXY} https://{addresses.API}/\n")
        lines = run.output.split("\n")
        self.assertEqual(lines[0], "200 200", run)
        for line in lines[1:4]:
            self.assertEqual(line, "000 403", run)
        run.assert_line(event="connect", host="api.example.test", port=443, verdict="allowed")
        run.assert_denied(host="other.example.test", port=443)
        run.assert_denied(host="api.example.test", port=8443)
        run.assert_denied(host=addresses.API, port=443)

    def test_variables_are_enough(self):
        run = self.shell(f"export http_proxy=$HTTP_PROXY\n"
                         f"{CURL} --cacert {self.lab.ca} https://api.example.test/\n"
                         f"{CURL} http://stub.example.test/\n")
        self.assertEqual(run.output, "200 200\n200 000\n", run)
        (head,) = self.lab.far.at(addresses.STUB, 80)
        self.assertTrue(head.startswith("GET / HTTP/1.1\r\n"), "origin-form at the origin")
        self.assertNotIn("proxy-connection", head.lower())

    def test_absolute_form(self):
        run = self.shell(f"{CURL} -x http://{PROXY} http://stub.example.test/path?query\n"
                         f"{CURL} -x http://{PROXY} http://victim.test/\n"
                         f"{CURL} -x http://{PROXY} http://stub.example.test:8080/\n")
        lines = run.output.split("\n")
        self.assertEqual(lines[0], "200 000", run)
        for line in lines[1:3]:
            self.assertEqual(line, "403 000", run)
        (head,) = self.lab.far.at(addresses.STUB, 80)
        self.assertTrue(head.startswith("GET /path?query HTTP/1.1\r\n"), head)
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [])
        run.assert_denied(host="victim.test", port=80)
        run.assert_denied(host="stub.example.test", port=8080)

    def test_socks5_at_the_same_port(self):
        trust = f"--cacert {self.lab.ca}"
        run = self.shell(f"{CURL} {trust} --socks5-hostname {PROXY} https://api.example.test/\n"
                         f"{CURL} {trust} --socks5-hostname {PROXY} https://other.example.test/\n"
                         f"{CURL} {trust} --socks5-hostname {PROXY} https://{addresses.API}/\n")
        lines = run.output.split("\n")
        self.assertEqual(lines[0], "200 000", run)
        self.assertEqual(lines[1:3], ["000 000"] * 2, run)
        run.assert_denied(host="other.example.test", port=443)
        run.assert_denied(host=addresses.API, port=443)

    def test_names_are_checked_inside_the_tunnel_too(self):
        """CONNECT to the declared name, another one in SNI."""
        run = self.shell(f"{CURL} --cacert {self.lab.ca} -p -x http://{PROXY} "
                         "--connect-to hidden.test:443:api.example.test:443 https://hidden.test/\n")
        self.assertRegex(run.output, "^000 ", run)
        run.assert_denied(host="api.example.test", serverName="hidden.test", reason="other-name")

    def through_the_proxy(self, *texts):
        """What the proxy answers to these bytes, one connection each."""
        code = ("import json, os, socket, sys\n"
                "host, port = os.environ['HTTP_PROXY'].removeprefix('http://').strip('/')"
                ".split(':')\n"
                "for text in sys.argv[1:]:\n"
                "    got = b''\n"
                "    with socket.create_connection((host, int(port)), 5) as connection:\n"
                "        try:\n"
                "            connection.sendall(json.loads(text).encode('latin-1'))\n"
                "            connection.shutdown(socket.SHUT_WR)\n"
                "            while data := connection.recv(65536): got += data\n"
                "        except OSError: pass\n"
                "    print(json.dumps(got.decode('latin-1')))\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code, *map(json.dumps, texts)],
                          [API, PLAIN, RAW], ["--proxy-env"])
        return run, [json.loads(line) for line in run.output.splitlines()]

    def test_connect_to_another_protocol(self):
        run, (got,) = self.through_the_proxy(
            request("raw.example.test:7000", method="CONNECT", target="raw.example.test:7000")
            + "echoed")
        self.assertRegex(got, r"^HTTP/1\.1 200 [^\r]*\r\n(.+\r\n)*\r\nechoed$", run)

    def test_a_denial_is_an_answer_that_says_why(self):
        run, (got,) = self.through_the_proxy(
            request("victim.test:443", method="CONNECT", target="victim.test:443"))
        self.assertRegex(got, r"^HTTP/1\.1 403 ", run)
        self.assertIn("victim.test", got)

    def test_socks5_commands_that_are_not_served(self):
        """BIND and UDP ASSOCIATE, and the old version 4."""
        name = "stub.example.test"
        end = chr(3) + chr(len(name)) + name + "\x00\x50"
        run, (bind, datagrams, old) = self.through_the_proxy(
            "\x05\x01\x00\x05\x02\x00" + end, "\x05\x01\x00\x05\x03\x00" + end,
            "\x04\x01\x00\x50\x2c\x80\x00\x28\x00")
        for got in (bind, datagrams):
            self.assertEqual(got[:4], "\x05\x00\x05\x07", run)  # command not supported
        self.assertNotEqual(old[1:2], "\x5a", run)  # granted
        self.assertEqual(self.lab.far.all(), [])

    def test_the_proxy_is_no_way_to_itself(self):
        """A relayed CONNECT: to the proxy's own port, then from there elsewhere."""
        inner = request("victim.test:80", method="CONNECT", target="victim.test:80")
        run, answers = self.through_the_proxy(*(
            request(f"{host}:3128", method="CONNECT", target=f"{host}:3128") + inner
            for host in ("127.0.0.1", "localhost", "[::1]")))
        for got in answers:
            self.assertRegex(got, r"^HTTP/1\.1 403 ", run)
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [])

    def test_keeping_the_connection_changes_nothing(self):
        """Each request of one connection is decided on its own."""
        run, (got,) = self.through_the_proxy(
            request("stub.example.test", target="http://stub.example.test/")
            + last_request("victim.test", target="http://victim.test/"))
        self.assertEqual(self.lab.far.at(addresses.VICTIM, 80), [], run)
        for seen in self.lab.far.at(addresses.STUB, 80):
            self.assertNotIn("victim.test", seen)
        self.assertTrue(got.startswith("HTTP/1.1 "), run)


if __name__ == "__main__":
    unittest.main()
