"""The services that tokens are for: every request is recorded whole, and answered by its path.

/leave is answered as others are, and then the connection is closed without a word.

Behind nginx, which speaks TLS, HTTP/2 and plain HTTP for it, and by itself at VAULT_RAW_PORT, where
nothing stands between the client's bytes and the record. The test asks at a socket:

    {"do": "records"} -> [{"place": "web"|"raw", "head": "GET / ...", "body": "...", "size": 0,
                           "sha256": "..."}, ...]
    {"do": "bytes"}   -> all that arrived at VAULT_RAW_PORT, one text for each connection
    {"do": "clear"}, {"do": "go"}: lets the streams that wait go on
"""

import asyncio
import base64
import gzip
import hashlib
import json
import os
import re
import ssl
import urllib.parse

import addresses
import token_encodings

MOST_RECORDED = 1 << 16  # bytes of one body or connection
LONGEST_HEAD = 1 << 20
ROUNDS_TO_SETTLE = 20
HUGE = bytes(range(256)) * 32768  # 8 MiB
FIRST_EVENT, SECOND_EVENT = b"data: first\n\n", b"data: second\n\n"


class Request:
    def __init__(self, head):
        self.head = head
        line, *fields = head.split("\r\n")
        self.method, self.target, _ = line.split(" ", 2)
        self.path, _, self.query = self.target.partition("?")
        self.fields = {name.lower(): value.strip()
                       for name, _, value in (field.partition(":") for field in fields)}
        self.body = b""

    def get(self, name):
        return self.fields.get(name, "")

    @property
    def parameters(self):
        return dict(urllib.parse.parse_qsl(self.query))


class Tapped(asyncio.StreamReader):
    """Keeps what came, also what nobody reads."""

    def __init__(self, arrived):
        super().__init__(limit=LONGEST_HEAD)
        self.bytes = bytearray()
        arrived.append(self.bytes)

    def feed_data(self, data):
        self.bytes += data[:MOST_RECORDED - len(self.bytes)]
        super().feed_data(data)


class Vault:
    def __init__(self, root):
        self.root = root
        self.records = []
        self.arrived = []
        self.go = asyncio.Event()
        self.kept = []

    # ---- reading ------------------------------------------------------------------------------

    async def serve(self, place, reader, writer):
        try:
            while await self.serve_one(place, reader, writer):
                await writer.drain()
            await writer.drain()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass
        writer.close()

    async def serve_one(self, place, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n"))[:-4].decode("latin-1")
        record = {"place": place, "head": head, "body": "", "size": 0}
        self.records.append(record)
        request = Request(head)
        if request.get("expect"):
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest = hashlib.sha256()
        async for piece in self.pieces(request, reader):
            digest.update(piece)
            record["size"] += len(piece)
            if len(request.body) < MOST_RECORDED:
                request.body += piece
                record["body"] = request.body.decode("latin-1")
        record["sha256"] = digest.hexdigest()
        if request.get("upgrade"):
            await self.upgrade(record, reader, writer)
            return False
        await self.answer(request, record, writer)
        return request.get("connection").lower() != "close" and request.path != "/leave"

    async def pieces(self, request, reader):
        if request.get("transfer-encoding"):
            while size := int((await reader.readline()).split(b";")[0], 16):
                yield await reader.readexactly(size)
                await reader.readline()
            while await reader.readline() != b"\r\n":
                pass
        left = int(request.get("content-length") or 0)
        while left:
            piece = await reader.read(min(left, 65536))
            if not piece:
                raise EOFError
            left -= len(piece)
            yield piece

    # ---- answering ----------------------------------------------------------------------------

    async def answer(self, request, record, writer):
        name = request.path.split("/")[1]
        special = getattr(self, "answer_" + name.partition(".")[0], None)
        if special:
            await special(request, record, writer)
        elif found := github(request) or brave(request):
            send(writer, json.dumps(found).encode(), kind="application/json")
        elif request.method == "HEAD":
            send_head(writer, 200, ["Content-Length: 6"])
        else:
            send(writer, b"plain\n")

    async def answer_echo(self, request, _, writer):
        send(writer, request.head.encode("latin-1") + b"\r\n\r\n" + request.body)

    async def answer_digest(self, _, record, writer):
        send(writer, f"{record['size']} {record['sha256']}\n".encode())

    async def answer_base64(self, request, _, writer):
        """The token in every alignment."""
        token = request.get("authorization").split(" ")[-1].encode()
        send(writer, b"\n".join(base64.b64encode(b"x" * pad + token) for pad in range(3)))

    async def answer_percent(self, request, _, writer):
        token = request.get("authorization").split(" ")[-1]
        upper = urllib.parse.quote(token, safe="")
        lower = re.sub("%..", lambda found: found[0].lower(), upper)
        send(writer, f"{upper}\n{lower}\n".encode())

    async def answer_encoded(self, request, _, writer):
        """The token as Python's libraries write it."""
        send(writer, encoded_token(request))

    async def answer_encoded_split(self, request, _, writer):
        await send_bytewise(writer, encoded_token(request))

    async def answer_header(self, request, _, writer):
        """The token in a header of the answer."""
        send(writer, b"header\n", fields=[f"X-Seen: {request.get('authorization')}"])

    async def answer_split(self, request, _, writer):
        """The token byte by byte, each in a chunk and a write of its own."""
        await send_bytewise(writer, request.get("authorization").encode("latin-1"))

    async def answer_chunked(self, _, __, writer):
        send_head(writer, 200, ["Transfer-Encoding: chunked"])
        for number in range(20):
            text = f"piece {number}\n".encode()
            writer.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
        writer.write(b"0\r\n\r\n")

    async def answer_trailers(self, _, __, writer):
        send_head(writer, 200, ["Transfer-Encoding: chunked", "Trailer: X-Trailer"])
        writer.write(b"5\r\nbody\n\r\n0\r\nX-Trailer: at the end\r\n\r\n")

    async def answer_hints(self, _, __, writer):
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n")
        send(writer, b"hinted\n")

    async def answer_sse(self, _, __, writer):
        send_head(writer, 200, ["Transfer-Encoding: chunked", "Content-Type: text/event-stream"])
        for event in (FIRST_EVENT, SECOND_EVENT):
            writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            await writer.drain()
            await self.go.wait()
        writer.write(b"0\r\n\r\n")

    async def answer_gzip(self, _, __, writer):
        send(writer, gzip.compress(b"packed\n"), fields=["Content-Encoding: gzip"])

    async def answer_more(self, _, __, writer):
        """An answer, and another one that nobody has asked for. At once: what comes after the next request
        has left is an answer to that, and nobody can tell."""
        both = Together()
        send(both, b"asked\n")
        send(both, b"forged\n")
        writer.write(both.bytes)

    async def answer_big(self, _, __, writer):
        send(writer, HUGE)

    async def answer_window(self, _, __, writer):
        """As much as one stream of HTTP/2 may hold."""
        send(writer, HUGE[:1 << 18])

    async def answer_redirect(self, request, _, writer):
        send(writer, b"", status=302, fields=[f"Location: {request.parameters['to']}"])

    async def answer_status(self, request, _, writer):
        status = int(request.path.rsplit("/", 1)[1])
        send(writer, b"" if status in (204, 304) else b"as asked\n", status=status)

    async def answer_repository(self, request, _, writer):
        """A git repository as plain files, for those who name themselves."""
        path = os.path.normpath(f"{self.root}/site{request.path}")
        if not request.get("authorization"):
            send(writer, b"", status=401, fields=['WWW-Authenticate: Basic realm="vault"'])
        elif os.path.isfile(path) and path.startswith(f"{self.root}/site/"):
            with open(path, "rb") as file:
                send(writer, file.read())
        else:
            send(writer, b"", status=404)

    async def upgrade(self, record, reader, writer):
        """Another protocol: what comes is sent back."""
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     b"Connection: Upgrade\r\n\r\n")
        while data := await reader.read(65536):
            record["body"] += data.decode("latin-1")
            writer.write(data)
            await writer.drain()

    # ---- the test's questions -----------------------------------------------------------------

    async def control(self, reader, writer):
        while line := await reader.readline():
            order, reply = json.loads(line), None
            if order["do"] == "records":
                for _ in range(ROUNDS_TO_SETTLE):
                    await asyncio.sleep(0)
                reply = self.records
            elif order["do"] == "bytes":
                reply = [each.decode("latin-1") for each in self.arrived]
            elif order["do"] == "clear":
                self.records.clear()
                self.arrived.clear()
                self.go.clear()
            elif order["do"] == "go":
                self.go.set()
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def listen(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.root}/web.pem", f"{self.root}/web.key")
        context.set_alpn_protocols(["http/1.1"])
        self.kept = [
            await asyncio.start_unix_server(
                lambda *streams: self.serve("web", *streams), f"{self.root}/vault.http",
                limit=LONGEST_HEAD),
            await asyncio.get_running_loop().create_server(
                lambda: asyncio.StreamReaderProtocol(
                    Tapped(self.arrived), lambda *streams: self.serve("raw", *streams)),
                addresses.VAULT, addresses.VAULT_RAW_PORT, ssl=context),
            await asyncio.start_unix_server(self.control, f"{self.root}/vault")]


REASONS = {200: "OK", 204: "No Content", 302: "Found", 304: "Not Modified", 401: "Unauthorized",
           404: "Not Found"}


class Together:
    """A writer that keeps what it is given."""

    def __init__(self):
        self.bytes = b""

    def write(self, data):
        self.bytes += data


def send_head(writer, status, fields):
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}", *fields]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


def send(writer, body, *, status=200, kind="text/plain", fields=()):
    length = [] if status in (204, 304) else [f"Content-Length: {len(body)}"]
    send_head(writer, status, [f"Content-Type: {kind}", *length, *fields])
    writer.write(body)


async def send_bytewise(writer, body):
    """Each byte in a chunk and a write of its own."""
    send_head(writer, 200, ["Transfer-Encoding: chunked"])
    for byte in body:
        writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0)
    writer.write(b"0\r\n\r\n")


def encoded_token(request):
    token = request.get("authorization").split(" ", 1)[-1]
    return token_encodings.write_all(token).encode("latin-1")


OWNER = {"login": "acme", "id": 1, "node_id": "U_1", "avatar_url": "https://api.github.com/a",
         "url": "https://api.github.com/users/acme", "html_url": "https://github.com/acme",
         "type": "User"}
REPOSITORY = {"id": 7, "node_id": "R_7", "name": "box", "full_name": "acme/box", "private": False,
              "owner": OWNER, "html_url": "https://github.com/acme/box", "description": "a box",
              "fork": False, "url": "https://api.github.com/repos/acme/box",
              "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
              "pushed_at": "2026-01-01T00:00:00Z", "git_url": "git://github.com/acme/box.git",
              "ssh_url": "git@github.com:acme/box.git", "default_branch": "main",
              "clone_url": "https://github.com/acme/box.git"}


def github(request):
    """As much of the GitHub API as the tests' tools use; None: another path."""
    if request.path == "/search/repositories":
        return {"total_count": 1, "incomplete_results": False, "items": [REPOSITORY]}
    if request.path.startswith("/repos/acme/box/contents/"):
        name = request.path.rsplit("/", 1)[1]
        return {"type": "file", "encoding": "base64", "size": 6, "name": name, "path": name,
                "content": base64.b64encode(b"a box\n").decode(), "sha": "5" * 40,
                **dict.fromkeys(("url", "git_url", "download_url", "html_url"),
                                "https://api.github.com/contents"),
                "_links": dict.fromkeys(("self", "git", "html"),
                                        "https://api.github.com/contents")}
    if request.path == "/repos/acme/box/issues" and request.method == "POST":
        asked = json.loads(request.body)
        return {"url": "https://api.github.com/repos/acme/box/issues/1", "id": 1, "number": 1,
                "node_id": "I_1", "html_url": "https://github.com/acme/box/issues/1",
                "repository_url": "https://api.github.com/repos/acme/box", "labels_url": "",
                "comments_url": "", "events_url": "", "title": asked["title"], "user": OWNER,
                "labels": [], "state": "open", "locked": False, "assignee": None, "assignees": [],
                "milestone": None, "comments": 0, "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z", "closed_at": None,
                "body": asked.get("body")}
    return None


def brave(request):
    """One result for whatever is searched for."""
    if request.path == "/res/v1/web/search":
        return {"web": {"results": [{"title": "a box", "description": "that is closed",
                                     "url": "https://box.example.test/"}]}}
    return None
