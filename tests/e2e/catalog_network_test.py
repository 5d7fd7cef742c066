"""The catalog's servers that use the network, against real counterparts in a network of the test's
own: an API host with TLS that takes tokens, a PostgreSQL, a web server.

Under the same manifest without one capability each fails, and what is said names the capability: a
refusal to start, the trace, the audit log, or the line for a server that ends with an error.
"""

import json
import os
import unittest

import database
import launch
import npm_servers
from catalog_cases import Box, read_remedies
from egress_cases import open_lab, read_audit
from egress_lab import addresses
from run_servers_test import LIST, call, node
from seal_cases import SealCase, spellings

FIXTURES = ("npm_servers",)
OFFICIAL = "@modelcontextprotocol/server-"


def setUpModule():
    npm_servers.install()
    open_lab()


class NetworkCase(SealCase):
    entry = None
    words = ()
    secret = None  # the variable that holds it

    @property
    def variables(self):
        return {self.secret: self.value} if self.secret else {}

    def box(self):
        return Box(self, self.entry, self.words, self.variables)

    def answer(self, box, *steps, options=()):
        """What came of a conversation on the lab's host; see drive.mjs."""
        env = {"HOME": self.home, "SSL_CERT_FILE": self.lab.ca, **self.variables}
        order = {"client": 1, "command": box.around(self.command, *options),
                 "env": env, "cwd": "/", "steps": steps}
        run = self.outside([launch.NODE, npm_servers.DRIVE], stdin=json.dumps(order).encode())
        self.assertEqual(run.code, 0, run)
        for spelling in spellings(self.value) if self.secret else ():
            self.assertNotIn(spelling, run.output)
        return json.loads(run.output)

    def converse(self, box, *steps):
        """The results of a conversation, and the audit lines of the sandbox."""
        audit = self.new_audit()
        answer = self.answer(box, *steps, options=("--audit", audit))
        self.assertNotIn("error", answer, answer["stderr"])
        lines = read_audit(audit)
        for spelling in spellings(self.value) if self.secret else ():
            self.assertNotIn(spelling, json.dumps(lines))
        return answer["results"], lines

    def assert_works(self, *steps):
        box = self.box()
        (listed, *results), _ = self.converse(box, LIST, *steps)
        self.assertEqual(set(listed) - box.tools, set())
        for step, result in zip(steps, results, strict=True):
            self.assertIn("text", result, step)
        return [result["text"] for result in results]

    def assert_not_started(self, capability):
        """Without the capability nothing runs: the secret could go nowhere."""
        answer = self.answer(self.box().without(capability), LIST)
        self.assertIn(f"help: add {capability}, or", answer["error"])

    def assert_traced(self, capability, step, remedy):
        """Without the capability there is no network, and the trace names what would allow one."""
        trace = os.path.join(self.tree.directory("traces"), "trace")
        answer = self.answer(self.box().without(capability), step, options=("--trace", trace))
        result, = answer.get("results") or [answer]
        self.assertIn("error", result)
        self.assertIn(remedy, read_remedies(trace))

    def assert_logged(self, capability, step, remedy):
        """The same where there is a network for something else: the audit log names it."""
        box = self.box().without(capability)
        # A secret that can go nowhere is a mistake of its own.
        for items in box.lists():
            items[:] = [item for item in items if not item.startswith("env:inject:")]
        # So that there is a network at all, and a log of what is refused.
        box.manifest.setdefault("serverCapabilities", []).append("net:connect:victim.test:443")
        (result,), lines = self.converse(box, step)
        self.assertIn("error", result)
        self.assertIn(remedy, [line.get("remedy") for line in lines], lines)


class Github(NetworkCase):
    entry = "github"
    secret = "GITHUB_PERSONAL_ACCESS_TOKEN"
    command = property(lambda self: node(f"{OFFICIAL}github/dist/index.js"))
    search = call("search_repositories", query="box")

    def test_the_service_gets_the_token(self):
        found, text, issue = self.assert_works(
            self.search, call("get_file_contents", owner="acme", repo="box", path="README"),
            call("create_issue", owner="acme", repo="box", title="an issue", body="of a box"))
        self.assertIn("acme/box", found)
        self.assertIn("a box", text)
        self.assertIn("an issue", issue)
        self.assert_received(f"uthorization: Bearer {self.value}", times=3)

    def test_what_it_lacks_is_named(self):
        self.assert_not_started("net:connect:api.github.com:443")
        self.assert_logged("net:connect:api.github.com:443", self.search,
                           "net:connect:api.github.com:443")


class BraveSearch(NetworkCase):
    entry = "brave-search"
    secret = "BRAVE_API_KEY"
    command = property(lambda self: node(f"{OFFICIAL}brave-search/dist/index.js"))
    search = call("brave_web_search", query="box")

    def test_the_service_gets_the_key(self):
        found, = self.assert_works(self.search)
        self.assertIn("a box", found)
        (record,) = self.received()
        self.assertRegex(record["head"], f"(?i)\r\nx-subscription-token: {self.value}\r\n")

    def test_what_it_lacks_is_named(self):
        self.assert_not_started("net:connect:api.search.brave.com:443")
        box = self.box().without("env:inject:BRAVE_API_KEY?to=api.search.brave.com:443"
                                 "&as=header:X-Subscription-Token")
        answer = self.answer(box, LIST)
        self.assertIn("error", answer)
        self.assertTrue(answer["stderr"].endswith(
            "capgate: the server ended with status 1, and its policy lacks what brave-search of the"
            " catalog has:\n  env:inject:BRAVE_API_KEY?as=header:x-subscription-token"
            "&to=api.search.brave.com:443\n"), answer["stderr"])


class Postgres(NetworkCase):
    entry = "postgres"
    words = ("postgresql://lab@db.example.test:5432/postgres",)
    command = property(lambda self: node(f"{OFFICIAL}postgres/dist/index.js", *self.words))
    query = call("query", sql="select 6 * 7 as answer")

    def setUp(self):
        super().setUp()
        database.start(self)

    def test_a_query_is_answered(self):
        answer, = self.assert_works(self.query)
        self.assertEqual(json.loads(answer), [{"answer": 42}])

    def test_what_it_lacks_is_named(self):
        capability = "net:connect:${DB_HOST}:${DB_PORT}"
        self.assert_traced(capability, self.query, "net:connect:db.example.test:5432")
        # The name is asked for first, and a question for a name has no port: the catalog knows it.
        self.assert_logged(capability, self.query, "net:connect:db.example.test:5432")


class Fetch(NetworkCase):
    """It looks a name up itself and refuses private addresses: the sandbox's answer is none."""

    entry = "fetch-npm"
    command = property(lambda self: node("mcp-fetch-server/dist/index.js"))
    page = call("fetch_txt", url="http://api.example.test/")

    def test_a_page_is_fetched(self):
        self.assert_works(self.page)

    def test_a_private_address_is_out_of_reach(self):
        box = self.box()
        done = self.inside(["/usr/bin/curl", "-sS", "--max-time", "5",
                            f"http://{addresses.PRIVATE}/"],
                           [item for items in box.lists() for item in items if "net:" in item])
        done.assert_denied(host=addresses.PRIVATE)

    def test_what_it_lacks_is_named(self):
        self.assert_traced("net:connect:*", self.page, "net:connect:*")
        # Where some hosts are allowed, no more than the one that was asked for.
        self.assert_logged("net:connect:*", self.page, "net:connect:api.example.test:443")


if __name__ == "__main__":
    unittest.main()
