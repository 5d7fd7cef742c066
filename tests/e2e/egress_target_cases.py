"""What the tests of --target egress share: an artifact's file in the lab, and a proxy that runs
with it, asked by curl and by bytes.

    class Squid(ProxyTests, ProxyCase):
        target = "squid"
"""

import contextlib
import os
import time

import launch
from cases import Case, stop
from egress_cases import Module
from egress_lab import addresses

PROXY_PORT = 3128
CURL = ["/usr/bin/curl", "--silent", "--output", "/dev/null", "--max-time", "20",
        "--write-out", "%{http_connect} %{http_code}"]
# Sends what stands before two NULs, reads one answer, and then sends the rest.
EXCHANGE = r"""
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10) as proxy:
    head, *more = sys.stdin.buffer.read().split(b"\0\0")
    proxy.sendall(head)
    answer = proxy.makefile("rb")
    size, line = 0, b"-"
    while line.strip():
        line = answer.readline()
        sys.stdout.buffer.write(line)
        name, _, value = line.lower().partition(b":")
        size = int(value) if name == b"content-length" else size
    sys.stdout.buffer.write(answer.read(size))
    for part in more:
        proxy.sendall(part)
        proxy.shutdown(socket.SHUT_WR)
        try:
            sys.stdout.buffer.write(proxy.recv(4096))
        except OSError:
            pass
"""
READY = """
import socket, sys, time
end = time.monotonic() + 60
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1).close()
        break
    except OSError:
        if time.monotonic() > end:
            raise
        time.sleep(0.05)
"""

WILD, CORP = "wild.test", "git.corp.test"
RULES = (
    "net:connect:api.example.test:443",
    "net:connect:stub.example.test:80",
    f"net:connect:*.{WILD}:80",
    f"net:connect:{CORP}:80?private=true",
    f"net:connect:meta.{CORP}:80?private=true",
    f"net:connect:{addresses.PRIVATE}:80",
    f"net:connect:[{addresses.PRIVATE6}]:80",
    f"net:connect:[{addresses.API6}]:443?sni=any",
    "net:connect:localhost:80",
    "net:connect:*:8080",
    "net:connect:get.test:80?proto=http&methods=GET",
)
NAMES = {
    f"a.{WILD}": addresses.STUB, f"b.c.{WILD}": addresses.STUB, WILD: addresses.STUB,
    f"evil{WILD}": addresses.STUB, f"inner.{WILD}": addresses.PRIVATE,
    CORP: addresses.PRIVATE, f"meta.{CORP}": addresses.METADATA,
    "get.test": addresses.STUB, "127.evil.test": "127.0.0.1", "10.evil.test": addresses.STUB,
    "a.localhost": addresses.STUB,
}
STUB = addresses.STUB


def compile_egress(target, *capabilities, options=()):
    return launch.compile_manifest(launch.server(*capabilities), "--target", "egress",
                                   "--egress-target", target, *options)


class EgressTargetCase(Case):
    @property
    def lab(self):
        return Module.lab

    def reached(self):
        """Where connections arrived, without ports."""
        records = self.lab.far.all() + self.lab.near.all()
        return {record["at"].rsplit(":", 1)[0].strip("[]") for record in records
                if record["kind"] == "tcp"}

    def forget(self):
        self.lab.far.clear()
        self.lab.near.clear()

    def assert_reached(self, places, run):
        """Exactly these. A connection that is on its way is waited for."""
        end = time.monotonic() + launch.SECONDS
        while self.reached() != places and time.monotonic() < end:
            pass
        self.assertEqual(self.reached(), places, run)


class ProxyCase(EgressTargetCase):
    target = None

    @classmethod
    def command(cls, file):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.enterClassContext(cls.proxy())
        Module.lab.far.set_names({name: [[place]] for name, place in NAMES.items()})

    @classmethod
    @contextlib.contextmanager
    def proxy(cls):
        (file,) = compile_egress(cls.target, *RULES)["files"]
        path = Module.lab.tree.file(file["name"], file["contents"])
        os.chmod(path, 0o644)
        process = Module.lab.start(cls.command(path), stdout=None, stderr=None)
        try:
            done = Module.lab.run([launch.PYTHON, "-c", READY, str(PROXY_PORT)])
            if done.returncode != 0:
                raise RuntimeError(f"{cls.target} does not listen: {done.stderr.decode()}")
            yield
        finally:
            stop(process)

    def ask(self, url, *words):
        """(status of the CONNECT, status of the request), each "000" without one."""
        done = self.lab.run([*CURL, "--proxy", f"http://127.0.0.1:{PROXY_PORT}", "--noproxy", "",
                             *words, url])
        return tuple(done.stdout.decode().split())

    def exchange(self, request):
        done = self.lab.run([launch.PYTHON, "-c", EXCHANGE, str(PROXY_PORT)], stdin=request)
        return done.stdout

    def assert_passes(self, url, place, *words):
        self.forget()
        answer = self.ask(url, *words)
        self.assertEqual(answer[1], "200", (url, answer))
        self.assert_reached({place}, (url, answer))

    def assert_refused(self, url, *words):
        self.forget()
        answer = self.ask(url, *words)
        self.assertIn("403", answer, (url, answer))
        self.assertEqual(self.reached(), set(), (url, answer))


class ProxyTests:
    """What every proxy must do with RULES."""

    tls = ()

    def test_declared_endpoints_pass(self):
        self.assert_passes("http://stub.example.test/", STUB)
        self.assert_passes("http://STUB.example.test./", STUB)
        self.assert_passes("http://stub.example.test:8080/", STUB)
        self.assertEqual(self.ask("https://api.example.test/", *self.tls)[1], "200")

    def test_plain_http_in_a_tunnel_passes(self):
        self.assert_passes("http://stub.example.test/", STUB, "--proxytunnel")

    def test_undeclared_hosts_and_ports_are_refused_before_they_are_resolved(self):
        for url in ("http://victim.test/", "http://api.example.test/", "https://victim.test/",
                    "https://stub.example.test/", "http://api.example.test:9000/"):
            with self.subTest(url=url):
                self.assert_refused(url)
                self.assertEqual(self.lab.far.questions(), [])
        self.assert_refused("http://api.example.test:22/", "--proxytunnel")

    def test_a_wildcard_covers_what_is_below_it_and_not_itself(self):
        self.assert_passes(f"http://a.{WILD}/", STUB)
        self.assert_passes(f"http://B.c.{WILD}/", STUB)
        for host in (WILD, f"evil{WILD}", f"a.{WILD}.evil.test"):
            with self.subTest(host=host):
                self.assert_refused(f"http://{host}/")

    def test_names_do_not_lead_to_private_addresses(self):
        self.assert_refused(f"http://inner.{WILD}/")
        for name in ("private", "private6", "carrier", "metadata", "loopback", "loopback6",
                     "mapped", "zero"):
            with self.subTest(name=name):
                self.assert_refused(f"http://{name}.example.test:8080/")
                self.assert_refused(f"http://{name}.example.test:8080/", "--proxytunnel")
        self.assert_refused("http://127.evil.test:8080/")

    def test_a_name_that_looks_private_is_a_name(self):
        self.assert_passes("http://10.evil.test:8080/", STUB)

    def test_private_addresses_are_reached_by_their_own_rule_alone(self):
        self.assert_passes(f"http://{addresses.PRIVATE}/", addresses.PRIVATE)
        self.assert_passes(f"http://[{addresses.PRIVATE6}]/", addresses.PRIVATE6)
        for url in (f"http://{addresses.PRIVATE}:8080/", f"http://[{addresses.PRIVATE6}]:8080/",
                    f"http://{addresses.CARRIER}:8080/", f"http://{addresses.METADATA}:8080/",
                    f"http://{addresses.METADATA}/", "http://127.0.0.1:8080/",
                    "http://[::1]:8080/", "http://private.example.test/"):
            with self.subTest(url=url):
                self.assert_refused(url)

    def test_a_private_rule_opens_the_site_and_not_metadata(self):
        self.assert_passes(f"http://{CORP}/", addresses.PRIVATE)
        self.assert_refused(f"http://meta.{CORP}/")

    def test_localhost_is_the_loopback_and_no_wildcard_covers_it(self):
        self.forget()
        self.assertEqual(self.ask("http://localhost/")[1], "200")
        self.assertLessEqual(self.reached(), {"127.0.0.1", "::1"})
        self.assert_refused("http://localhost:8080/")
        self.assert_refused("http://a.localhost:8080/")

    def test_public_ipv6(self):
        self.assertEqual(self.ask(f"https://[{addresses.API6}]/", "--insecure")[0], "200")
        self.assert_refused(f"https://[{addresses.EVIL6}]/", "--insecure")

    def test_methods(self):
        self.assert_passes("http://get.test/", STUB)
        self.assert_refused("http://get.test/", "--request", "POST")

    def assert_odd_is_refused(self, head):
        self.forget()
        said = self.exchange(head.encode() + b"\r\n\r\n")
        self.assertEqual(self.reached(), set(), (head, said))
        self.assertNotIn(b" 200 ", said.split(b"\r\n")[0], head)

    def test_other_spellings_of_private_addresses(self):
        for host in ("0x7f.1", "2130706433", "127.1", "0177.0.0.1", "[::ffff:127.0.0.1]",
                     "[::ffff:10.66.0.5]", "0.0.0.0", "[::]", "[::127.0.0.1]", "10.66.5",
                     "0xa420005", "[64:ff9b::a42:5]", "127.0.0.1."):
            with self.subTest(host=host):
                self.assert_odd_is_refused(f"GET http://{host}:8080/ HTTP/1.1\r\n"
                                           f"Host: {host}:8080")
                self.assert_odd_is_refused(f"CONNECT {host}:8080 HTTP/1.1\r\nHost: {host}:8080")

    def test_other_schemes_and_the_proxys_own_pages(self):
        for url in ("ftp://stub.example.test:80/", "https://api.example.test:443/",
                    "cache_object://stub.example.test/info", "whois://stub.example.test:80/x",
                    "http://127.0.0.1:3128/squid-internal-mgr/info", "/squid-internal-mgr/info",
                    "http://mitm.it/"):
            with self.subTest(url=url):
                self.assert_odd_is_refused(f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1:3128")

    def test_the_host_header_cannot_name_another_host(self):
        self.forget()
        self.exchange(b"GET http://stub.example.test/ HTTP/1.1\r\nHost: victim.test\r\n\r\n")
        for record in self.lab.far.all():
            self.assertNotIn("victim", record.get("bytes", ""))

    def test_the_origin_learns_nothing_of_the_client(self):
        self.assert_passes("http://stub.example.test/", STUB)
        (said,) = self.lab.far.at(STUB, 80)
        for word in ("x-forwarded-for", "via:", "proxy-", "squid", "capgate"):
            self.assertNotIn(word, said.lower())

    def test_an_answer_that_changes_does_not_lead_inside(self):
        """The address that is checked is the one that is dialled, whatever comes next (D23)."""
        turns = [[STUB], [addresses.PRIVATE]] * 20
        # Where nobody listens a proxy may try the next address.
        self.lab.far.set_names({"rebind.test": turns,
                                "mixed.test": [[addresses.CLOSED, addresses.PRIVATE]]})
        self.forget()
        for _ in range(10):
            self.ask("http://rebind.test:8080/")
            self.ask("http://mixed.test:8080/")
        self.assertLessEqual(self.reached(), {STUB})
