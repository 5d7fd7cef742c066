"""As much of DNS as a stub resolver needs: one question in, addresses out."""

import ipaddress
import struct

TYPES = {1: "A", 12: "PTR", 15: "MX", 16: "TXT", 28: "AAAA", 65: "HTTPS"}
NO_ERROR, NO_NAME = 0, 3


def read_question(message):
    """(name, type, end of the question) of a query."""
    labels, at = [], 12
    while message[at] != 0:
        length = message[at]
        labels.append(message[at + 1:at + 1 + length].decode("latin-1"))
        at += 1 + length
    (kind,) = struct.unpack_from("!H", message, at + 1)
    return ".".join(labels).lower(), TYPES.get(kind, str(kind)), at + 5


def answer(message, addresses):
    """The reply: None as addresses means that there is no such name."""
    _, kind, end = read_question(message)
    rows = []
    for text in addresses or []:
        address = ipaddress.ip_address(text)
        if kind == {4: "A", 6: "AAAA"}[address.version]:
            code = 1 if address.version == 4 else 28
            rows.append(struct.pack("!HHHIH", 0xc00c, code, 1, 0, len(address.packed))
                        + address.packed)
    code = NO_NAME if addresses is None else NO_ERROR
    flags = 0x8580 | code  # an answer, authoritative, recursion as wanted
    return (message[:2] + struct.pack("!HHHHH", flags, 1, len(rows), 0, 0) + message[12:end]
            + b"".join(rows))


def question(name, kind=1, number=0x1234):
    """A query."""
    labels = b"".join(bytes([len(part)]) + part.encode("latin-1") for part in name.split("."))
    return struct.pack("!HHHHHH", number, 0x0100, 1, 0, 0, 0) + labels + struct.pack(
        "!BHH", 0, kind, 1)
