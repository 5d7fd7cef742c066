"""Attacks 1-3: the caller's terminal."""

import subprocess
import unittest

from redteam import FILTER, HIDDEN, ORDINARY, Redteam, Terminal, as_user, complete


class TerminalAttacks(Redteam):
    """The launcher is controlled by a terminal, which is also its standard input."""

    def setUp(self):
        super().setUp()
        self.terminal = Terminal()
        self.addCleanup(self.terminal.close)

    def attempt(self, argv, *attempts):
        process = self.start([*argv, *attempts], stdin=self.terminal.slave,
                             preexec_fn=self.terminal.take_control)
        stdout, stderr = process.communicate(timeout=20)
        done = subprocess.CompletedProcess(argv, process.returncode, stdout, stderr)
        return complete(done, attempts)

    def try_outside(self, *attempts):
        return self.attempt(as_user([self.probe], ORDINARY), *attempts)

    def try_inside(self, *attempts):
        return self.attempt(self.sandboxed([self.probe]), *attempts)

    def test_01_input_cannot_be_pushed_into_the_terminal(self):
        self.try_outside("tiocsti", "tiocsti_high")
        outside = self.terminal.pushed()
        self.assert_shut(self.try_inside("tiocsti", "tiocsti_high"), *FILTER)
        self.assertEqual(self.terminal.pushed(), b"")
        if outside != b"~~":
            self.not_testable("needs dev.tty.legacy_tiocsti=1")

    def test_02_the_console_cannot_be_pasted_into(self):
        """A pseudo terminal has no such call: outside the kernel says so, inside the filter."""
        self.assert_shut(self.try_outside("tioclinux"), "ENOTTY", "EINVAL")
        self.assert_shut(self.try_inside("tioclinux"), *FILTER)

    def test_03_the_terminal_cannot_be_opened_again(self):
        self.assert_open(self.try_outside("open_write=/dev/tty"))
        self.assert_shut(self.try_inside("open_write=/dev/tty"), "ENXIO", *HIDDEN)


if __name__ == "__main__":
    unittest.main()
