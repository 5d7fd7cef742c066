"""What passes through an endpoint that carries a sealed secret: bodies, events, upgrades, rules,
and errors that are the client's own.
"""

import hashlib
import os
import unittest

import launch
from egress_cases import Run
from seal_cases import (BEARER, BOTH, BOTH_PORTS, CURL_ALLOWED, HOST, RAW_URL, RAW_VAULT, URL, VAULT, SealCase,
                        curl, open_lab, sealed)

# Of what the host trusts, Node knows only what it was told.
NODE_ROOTS = "env:read:NODE_EXTRA_CA_CERTS?unsafe=true"
HUGE = bytes(range(256)) * 32768  # as the lab's


def setUpModule():
    open_lab()


class Streams(SealCase):
    ALLOW = (VAULT, RAW_VAULT, sealed(to=BOTH_PORTS))

    def ask(self, *commands, **more):
        return self.inside(curl(*commands), self.ALLOW, **more)

    def test_large_bodies_up_and_down(self):
        path = self.tree.path("huge")
        with open(path, "wb") as file:
            file.write(HUGE)
        os.chmod(path, 0o644)
        digest = hashlib.sha256(HUGE).hexdigest()
        places = [f"{version} {BEARER} {url}" for version, url in
                  (("--http1.1", URL), ("--http2", URL), ("--http1.1", RAW_URL))]
        chunked = '-H "Transfer-Encoding: chunked"'
        script = "\n".join(
            [*(f"curl -sS --max-time 20 -T {path} {place}/digest" for place in places),
             f"curl -sS --max-time 20 -T {path} {chunked} {places[0]}/digest",
             *(f"curl -sS --max-time 20 {place}/big | sha256sum" for place in places)])
        run = self.inside(["/bin/sh", "-c", script],
                          [*self.ALLOW, "exec:spawn:sha256sum", f"fs:read:{path}"])
        self.assertEqual(run.output, f"{len(HUGE)} {digest}\n" * 4 + f"{digest}  -\n" * 3, run)
        for record in self.received():
            self.assertIn(f"Bearer {self.value}", record["head"])

    def test_events_arrive_one_by_one(self):
        for url in (f"--http1.1 {URL}", f"--http2 {URL}", RAW_URL):
            with self.subTest(url=url):
                self.lab.vault.clear()
                process = self.start(self.sandboxed(curl(f"-N {BEARER} {url}/sse"),
                                                    [CURL_ALLOWED, *self.ALLOW],
                                                    audit=self.new_audit()))
                first = process.stdout.readline() + process.stdout.readline()
                self.assertEqual(first, b"data: first\n\n", process.poll())
                self.lab.vault.ask(do="go")
                run = Run(self, launch.finish(process))
                self.assertEqual(run.output, "data: second\n\n", run)

    def test_websocket(self):
        head = (f"GET /socket HTTP/1.1\\r\\nHost: {HOST}\\r\\nConnection: Upgrade\\r\\n"
                "Upgrade: websocket\\r\\nSec-WebSocket-Version: 13\\r\\n"
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n"
                "Authorization: Bearer ' + os.environ['TOKEN'] + '\\r\\n\\r\\n")
        script = ("import os, socket, ssl\n"
                  "context = ssl.create_default_context()\n"
                  f"plain = socket.create_connection(('{HOST}', 443), 5)\n"
                  f"with context.wrap_socket(plain, server_hostname='{HOST}') as tls:\n"
                  f"    tls.sendall(('{head}').encode())\n"
                  "    stream = tls.makefile('rb')\n"
                  "    print(stream.readline().decode().split()[1])\n"
                  "    while stream.readline() != b'\\r\\n': pass\n"
                  "    for text in (b'ping', b'pong'):\n"
                  "        tls.sendall(text)\n"
                  "        print(stream.read(4).decode())\n")
        run = self.inside([launch.PYTHON, "-I", "-c", script], self.ALLOW)
        self.assertEqual(run.output, "101\nping\npong\n", run)
        self.assert_received(f"uthorization: Bearer {self.value}")
        run.assert_line(event="request", status=101, secrets="TOKEN")

    def test_answers_of_every_kind(self):
        report = "-o /dev/null -w '%{http_code} %{size_download}\\n'"
        wanted = []
        commands = []
        for place in (f"--http1.1 {URL}", f"--http2 {URL}", RAW_URL):
            for words, path, result in (
                    ("-I", "/plain", "200 0"), ("", "/status/204", "204 0"),
                    ("", "/status/304", "304 0"), ("", "/status/404", "404 9"),
                    ("", "/status/500", "500 9"), ("", "/chunked", "200 170")):
                commands.append(f"{report} {BEARER} {words} {place}{path}")
                wanted.append(result)
        run = self.ask(*commands)
        self.assertEqual(run.output.splitlines(), wanted, run)
        self.assert_received(f"Bearer {self.value}", times=len(wanted))

    def test_continue_and_hints(self):
        commands = (f"-i {BEARER} -H 'Expect: 100-continue' -d body {RAW_URL}/digest",
                    f"-i {BEARER} {RAW_URL}/hints")
        run = self.ask(*commands)
        self.assertIn("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200", run.output.replace("\n", "\r\n")
                      if "\r" not in run.output else run.output)
        self.assertRegex(run.output, r"HTTP/1\.1 103 Early Hints\r\n[Ll]ink: </style>")
        self.assertTrue(run.output.endswith("hinted\n"), run)

    def test_trailers(self):
        run = self.ask(*(f"-i {BEARER} {place}/trailers" for place in
                         (f"--http1.1 {URL}", f"--http2 {URL}", RAW_URL)))
        self.assertEqual(run.output.lower().count("x-trailer: at the end"), 3, run)

    def test_one_connection_carries_many_requests(self):
        for version in BOTH:
            with self.subTest(version=version):
                self.lab.vault.clear()
                urls = " ".join(f"-o /dev/null {URL}/{path}"
                                for path in ("echo", "status/204", "chunked") * 5)
                run = self.ask(f"{version} {BEARER} -w '%{{num_connects}}\\n' {urls}")
                self.assertEqual(sum(map(int, run.output.split())), 1, run)
                self.assert_received(f"Bearer {self.value}", times=15)
                self.assertEqual(len(run.find(event="connect", verdict="allowed")), 1, run)

    def test_requests_at_the_same_time(self):
        urls = " ".join(f"-o /dev/null {URL}/echo?{number}" for number in range(20))
        run = self.ask(f"--http2 --parallel --parallel-max 20 {BEARER} {urls}")
        self.assertEqual(run.code, 0, run)
        self.assert_received(f"Bearer {self.value}", times=20)

    def test_large_headers(self):
        large = "x" * 12000
        run = self.ask(*(f"{place}/plain {BEARER} -H 'X-Large: {large}'" for place in
                         (f"--http1.1 {URL}", f"--http2 {URL}", RAW_URL)))
        self.assertEqual(run.output, "plain\n" * 3, run)
        self.assert_received(large, times=3)

    def test_what_the_origin_gets_is_what_was_sent_but_for_the_value(self):
        script = f"-H 'X-Odd:   kept ' -H 'x-CASE: a' {BEARER} --data-binary 'body $TOKENX' "
        run = self.ask(script + f"'{RAW_URL}/echo?a=%2e%2F../b'")
        (text,) = self.lab.vault.ask(do="bytes")
        head, _, body = text.partition("\r\n\r\n")
        lines = head.split("\r\n")
        self.assertEqual(lines[0], "POST /echo?a=%2e%2F../b HTTP/1.1", run)
        self.assertIn(f"Authorization: Bearer {self.value}", lines)
        for line in ("x-CASE: a", "Content-Length: 12"):
            self.assertIn(line, lines)
        self.assertEqual(body, "body $TOKENX")

    def test_answers_are_asked_for_whole_and_readable(self):
        run = self.ask(*(f"{version} --compressed -r 0-3 {BEARER} {URL}/plain" for version in BOTH))
        self.assertEqual(run.output, "plain\n" * 2, run)
        for record in self.received():
            head = record["head"].lower()
            self.assertIn("accept-encoding: identity", head)
            self.assertNotIn("\nrange:", head)

    def test_an_encoded_answer_is_refused(self):
        run = self.ask(*(f"{version} -o /dev/null -w '%{{http_code}}\\n' {BEARER} {URL}/gzip"
                         for version in BOTH))
        self.assertEqual(run.output, "502\n" * 2, run)
        self.assertEqual(len(run.find(event="request", reason="encoded-response")), 2, run)


class Rules(SealCase):
    ALLOWED = f"{VAULT}?methods=GET,POST&paths=/repos/acme/**"

    def statuses(self, *requests, allow=None):
        run = self.inside(curl(*(f"-o {self.work}/{number} -w '%{{http_code}}\\n' {BEARER} {words}"
                                 for number, words in enumerate(requests))),
                          [allow or self.ALLOWED, sealed(),
                           f"fs:write:{self.work}/**"])
        return run, run.output.split()

    def test_only_declared_requests_pass(self):
        for version in BOTH:
            with self.subTest(version=version):
                self.lab.vault.clear()
                run, statuses = self.statuses(
                    f"{version} {URL}/repos/acme/box", f"{version} -d x {URL}/repos/acme/box/y",
                    f"{version} -X DELETE {URL}/repos/acme/box", f"{version} {URL}/user",
                    f"{version} {URL}/repos/other/box",
                    f"{version} --path-as-is {URL}/repos/acme/../other/box",
                    f"{version} --path-as-is {URL}/repos/acme/%2e%2e/other",
                    f"{version} --path-as-is {URL}/repos/acme/..%2fother",
                    f"{version} --path-as-is '{URL}//repos/acme/box'",
                    f"{version} -H 'X-HTTP-Method-Override: DELETE' {URL}/repos/acme/box",
                    f"{version} -H 'X-Original-URL: /user' {URL}/repos/acme/box")
                self.assertEqual(statuses, ["200", "200"] + ["403"] * 9, run)
                self.assertEqual(len(self.received()), 2)
                with open(f"{self.work}/2", encoding="utf-8") as file:
                    self.assertIn("methods=", file.read())
                with open(f"{self.work}/3", encoding="utf-8") as file:
                    self.assertIn("/user", file.read())
                run.assert_denied(event="request", method="DELETE", path="/repos/acme/box")
                run.assert_denied(event="request", method="GET", path="/user")
                run.assert_line(event="request", method="GET", path="/repos/acme/box", status=200,
                                verdict="allowed", rule=self.ALLOWED)

    def test_a_refused_request_does_not_end_the_connection(self):
        for version in BOTH:
            with self.subTest(version=version):
                self.lab.vault.clear()
                run, statuses = self.statuses(
                    f"-w '%{{http_code}} %{{num_connects}}\\n' {version} {URL}/user "
                    f"-o /dev/null {URL}/repos/acme/box")
                self.assertEqual(statuses, ["403", "1", "200", "0"], run)


class Certificates(SealCase):
    """A broken certificate is the error that the client reports without a sandbox."""

    NAMES = ("expired.example.test", "self-signed.example.test", "misnamed.example.test")

    def allow(self, name):
        return [f"net:connect:{name}:443", sealed(to=(f"{name}:443",)), *self.reads]

    def test_the_clients_report_their_own_errors(self):
        clients = {
            "curl": lambda url: curl(f"{BEARER} {url}"),
            "curl with TLS 1.2": lambda url: curl(f"--tls-max 1.2 {BEARER} {url}"),
            "node": lambda url: [launch.NODE, f"{self.clients}/ask.mjs", "https", url],
            "node with TLS 1.2": lambda url: [launch.NODE, "--tls-max-v1.2",
                                              f"{self.clients}/ask.mjs", "https", url],
            "python": lambda url: [launch.PYTHON, "-I", f"{self.clients}/ask.py", "urllib", url]}
        for name in self.NAMES:
            for client, command in clients.items():
                with self.subTest(name=name, client=client):
                    words = command(f"https://{name}/plain")
                    env = {"NODE_EXTRA_CA_CERTS": self.lab.ca}
                    control = self.outside(words, env=env)
                    run = self.inside(words, [*self.allow(name), NODE_ROOTS], env=env)
                    self.assertEqual((run.code, run.output), (control.code, control.output), run)
                    if "curl" in client:
                        self.assertEqual(run.code, 60)
                        self.assertIn(control.said.splitlines()[0], run.said)
                    else:
                        self.assertIn('"error"', run.output)
                    self.assertEqual(self.received(), [])
                    self.assertTrue([line for line in run.lines if "certificate" in
                                     line.get("text", "")], run)

    def test_a_client_that_does_not_care_gets_no_value_out(self):
        for name in self.NAMES:
            with self.subTest(name=name):
                run = self.inside(curl(*(f"-k --tls-max {version} {BEARER} https://{name}/plain"
                                         for version in ("1.2", "1.3"))), self.allow(name))
                self.assertNotEqual(run.code, 0)
                self.assertEqual(self.received(), [], run)


if __name__ == "__main__":
    unittest.main()
