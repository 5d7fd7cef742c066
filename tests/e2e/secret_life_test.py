"""Sealed secrets while a server lives: what is written, renewal, brokers that die, and --seal.
"""

import json
import os
import unittest

import launch
from egress_cases import Run
from seal_cases import (BEARER, CURL_ALLOWED, HOST, OTHER_VAULT, URL, VAULT, SealCase, curl,
                        open_lab, sealed)


def setUpModule():
    open_lab()


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
        self.assertIn("capgate-broker", shown)
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
        self.assertEqual(self.ask().get("status"), 200)
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
    def broker(self):
        """Its number, and which of the two it is."""
        (pid,) = self.lab.run_as_root("/usr/bin/pidof", "capgate-broker").split()
        return pid, os.path.basename(
            self.lab.run_as_root("/usr/bin/readlink", f"/proc/{pid}/exe").strip())

    def test_a_broker_that_dies_is_replaced_by_one_of_the_same_authority(self):
        self.start_asker()
        self.assertEqual(self.ask().get("status"), 200)
        first, name = self.broker()
        self.assertEqual(name, "capgate-broker-tls")
        self.lab.run_as_root("/usr/bin/kill", "-9", first)
        answer = {}
        for _ in range(200):
            answer = self.ask()
            if answer.get("status") == 200:
                break
        self.assertEqual(answer.get("status"), 200, answer)
        self.assertNotEqual(self.broker(), (first, name))
        run = self.end()
        self.assert_hidden(run)
        self.assertEqual(len(run.find(event="restart")), 1, run)
        self.assertLessEqual(set(self.tokens()), {self.value})

    def test_without_a_sealed_secret_no_tls_is_spoken_by_the_broker(self):
        self.start_asker(allow=["env:inject:TOKEN"])
        self.assertIn("CERTIFICATE_VERIFY_FAILED", self.ask().get("error", ""))
        self.assertEqual(self.broker()[1], "capgate-broker")
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
        self.assertRegex(said, r"write env:inject:TOKEN\?to=(other-)?vault\.example\.test:443")

    def test_secrets_that_sign_are_refused(self):
        said = self.refusal(allow=[VAULT, sealed(name="AWS_SECRET_ACCESS_KEY")],
                            env={"AWS_SECRET_ACCESS_KEY": "x" * 40})
        self.assertIn("sign", said)


if __name__ == "__main__":
    unittest.main()
