"""A service that writes the token with Python's own libraries: nothing that a client reads of it,
by their inverse, is the value.
"""

import unittest

import egress_lab  # noqa: F401  finds the modules of lab/
import token_encodings
from seal_cases import BEARER, BOTH, RAW_URL, RAW_VAULT, URL, VAULT, SealCase, curl, open_lab, sealed
from seal_cases import BOTH_PORTS

# Each letter means something to one of the formats.
SPECIAL = 'a+b/c=d&e"f\\g%h?i#j<k>l\'m~n_o-p@q:r;s,t'


def setUpModule():
    open_lab()


class Encodings(SealCase):
    def setUp(self):
        super().setUp()
        self.value = self.value[:14] + SPECIAL

    def assert_none_is_readable(self, place, path):
        command = curl(f"{BEARER} {place}{path}")
        control = token_encodings.read_all(self.outside(command).output)
        self.assertEqual(set(control), set(token_encodings.ENCODINGS))
        for name, text in control.items():
            self.assertIn(self.value, text, f"{name}: the control is not readable")
        run = self.inside(command, [VAULT, RAW_VAULT, sealed(to=BOTH_PORTS)])
        found = token_encodings.read_all(run.output)
        self.assertEqual(run.code, 0, run)
        self.assertEqual(set(found), set(token_encodings.ENCODINGS), run)
        for name, text in found.items():
            self.assertNotIn(self.value, text, f"{name}: the value is readable")
            self.assertNotIn(SPECIAL[4:-4], text, f"{name}: most of the value is readable")
        run.assert_line(reason="scrubbed")

    def test_answers_as_a_whole(self):
        for version in BOTH:
            with self.subTest(version=version):
                self.assert_none_is_readable(f"{version} {URL}", "/encoded")

    def test_answers_byte_by_byte(self):
        self.assert_none_is_readable(RAW_URL, "/encoded_split")


if __name__ == "__main__":
    unittest.main()
