"""What a server does with the streams that it inherits: words on a terminal, floods, an input that it
holds open, sockets of the caller's, leases on granted files, and the caller's keys."""

import json
import os
import pty
import re
import socket
import time
import unittest

from redteam import ORDINARY, Redteam, as_user, canary, launch, signal_of, started_by_root_and_user

PYTHON = [launch.PYTHON, "-I", "-u", "-c"]
TICKS = os.sysconf("SC_CLK_TCK")


class Scripts(Redteam):
    """A script outside, as an ordinary user, and inside, started by whom the test says."""

    def outside_words(self, script, *arguments):
        return as_user([*PYTHON, script, *arguments], ORDINARY)

    def inside_words(self, script, *arguments, allow=(), options=()):
        return self.sandboxed([*PYTHON, script, *arguments], allow, options)


# ---- a terminal ---------------------------------------------------------------------------------

# In pieces, so that none of them holds what must not be seen.
FORGED = r"""
import os, time
def say(*pieces):
    for piece in pieces:
        os.write(2, piece)
        time.sleep(0.02)
say(b"first\n", b"capgate: all is well\n")
say(b"cap", b"gate", b":", b" in pieces\n")
say(b"x" * 80, b"capgate: after a wrapped line\n")
say(b"over\rcapgate: written over\n", b"back\b\b\b\bcapgate: moved back\n")
say(b"\x1b[2J\x1b[H", b"\x1b]0;title\x07", b"\x9b2J", b"\xc2\x9b2J", b"\x0e\x7f\x00\n")
say(b"\x1b[A\x1b[2Kcapgate: the line above\n", b"end\n")
"""


@started_by_root_and_user
class TerminalWords(Scripts):
    """stderr is a real terminal: what the server says cannot be taken for capgate's words."""

    def shown(self, words):
        """What a terminal gets, up to the last word."""
        master, slave = pty.openpty()
        os.fchown(slave, ORDINARY, ORDINARY)
        try:
            process = self.start(words, stderr=slave)
            os.close(slave)
            process.stdin.close()
            text = b""
            while b"end\r\n" not in text:
                text += os.read(master, 65536)
            process.stdin = None
            self.assertEqual(process.wait(launch.SECONDS), 0)
        finally:
            os.close(master)
        return text

    def test_no_line_of_capgates_and_no_escape_sequence(self):
        outside = self.shown(self.outside_words(FORGED))
        self.assertRegex(outside, rb"(?m)^capgate: ")
        self.assertIn(b"\x1b[2J", outside)
        inside = self.shown(self.inside_words(FORGED))
        # Wherever a terminal begins a line: after a line's end, or where it wraps.
        self.assertNotIn(b"capgate:", inside)
        self.assertIn(rb"capgate\x3a all is well", inside)
        lines = inside.replace(b"\r\n", b"\n")
        self.assertEqual(re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]", lines), [], inside)
        self.assertNotIn(b"\xc2\x9b", inside)
        inside.decode("utf-8")  # a lone 0x9b, which some terminals obey, would not be UTF-8

    def test_a_pipe_gets_the_words_as_they_are(self):
        """For a client that reads them, nothing changes."""
        done = self.finish(self.inside_words(FORGED))
        self.assertIn(b"\x1b[2J\x1b[H", done.stderr)
        self.assertIn(b"capgate: in pieces\n", done.stderr)


# ---- floods -------------------------------------------------------------------------------------

FLOOD = """
import os, time
os.set_blocking(2, False)
block = bytes(65536)
written = 0
end = time.monotonic() + 2
while time.monotonic() < end:
    try: written += os.write(2, block)
    except BlockingIOError: pass
used = time.process_time()
print(used, flush=True)
os.read(0, 1)
"""


@started_by_root_and_user
class Flood(Scripts):
    def processor_seconds(self, pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def test_36_a_flood_costs_the_supervisor_almost_nothing(self):
        """A server that does nothing but write uses a processor; who discards it, next to none.
        The control is what a plain reader of the same flood uses."""
        inside = self.ratio(self.inside_words(FLOOD))
        self.assertLess(inside, 0.05, "of the server's own processor time")
        print(f"note: a flood costs the supervisor {inside:.3f} of the server's processor time")

    def ratio(self, words):
        with open(os.devnull, "wb") as nowhere:
            process = self.start(words, stderr=nowhere)
            used = float(process.stdout.readline())
            own = self.processor_seconds(process.pid)
        process.stdin.write(b"x")
        process.stdin.close()
        process.stdin = None
        self.assertEqual(process.wait(launch.SECONDS), 0)
        self.assertGreater(used, 0.3, "the control: the server was busy")
        return own / used


# ---- an input that the server holds open ----------------------------------------------------------

# A pipe can be opened again for writing: it then has a writer as long as the server lives.
HOLD_OPEN = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE): signal.signal(number, signal.SIG_IGN)
try:
    held = os.open("/proc/self/fd/0", os.O_RDWR)
    print("held", flush=True)
except OSError as error:
    print(error.strerror, flush=True)
while os.read(0, 1): pass
print("ended", flush=True)
signal.pause()
"""


@started_by_root_and_user
class HeldInput(Scripts):
    def start_held(self, words):
        """A server whose client is gone. The pipe is its user's, as that of a client would be."""
        theirs, ours = os.pipe()
        os.fchown(theirs, ORDINARY, ORDINARY)
        process = self.start(words, stdin=theirs)
        os.close(theirs)
        self.said = process.stdout.readline()
        os.close(ours)
        return process

    def test_control_outside_the_end_is_never_seen(self):
        process = self.start_held(self.outside_words(HOLD_OPEN))
        self.assertEqual(self.said, b"held\n")
        time.sleep(1)
        self.assertEqual(launch_unread(process), b"")

    def test_grace_ends_it(self):
        start = time.monotonic()
        process = self.start_held(self.inside_words(HOLD_OPEN, options=["--grace", "1"]))
        self.assertEqual(signal_of(process.wait(launch.SECONDS)), "SIGKILL")
        self.assertGreaterEqual(time.monotonic() - start, 2)
        self.assertIn(b"capgate: the server did not end after its input did",
                      process.stderr.read())

    def test_grace_ends_it_with_a_socket_as_input(self):
        ours, theirs = socket.socketpair()
        with ours:
            process = self.start(self.inside_words(HOLD_OPEN, options=["--grace", "1"]),
                                 stdin=theirs)
            theirs.close()
            self.assertTrue(process.stdout.readline())
        self.assertEqual(signal_of(process.wait(launch.SECONDS)), "SIGKILL")


def launch_unread(process):
    """What the process has written by now."""
    os.set_blocking(process.stdout.fileno(), False)
    return process.stdout.read() or b""


# ---- sockets of the caller's -----------------------------------------------------------------------

# On each standard stream and a duplicate of it.
SOCKETS = r"""
import array, errno, fcntl, json, os, socket, struct, sys
name = b"\0" + sys.argv[1].encode()
def attempt(call, fd):
    try:
        return call(fd) or "OPEN"
    except OSError as error:
        return errno.errorcode[error.errno]
def on(fd): return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=os.dup(fd))
def bind(fd):
    with on(fd) as own: own.bind(name + bytes([fd + 65]))
def connect(fd):
    with on(fd) as own: own.connect(name)
def listen(fd):
    with on(fd) as own: own.listen(1)
def interfaces(fd):
    room = array.array("B", bytes(4096))
    fcntl.ioctl(fd, 0x8912, struct.pack("iL", len(room), room.buffer_info()[0]))
def address(fd):
    fcntl.ioctl(fd, 0x8927, struct.pack("16s24x", b"lo"))
calls = [bind, connect, listen, interfaces, address]
found = {call.__name__: [attempt(call, fd) for fd in (0, 1, 2)] for call in calls}
os.write(1, json.dumps(found).encode() + b"\n")
"""
SHUT = {"ENOTSOCK", "EPERM", "ENOTTY"}


@started_by_root_and_user
class InheritedSockets(Scripts):
    """As Node's clients start servers: each stream is one end of a pair of sockets."""

    def tried(self, words):
        ours, theirs = socket.socketpair()
        errors, their_errors = socket.socketpair()
        with ours, errors, their_errors:
            process = self.start(words, stdin=theirs, stdout=theirs, stderr=their_errors)
            theirs.close()
            text = b""
            while not text.endswith(b"\n"):
                more = ours.recv(65536)
                self.assertTrue(more, "no answer")
                text += more
            self.assertEqual(process.wait(launch.SECONDS), 0)
        return {name: set(results) for name, results in json.loads(text).items()}

    def test_20_they_are_not_sockets_of_the_hosts_network(self):
        outside = self.tried(self.outside_words(SOCKETS, canary()))
        for name in ("bind", "interfaces", "address"):
            self.assertIn("OPEN", outside[name], outside)
        inside = self.tried(self.inside_words(SOCKETS, canary()))
        for name, results in inside.items():
            self.assertLessEqual(results, SHUT, f"{name}: {inside}")

    def test_bytes_pass_both_ways(self):
        ours, theirs = socket.socketpair()
        with ours:
            process = self.start(self.sandboxed(["/usr/bin/cat"]), stdin=theirs, stdout=theirs)
            theirs.close()
            sent = os.urandom(300_000)
            ours.setblocking(True)
            ours.settimeout(launch.SECONDS)
            received = exchange(ours, sent)
            self.assertTrue(received == sent)
            self.assertEqual(process.wait(launch.SECONDS), 0)


def exchange(stream, sent):
    """Everything that comes back, while everything is sent."""
    child = os.fork()
    if child == 0:
        stream.sendall(sent)
        stream.shutdown(socket.SHUT_WR)
        os._exit(0)
    received = b""
    while more := stream.recv(65536):
        received += more
    os.waitpid(child, 0)
    return received


# ---- leases and keys ------------------------------------------------------------------------------

# A lease makes every program of the host wait that opens the file.
LEASE = """
import errno, fcntl, os, sys
for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
    file = os.open(sys.argv[1], os.O_RDONLY)
    try:
        fcntl.fcntl(file, 1024, kind)
        print("OPEN", end=" ", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], end=" ", flush=True)
    os.close(file)
"""
ADD_KEY = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(250, 1, None)  # a session keyring of its own
if libc.syscall(248, b"user", sys.argv[1].encode(), b"secret", 6, -3) < 0: sys.exit(9)
os.execv(sys.argv[2], sys.argv[2:])
"""


@started_by_root_and_user
class LeasesAndKeys(Scripts):
    def test_36_leases_are_refused(self):
        file = self.tree.file("work/note", "text")
        os.chown(file, ORDINARY, ORDINARY)
        outside = self.finish(self.outside_words(LEASE, file)).stdout
        self.assertEqual(outside.split(), [b"OPEN", b"OPEN"])
        grant = f"fs:write:{self.work}/**"
        inside = self.finish(self.inside_words(LEASE, file, allow=[grant]))
        self.assertEqual(inside.stdout.split(), [b"EPERM", b"EPERM"], inside.stderr)

    def test_35_keys_of_the_caller_are_not_listed(self):
        name = canary()
        reader = ["/usr/bin/cat", "/proc/keys", "/proc/key-users"]
        outside = self.finish(as_user([*PYTHON, ADD_KEY, name, *reader], self.uid))
        if outside.returncode == 9:
            self.not_testable("needs keyrings")
        self.assertIn(name.encode(), outside.stdout)
        words = self.sandboxed(reader)
        inside = self.finish([*PYTHON, ADD_KEY, name, *words])
        self.assertEqual((inside.returncode, inside.stdout), (0, b""), inside.stderr.decode())


if __name__ == "__main__":
    unittest.main()
