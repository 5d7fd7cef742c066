"""Listeners that record all that arrives, and a socket by which the test asks for the records.

    {"do": "records"} -> [{"kind": "tcp", "at": "44.128.0.40:80", "bytes": "GET / ..."}, ...]
    {"do": "clear"}
    {"do": "names", "names": {"rebind.test": [["44.128.0.10"], ["127.0.0.1"]]}}

A name has one list of addresses for each question, in turn; the last one stays. Questions for the
two families take their turns on their own, so that one look-up sees one turn.
"""

import asyncio
import json
import struct

import addresses
import dns_wire

GREETING = b"hello from the lab\n"
MOST_RECORDED = 1 << 16  # bytes of one connection
# A connection that the kernel has finished is seen by the loop in one of its next rounds.
ROUNDS_TO_SETTLE = 20


class Stubs:
    def __init__(self):
        self.records = []
        self.names = {}
        self.kept = []  # transports and servers live as long as this
        self.set_names({name: [found] for name, found in addresses.NAMES.items()})

    def set_names(self, changes):
        for name, turns in changes.items():
            self.names[name] = {kind: list(turns) for kind in ("A", "AAAA")}

    def addresses_of(self, name, kind):
        """None: no such name."""
        if name not in self.names:
            return None
        turns = self.names[name].get(kind, [[]])
        return turns.pop(0) if len(turns) > 1 else turns[0]

    # ---- DNS ----------------------------------------------------------------------------------

    def resolve(self, message, via, at):
        try:
            name, kind, _ = dns_wire.read_question(message)
        except (IndexError, struct.error):
            self.records.append({"kind": "dns", "name": None, "via": via, "at": at})
            return None
        self.records.append({"kind": "dns", "name": name, "type": kind, "via": via, "at": at})
        return dns_wire.answer(message, self.addresses_of(name, kind))

    async def serve_dns(self, reader, writer):
        head = await reader.readexactly(2)
        message = await reader.readexactly(int.from_bytes(head, "big"))
        reply = self.resolve(message, "tcp", writer.get_extra_info("sockname")[0])
        if reply:
            writer.write(len(reply).to_bytes(2, "big") + reply)

    # ---- TCP ----------------------------------------------------------------------------------

    async def serve(self, kind, reader, writer):
        address, port = writer.get_extra_info("sockname")[:2]
        record = {"kind": "tcp", "at": f"{address}:{port}", "bytes": ""}
        if kind != "dns":
            self.records.append(record)
        try:
            if kind == "dns":
                await self.serve_dns(reader, writer)
            else:
                await self.converse(kind, record, reader, writer)
            await writer.drain()
        except (OSError, EOFError):
            pass
        writer.close()

    async def converse(self, kind, record, reader, writer):
        upgraded, unread = False, b""
        if kind == "greeter":
            writer.write(GREETING)
        while data := await reader.read(65536):
            record["bytes"] = (record["bytes"] + data.decode("latin-1"))[:MOST_RECORDED]
            if kind in ("echo", "greeter") or upgraded:
                writer.write(data)
            elif kind == "count":
                writer.write(b".")
            elif kind == "web":
                unread += data
                while b"\r\n\r\n" in unread and not upgraded:
                    head, _, unread = unread.partition(b"\r\n\r\n")
                    upgraded = self.answer(head, writer)
            await writer.drain()

    def answer(self, head, writer):
        """One answer for each head; true if the connection is another protocol's from now on."""
        if b"\nupgrade: websocket" in head.lower() and not head.startswith(b"GET /stay"):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                         b"Connection: Upgrade\r\n\r\n")
            return True
        if head.startswith(b"GET /switch"):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n"
                         b"Connection: Upgrade\r\n\r\n")
            return True
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        elif head.startswith(b"GET /redirect"):
            writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://victim.test/\r\n"
                         b"Content-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstub\n")
        return False

    async def listen(self, table):
        loop = asyncio.get_running_loop()
        for address, port, kind in table:
            if kind.endswith("datagrams"):
                is_dns = kind.startswith("dns")
                made, _ = await loop.create_datagram_endpoint(
                    lambda is_dns=is_dns: Datagrams(self, is_dns), local_addr=(address, port))
            else:
                made = await asyncio.start_server(
                    lambda reader, writer, kind=kind: self.serve(kind, reader, writer),
                    address, port, backlog=1024)
            self.kept.append(made)

    # ---- the test's questions -----------------------------------------------------------------

    async def control(self, reader, writer):
        while line := await reader.readline():
            order = json.loads(line)
            reply = None
            if order["do"] == "records":
                for _ in range(ROUNDS_TO_SETTLE):
                    await asyncio.sleep(0)
                reply = self.records
            elif order["do"] == "clear":
                self.records.clear()
            elif order["do"] == "names":
                self.set_names(order["names"])
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def listen_for_orders(self, path):
        self.kept.append(await asyncio.start_unix_server(self.control, path, limit=1 << 20))


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, stubs, is_dns):
        self.stubs, self.is_dns, self.transport, self.address = stubs, is_dns, None, None

    def connection_made(self, transport):
        self.transport = transport
        self.address = transport.get_extra_info("sockname")[0]

    def datagram_received(self, data, addr):
        if not self.is_dns:
            self.stubs.records.append({"kind": "udp", "at": self.address,
                                       "bytes": data.decode("latin-1")})
            self.transport.sendto(data, addr)
        elif reply := self.stubs.resolve(data, "udp", self.address):
            self.transport.sendto(reply, addr)
