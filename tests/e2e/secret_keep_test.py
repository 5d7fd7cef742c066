"""Connections to an origin outlive the client's: how many there are, and that nobody notices.
"""

import unittest

from seal_cases import BEARER, RAW_URL, RAW_VAULT, SealCase, curl, open_lab, sealed

ALLOW = (RAW_VAULT, sealed(to=("vault.example.test:8443",)))
CLIENTS = 5


def setUpModule():
    open_lab()


class Kept(SealCase):
    def ask(self, *commands):
        """Each in a connection of its own, one after the other."""
        return self.inside(curl(*(f"{BEARER} {words}" for words in commands)), ALLOW)

    def connections(self):
        return len(self.lab.vault.ask(do="bytes"))

    def lines(self):
        """The first lines of what arrived."""
        return [record["head"].split(" HTTP")[0] for record in self.received()]

    def test_clients_one_after_the_other_share_a_connection(self):
        for words in ("", "-H 'Connection: close'"):
            with self.subTest(words=words):
                self.lab.vault.clear()
                run = self.ask(*(f"{words} {RAW_URL}/plain" for _ in range(CLIENTS)))
                self.assertEqual(run.output, "plain\n" * CLIENTS, run)
                self.assert_received(f"Bearer {self.value}", times=CLIENTS)
                self.assertEqual(self.connections(), 1, run.lines)
                opened = [line for line in run.lines if line["event"] == "connect"]
                self.assertEqual([line.get("reason") for line in opened],
                                 [None] + ["reused"] * (CLIENTS - 1))
                self.assertEqual(len({line["address"] for line in opened}), 1)

    def test_a_request_that_changes_something_arrives_once(self):
        """Also when the origin closes the connection that was kept, at whatever moment."""
        commands = [f"{RAW_URL}/leave", f"-d body {RAW_URL}/plain"] * CLIENTS
        run = self.ask(*commands)
        self.assertEqual(run.output, "plain\n" * len(commands), run)
        self.assertEqual(self.lines(), ["GET /leave", "POST /plain"] * CLIENTS)

    def test_a_request_that_changes_something_does_not_go_where_one_was(self):
        run = self.ask(f"{RAW_URL}/plain", f"-d body {RAW_URL}/plain", f"{RAW_URL}/plain")
        self.assertEqual(run.output, "plain\n" * 3, run)
        self.assertEqual(self.lines(), ["GET /plain", "POST /plain", "GET /plain"])
        self.assertEqual(self.connections(), 2)

    def test_what_nobody_asked_for_reaches_nobody(self):
        run = self.ask(*[f"{RAW_URL}/more", f"{RAW_URL}/plain"] * CLIENTS)
        self.assertEqual(run.output, "asked\nplain\n" * CLIENTS, run)
        self.assertEqual(self.lines(), ["GET /more", "GET /plain"] * CLIENTS)


if __name__ == "__main__":
    unittest.main()
