"""capgate egress, policy sha256:e5749fd9169b5eecdbc3b491990f08f548979e8b61cb7bbc67ecb35e82c078fc

    mitmdump --listen-host 127.0.0.1 --listen-port 3128 -s capgate_egress.py
"""

RULES = []
PRIVATE = ["0.0.0.0/8","10.0.0.0/8","100.64.0.0/10","127.0.0.0/8","168.63.129.16/32","169.254.0.0/16","172.16.0.0/12","192.0.0.0/24","192.0.2.0/24","192.88.99.0/24","192.168.0.0/16","198.18.0.0/15","198.51.100.0/24","203.0.113.0/24","224.0.0.0/4","240.0.0.0/4","::/8","100::/8","2001::/23","2001:db8::/32","2002::/16","3fff::/20","5f00::/16","fc00::/7","fe80::/10","fec0::/10","ff00::/8"]
CLOSED = ["0.0.0.0/8","100.100.100.200/32","127.0.0.0/8","168.63.129.16/32","169.254.0.0/16","192.0.0.0/24","192.88.99.0/24","224.0.0.0/4","255.255.255.255/32","::/8","100::/8","2001::/31","2001:2:1::/48","2001:2:2::/47","2001:2:4::/46","2001:2:8::/45","2001:2:10::/44","2001:2:20::/43","2001:2:40::/42","2001:2:80::/41","2001:2:100::/40","2001:2:200::/39","2001:2:400::/38","2001:2:800::/37","2001:2:1000::/36","2001:2:2000::/35","2001:2:4000::/34","2001:2:8000::/33","2001:3::/32","2001:4::/30","2001:8::/29","2001:10::/28","2001:20::/27","2001:40::/26","2001:80::/25","2001:100::/24","2002::/16","5f00::/16","fd00:ec2::254/128","fd20:ce::254/128","fe80::/10","fec0::/10","ff00::/8"]

import asyncio
import ipaddress
import re
import socket

from mitmproxy import ctx, exceptions, http

PRIVATE = [ipaddress.ip_network(block) for block in PRIVATE]
CLOSED = [ipaddress.ip_network(block) for block in CLOSED]
NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
                  r"(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")


def canonical(text):
    """("name" or "address", the one spelling), or None for what is no host."""
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in bare or bare.replace(".", "").isdigit():
        try:
            address = ipaddress.ip_address(bare)
        except ValueError:
            return None
        mapped = address.version == 6 and (address.ipv4_mapped or "%" in bare or "." in bare)
        return None if mapped else ("address", str(address))
    if bare != text or not text.isascii():
        return None
    name = text.lower()
    name = name[:-1] if name.endswith(".") else name
    if len(name) > 253 or not NAME.fullmatch(name) or NUMBER.fullmatch(name):
        return None
    return ("name", name)


def is_in(address, blocks):
    return any(address.version == block.version and address in block for block in blocks)


def is_private_endpoint(what):
    kind, text = what
    if kind == "name":
        return text == "localhost" or text.endswith(".localhost")
    return is_in(ipaddress.ip_address(text), PRIVATE)


def covers(rule, what, port):
    """Whether the rule speaks of this endpoint."""
    if rule["port"] not in (0, port):
        return False
    if rule["kind"] in ("name", "address"):
        return (rule["kind"], rule["host"]) == what
    if is_private_endpoint(what):
        return False
    return rule["kind"] == "any" or (what[0] == "name" and what[1].endswith("." + rule["host"]))


def leads_to(rule, address, is_own):
    """Whether what the rule speaks of may turn out to be this address."""
    if rule["reach"] == "address":
        return str(address) == rule["host"]
    if rule["reach"] == "loopback":
        return str(address) in ("127.0.0.1", "::1")
    if rule["reach"] == "nothing" or is_own:
        return False
    return not is_in(address, CLOSED if rule["reach"] == "private" else PRIVATE)


def is_own_address(address):
    """Only an address of this machine can be bound to."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


def is_doubtful(path):
    if "\\" in path or "//" in path or any(ord(c) < 32 or ord(c) == 127 for c in path):
        return True
    return any(part.split(";")[0] in (".", "..") for part in path.split("/"))


def is_ambiguous(path):
    """Whether two servers could read it differently."""
    if not path.startswith("/") or is_doubtful(path):
        return True
    text, turn = path, 0
    while "%" in text:
        if re.search(r"%(?![0-9A-Fa-f]{2})", text):
            return turn == 0
        text = re.sub(r"%(..)", lambda found: chr(int(found[1], 16)), text)
        if turn == 4 or is_doubtful(text) or text.count("/") != path.count("/"):
            return True
        turn += 1
    return False


def part_pattern(part):
    return "[^/]+" if part == "*" else "[^/]*".join(map(re.escape, part.split("*")))


def path_matches(pattern, path):
    if is_ambiguous(path):
        return False
    *parts, last = pattern.split("/")
    parts = [part_pattern(part) for part in parts]
    parts.append(".*" if last == "**" else part_pattern(last))
    return re.fullmatch("/".join(parts), path, re.DOTALL) is not None


def speech_is_asked(rule, port):
    if rule["proto"] == "detect":
        return port in (80, 443) or bool(rule["methods"] or rule["paths"])
    return rule["proto"] != "tcp"


def said_endpoint(host_header):
    """(host, port or None) of a Host header; None for what is none."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?", host_header or "")
    what = canonical(found[1]) if found else None
    return (what, int(found[2]) if found[2] else None) if what else None


def allows_request(rule, asked, request, tls, sni):
    """Whether the rule lets this request pass on a connection to what was asked for."""
    if rule["proto"] == ("http" if tls else "tls"):
        return False
    if rule["methods"] and request.method not in rule["methods"]:
        return False
    path = request.path.split("?")[0]
    if rule["paths"] and not any(path_matches(pattern, path) for pattern in rule["paths"]):
        return False
    if rule["sni"] == "any" or (tls and asked.what[0] == "address"):
        return True
    if tls and (not sni or canonical(sni) != asked.what):
        return False
    said = said_endpoint(request.host_header)
    return said is not None and said[0] == asked.what and said[1] in (None, asked.port)


class Asked:
    """What a client wants to reach, the rules that may allow it, and where it is dialled."""

    def __init__(self, host, port):
        self.what, self.port, self.address = canonical(host), port, None
        self.rules = [rule for rule in RULES if self.what and covers(rule, self.what, port)]

    async def resolve(self):
        """Keeps the rules that allow an address, and that address."""
        if not self.rules:
            return
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                self.what[1], self.port, type=socket.SOCK_STREAM)
        except OSError:
            found = []
        for *_, place in found:
            address = ipaddress.ip_address(place[0].split("%")[0])
            address = getattr(address, "ipv4_mapped", None) or address
            own = is_own_address(address)
            rules = [rule for rule in self.rules if leads_to(rule, address, own)]
            if rules:
                self.address, self.rules = str(address), rules
                return
        self.rules = []


class CapgateEgress:
    def __init__(self):
        self.tunnels = {}  # by client: what its CONNECT asked for
        self.requests = {}  # by client: what its plain request asks for

    def configure(self, updated):
        modes = [ctx.options.mode] if isinstance(ctx.options.mode, str) else ctx.options.mode
        if list(modes) != ["regular"]:
            raise exceptions.OptionsError("capgate_egress.py works with --mode regular alone")
        if ctx.options.ignore_hosts or ctx.options.allow_hosts:
            raise exceptions.OptionsError("capgate_egress.py must see every connection")

    async def http_connect(self, flow):
        asked = Asked(flow.request.host, flow.request.port)
        if flow.client_conn.id in self.tunnels:
            asked.rules = []
        await asked.resolve()
        if asked.rules:
            self.tunnels[flow.client_conn.id] = asked
        else:
            refuse(flow, flow.request.host, flow.request.port)

    async def requestheaders(self, flow):
        client, request = flow.client_conn, flow.request
        asked = self.tunnels.get(client.id)
        if asked:
            tls, sni = client.tls_established, client.sni
        else:
            tls, sni = False, None
            asked = Asked(request.host, request.port)
            # With several requests at a time it would not be known which one connects.
            if request.scheme != "http" or not request.http_version.startswith("HTTP/1"):
                asked.rules = []
        for name in ("Proxy-Connection", "Proxy-Authorization"):
            request.headers.pop(name, None)
        rules = [rule for rule in asked.rules if allows_request(rule, asked, request, tls, sni)]
        if client.id not in self.tunnels:
            asked.rules = rules
            await asked.resolve()
            self.requests[client.id], rules = asked, asked.rules
        if not rules:
            host = asked.what[1] if asked.what else request.host
            refuse(flow, host, asked.port)

    def tcp_message(self, flow):
        # A flow that is killed goes on all the same, so it is emptied.
        asked = self.tunnels.get(flow.client_conn.id)
        tls, sni = flow.client_conn.tls_established, flow.client_conn.sni
        if not asked or not any(self.allows_stream(rule, asked, tls, sni) for rule in asked.rules):
            flow.messages[-1].content = b""

    @staticmethod
    def allows_stream(rule, asked, tls, sni):
        if rule["methods"] or rule["paths"]:
            return False
        if not tls:
            return not speech_is_asked(rule, asked.port)
        if rule["proto"] == "http":
            return False
        named = sni and canonical(sni) == asked.what
        return bool(rule["sni"] == "any" or asked.what[0] == "address" or named)

    def server_connect(self, data):
        asked = self.tunnels.get(data.client.id) or self.requests.get(data.client.id)
        host, port = data.server.address[:2]
        if not asked or not asked.address or port != asked.port or (
                canonical(host) not in (asked.what, ("address", asked.address))):
            data.server.error = "capgate: not what was asked for"
            return
        data.server.address = (asked.address, port)
        if asked.what[0] == "name" and any(rule["sni"] != "any" for rule in asked.rules):
            data.server.sni = asked.what[1]

    def udp_message(self, flow):
        flow.messages[-1].content = b""

    def client_disconnected(self, client):
        self.tunnels.pop(client.id, None)
        self.requests.pop(client.id, None)


def refuse(flow, host, port):
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    text = f"capgate: refused; it is not covered by net:connect:{host}:{port}\n"
    flow.response = http.Response.make(403, text, {"Content-Type": "text/plain"})


addons = [CapgateEgress()]
