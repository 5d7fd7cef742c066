"""What the attacks on sealed secrets share: a client that says any bytes, with the token that its
environment holds in any spelling, outside with the value and inside with the placeholder.

    order = {"to": [HOST, 8443], "send": "GET / HTTP/1.1\\r\\nX: {T}\\r\\n\\r\\n"}

{T} is the token, {B} it in base64, {P} percent-encoded, {T1} and {T2} its halves. "tls" is the
server name (the host's without it; null: none is spoken). "pieces" bytes go into one segment.
All orders are carried out at once.
Prints a JSON value for each order: what came back, or {"error": ...}.
"""

import json

from network_cases import launch  # finds the modules of ../e2e

# pylint: disable=wrong-import-position
from seal_cases import (BEARER, BOTH_PORTS, CURL_ALLOWED, HOST, OTHER_URL, OTHER_VAULT,  # noqa: E402, F401
                        RAW_URL, RAW_VAULT, URL, VAULT, SealCase, curl, open_lab, sealed,
                        spellings)

SPEAK = r"""
import base64, concurrent.futures, json, os, socket, ssl, sys
token = os.environ["TOKEN"]
spelt = {"{T}": token, "{B}": base64.b64encode(token.encode()).decode(),
         "{P}": "".join("%%%02x" % ord(letter) for letter in token),
         "{T1}": token[:len(token) // 2], "{T2}": token[len(token) // 2:]}
def speak(order, got):
    host, port = order["to"]
    stream = socket.create_connection((host, port), 5)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if order.get("tls", host):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.set_alpn_protocols(["http/1.1"])
        stream = context.wrap_socket(stream, server_hostname=order.get("tls", host))
    stream.settimeout(order.get("seconds", 5))
    text = order["send"]
    for mark, spelling in spelt.items():
        text = text.replace(mark, spelling)
    data = text.encode("latin-1")
    size = order.get("pieces") or len(data)
    for at in range(0, len(data), size):
        stream.sendall(data[at:at + size])
    while data := stream.recv(65536):
        got += data
        if order.get("until") and order["until"].encode() in got: return
def result_of(order):
    got, result = bytearray(), {}
    try: speak(order, got)
    except OSError as error: result["error"] = str(error)
    return {**result, "got": got.decode("latin-1")}
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    for result in pool.map(result_of, map(json.loads, sys.argv[1:])):
        print(json.dumps(result), flush=True)
"""


def request(*fields, method="GET", target="/plain", host=HOST, body="", authorized=True):
    """One request of a connection that ends with it. A body is one as it is, or chunks."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}",
             *(["Authorization: Bearer {T}"] if authorized else []), *fields, "Connection: close"]
    if isinstance(body, str):
        lines += [f"Content-Length: {len(body)}"] if body else []
        return "\r\n".join(lines) + "\r\n\r\n" + body
    chunks = "".join(f"{len(chunk):x}\r\n{chunk}\r\n" for chunk in body)
    return "\r\n".join([*lines, "Transfer-Encoding: chunked"]) + f"\r\n\r\n{chunks}0\r\n\r\n"


class SecretAttack(SealCase):
    ALLOW = (VAULT, RAW_VAULT, OTHER_VAULT, "net:connect:vault.example.test:80",
             sealed(to=BOTH_PORTS))

    def speak(self, *orders):
        return [launch.PYTHON, "-I", "-c", SPEAK, *map(json.dumps, orders)]

    def speak_inside(self, *orders, allow=None, **more):
        run = self.inside(self.speak(*orders), allow or self.ALLOW, **more)
        return run, [json.loads(line) for line in run.output.splitlines()]

    def clear(self):
        self.lab.vault.clear()

    def arrived(self):
        """Everything that the service got, in whatever way."""
        return "\n".join([record["head"] + "\r\n\r\n" + record["body"]
                          for record in self.received()] + self.lab.vault.ask(do="bytes"))

    def assert_value_arrives_outside(self, *orders):
        """The control: without a seal each of these gives the value to the service."""
        for order in orders:
            self.clear()
            self.outside(self.speak(order))
            text = self.arrived()
            told = {*spellings(self.value), self.value[len(self.value) // 2:],
                    "".join(f"%{ord(letter):02x}" for letter in self.value)}
            self.assertTrue(any(spelling in text for spelling in told),
                            f"the control failed: {order}\n{text}")
        self.clear()
