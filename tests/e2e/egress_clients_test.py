"""Clients that never heard of a proxy, in the sandbox, against real origins.

Each client is given the same addresses twice. On the lab's host all of them answer; in the sandbox
the declared one answers, and each of the others is refused and has its audit line.
"""

import os
import subprocess
import unittest

import database
import launch
from egress_cases import API, EgressCase, Target, last_request, open_lab
from egress_lab import addresses
from run_languages_test import JAVA, java_settings

BUILD_SECONDS = 240
# Every client waits for 25 s: a connection that hangs is then ended by the test and not by the
# client, whose timeout would look like a refusal.
CURL = ["/usr/bin/curl", "-sS", "--max-time", "25"]
REPORT = ["-w", "\n%{url} %{http_code}\n"]

ALLOWED = "https://api.example.test/"
REFUSED = (
    Target("https://other.example.test/", {"event": "dns", "host": "other.example.test"}),
    Target("https://api.example.test:8443/", {"event": "refused", "port": 8443}),
    Target("http://api.example.test/", {"event": "refused", "port": 80}),
    Target(f"https://{addresses.OTHER}/",
           {"event": "connect", "host": addresses.OTHER, "port": 443}),
    Target(f"https://{addresses.API}/", {"event": "connect", "host": addresses.API, "port": 443}),
    Target(f"https://[{addresses.API6}]/",
           {"event": "connect", "host": addresses.API6, "port": 443}),
    Target(f"http://{addresses.OTHER}:8080/",
           {"event": "refused", "host": addresses.OTHER, "port": 8080}),
)
# For clients without TLS.
PLAIN = "net:connect:api.example.test:80"
PLAIN_ALLOWED = "http://api.example.test/"
PLAIN_REFUSED = (
    Target("http://other.example.test/", {"event": "dns", "host": "other.example.test"}),
    Target("http://api.example.test:8080/", {"event": "refused", "port": 8080}),
    Target(f"http://{addresses.OTHER}/",
           {"event": "connect", "host": addresses.OTHER, "port": 80}),
    Target(f"http://[{addresses.API6}]/",
           {"event": "connect", "host": addresses.API6, "port": 80}),
)


def setUpModule():
    open_lab()


def statuses(text, urls):
    """What each URL gave, from lines that begin with it: the status, or "error"."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 1 and words[0] in urls:
            found[words[0]] = words[1] if words[1] != "000" else "error"
    return [found.get(url) for url in urls]


class Matrix(EgressCase):
    def build(self, *command, **env):
        subprocess.run(command, cwd=self.clients, check=True, timeout=BUILD_SECONDS,
                       capture_output=True,
                       env={**launch.build_environment(self.tree.root), **env})

    def assert_reaches_only_what_is_declared(self, command, *, allow=(), env=None, plain=False):
        """`command` takes URLs and prints a line for each."""
        allowed, refused = (PLAIN_ALLOWED, PLAIN_REFUSED) if plain else (ALLOWED, REFUSED)
        urls = [allowed, *(target.url for target in refused)]
        control = self.outside([*command, *urls], env=env)
        # New versions of Node do not find an IPv6 address in a certificate: it was reached.
        reached = control.output.replace("error ERR_TLS_CERT_ALTNAME_INVALID", "200")
        self.assertEqual(statuses(reached, urls), ["200"] * len(urls), control)
        answered = len(self.lab.web_log())

        grants = [PLAIN if plain else API, *self.reads, *allow]
        run = self.inside([*command, *urls], grants, env=env)
        self.assertEqual(statuses(run.output, urls), ["200"] + ["error"] * len(refused), run)
        self.assertEqual(len(self.lab.web_log()) - answered, 1, "requests that origins answered")
        run.assert_line(event="connect", host="api.example.test", verdict="allowed",
                        rule=grants[0])
        run.assert_line(event="close")
        for target in refused:
            with self.subTest(url=target.url):
                run.assert_denied(**target.denial)

    def test_curl(self):
        self.assert_reaches_only_what_is_declared([*CURL, "--cacert", self.lab.ca, *REPORT])

    def test_node_fetch(self):
        self.assert_reaches_only_what_is_declared(
            [launch.NODE, f"{self.clients}/fetch.mjs", "fetch", self.lab.ca],
            env={"NODE_EXTRA_CA_CERTS": self.lab.ca},
            allow=["env:read:NODE_EXTRA_CA_CERTS?unsafe=true"])

    def test_node_https(self):
        self.assert_reaches_only_what_is_declared(
            [launch.NODE, f"{self.clients}/fetch.mjs", "https", self.lab.ca])

    def test_python_urllib(self):
        self.assert_reaches_only_what_is_declared(
            [launch.PYTHON, "-I", f"{self.clients}/fetch.py", self.lab.ca])

    def test_go(self):
        program = self.tree.path("fetch-go")
        self.build("go", "build", "-o", program, "fetch.go", CGO_ENABLED="0", GO111MODULE="off")
        self.assert_reaches_only_what_is_declared([program, self.lab.ca])

    def test_java(self):
        classes = self.tree.directory("classes")
        self.build("javac", "-d", classes, "Fetch.java")
        self.assert_reaches_only_what_is_declared(
            [JAVA, "-cp", classes, "Fetch", self.lab.ca],
            allow=[f"fs:read:{classes}/**", f"fs:read:{java_settings()}/**"])

    def test_musl(self):
        program = self.tree.path("fetch-musl")
        self.build("musl-gcc", "-static", "-O1", "-Wall", "-Werror", "fetch.c", "-o", program)
        self.assert_reaches_only_what_is_declared([program], plain=True)

    def test_curl_over_plain_http(self):
        self.assert_reaches_only_what_is_declared([*CURL, *REPORT], plain=True)


class Protocols(EgressCase):
    """What is carried inside TLS or instead of HTTP, and what a name cannot be used for."""

    def test_http_2_through_tls(self):
        command = [*CURL, "--http2", "--cacert", self.lab.ca, ALLOWED]
        for run in (self.outside(command), self.inside(command, [API, *self.reads])):
            self.assertEqual(run.output,
                             "origin api.example.test, asked for api.example.test, by HTTP/2.0\n")

    def test_a_large_answer_arrives_whole(self):
        command = [*CURL, "--cacert", self.lab.ca, ALLOWED + "big/file"]
        path = self.tree.path("got")
        with open(path, "wb") as file:
            process = self.start(self.sandboxed(command, [API, *self.reads],
                                                audit=self.new_audit()), stdout=file)
            self.assertEqual(process.wait(launch.SECONDS), 0, process.stderr.read())
        with open(path, "rb") as file:
            self.assertEqual(file.read(), bytes(range(256)) * 16384)

    def websocket(self, host, port, **tls):
        return {"to": [host, port], "until": "ping",
                "send": f"GET /socket HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n"
                "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                "then": ["ping"], **tls}

    def test_an_upgraded_connection_carries_anything(self):
        for order in (self.websocket("api.example.test", 443,
                                     tls={"name": "api.example.test", "ca": self.lab.ca}),
                      self.websocket("stub.example.test", 80)):
            rule = "net:connect:{}:{}".format(*order["to"])
            with self.subTest(rule=rule):
                control = self.outside(self.talk(order)).talks()
                run, talks = self.talk_inside(order, allow=[rule])
                for (talk,) in (control, talks):
                    self.assertIn(" 101 ", talk["got"], run)
                    self.assertTrue(talk["got"].endswith("ping"), run)

    def test_a_client_certificate_and_alpn_stay_end_to_end(self):
        """The handshake is the origin's: the certificate that the client sees is its own."""
        order = {"to": ["api.example.test", 443], "until": 1,
                 "tls": {"name": "api.example.test", "ca": self.lab.ca, "alpn": ["http/1.1"]},
                 "send": last_request("api.example.test")}
        self.talk_outside(order)
        run, (talk,) = self.talk_inside(order, allow=[API])
        self.assertTrue(talk["got"].startswith("HTTP/1.1 200"), run)

    def test_another_name_at_the_same_address(self):
        """SNI of a site that the origin serves too, on a connection to the declared one."""
        order = {"to": ["api.example.test", 443], "tls": {"name": "hidden.test", "ca": self.lab.ca},
                 "send": last_request("hidden.test")}
        (control,) = self.talk_outside(order)
        self.assertIn("origin hidden.test", control["got"])
        answered = self.lab.web_log()
        run, (talk,) = self.talk_inside(order, allow=[API])
        self.assertEqual((talk["got"], "error" in talk), ("", True))
        run.assert_denied(event="connect", host="api.example.test", serverName="hidden.test",
                          reason="other-name")
        self.assertEqual(self.lab.web_log(), answered)

    def test_datagrams(self):
        orders = [{"to": [host, 7000], "udp": True, "send": "datagram"}
                  for host in (addresses.RAW, addresses.RAW6)]
        self.talk_outside(*orders)
        self.lab.far.clear()
        run, talks = self.talk_inside(*orders, allow=["net:connect:raw.example.test:7000"])
        for talk in talks:
            self.assertEqual(talk, {"error": "ECONNREFUSED", "got": ""})
        for host in (addresses.RAW, addresses.RAW6):
            run.assert_denied(event="refused", protocol="udp", host=host, port=7000)
        self.assertEqual(self.lab.far.all(), [])

    def test_a_server_that_speaks_first(self):
        order = {"to": ["raw.example.test", 7001], "until": 19}
        self.talk_outside(order)
        run, (talk,) = self.talk_inside(order, allow=["net:connect:raw.example.test:7001"])
        self.assertEqual(talk, {"got": "hello from the lab\n"}, run)

    def test_half_closed_connections_carry_the_other_half(self):
        order = {"to": ["raw.example.test", 7000], "send": "x" * 100000, "half": True}
        self.talk_outside(order)
        run, (talk,) = self.talk_inside(order, allow=["net:connect:raw.example.test:7000"])
        self.assertEqual(talk, {"got": "x" * 100000})
        line = run.assert_line(event="close")
        self.assertEqual((line["sent"], line["received"]), (100000, 100000))


class Names(EgressCase):
    def test_c_ares(self):
        """Node's dns.resolve asks the configured resolver itself, without the C library."""
        names = ["api.example.test", "other.example.test"]
        command = [launch.NODE, f"{self.clients}/resolve.mjs", *names]
        control = self.outside(command).output
        self.assertIn(f"api.example.test A {addresses.API}\n", control)
        self.assertIn(f"other.example.test A {addresses.OTHER}\n", control)
        self.lab.far.clear()
        run = self.inside(command, [API, *self.reads])
        self.assertRegex(run.output, r"(?m)^api\.example\.test A 28\.1[89]\.\d+\.\d+$")
        self.assertRegex(run.output, r"(?m)^api\.example\.test AAAA 2d00:2:")
        self.assertRegex(run.output, r"(?m)^api\.example\.test TXT ENODATA$")
        self.assertRegex(run.output, r"(?m)^other\.example\.test A ENOTFOUND$")
        run.assert_denied(event="dns", host="other.example.test")
        self.assertEqual(self.lab.far.questions(), [], "nobody connected: nobody is asked")

    def test_addresses_are_stable_and_known_by_their_name(self):
        code = ("import socket\n"
                "def look(): return sorted({i[4][0] for i in "
                "socket.getaddrinfo('api.example.test', 443)})\n"
                "first = look()\n"
                "print(first == look(), len(first), socket.gethostbyaddr(first[0])[0])\n")
        run = self.inside([launch.PYTHON, "-I", "-c", code], [API])
        self.assertEqual(run.output, "True 2 api.example.test\n", run)

    def test_a_wildcard_reaches_what_is_below_it(self):
        command = [*CURL, "--cacert", self.lab.ca, *REPORT]
        urls = ["https://api.example.test/", "https://git.example.test/", "https://evil.test/"]
        self.assertEqual(statuses(self.outside([*command, *urls]).output, urls), ["200"] * 3)
        run = self.inside([*command, *urls], ["net:connect:*.example.test:443", *self.reads])
        self.assertEqual(statuses(run.output, urls), ["200", "200", "error"], run)
        run.assert_denied(event="dns", host="evil.test")

    def test_spellings_of_a_declared_name(self):
        command = [*CURL, "--cacert", self.lab.ca, *REPORT]
        urls = ["https://API.Example.Test/", "https://api.example.test./"]
        run = self.inside([*command, *urls], [API, *self.reads])
        self.assertEqual(statuses(run.output, urls), ["200"] * 2, run)

    def test_both_families(self):
        for name, version in (("v4.example.test", "-4"), ("v6.example.test", "-6"),
                              ("v6.example.test", "-4"), ("v4.example.test", "-6")):
            with self.subTest(name=name, inside=version):
                # Inside the families are the sandbox's, outside the origin's.
                url = f"https://{name}/"
                run = self.inside([*CURL, version, "--cacert", self.lab.ca, *REPORT, url],
                                  [f"net:connect:{name}:443", *self.reads])
                self.assertEqual(statuses(run.output, [url]), ["200"], run)


class Git(EgressCase):
    def clone(self, url, name):
        return ["/usr/bin/git", "-c", f"http.sslCAInfo={self.lab.ca}", "clone", "-q", url,
                os.path.join(self.work, name)]

    def test_clone_over_https(self):
        url = "https://git.example.test/repository.git"
        self.assertEqual(self.outside(self.clone(url, "control")).code, 0)
        grants = ["net:connect:git.example.test:443", "exec:spawn:git", f"fs:write:{self.work}/**",
                  *self.reads]
        run = self.inside(self.clone(url, "clone"), grants)
        self.assertEqual(run.code, 0, run)
        with open(f"{self.work}/clone/note", encoding="utf-8") as file:
            self.assertEqual(file.read(), "a note\n")

        elsewhere = "https://api.example.test/repository.git"
        self.assertEqual(self.outside(self.clone(elsewhere, "other-control")).code, 0)
        run = self.inside(self.clone(elsewhere, "other"), grants)
        self.assertNotEqual(run.code, 0)
        run.assert_denied(event="dns", host="api.example.test")


class Database(EgressCase):
    """A real PostgreSQL, which speaks its own protocol before it speaks TLS."""

    RULE = "net:connect:db.example.test:5432"

    def setUp(self):
        super().setUp()
        database.start(self, ssl="on", ssl_cert_file=f"{self.lab.inner}/web.pem",
                       ssl_key_file=f"{self.lab.inner}/web.key")

    def psql(self, mode, host="db.example.test", port=5432):
        return [f"{database.PROGRAMS}/psql", "-X", "-At", "-c", "select 6 * 7, ssl from pg_stat_ssl "
                "where pid = pg_backend_pid()",
                f"host={host} port={port} user=lab dbname=postgres connect_timeout=25 "
                f"sslmode={mode} sslrootcert={self.lab.ca} gssencmode=disable"]

    def test_with_and_without_tls(self):
        for mode, wanted in (("disable", "42|f\n"), ("verify-full", "42|t\n")):
            with self.subTest(mode=mode):
                self.assertEqual(self.outside(self.psql(mode)).output, wanted)
                run = self.inside(self.psql(mode), [self.RULE, *self.reads])
                self.assertEqual(run.output, wanted, run)
                run.assert_line(event="connect", host="db.example.test", verdict="allowed",
                                address=addresses.DATABASE)
        control = self.outside(self.psql("disable", host=addresses.DATABASE))
        self.assertEqual(control.output, "42|f\n")
        run = self.inside(self.psql("disable", host=addresses.DATABASE), [self.RULE])
        self.assertEqual(run.code, 2)
        run.assert_denied(event="connect", host=addresses.DATABASE, port=5432)


if __name__ == "__main__":
    unittest.main()
