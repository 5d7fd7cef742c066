"""--egress-target mitmproxy, with the real mitmdump in a lab of its own; its matcher also with the
vectors that all of capgate is tested with."""

import importlib.util
import os
import subprocess
import tempfile
import unittest

import launch
from egress_cases import open_lab
from egress_target_cases import PROXY_PORT, STUB, Module, ProxyCase, ProxyTests, compile_egress

MITMDUMP = "/usr/bin/mitmdump"


def setUpModule():
    open_lab()


class Mitmproxy(ProxyTests, ProxyCase):
    target = "mitmproxy"

    @classmethod
    def command(cls, file):
        settings = Module.lab.tree.directory("mitmproxy")
        return [MITMDUMP, "--quiet", "--listen-host", "127.0.0.1", "--listen-port",
                str(PROXY_PORT), "--set", f"confdir={settings}", "--set",
                f"ssl_verify_upstream_trusted_ca={Module.lab.ca}", "-s", file]

    @property
    def tls(self):
        return ("--cacert", Module.lab.tree.path("mitmproxy/mitmproxy-ca-cert.pem"))

    def test_a_refusal_names_the_capability(self):
        said = self.exchange(b"GET http://victim.test/x HTTP/1.1\r\nHost: victim.test\r\n\r\n")
        self.assertIn(b"403", said)
        self.assertIn(b"net:connect:victim.test:80", said)

    def test_inside_tls_the_host_is_the_one_that_was_asked_for(self):
        self.assertEqual(self.ask("https://api.example.test/", *self.tls, "--header",
                                  "Host: other.example.test"), ("200", "403"))

    def test_bytes_that_are_neither_tls_nor_http_do_not_pass_on_the_webs_ports(self):
        self.forget()
        self.exchange(b"CONNECT stub.example.test:80 HTTP/1.1\r\nHost: stub.example.test:80\r\n\r\n"
                      b"\0\0\x01\x02\x03 not http\r\n")
        self.assertFalse(any(self.lab.far.at(STUB, 80)))

    def test_other_modes_are_refused(self):
        (file,) = compile_egress("mitmproxy", "net:connect:*")["files"]
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, file["name"])
            with open(path, "w", encoding="utf-8") as out:
                out.write(file["contents"])
            done = subprocess.run(
                [MITMDUMP, "--mode", "upstream:http://127.0.0.1:9", "--listen-host", "127.0.0.1",
                 "--listen-port", "0", "--set", f"confdir={place}", "-s", path],
                capture_output=True, text=True, check=False, timeout=launch.SECONDS)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("mode regular alone", done.stdout + done.stderr)


def load_addon(*capabilities):
    (file,) = compile_egress("mitmproxy", *capabilities)["files"]
    with tempfile.NamedTemporaryFile("w", suffix=".py") as out:
        out.write(file["contents"])
        out.flush()
        spec = importlib.util.spec_from_file_location("capgate_egress", out.name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def vectors():
    with open(os.path.join(launch.ROOT, "tests/vectors/endpoints.tsv"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                yield line.rstrip("\n").split("\t")


def parts_of(destination):
    """(host, port), the port 0 if there is none."""
    host, _, port = destination.rpartition(":")
    return (host, int(port)) if host and port.isdigit() else (destination, 0)


class Vectors(unittest.TestCase):
    """The file that defines what a rule covers, for the addon's own matcher (D22)."""

    def test_endpoints(self):
        wanted = [row for row in vectors() if row[2] in ("yes", "no")
                  and not row[1].startswith("*") and parts_of(row[1])[1]]
        self.assertGreater(len(wanted), 80)
        modules = {}
        for rule, destination, verdict in wanted:
            with self.subTest(rule=rule, destination=destination):
                if rule not in modules:
                    modules[rule] = load_addon("net:connect:" + rule)
                host, port = parts_of(destination)
                what = modules[rule].canonical(host)
                self.assertIsNotNone(what)
                covered = any(modules[rule].covers(each, what, port)
                              for each in modules[rule].RULES)
                self.assertEqual(covered, verdict == "yes")

    def test_what_is_no_host(self):
        module = load_addon("net:connect:*")
        count = 0
        for _, destination, verdict in vectors():
            host, port = parts_of(destination)
            if verdict == "invalid-destination" and 0 < port < 65536 and (
                    destination.endswith(f":{port}")):
                count += 1
                with self.subTest(host=host):
                    self.assertIsNone(module.canonical(host.encode().decode("unicode_escape")))
        self.assertGreater(count, 5)


if __name__ == "__main__":
    unittest.main()
