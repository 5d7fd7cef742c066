"""Sealed secrets, end to end: the service gets the value, the client never has it.

No client here is told what to trust. Each run is searched for the value: stdout, stderr, audit.
"""

import base64
import json
import os
import subprocess
import unittest
import urllib.parse

import launch
from cases import stop
from egress_lab import addresses
from run_languages_test import JAVA, java_settings
from seal_cases import (BEARER, BOTH, HOST, OTHER_URL, OTHER_VAULT, URL, VAULT, SealCase, curl,
                        open_lab, sealed)

BUILD_SECONDS = 240
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
                       env={**launch.build_environment(self.tree.root), **env})

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


class StartedByRoot(SealCase):
    """Root of the machine, in the lab's network."""

    def start(self, command, **options):
        resolver = self.tree.file("resolv.conf", f"nameserver {addresses.RESOLVER}\n")
        script = 'mount --bind "$0" "$(realpath /etc/resolv.conf)" && exec "$@"'
        words = ["/usr/bin/nsenter", f"--net=/proc/{self.lab.pid}/ns/net", "--",
                 "/usr/bin/unshare", "--mount", "--", "/bin/sh", "-c", script, resolver, *command]
        pipe = subprocess.PIPE
        env = self.environment(options.pop("env", None))
        process = subprocess.Popen(
            words, cwd="/", env={"PATH": "/usr/bin:/bin", **env},
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **options})
        self.addCleanup(stop, process)
        return process

    def test_the_service_gets_the_value_and_the_client_does_not(self):
        run = self.inside(curl(*(f"{version} {BEARER} {URL}/echo" for version in BOTH)),
                          [VAULT, sealed()])
        self.assertEqual(run.code, 0, run)
        self.assert_received(f"Bearer {self.value}", times=2)
        self.assertEqual([line["status"] for line in run.find(event="request")], [200, 200])


if __name__ == "__main__":
    unittest.main()
