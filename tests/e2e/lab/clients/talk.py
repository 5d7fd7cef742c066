"""talk.py [--together] JSON...: sockets by hand, for what no ordinary client can be made to say.

    {"to": ["raw.example.test", 7000], "send": "text", "until": 4, "half": false, "udp": false,
     "tls": {"name": "api.example.test", "ca": "ca.pem"}}

One JSON value for each argument, in their order: {"got": "text"}, or with an error what had come
before it: {"error": "ECONNREFUSED", "got": ""}. With "until" it stops as soon as so many bytes, or
this text, have come, else at the end or after "seconds" of silence. Only that last silence is
short: everything that must come is waited for much longer, because the machine may be busy.
"then" is a list of further texts, each sent when something has come. "pieces" is how many bytes go
into one segment. "half" ends the sending side. The name in "tls" is the one of SNI; without it
there is none.
"""

import concurrent.futures
import errno
import json
import socket
import ssl
import sys

SECONDS = 5
PATIENCE = 25
AT_ONCE = 16


def error_name(error):
    if isinstance(error, socket.timeout):
        return "silence"
    if isinstance(error, socket.gaierror):
        return "no such name"
    if isinstance(error, ssl.SSLError):
        return "tls"
    return errno.errorcode.get(error.errno, str(error))


def is_enough(got, until):
    return until.encode("latin-1") in got if isinstance(until, str) else len(got) >= until


def read(connection, order, got):
    """Until enough has come, the end, or silence."""
    connection.settimeout(order.get("seconds", PATIENCE if "until" in order else SECONDS))
    while not is_enough(got, order.get("until", 1 << 20)):
        data = connection.recv(65536)
        if not data:
            return
        got += data


def wrap(connection, order):
    wanted = order["tls"]
    context = ssl.create_default_context(cafile=wanted.get("ca"))
    context.check_hostname = False
    if "ca" not in wanted:
        context.verify_mode = ssl.CERT_NONE
    if "alpn" in wanted:
        context.set_alpn_protocols(wanted["alpn"])
    return context.wrap_socket(connection, server_hostname=wanted.get("name"))


def send(connection, order):
    data = order.get("send", "").encode("latin-1")
    size = order.get("pieces", len(data)) or 1
    if size < len(data):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(0, len(data), size):
        connection.sendall(data[at:at + size])


def converse(order, got):
    host, port = order["to"]
    kind = socket.SOCK_DGRAM if order.get("udp") else socket.SOCK_STREAM
    family, _, _, _, address = socket.getaddrinfo(host, port, 0, kind)[0]
    with socket.socket(family, kind) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(address)
        if "tls" in order:
            connection = wrap(connection, order)
        send(connection, order)
        if order.get("udp"):
            connection.settimeout(order.get("seconds", SECONDS))
            got += connection.recv(65536)
            return
        for text in order.get("then", ()):
            got += connection.recv(65536)
            connection.sendall(text.encode("latin-1"))
        if order.get("half"):
            connection.shutdown(socket.SHUT_WR)
        read(connection, order, got)


def result_of(text):
    got, result = bytearray(), {}
    try:
        converse(json.loads(text), got)
    except OSError as error:
        result["error"] = error_name(error)
    return {**result, "got": got.decode("latin-1")}


def main():
    words = sys.argv[1:]
    if words[0] == "--together":
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(result_of, words[1:]))
    else:
        results = map(result_of, words)
    for result in results:
        print(json.dumps(result), flush=True)


main()
