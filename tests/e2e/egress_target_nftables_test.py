"""--egress-target nftables, loaded with the real nft into live namespaces: the lab's, as an
ordinary user, and one that root made. Never into the machine's own."""

import contextlib
import os
import subprocess
import tempfile
import unittest

import launch
from cases import stop
from egress_cases import open_lab
from egress_lab import addresses
from egress_target_cases import EgressTargetCase, compile_egress

NFT = "/usr/sbin/nft"
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
# Says what became of a connection: an open one, or the error.
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
    print("open")
except OSError as error:
    print(type(error).__name__, error.errno)
"""
LISTENED = 5432


def setUpModule():
    open_lab()


@contextlib.contextmanager
def script(*capabilities, options=()):
    (file,) = compile_egress("nftables", *capabilities, options=options)["files"]
    if not file["executable"]:
        raise AssertionError("the script is not executable")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        path = os.path.join(place, file["name"])
        with open(path, "w", encoding="utf-8") as out:
            out.write(file["contents"])
        os.chmod(path, 0o755)
        yield path


class Live(EgressTargetCase):
    """The rules hold for the lab's host; they are loaded from the other end of its cable."""

    @contextlib.contextmanager
    def rules(self, *capabilities, resolvers=(), options=()):
        with script(*capabilities, options=options) as path:
            done = self.lab.run([path, "/proc/1/ns/net", *resolvers], user=(), internet=True,
                                env=PATH)
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            try:
                yield
            finally:
                self.lab.run_as_root(NFT, "delete", "table", "inet", "capgate")

    def connect(self, place, port, *, internet=False, seconds=20):
        done = self.lab.run([launch.PYTHON, "-c", CONNECT, place, str(port), str(seconds)],
                            internet=internet)
        return done.stdout.decode().strip()

    def assert_closed(self, place, port):
        self.forget()
        said = self.connect(place, port, seconds=2)
        self.assertNotEqual(said, "open", (place, port))
        self.assertNotIn(place, self.reached())

    def test_without_rules_everything_is_open(self):
        for place, port in ((addresses.STUB, 80), (addresses.PRIVATE, 80), (addresses.METADATA, 80),
                            (addresses.PRIVATE6, 80), (addresses.API6, 443)):
            self.assertEqual(self.connect(place, port), "open", place)

    def test_declared_addresses_work_and_others_do_not(self):
        """A private address beside a public rule (D20), in both families."""
        with self.rules(f"net:connect:{addresses.STUB}:80", f"net:connect:{addresses.PRIVATE}:80",
                        f"net:connect:[{addresses.PRIVATE6}]:80",
                        f"net:connect:{addresses.METADATA}:80", f"net:connect:[{addresses.API6}]"):
            for place, port in ((addresses.STUB, 80), (addresses.PRIVATE, 80),
                                (addresses.PRIVATE6, 80), (addresses.METADATA, 80),
                                (addresses.API6, 443), (addresses.API6, 9000)):
                self.assertEqual(self.connect(place, port), "open", place)
            for place, port in ((addresses.STUB, 8080), (addresses.VICTIM, 80),
                                (addresses.PRIVATE, 8080), (addresses.PRIVATE6, 8080),
                                (addresses.EVIL6, 443), (addresses.CARRIER, 80)):
                self.assert_closed(place, port)

    def test_every_public_host_without_private_ones(self):
        with self.rules("net:connect:*:8080", "net:connect:*:443"):
            self.assertEqual(self.connect(addresses.STUB, 8080), "open")
            self.assertEqual(self.connect(addresses.API6, 443), "open")
            for place in (addresses.PRIVATE, addresses.PRIVATE6, addresses.METADATA,
                          addresses.CARRIER):
                self.assert_closed(place, 8080)
                self.assert_closed(place, 443)
            self.assert_closed(addresses.STUB, 80)

    def test_names_only_through_a_resolver_that_was_named(self):
        get = ["/usr/bin/curl", "--silent", "--max-time", "10", "--output", "/dev/null",
               "--write-out", "%{http_code}", "http://stub.example.test:8080/"]
        with self.rules("net:connect:*:8080"):
            self.forget()
            self.assertEqual(self.lab.run(get).stdout, b"000")
            self.assertEqual(self.lab.far.questions(), [])
        with self.rules("net:connect:*:8080", resolvers=[addresses.RESOLVER]):
            self.assertEqual(self.lab.run(get).stdout, b"200")
            self.assert_closed(addresses.OTHER_RESOLVER, 53)

    def test_the_loopback_of_the_namespace_stays(self):
        with self.rules():
            self.assertEqual(self.connect("127.0.0.1", LISTENED), "open")
            self.assertEqual(self.connect("::1", LISTENED), "open")
            self.assert_closed(addresses.STUB, 80)

    def test_what_comes_in(self):
        self.assertEqual(self.connect(addresses.HOST4, LISTENED, internet=True), "open")
        with self.rules():
            self.assertNotEqual(
                self.connect(addresses.HOST4, LISTENED, internet=True, seconds=0.5), "open")
        with self.rules(f"net:listen:{LISTENED}"):
            for place in (addresses.HOST4, addresses.HOST6):
                self.assertEqual(self.connect(place, LISTENED, internet=True), "open")
            self.assertNotEqual(
                self.connect(addresses.HOST4, LISTENED + 1, internet=True, seconds=0.5), "open")

    def test_loading_twice_replaces_the_table(self):
        with self.rules(f"net:connect:{addresses.STUB}:80"):
            with script(f"net:connect:{addresses.VICTIM}:80") as path:
                self.lab.run([path, "/proc/1/ns/net"], user=(), internet=True, env=PATH)
            self.assertEqual(self.connect(addresses.VICTIM, 80), "open")
            self.assert_closed(addresses.STUB, 80)

    def test_an_accepted_name_opens_nothing(self):
        name = "net:connect:stub.example.test:80"
        with self.assertRaisesRegex(ValueError, "sees addresses, not names"):
            compile_egress("nftables", name)
        with self.rules(name, options=("--accept-unenforced", name)):
            self.assert_closed(addresses.STUB, 80)

    def test_a_resolver_cannot_be_more_than_an_address(self):
        with script("net:connect:*:443") as path:
            for word in ("1.1.1.1 }; add rule inet capgate output accept; #",
                         "1.1.1.1\nflush ruleset", "0.0.0.0/0", "", "$(id)", "--user=/x"):
                with self.subTest(word=word):
                    done = self.lab.run([path, "/proc/1/ns/net", word], user=(), internet=True,
                                        env=PATH)
                    self.assertNotEqual(done.returncode, 0)
                    self.assertNotIn("capgate", self.lab.run_as_root(NFT, "list", "tables"))
        with script(f"net:connect:{addresses.STUB}:80") as path:
            done = self.lab.run([path, "/proc/1/ns/net", "1.1.1.1"], user=(), internet=True,
                                env=PATH)
            self.assertIn(b"no rule needs names", done.stderr)


class NeverHostWide(unittest.TestCase):
    """The machine's own network is refused, whoever asks and however it is named (D21)."""

    def load(self, path, *words, prefix=(), env=None):
        return subprocess.run([*prefix, path, *words], capture_output=True, text=True, check=False,
                              env=env or PATH, timeout=launch.SECONDS)

    def tables(self):
        return subprocess.run([NFT, "list", "tables"], capture_output=True, text=True,
                              check=True).stdout

    @contextlib.contextmanager
    def harmless_nft(self):
        """An environment whose nft only leaves a mark: a guard that fails must not cut off the
        machine. Gives it with the path of the mark."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            os.chmod(place, 0o777)
            mark = os.path.join(place, "called")
            path = os.path.join(place, "nft")
            with open(path, "w", encoding="utf-8") as out:
                out.write(f"#!/bin/sh\ncat >{mark}\n")
            os.chmod(path, 0o755)
            yield {"PATH": place + ":" + PATH["PATH"]}, mark

    def test_the_machines_network_is_refused(self):
        here = str(os.getpid())
        elsewhere = ("/usr/bin/unshare", "--net")
        attempts = (
            ((), ()), ((), ("/proc/self/ns/net",)), ((), ("/proc/1/ns/net",)), ((), ("1",)),
            ((), (here,)), ((), ("-1",)), ((), ("relative",)),
            # From a namespace of its own it is another one, and still the machine's.
            (elsewhere, (here,)), (elsewhere, (f"/proc/{here}/ns/net",)),
        )
        with script("net:connect:8.8.8.8:53") as path, self.harmless_nft() as (env, mark):
            for prefix, words in attempts:
                with self.subTest(prefix=prefix, words=words):
                    done = self.load(path, *words, prefix=prefix, env=env)
                    self.assertNotEqual(done.returncode, 0, done.stdout)
                    self.assertTrue(done.stderr)
                    self.assertFalse(os.path.exists(mark))
            done = self.load(path, str(self.namespace(*elsewhere)), env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.exists(mark), "the mark would have been seen")

    def namespace(self, *words):
        process = subprocess.Popen([*words, "/usr/bin/cat"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        self.addCleanup(stop, process)
        process.stdin.write(b"\n")  # once it answers, it is there
        process.stdin.flush()
        process.stdout.readline()
        return process.pid

    def test_root_and_an_ordinary_user_load_it_into_their_own(self):
        ordinary = ("/usr/bin/setpriv", f"--reuid={launch.ORDINARY}",
                    f"--regid={launch.ORDINARY}", "--clear-groups", "--")
        before = self.tables()
        with script("net:connect:*:443", "net:connect:10.0.0.5:80") as path:
            for who in ((), ordinary):
                unshare = ("/usr/bin/unshare", "--net") if not who else (
                    "/usr/bin/unshare", "--user", "--map-root-user", "--net")
                pid = self.namespace(*who, *unshare)
                done = self.load(path, str(pid), prefix=who)
                self.assertEqual(done.returncode, 0, done.stderr)
                shown = subprocess.run(["/usr/bin/nsenter", f"--target={pid}", "--net", NFT, "list",
                                        "ruleset"], capture_output=True, text=True,
                                       check=True).stdout
                self.assertEqual(shown.count("policy drop"), 3)
                self.assertIn("ip daddr 10.0.0.5", shown)
                self.assertEqual(self.tables(), before)


if __name__ == "__main__":
    unittest.main()
