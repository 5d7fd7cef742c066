"""What programs trust where secrets are sealed: the authority of one sandbox.

First the authority itself against real clients, outside: a certificate for its host is accepted,
and one that its key signed for anything else is refused by each of them. Then a sandbox: every
program finds the anchor without being configured.
"""

import glob
import os
import ssl
import socket
import struct
import subprocess
import threading
import unittest

import launch
from cases import Tree
from run_cases import RunCase, allow, python
from run_languages_test import BUILD_SECONDS, JAVA, java_settings

SOURCES = os.path.join(launch.ROOT, "tests/e2e/secrets")
AUTHORITY = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-broker-tls")
HOST_BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
MAGIC = 0x53474331

# What the certificates are for beside their host.
GOOD = "good"
LEAVES = {
    GOOD: "DNS:localhost",
    "below": "DNS:localhost,DNS:a.localhost",
    "wildcard": "DNS:localhost,DNS:*.localhost",
    "other": "DNS:localhost,DNS:example.org",
    "ipv4": "DNS:localhost,IP:127.0.0.1",
    "ipv6": "DNS:localhost,IP:::1",
    "mail": "DNS:localhost,email:a@localhost",
    "uri": "DNS:localhost,URI:https://localhost/",
}


def build(tree):
    """The clients that must be compiled."""
    env = {**launch.build_environment(tree.root), "CGO_ENABLED": "0", "GO111MODULE": "off"}
    program = tree.path("trusted-go")
    classes = tree.directory("classes")
    for command in (["go", "build", "-o", program, "trusted.go"],
                    ["javac", "-d", classes, "Trusted.java"]):
        subprocess.run(command, cwd=SOURCES, check=True, timeout=BUILD_SECONDS, env=env)
    return program, classes


def read_handover(data):
    """The named values of a handover, as src/secrets/handover.cc writes them."""
    magic, count = struct.unpack_from("=II", data)
    assert magic == MAGIC
    at, values = 8, {}
    for _ in range(count):
        name_size, value_size, _ = struct.unpack_from("=IIq", data, at)
        at += 16
        name = data[at:at + name_size].decode()
        values[name] = data[at + name_size:at + name_size + value_size]
        at += name_size + value_size
    assert at == len(data)
    return values


class Authority:
    """An authority for localhost, in files of `tree`, and what its key can sign."""

    def __init__(self, tree):
        self.tree = tree
        self.bundle, self.key_store = tree.path("ca.pem"), tree.path("cacerts")
        with open(HOST_BUNDLE, "rb") as host, open(self.bundle, "wb") as bundle, \
                open(self.key_store, "wb") as store:
            sources = [os.dup2(file.fileno(), 2 * launch.FIRST_FREE_FD + i)
                       for i, file in enumerate((bundle, store))]

            def place():
                for i, source in enumerate(sources):
                    os.dup2(source, 3 + i)
            with launch.low_descriptors_taken():
                done = subprocess.run([AUTHORITY, "--authority", "localhost"], stdin=host,
                                      capture_output=True, check=True, preexec_fn=place,
                                      pass_fds=(3, 4), timeout=launch.SECONDS)
            for source in sources:
                os.close(source)
        handed = read_handover(done.stdout)
        self.certificate = tree.path("authority.pem")
        self.key = tree.path("authority.key")
        self.openssl("x509", "-inform", "DER", "-out", self.certificate, data=handed["ca.crt"])
        self.openssl("pkey", "-inform", "DER", "-out", self.key, data=handed["ca.key"])
        self.leaf_key = tree.path("leaf.key")
        self.request = tree.path("leaf.csr")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.leaf_key)
        self.openssl("req", "-new", "-key", self.leaf_key, "-subj", "/", "-out", self.request,
                     "-config", tree.file("req.cnf", "[req]\ndistinguished_name=dn\n[dn]\n"))
        with open(self.bundle, encoding="utf-8") as bundle:
            last = bundle.read().rpartition("-----BEGIN")
        self.anchor = tree.file("anchor.pem", "".join(last[1:]))

    def openssl(self, *words, data=None):
        subprocess.run(["openssl", *words], input=data, check=True, capture_output=True,
                       timeout=launch.SECONDS)

    def sign(self, name, subjects):
        """A chain as a server sends it, for these names."""
        extensions = self.tree.file(f"{name}.cnf", "\n".join((
            f"subjectAltName=critical,{subjects}", "extendedKeyUsage=serverAuth",
            "keyUsage=critical,digitalSignature", "authorityKeyIdentifier=keyid",
            "basicConstraints=critical,CA:FALSE", "")))
        leaf = self.tree.path(f"{name}.pem")
        self.openssl("x509", "-req", "-in", self.request, "-CA", self.certificate, "-CAkey",
                     self.key, "-set_serial", "0x4711", "-days", "7", "-extfile", extensions,
                     "-out", leaf)
        with open(leaf, "a", encoding="utf-8") as chain, \
                open(self.certificate, encoding="utf-8") as issuer:
            chain.write(issuer.read())
        return leaf


class Server:
    """Answers at a port of the loopback with one certificate, and counts who asks."""

    def __init__(self, chain, key):
        self.requests = 0
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.settimeout(launch.SECONDS)
            try:
                with self.context.wrap_socket(client, server_side=True) as secured:
                    if secured.recv(4096):
                        self.requests += 1
                        secured.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
            except OSError:
                client.close()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


class AuthorityTest(unittest.TestCase):
    """Real clients, outside a sandbox. A client accepts a certificate if its request comes."""

    @classmethod
    def setUpClass(cls):
        cls.tree = Tree()
        cls.addClassCleanup(cls.tree.remove)
        cls.go, cls.classes = build(cls.tree)
        cls.authority = Authority(cls.tree)
        cls.servers = {}
        for name, subjects in LEAVES.items():
            chain = cls.authority.sign(name, subjects)
            cls.servers[name] = Server(chain, cls.authority.leaf_key)
            cls.addClassCleanup(cls.servers[name].stop)

    def accepted(self, *commands, **env):
        """The names of the certificates that the client takes. One command with "{port}" is run for
        each of them, another one is given all ports."""
        for server in self.servers.values():
            server.requests = 0
        ports = {name: str(server.port) for name, server in self.servers.items()}
        env = {"PATH": os.defpath, "HOME": self.tree.root, **env}
        for command in commands:
            per_port = any("{port}" in word for word in command)
            runs = [[word.replace("{port}", port) for word in command]
                    for port in ports.values()] if per_port else [[*command, *ports.values()]]
            for run in runs:
                subprocess.run(run, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                               check=False, timeout=2 * launch.SECONDS)
        return {name for name, server in self.servers.items() if server.requests > 0}

    def test_openssl(self):
        command = ["openssl", "s_client", "-connect", "localhost:{port}", "-4", "-x509_strict",
                   "-verify_return_error", "-verify_hostname", "localhost", "-quiet"]
        # s_client sends what it is given.
        shell = ["sh", "-c", "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | " + " ".join(command)]
        self.assertEqual(self.accepted(shell, SSL_CERT_FILE=self.authority.bundle), {GOOD})
        self.assertEqual(self.accepted(shell), set())

    def test_curl(self):
        command = ["curl", "-4", "-sS", "https://localhost:{port}/"]
        self.assertEqual(self.accepted(command, CURL_CA_BUNDLE=self.authority.bundle), {GOOD})

    def test_gnutls(self):
        """GnuTLS does not look at URIs: no host can be called like that."""
        wget = ["wget", "-4", "-q", "-O", "-", "--tries=1", "--ca-directory=/nonexistent",
                f"--ca-certificate={self.authority.bundle}", "https://localhost:{port}/"]
        self.assertEqual(self.accepted(wget), {GOOD, "uri"})
        git = ["git", "ls-remote", "https://localhost:{port}/x"]
        self.assertEqual(self.accepted(git, GIT_SSL_CAINFO=self.authority.bundle), {GOOD, "uri"})

    def test_python(self):
        command = [launch.PYTHON, f"{SOURCES}/trusted.py"]
        self.assertEqual(self.accepted(command, SSL_CERT_FILE=self.authority.bundle), {GOOD})

    def test_python_requests(self):
        command = [launch.PYTHON, "-c",
                   "import requests; requests.get('https://localhost:{port}/')"]
        self.assertEqual(self.accepted(command, REQUESTS_CA_BUNDLE=self.authority.bundle), {GOOD})

    def test_node(self):
        command = [launch.NODE, f"{SOURCES}/trusted.mjs"]
        self.assertEqual(self.accepted(command, NODE_EXTRA_CA_CERTS=self.authority.anchor), {GOOD})

    def test_go(self):
        self.assertEqual(self.accepted([self.go], SSL_CERT_FILE=self.authority.bundle,
                                       SSL_CERT_DIR="/nonexistent"), {GOOD})

    def test_java(self):
        """Which does not look at the constraints of what it trusts, so they are below it."""
        for java in sorted({JAVA, *glob.glob("/usr/lib/jvm/*-jdk-*/bin/java")}):
            with self.subTest(java=java):
                command = [java, f"-Djavax.net.ssl.trustStore={self.authority.key_store}",
                           "-cp", self.classes, "Trusted"]
                self.assertEqual(self.accepted(command), {GOOD})

    def test_java_keeps_the_roots_of_the_host(self):
        listed = subprocess.run(["keytool", "-list", "-keystore", self.authority.key_store,
                                 "-storepass", "changeit"], check=True, capture_output=True,
                                text=True, timeout=launch.SECONDS).stdout
        with open(self.authority.bundle, encoding="utf-8") as bundle:
            self.assertEqual(listed.count("trustedCertEntry"),
                             bundle.read().count("BEGIN CERTIFICATE"))


SEALED = allow("env:inject:E2E_TOKEN?to=api.example.org:443", "net:connect:api.example.org:443")
COUNT_PYTHON = ("import ssl\n"
                "roots = ssl.create_default_context().get_ca_certs()\n"
                "print(sum('capgate sandbox' in str(root['subject']) for root in roots))\n")
COUNT_NODE = ("console.log(require('tls').getCACertificates('extra').filter((pem) => "
              "new (require('crypto').X509Certificate)(pem).subject"
              ".includes('capgate sandbox')).length)")


class InSandboxTest(RunCase):
    """Each program finds the anchor of its sandbox, once, by itself."""

    def environment(self, **changes):
        return super().environment(E2E_TOKEN="a value that nobody inside may see", **changes)

    def assert_finds(self, command, *capabilities):
        for words, found in ((SEALED, "1\n"), ([], "0\n")):
            for name, uid in (("user", self.uid), ("root", 0)):
                with self.subTest(sealed=found, started_by=name):
                    self.assertEqual(
                        self.output([*words, *allow(*capabilities)], command, uid=uid), found)

    def test_openssl(self):
        for place in ("/etc/capgate/ca.pem", HOST_BUNDLE):
            said = self.output(SEALED, ["/usr/bin/openssl", "verify", "-CAfile", place,
                                        "-no-CApath", "/etc/capgate/anchor.pem"])
            self.assertEqual(said, "/etc/capgate/anchor.pem: OK\n")

    def test_python_by_its_variable_and_without(self):
        self.assert_finds(python(COUNT_PYTHON))
        self.assert_finds(python("import os\nos.environ.pop('SSL_CERT_FILE', 0)\n" + COUNT_PYTHON))

    def test_python_requests(self):
        code = ("import requests\n"
                "print(requests.Session().merge_environment_settings("
                "'https://api.example.org', {}, None, None, None)['verify'])")
        self.assertEqual(self.output(SEALED, [launch.PYTHON, "-c", code]), "/etc/capgate/ca.pem\n")

    def test_node(self):
        self.assert_finds([launch.NODE, "-e", COUNT_NODE])

    def test_go_and_java(self):
        go, classes = build(self.tree)
        self.assert_finds([go, "-roots"])
        self.assert_finds([JAVA, "-cp", classes, "Trusted", "-roots"],
                          f"fs:read:{classes}/**", f"fs:read:{java_settings()}/**")

    def test_a_variable_of_the_manifest_stays(self):
        code = "import os\nprint(os.environ['PIP_CERT'], os.environ['AWS_CA_BUNDLE'])"
        said = self.output([*SEALED, *allow("env:read:PIP_CERT")], python(code),
                           env=self.environment(PIP_CERT="/mine"))
        self.assertEqual(said, "/mine /etc/capgate/ca.pem\n")

    def test_the_callers_roots_are_taken_and_a_wrong_name_is_refused(self):
        only = self.file("roots.pem", "", 0o644)
        count = python("print(open('/etc/capgate/ca.pem').read().count('BEGIN'))")
        self.assertEqual(
            self.output(SEALED, count, env=self.environment(SSL_CERT_FILE=only)), "1\n")
        said = self.refusal(SEALED, env=self.environment(SSL_CERT_FILE="/nonexistent"))
        self.assertIn("cannot read the certificates in /nonexistent: No such file", said)

    def test_roots_that_the_broker_cannot_read_are_refused(self):
        """Started by root it is another user. A name below the working directory, and a link, are
        found."""
        with open(HOST_BUNDLE, encoding="utf-8") as bundle:
            roots = self.file("private/roots.pem", bundle.read(), 0o600)
        os.symlink("roots.pem", os.path.join(self.work, "private/link.pem"))
        for name in ("private/roots.pem", "private/link.pem"):
            self.output(SEALED, ["/usr/bin/true"], cwd=self.work,
                        env=self.environment(SSL_CERT_FILE=name))
        env = self.environment(SSL_CERT_FILE=roots)
        self.assertIn(f"SSL_CERT_FILE, {roots}, cannot be read by user",
                      self.refusal(SEALED, env=env, uid=0))

    def test_the_report_says_what_is_sealed(self):
        report = self.report(SEALED, ["/usr/bin/true"])
        held = [each["guarantee"] for each in report["guarantees"]]
        self.assertIn("the value of E2E_TOKEN is not in the sandbox, and goes into requests to "
                      "api.example.org:443 alone", held)
        self.assertTrue(any("values of sealed secrets" in line for line in report["notHeld"]))
        held = self.report([], ["/usr/bin/true"])["guarantees"]
        self.assertNotIn("E2E_TOKEN", str(held))

    def test_without_sealed_secrets_nothing_is_there(self):
        code = ("import os\n"
                "print(os.path.exists('/etc/capgate'), 'SSL_CERT_FILE' in os.environ)")
        self.assertEqual(self.output([], python(code)), "False False\n")
        self.assertEqual(self.output(SEALED, python(code)), "True True\n")


if __name__ == "__main__":
    unittest.main()
