"""--egress-target squid, with the real squid in a lab of its own."""

import os
import subprocess
import tempfile
import unittest

import launch
from egress_cases import open_lab
from egress_target_cases import RULES, Module, ProxyCase, ProxyTests, compile_egress

SQUID = "/usr/sbin/squid"


def setUpModule():
    open_lab()


class Squid(ProxyTests, ProxyCase):
    target = "squid"

    @classmethod
    def command(cls, file):
        return [SQUID, "-N", "-f", file]

    @property
    def tls(self):
        return ("--cacert", Module.lab.ca)


class Parsed(unittest.TestCase):
    def parse(self, text, uid):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)
            return subprocess.run([SQUID, "-k", "parse", "-f", file.name], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  preexec_fn=lambda: launch.become(uid)).stdout

    def test_squid_takes_every_line_without_a_complaint(self):
        (file,) = compile_egress("squid", *RULES)["files"]
        for uid in (0, launch.ORDINARY):
            said = self.parse(file["contents"], uid)
            complaints = [line for line in said.splitlines()
                          if any(word in line for word in ("WARNING", "ERROR", "FATAL", "Bungled"))]
            # That it does not name itself to origins is meant.
            self.assertEqual([line for line in complaints if "use of Via" not in line], [])
            lines = [line for line in file["contents"].splitlines() if not line.startswith("#")]
            self.assertEqual(said.count("Processing: "), len(lines))

    def test_a_broken_file_would_be_seen(self):
        self.assertIn("Bungled", self.parse("http_access allow nothing_like_it\n", 0))


if __name__ == "__main__":
    unittest.main()
