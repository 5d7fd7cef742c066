"""In place of capgate-broker: takes what the supervisor hands over and writes down what it got.

One JSON line per event goes to the audit file. A file `mode` beside this one changes what it does.
"""

import array
import json
import os
import select
import socket
import struct
import sys

CONTROL, AUDIT, POLICY = 3, 4, 5
KINDS = ("capture", "redirect", "proxy", "dns_datagrams", "dns_streams", "refusals", "published",
         "inner_sockets")
MOST = 64
SO_ORIGINAL_DST = 80
IPV6_PKTINFO = 50


def mode():
    try:
        with open(os.path.join(os.path.dirname(__file__), "mode"), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def tell(event, **facts):
    os.write(AUDIT, (json.dumps({"event": event, **facts}) + "\n").encode())


def open_descriptors():
    return sorted(int(name) for name in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{name}"))


def receive_fds(channel, size, most):
    data, ancillary, _, _ = channel.recvmsg(size, socket.CMSG_SPACE(most * 4))
    fds = array.array("i")
    for _, kind, content in ancillary:
        if kind == socket.SCM_RIGHTS:
            fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def name_of(address):
    host, port = address[0], address[1]
    return host.removeprefix("::ffff:"), port


def original_destination(connection):
    if connection.family == socket.AF_INET:
        raw = connection.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        return socket.inet_ntop(socket.AF_INET, raw[4:8]), struct.unpack("!H", raw[2:4])[0]
    raw = connection.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, 28)
    return socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack("!H", raw[2:4])[0]


class StandIn:
    def __init__(self):
        self.control = socket.socket(fileno=CONTROL)
        self.sockets = {}  # fileno: (kind, port, socket)
        self.inner = None

    def take_sockets(self):
        data, fds = receive_fds(self.control, 4096, MOST)
        if not data:
            tell("end")
            sys.exit(0)
        count, ipv6 = struct.unpack_from("II", data)
        kinds = struct.unpack_from(f"{MOST}H", data, 8)[:count]
        ports = struct.unpack_from(f"{MOST}H", data, 8 + 2 * MOST)[:count]
        for fd, kind, port in zip(fds, kinds, ports, strict=True):
            taken = socket.socket(fileno=fd)
            if KINDS[kind] == "inner_sockets":
                self.inner = taken
            else:
                self.sockets[fd] = (KINDS[kind], port, taken)
        tell("sockets", ipv6=ipv6, list=[[KINDS[kind], port] for kind, port in zip(kinds, ports)],
             blocking=[fd for fd in fds if os.get_blocking(fd)])
        return [fd for fd in fds if fd in self.sockets]

    def serve(self):
        poll = select.poll()
        poll.register(CONTROL, select.POLLIN)
        for fd in self.sockets:
            poll.register(fd, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == CONTROL:
                    for new in self.take_sockets():
                        poll.register(new, select.POLLIN)
                else:
                    self.step(*self.sockets[fd])

    def step(self, kind, port, ready):
        if kind == "refusals":
            packet, sender = ready.recvfrom(65536)
            tell("refused", packet=packet.hex(), sender=sender[0])
        elif kind == "dns_datagrams":
            self.answer_datagram(ready)
        else:
            connection, _ = ready.accept()
            connection.setblocking(True)
            with connection:
                self.answer(kind, port, connection)

    def answer(self, kind, port, connection):
        if kind == "published":
            self.lead_inside(port, connection)
            return
        asked = (original_destination(connection) if kind == "redirect"
                 else name_of(connection.getsockname()))
        words = connection.recv(100).decode()
        tell(kind, port=port, asked=asked, words=words)
        if words == "die":
            os._exit(3)
        connection.sendall(json.dumps([kind, *asked]).encode())

    def answer_datagram(self, ready):
        data, ancillary, _, sender = ready.recvmsg(512, 256)
        infos = [(level, kind, content) for level, kind, content in ancillary
                 if (level, kind) == (socket.IPPROTO_IPV6, IPV6_PKTINFO)]
        asked = socket.inet_ntop(socket.AF_INET6, infos[0][2][:16]).removeprefix("::ffff:")
        tell("dns_datagrams", words=data.decode(), asked=asked)
        ready.sendmsg([b"answer to " + data], infos, 0, sender)

    def lead_inside(self, port, connection):
        self.inner.send(b"\x04")
        self.inner.setblocking(True)
        data, fds = receive_fds(self.inner, 16, 1)
        with socket.socket(fileno=fds[0]) as inside:
            inside.setblocking(True)
            inside.connect(("127.0.0.1", port))
            inside.sendall(connection.recv(100))
            answer = inside.recv(100)
        tell("published", port=port, family=data.hex(), answer=answer.decode())
        connection.sendall(answer)


def main():
    wanted = mode()
    with os.fdopen(os.dup(POLICY)) as file:
        policy = json.load(file)
    tell("start", uid=os.getuid(), gid=os.getgid(), groups=os.getgroups(), fds=open_descriptors(),
         session=os.getsid(0) == os.getpid(), environment=sorted(os.environ), policy=policy,
         inputs=[os.readlink("/proc/self/fd/0"), os.readlink("/proc/self/fd/1")])
    if wanted == "fail":
        os.write(CONTROL, struct.pack("I252s", 1, b"no such\x1b thing"))
        sys.exit(1)
    if wanted == "hang":
        socket.socket(fileno=os.dup(CONTROL)).recv(1)
        sys.exit(0)
    if wanted == "exit":
        sys.exit(4)
    os.write(CONTROL, struct.pack("I252s", 0, b""))
    stand_in = StandIn()
    stand_in.take_sockets()
    if wanted == "die":
        os._exit(5)
    stand_in.serve()


main()
