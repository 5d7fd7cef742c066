"""What the network attacks share: the lab of the egress tests, and attacks that are conversations.

An attack runs outside first, on the lab's host, where the forbidden side must have seen it, and
then in a sandbox, where it must not.
"""

import os
import shutil

from redteam import BUILT_PROBE, complete, wait_until  # noqa: F401  (finds the modules of ../e2e)

# pylint: disable=wrong-import-position
import launch  # noqa: E402, F401
from egress_cases import API, EgressCase, last_request, open_lab, request  # noqa: E402, F401
from egress_lab import addresses  # noqa: E402, F401
import dns_wire  # noqa: E402, F401  (found by the lab)

STUB = "net:connect:stub.example.test:80"
STUB_TLS = "net:connect:stub.example.test:443"


class NetworkAttack(EgressCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists(BUILT_PROBE):
            self.fail(f"{BUILT_PROBE} is missing: build the target redteam_probe")
        self.probe = shutil.copy(BUILT_PROBE, self.tree.path("probe"))
        os.chmod(self.probe, 0o755)

    def probe_outside(self, *attempts, **more):
        run = self.lab.run([self.probe, *attempts], **more)
        return complete(run, attempts)

    def probe_inside(self, *attempts, allow=()):
        process = self.start(self.sandboxed([self.probe, "--direct", *attempts], allow,
                                            audit=self.new_audit()))
        stdout, stderr = process.communicate(timeout=30)
        process.stdout, process.stderr = None, None
        done = type("Done", (), {"stdout": stdout, "stderr": stderr,
                                 "returncode": process.returncode})
        return complete(done, attempts)

    def seen(self):
        """Every connection and datagram that arrived anywhere, but for the resolver's own."""
        return [record for side in (self.lab.far, self.lab.near) for record in side.all()
                if record["kind"] != "dns"]

    def clear(self):
        self.lab.far.clear()
        self.lab.near.clear()

    def assert_seen_outside(self, *orders):
        """The control: each conversation arrived somewhere."""
        self.clear()
        run = self.outside(self.talk(*orders, together=True))
        arrived = [record for record in self.seen() if record["bytes"]]
        self.assertGreaterEqual(len(arrived), len(orders), f"a control did not arrive: {run}")
        self.clear()

    def attack(self, *orders, allow, **more):
        """The attack in a sandbox, after its control: what the attacker got, for a closer look."""
        self.assert_seen_outside(*orders)
        return self.talk_inside(*orders, allow=allow, together=True, **more)
