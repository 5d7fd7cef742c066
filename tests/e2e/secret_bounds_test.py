"""What a server can make the broker of sealed secrets use: memory, and requests a second."""

import os
import time
import unittest

import launch
from seal_cases import BEARER, URL, VAULT, SealCase, curl, open_lab, sealed

MIB = 1 << 20
CONNECTIONS, STREAMS = 4, 100
MOST_MEMORY = 512 * MIB

# HTTP/2 by hand: so many requests on each connection, and no answer is ever read.
STALL = r"""
import os, socket, ssl, sys
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])
host = "vault.example.test"
def frame(kind, flags, stream, data=b""):
    return len(data).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + data
def text(letters):
    return bytes([len(letters)]) + letters.encode()
head = b"\x82\x87\x04" + text("/window") + b"\x01" + text(host)
kept = []
for _ in range(int(sys.argv[1])):
    stream = context.wrap_socket(socket.create_connection((host, 443)), server_hostname=host)
    stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))
    for number in range(int(sys.argv[2])):
        stream.sendall(frame(1, 5, 2 * number + 1, head))
    kept.append(stream)
print("stalled", flush=True)
sys.stdin.read()
"""


def setUpModule():
    open_lab()


def descendants(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    return children + [each for child in children for each in descendants(child)]


def broker_of(process):
    for pid in descendants(process.pid):
        with open(f"/proc/{pid}/comm", encoding="ascii") as file:
            if file.read().strip() == "capgate-broker-tls"[:15]:
                return pid
    return None


def resident(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) << 10


class Memory(SealCase):
    def start_stalling(self):
        command = [launch.PYTHON, "-I", "-c", STALL, str(CONNECTIONS), str(STREAMS)]
        process = self.start(self.sandboxed(command, [VAULT, sealed()], audit=self.new_audit()))
        self.assertEqual(process.stdout.readline(), b"stalled\n")
        return process

    def test_streams_that_nobody_reads(self):
        process = self.start_stalling()
        pid = broker_of(process)
        self.assertIsNotNone(pid)
        sizes = [resident(pid)]
        # Until it grows no more.
        while len(sizes) < 3 or sizes[-1] > sizes[-3] + MIB:
            time.sleep(0.3)
            sizes.append(resident(pid))
        if os.environ.get("CAPGATE_SHOW_FIGURES"):
            print(f"\nbroker: {sizes[-1] / MIB:.1f} MiB for {CONNECTIONS} connections")
        self.assertLess(sizes[-1], 80 * MIB)
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Max data size"))
        self.assertEqual(line.split()[3:5], [str(MOST_MEMORY)] * 2)
        process.stdin.close()
        self.assertEqual(process.wait(launch.SECONDS), 0)


class Requests(SealCase):
    def ask(self, count, options=()):
        begin = time.monotonic()
        run = self.inside(curl(f"{BEARER} '{URL}/plain?[1-{count}]'"), [VAULT, sealed()],
                          options=options)
        self.assertEqual(run.output, "plain\n" * count, run)
        return run, time.monotonic() - begin

    def test_more_are_served_later_and_it_is_told_once(self):
        run, seconds = self.ask(30, ["--net-limit", "requests=10"])
        self.assertGreater(seconds, 0.9)  # twice as many in the first second
        run.assert_line(event="limit", reason="request-rate")
        self.assertEqual(run.said.count("--net-limit requests="), 1, run)

    def test_the_default_disturbs_nobody(self):
        run, _ = self.ask(500)
        self.assertEqual(run.find(reason="request-rate"), [], run)


if __name__ == "__main__":
    unittest.main()
