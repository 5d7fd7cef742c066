"""TLS ClientHello messages as bytes, honest and bent."""

import ssl
import struct

ECH = 0xfe0d


def client_hello(name):
    """What a client of this machine sends first. Without a name there is no SNI."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def body(hello):
    """The handshake message of a hello in one record."""
    return hello[5:]


def records(message, size):
    """The message in records of so many bytes."""
    return b"".join(b"\x16\x03\x01" + struct.pack("!H", len(message[at:at + size]))
                    + message[at:at + size] for at in range(0, len(message), size))


def extensions_at(message):
    """Where the length of the extensions stands in a handshake message."""
    at = 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + struct.unpack_from("!H", message, at)[0]
    return at + 1 + message[at]


def with_extension(hello, number, content):
    """The hello with one more extension at its end."""
    message = body(hello)
    at = extensions_at(message)
    extensions = message[at + 2:] + struct.pack("!HH", number, len(content)) + content
    inner = message[4:at] + struct.pack("!H", len(extensions)) + extensions
    message = b"\x01" + len(inner).to_bytes(3, "big") + inner
    return records(message, len(message))


def with_names(*names):
    """A hello whose SNI extension holds these names, as bytes, whatever is in them."""
    entries = b"".join(b"\0" + struct.pack("!H", len(name)) + name for name in names)
    return with_extension(client_hello(None), 0, struct.pack("!H", len(entries)) + entries)


def with_encrypted_inner_hello(name):
    return with_extension(client_hello(name), ECH, b"\0\0\1\0\1\7\0\x20" + bytes(32) + b"\0\x10"
                          + bytes(16))
