"""What the tests of sealed secrets share: a token, runs that must not show it, and what the service
that it is for has seen.

    class Asking(SealCase):
        def test_one(self):
            run = self.inside(curl('-H "Authorization: Bearer $TOKEN" https://vault.example.test/'),
                              [VAULT, sealed()])
            self.assert_received(f"Bearer {self.value}")
"""

import base64
import json
import re
import secrets
import urllib.parse

from egress_cases import EgressCase, Run, open_lab  # noqa: F401

HOST = "vault.example.test"
URL = f"https://{HOST}"
RAW_URL = f"https://{HOST}:8443"  # HTTP/1.1, and the service sees the very bytes
OTHER_URL = "https://other-vault.example.test"
VAULT = f"net:connect:{HOST}:443"
RAW_VAULT = f"net:connect:{HOST}:8443"
OTHER_VAULT = "net:connect:other-vault.example.test:443"
BEARER = '-H "Authorization: Bearer $TOKEN"'
BOTH = ("--http1.1", "--http2")
HERE = (f"{HOST}:443",)
BOTH_PORTS = (*HERE, f"{HOST}:8443")


def sealed(place=None, to=HERE, name="TOKEN"):
    """The capability; without a place the value may stand in Authorization."""
    words = [f"to={endpoint}" for endpoint in to] + ([f"as={place}"] if place else [])
    return f"env:inject:{name}?" + "&".join(words)


def curl(*commands):
    """One curl after the other, in a shell that knows the variables; see CURL_ALLOWED."""
    return ["/bin/sh", "-c", "\n".join(f"/usr/bin/curl -sS --max-time 10 {words}"
                                       for words in commands)]


CURL_ALLOWED = "exec:spawn:curl"


def spellings(value):
    """The texts that give a value away to whoever looks for it."""
    data = value.encode()
    quoted = urllib.parse.quote(value, safe="")
    found = {value, quoted, json.dumps(value)[1:-1],
             re.sub("%..", lambda escape: escape[0].lower(), quoted)}
    for pad in range(3):
        # Only what does not depend on the neighbours.
        encoded = base64.b64encode(b"\0" * pad + data)[4 if pad else 0:-4].decode()
        found |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return found


class SealCase(EgressCase):
    def setUp(self):
        super().setUp()
        self.value = f"tok_{secrets.token_hex(20)}"

    def environment(self, env=None):
        return {"HOME": self.home, "TOKEN": self.value, "SSL_CERT_FILE": self.lab.ca, **(env or {})}

    def assert_hidden(self, run):
        lines = "\n".join(json.dumps(line) for line in run.lines)
        for spelling in spellings(self.value):
            for place, text in (("stdout", run.output), ("stderr", run.said), ("audit", lines)):
                self.assertNotIn(spelling, text, f"{place} shows the value")

    def inside(self, command, allow=(), **more):  # pylint: disable=arguments-differ
        run = super().inside(command, [CURL_ALLOWED, *allow], **more)
        self.assert_hidden(run)
        return run

    # ---- what arrived -------------------------------------------------------------------------

    def received(self):
        return self.lab.vault.all()

    def assert_received(self, text, times=1):
        """So many requests came, each with this text."""
        heads = [record["head"] + "\r\n\r\n" + record["body"] for record in self.received()]
        self.assertEqual([text in head for head in heads], [True] * times, heads)

    def assert_no_value_arrived(self):
        for record in self.received():
            for spelling in spellings(self.value):
                self.assertNotIn(spelling, record["head"] + record["body"])
        for text in self.lab.vault.ask(do="bytes"):
            self.assertNotIn(self.value, text)
