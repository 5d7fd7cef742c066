"""A sealed secret of capgate.yaml: the service gets the value, the server never has it."""

import json
import unittest

import launch
from egress_cases import Run
from seal_cases import BEARER, CURL_ALLOWED, URL, VAULT, SealCase, curl, open_lab


def setUpModule():
    open_lab()


class SealedByConfig(SealCase):
    def profile(self, *words, **entry):
        """The finished run of this entry."""
        path = self.tree.file("given.yaml", json.dumps({"servers": {"vault": entry}}))
        audit = self.new_audit()
        process = self.start([launch.CAPGATE, "run", "--audit", audit, "--config", path,
                              "--profile", "vault", *words])
        run = Run(self, launch.finish(process, b""), audit)
        self.assert_hidden(run)
        return run

    def test_the_value_goes_to_its_service_alone(self):
        run = self.profile(command=curl(f"{BEARER} {URL}/plain"), seal=True,
                           capabilities=[VAULT, "env:inject:TOKEN", CURL_ALLOWED],
                           secrets={"TOKEN": "env:TOKEN"})
        self.assertEqual(run.output, "plain\n", run)
        self.assert_received(f"Bearer {self.value}")

    def test_without_the_word_the_server_holds_it(self):
        """The control: what is sealed above is the entry's doing."""
        path = self.tree.file("given.yaml", json.dumps({"servers": {"vault": {
            "command": ["/bin/sh", "-c", "test \"$TOKEN\" = \"$WANTED\" && echo held"],
            "capabilities": ["env:inject:TOKEN", "env:read:WANTED"],
            "secrets": {"TOKEN": "env:TOKEN"}}}}))
        process = self.start([launch.CAPGATE, "run", "--config", path, "--profile", "vault"],
                             env={"WANTED": self.value})
        run = Run(self, launch.finish(process, b""))
        self.assertEqual(run.output, "held\n", run)


if __name__ == "__main__":
    unittest.main()
