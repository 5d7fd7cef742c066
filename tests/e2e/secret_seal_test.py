"""Sealed secrets, end to end: the service gets the value, the client never has it.

No client here is told what to trust. Each run is searched for the value: stdout, stderr, audit.
"""

import base64
import hashlib
import json
import os
import subprocess
import unittest
import urllib.parse

import launch
from egress_cases import Run, read_audit
from run_languages_test import JAVA, java_settings
from seal_cases import (BEARER, CURL_ALLOWED, HOST, OTHER_URL, OTHER_VAULT, RAW_URL, RAW_VAULT, URL,
                        VAULT, SealCase, curl, open_lab, sealed)

BUILD_SECONDS = 240
HUGE = bytes(range(256)) * 32768  # as the lab's
BOTH = ("--http1.1", "--http2")
# Each letter means something to one of the formats.
SPECIAL = 'a+b/c=d&e f"g\\h%i?j#k'


def setUpModule():
    open_lab()


class Placement(SealCase):
    def ask(self, place, words, path="/plain", **more):
        """The same request by both versions of HTTP, and another one to see where it stood."""
        return self.inside(curl(*(f"{version} {words} '{URL}{path}'" if "$" not in path else
                                  f'{version} {words} "{URL}{path}"' for version in BOTH)),
                           [VAULT, sealed(place)], **more)

    def assert_used(self, run, times=2):
        lines = run.find(event="request", verdict="allowed", status=200)
        self.assertEqual([line.get("secrets") for line in lines], ["TOKEN"] * times, run)

    def test_authorization_is_the_default(self):
        for scheme in ("Bearer ", "token ", ""):
            with self.subTest(scheme=scheme):
                self.lab.vault.clear()
                run = self.ask(None, f'-H "Authorization: {scheme}$TOKEN"')
                self.assertEqual(run.output, "plain\n" * 2, run)
                self.assert_received(f"uthorization: {scheme}{self.value}", times=2)
                self.assert_used(run)

    def test_a_named_header(self):
        run = self.ask("header:X-Api-Key", '-H "X-Api-Key: $TOKEN"')
        self.assertEqual(run.output, "plain\n" * 2, run)
        self.assert_received(f": {self.value}", times=2)
        self.assert_used(run)

    def test_basic(self):
        self.value += SPECIAL
        run = self.ask("basic", '-u "someone:$TOKEN"')
        self.assertEqual(run.output, "plain\n" * 2, run)
        credentials = base64.b64encode(f"someone:{self.value}".encode()).decode()
        self.assert_received(f"uthorization: Basic {credentials}", times=2)
        self.assert_used(run)

    def test_query(self):
        self.value += SPECIAL
        run = self.ask("query", "", "/plain?a=b&key=$TOKEN&c=d")
        self.assertEqual(run.output, "plain\n" * 2, run)
        for record in self.received():
            query = urllib.parse.urlsplit(record["head"].split(" ")[1]).query
            self.assertEqual(urllib.parse.parse_qs(query, strict_parsing=True),
                             {"a": ["b"], "key": [self.value], "c": ["d"]})
        self.assert_used(run)
        self.assertEqual({line["path"] for line in run.find(event="request")}, {"/plain"})

    def test_path(self):
        self.value += SPECIAL
        run = self.ask("path", "", "/plain/$TOKEN/end")
        self.assertEqual(run.output, "plain\n" * 2, run)
        for record in self.received():
            target = record["head"].split(" ")[1]
            self.assertEqual([urllib.parse.unquote(part) for part in target.split("/")],
                             ["", "plain", self.value, "end"])
        self.assert_used(run)

    def test_a_body_of_json(self):
        self.value += SPECIAL
        run = self.ask("body", "--json '{\"a\": [1, \"'$TOKEN'\"]}'")
        self.assertEqual(run.output, "plain\n" * 2, run)
        self.assertEqual([json.loads(record["body"]) for record in self.received()],
                         [{"a": [1, self.value]}] * 2)

    def test_a_body_of_a_form(self):
        self.value += SPECIAL
        run = self.ask("body", '-d "user=someone&password=$TOKEN&end="')
        self.assertEqual(run.output, "plain\n" * 2, run)
        for record in self.received():
            self.assertEqual(urllib.parse.parse_qs(record["body"], keep_blank_values=True),
                             {"user": ["someone"], "password": [self.value], "end": [""]})

    def test_several_secrets_and_endpoints(self):
        other = "oth_" + "0123456789abcdef" * 2
        run = self.inside(
            curl(f'{BEARER} -H "X-Api-Key: $OTHER" {URL}/plain', f"{BEARER} {OTHER_URL}/plain"),
            [VAULT, OTHER_VAULT, sealed(to=(f"{HOST}:443", "other-vault.example.test:443")),
             sealed("header:X-Api-Key", name="OTHER")], env={"OTHER": other})
        self.assertEqual(run.output, "plain\n" * 2, run)
        self.assertNotIn(other, str(run))
        first, second = (record["head"] for record in self.received())
        self.assertIn(other, first)
        for head in (first, second):
            self.assertIn(f"Bearer {self.value}", head)

    def test_the_environment_holds_a_placeholder_of_the_same_shape(self):
        self.value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
        code = "import json, os; print(json.dumps(dict(os.environ)))"
        run = self.inside([launch.PYTHON, "-I", "-c", code], [VAULT, sealed()])
        placeholder = json.loads(run.output)["TOKEN"]
        self.assertRegex(placeholder, r"^ghp_[0-9A-Za-z]{36}$")
        again = self.inside([launch.PYTHON, "-I", "-c", code], [VAULT, sealed()])
        self.assertNotEqual(json.loads(again.output)["TOKEN"], placeholder)


class Clients(SealCase):
    """Programs of several languages, none of which is told anything."""

    def assert_asks(self, command, *, allow=(), times=2, output='"status"', env=None):
        run = self.inside([*command, f"{URL}/echo", f"{URL}/plain"],
                          [VAULT, sealed(), *self.reads, *allow], env=env)
        self.assertEqual(run.output.count(output), times, run)
        self.assert_received(f"uthorization: Bearer {self.value}", times=2)
        self.assertEqual([line["status"] for line in run.find(event="request")], [200, 200], run)
        return run

    def build(self, *command, **env):
        subprocess.run(command, cwd=self.clients, check=True, timeout=BUILD_SECONDS,
                       capture_output=True,
                       env={"PATH": os.defpath, "HOME": self.tree.root, **env})

    def test_python(self):
        for how in ("urllib", "requests"):
            with self.subTest(how=how):
                self.lab.vault.clear()
                self.assert_asks([launch.PYTHON, "-I", f"{self.clients}/ask.py", how])

    def test_node(self):
        for how in ("fetch", "https", "http2"):
            with self.subTest(how=how):
                self.lab.vault.clear()
                self.assert_asks([launch.NODE, f"{self.clients}/ask.mjs", how])

    def test_go(self):
        program = self.tree.path("ask-go")
        self.build("go", "build", "-o", program, "ask.go", CGO_ENABLED="0", GO111MODULE="off")
        run = self.assert_asks([program])
        self.assertEqual(run.output.count("HTTP/2.0"), 2, run)

    def test_java(self):
        classes = self.tree.directory("classes")
        self.build("javac", "-d", classes, "Ask.java")
        for version in ("HTTP_1_1", "HTTP_2"):
            with self.subTest(version=version):
                self.lab.vault.clear()
                self.assert_asks(
                    [JAVA, "-cp", classes, "Ask", version], output=f"{version} 200\n",
                    allow=[f"fs:read:{classes}/**", f"fs:read:{java_settings()}/**"])

    def test_git(self):
        script = (f'/usr/bin/git clone -q "https://someone:$TOKEN@{HOST}/repository.git" '
                  f"{self.work}/clone && cat {self.work}/clone/note")
        run = self.inside(["/bin/sh", "-c", script],
                          [VAULT, sealed("basic"), "exec:spawn:git", "exec:spawn:cat",
                           f"fs:write:{self.work}/**"])
        self.assertEqual(run.output, "a note\n", run)
        credentials = base64.b64encode(f"someone:{self.value}".encode()).decode()
        self.assertIn(credentials, str(self.received()))
        with open(f"{self.work}/clone/.git/config", encoding="utf-8") as file:
            self.assertNotIn(self.value, file.read())

    def test_endpoints_without_a_secret_stay_end_to_end(self):
        """Their certificate is the origin's own."""
        script = ("import socket, ssl\n"
                  "context = ssl.create_default_context()\n"
                  f"for name in ('{HOST}', 'other-vault.example.test'):\n"
                  "    with socket.create_connection((name, 443), 5) as plain:\n"
                  "        with context.wrap_socket(plain, server_hostname=name) as tls:\n"
                  "            issuer = dict(x[0] for x in tls.getpeercert()['issuer'])\n"
                  "            print(issuer['commonName'] == 'Lab authority')\n")
        run = self.inside([launch.PYTHON, "-I", "-c", script], [VAULT, OTHER_VAULT, sealed()])
        self.assertEqual(run.output, "False\nTrue\n", run)


class Streams(SealCase):
    ALLOW = (VAULT, RAW_VAULT, sealed())

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
                urls = " ".join([f"{URL}/echo", f"{URL}/status/204", f"{URL}/chunked"] * 5)
                run = self.ask(f"{version} {BEARER} -o /dev/null -w '%{{num_connects}}\\n' {urls}")
                self.assertEqual(sum(map(int, run.output.split())), 1, run)
                self.assert_received(f"Bearer {self.value}", times=15)
                self.assertEqual(len(run.find(event="connect", verdict="allowed")), 1, run)

    def test_requests_at_the_same_time(self):
        urls = " ".join(f"{URL}/echo?{number}" for number in range(20))
        run = self.ask(f"--http2 --parallel --parallel-max 20 {BEARER} -o /dev/null {urls}")
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
                          [allow or self.ALLOWED, sealed(to=(f"{HOST}:443",)),
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
                    f"{version} --path-as-is '{URL}//repos/acme/box'")
                self.assertEqual(statuses, ["200", "200"] + ["403"] * 7, run)
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
                    f"{version} -w '%{{http_code}} ' {URL}/user {URL}/repos/acme/box")
                self.assertEqual(sorted(statuses), ["200", "403"], run)


class Certificates(SealCase):
    """A broken certificate is the error that the client reports without a sandbox."""

    NAMES = ("expired.example.test", "self-signed.example.test", "misnamed.example.test")

    def allow(self, name):
        return [f"net:connect:{name}:443", sealed(to=(f"{name}:443",)), *self.reads]

    def test_the_clients_report_their_own_errors(self):
        clients = {
            "curl": lambda url: curl(f"{BEARER} {url}"),
            "node": lambda url: [launch.NODE, f"{self.clients}/ask.mjs", "https", url],
            "python": lambda url: [launch.PYTHON, "-I", f"{self.clients}/ask.py", "urllib", url]}
        for name in self.NAMES:
            for client, command in clients.items():
                with self.subTest(name=name, client=client):
                    words = command(f"https://{name}/plain")
                    control = self.outside(words, env={"NODE_EXTRA_CA_CERTS": self.lab.ca})
                    run = self.inside(words, self.allow(name))
                    self.assertEqual((run.code, run.output), (control.code, control.output), run)
                    if client == "curl":
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
                run = self.inside(curl(f"-k {BEARER} https://{name}/plain"), self.allow(name))
                self.assert_no_value_arrived()
                self.assertEqual(self.received(), [], run)


class Silence(SealCase):
    """The value is in nothing that capgate writes."""

    def test_no_text_of_capgate_holds_the_value(self):
        report = os.path.join(self.work, "report.json")
        run = self.inside(curl(f"{BEARER} {URL}/echo?x=y", f"-H 'X-Private: header-value' {URL}/p"),
                          [VAULT, sealed()], options=["--report", report])
        with open(report, encoding="utf-8") as file:
            self.assertNotIn(self.value, file.read())
        line = run.assert_line(event="request", path="/echo")
        self.assertEqual((line["method"], line["status"], line["secrets"], line["host"]),
                         ("GET", 200, "TOKEN", HOST))
        plain = run.assert_line(event="request", path="/p")
        self.assertFalse(plain.get("secrets"))
        text = json.dumps(run.lines)
        for header in ("header-value", "Bearer", "x=y"):
            self.assertNotIn(header, text)
        run.assert_line(reason="scrubbed")

    def test_the_plan_holds_no_value(self):
        for options in (["--dry-run"], ["--dry-run", "--secret", "TOKEN=env:TOKEN"]):
            run = self.inside(["/usr/bin/true"], [VAULT, sealed()], options=options)
            self.assertIn("TOKEN", run.output)

    def test_arguments_and_environment_of_every_process_hold_none(self):
        """But for what the launcher itself was given."""
        process = self.start(self.sandboxed(["/bin/sh", "-c", "echo ready; read -r _"],
                                            [VAULT, sealed()], ["--secret", "TOKEN=env:GIVEN"],
                                            self.new_audit()),
                             env={"TOKEN": "", "GIVEN": self.value})
        self.assertEqual(process.stdout.readline(), b"ready\n")
        shown = self.lab.run_as_root(
            "/bin/sh", "-c", "for p in /proc/[0-9]*; do cat $p/cmdline; echo; "
            "case $(cat $p/comm) in capgate) ;; *) cat $p/environ;; esac; echo; done")
        self.assertIn("capgate-broker-tls", shown)
        self.assertNotIn(self.value, shown)


class Asking(SealCase):
    """A client that lives on and asks when it is told to."""

    def start_asker(self, *options, allow=(), env=None):
        self.audit = self.new_audit()
        self.server = self.start(
            self.sandboxed([launch.PYTHON, "-I", f"{self.clients}/ask.py", "urllib", "-"],
                           [VAULT, *(allow or [sealed()]), *self.reads], options, self.audit),
            env=env)

    def ask(self, url=f"{URL}/plain"):
        self.server.stdin.write(url.encode() + b"\n")
        self.server.stdin.flush()
        line = self.server.stdout.readline()
        if not line:
            self.fail(launch.finish(self.server, None).stderr.decode())
        return json.loads(line)

    def end(self):
        done = launch.finish(self.server)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Run(self, done, self.audit)

    def tokens(self):
        return [line.split(" ")[-1] for record in self.received()
                for line in record["head"].split("\r\n")
                if line.lower().startswith("authorization:")]


class Renewal(Asking):
    def setUp(self):
        super().setUp()
        self.state = self.tree.directory("tokens")
        self.script = self.tree.file(
            "tokens/issue", f"#!/bin/sh\nset -e\ncd {self.state}\ntest ! -e closed\n"
            f"echo x >>count\necho issued_{self.value}_$(wc -l <count)\n")
        os.chmod(self.script, 0o755)

    def wait_for(self, condition):
        """Asks until the condition holds for an answer."""
        for _ in range(2000):
            answer = self.ask()
            if condition(answer):
                return answer
        return self.fail(f"it never came: {answer}")

    def test_the_next_value_is_used_when_one_has_expired(self):
        self.start_asker("--secret", f"TOKEN=cmd?ttl=1:{self.script}", env={"TOKEN": ""})
        self.assertEqual(self.ask().get("status"), 200)
        self.wait_for(lambda _: len(set(self.tokens())) >= 3)
        run = self.end()
        self.assert_hidden(run)
        numbers = [int(token.rsplit("_", 1)[1]) for token in self.tokens()]
        self.assertEqual(numbers, sorted(numbers))
        for token in self.tokens():
            self.assertTrue(token.startswith(f"issued_{self.value}_"), token)

    def test_a_failed_renewal_refuses_requests(self):
        self.start_asker("--secret", f"TOKEN=cmd?ttl=1:{self.script}", env={"TOKEN": ""})
        self.tree.file("tokens/closed", "")
        refused = self.wait_for(lambda answer: answer.get("status") == 503)
        self.assertIn("renew", refused["body"])
        arrived = len(self.received())
        self.assertEqual(self.ask().get("status"), 503)
        self.assertEqual(len(self.received()), arrived)
        for token in self.tokens():
            self.assertTrue(token.startswith(f"issued_{self.value}_"), token)
        os.unlink(self.tree.path("tokens/closed"))
        self.wait_for(lambda answer: answer.get("status") == 200)
        run = self.end()
        self.assert_hidden(run)
        run.assert_denied(event="request", reason="not-renewed")

    def test_json_tells_when_it_expires(self):
        path = self.tree.file("tokens/json", "#!/bin/sh\nprintf '{\"value\": \"%s\", "
                              f"\"expires_in\": 3600}}' \"$({self.script})\"\n")
        os.chmod(path, 0o755)
        self.start_asker("--secret", f"TOKEN=cmd?json:{path}", env={"TOKEN": ""})
        for _ in range(3):
            self.assertEqual(self.ask().get("status"), 200)
        self.end()
        self.assertEqual(self.tokens(), [f"issued_{self.value}_1"] * 3)


class Broker(Asking):
    def brokers(self):
        return self.lab.run_as_root("/bin/sh", "-c", "pidof capgate-broker-tls || true").split()

    def test_a_broker_that_dies_is_replaced_by_one_of_the_same_authority(self):
        self.start_asker()
        self.assertEqual(self.ask().get("status"), 200)
        (broker,) = self.brokers()
        self.lab.run_as_root("/usr/bin/kill", "-9", broker)
        answer = {}
        for _ in range(200):
            answer = self.ask()
            if answer.get("status") == 200:
                break
        self.assertEqual(answer.get("status"), 200, answer)
        self.assertNotEqual(self.brokers(), [broker])
        run = self.end()
        self.assert_hidden(run)
        self.assertEqual(len(run.find(event="restart")), 1, run)
        self.assertLessEqual(set(self.tokens()), {self.value})

    def test_without_a_sealed_secret_no_tls_is_spoken_by_the_broker(self):
        self.start_asker(allow=["env:inject:TOKEN"])
        self.assertEqual(self.ask().get("error") is None, False)
        self.assertEqual(self.brokers(), [])
        self.end()


class SealOption(SealCase):
    def manifest(self, *capabilities, **more):
        return self.tree.file("manifest.json", json.dumps({**launch.server(*capabilities), **more}))

    def test_a_plain_manifest_is_sealed(self):
        path = self.manifest(VAULT, "env:inject:TOKEN", CURL_ALLOWED)
        for options in (["--seal", "-m", path],
                        ["-m", self.manifest(VAULT, "env:inject:TOKEN", CURL_ALLOWED, seal=True)]):
            with self.subTest(options=options):
                self.lab.vault.clear()
                run = self.inside(curl(f"{BEARER} {URL}/plain"), options=options)
                self.assertEqual(run.output, "plain\n", run)
                self.assert_received(f"Bearer {self.value}")

    def test_where_the_host_is_not_clear_the_line_to_write_is_said(self):
        path = self.manifest(VAULT, OTHER_VAULT, "env:inject:TOKEN")
        said = self.refusal(options=["--seal", "-m", path])
        self.assertIn(f"env:inject:TOKEN?to={HOST}:443", said)

    def test_secrets_that_sign_are_refused(self):
        said = self.refusal(allow=[VAULT, sealed(name="AWS_SECRET_ACCESS_KEY")],
                            env={"AWS_SECRET_ACCESS_KEY": "x" * 40})
        self.assertIn("sign", said)


class StartedByRoot(SealCase):
    """Root of the machine, in the lab's networks."""

    def start(self, command, **options):
        words = ["/usr/bin/nsenter", f"--target={self.lab.pid}", "--mount", "--net", "--pid", "--",
                 *command]
        pipe = subprocess.PIPE
        env = self.environment(options.pop("env", None))
        process = subprocess.Popen(
            words, cwd="/", env={"PATH": "/usr/bin:/bin", **env},
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **options})
        return process

    def test_the_service_gets_the_value_and_the_client_does_not(self):
        run = self.inside(curl(*(f"{version} {BEARER} {URL}/echo" for version in BOTH)),
                          [VAULT, sealed()])
        self.assertEqual(run.code, 0, run)
        self.assert_received(f"Bearer {self.value}", times=2)
        self.assertEqual([line["status"] for line in run.find(event="request")], [200, 200])


if __name__ == "__main__":
    unittest.main()
