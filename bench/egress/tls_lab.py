"""The lab of the TLS rows: nginx as the origin, the relays that intercept TLS, and two authorities.

The origin's certificate is of one authority, which every relay verifies it against. The other one is
the relays': each signs with it, or has a certificate of it, and clients trust nothing else. So a relay
that passed TLS on instead of terminating it would fail. All keys are ECDSA on P-256.
"""

import json
import os
import pathlib
import secrets
import subprocess
import time

from lab import CAPGATE, ORDINARY, ORIGIN, Failure, Lab, policy

BROKER_TLS = pathlib.Path(os.environ.get("BROKER_TLS", CAPGATE.parent / "capgate-broker-tls")).resolve()
CERTGEN = "/usr/lib/squid/security_file_certgen"
PROBE_SECONDS = 5
BODY_BYTES = 1000


class TlsLab(Lab):
    programs = ("tls_floor", "tls_load", "supervise")
    broker = BROKER_TLS

    @property
    def recipes(self):
        return TLS_RELAYS

    def _origin_command(self):
        self.token = "ghp_" + secrets.token_hex(18)
        self.placeholder = "ghp_" + secrets.token_hex(18)
        self._make_authority("outside")
        # The broker issues certificates for the names that its authority is constrained to.
        self._make_authority("inside", "-addext", "nameConstraints=critical,permitted;DNS:localhost")
        self._make_leaf("origin", "outside")
        self._make_leaf("leaf", "inside")
        self.probes = self.file("probes.log", "")
        config = self.file("nginx.conf", NGINX.format(
            lab=self.path, port=ORIGIN, probes=self.probes, body="x" * BODY_BYTES))
        return ["nginx", "-e", f"{self.path}/nginx.log", "-c", config]

    # ---- certificates --------------------------------------------------------------------------

    def openssl(self, *words):
        done = subprocess.run(self.as_ordinary(["openssl", *words]), cwd=self.path, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=30)
        if done.returncode != 0:
            raise Failure(f"openssl {' '.join(words)}: {done.stdout}")

    def _make_key(self, name):
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-out", f"{name}.key")

    def _make_authority(self, name, *extensions):
        """NAME.key and NAME.crt, as PEM and as DER."""
        self._make_key(name)
        self.openssl("req", "-x509", "-new", "-key", f"{name}.key", "-subj", f"/CN=bench {name}",
                     "-days", "30", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                     *extensions, "-out", f"{name}.crt")
        self.openssl("pkey", "-in", f"{name}.key", "-outform", "DER", "-out", f"{name}.key.der")
        self.openssl("x509", "-in", f"{name}.crt", "-outform", "DER", "-out", f"{name}.crt.der")

    def _make_leaf(self, name, authority):
        self._make_key(name)
        self.openssl("req", "-new", "-key", f"{name}.key", "-subj", "/CN=localhost",
                     "-out", f"{name}.csr")
        extensions = self.file(f"{name}.ext", "subjectAltName=DNS:localhost\n"
                               "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt",
                     "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "30",
                     "-extfile", extensions, "-out", f"{name}.crt")

    # ---- asking --------------------------------------------------------------------------------

    def load(self, mode, address, *numbers):
        # "tls-rate" is the row, "rate" the mode of the program.
        authority = "outside" if address == self.origin.address else "inside"
        return self._asked(["tls_load", mode.removeprefix("tls-"), address, str(ORIGIN),
                            str(self.path / f"{authority}.crt"), self.placeholder,
                            *map(str, numbers)])

    def probe(self, relay):
        """What client and relay agreed on. Fails when the origin did not get what it should: the
        secret from the broker, and from all others what the client sent."""
        log = pathlib.Path(self.probes)
        before = log.read_text()
        agreed = self.load("probe", relay.address)
        wanted = self.token if relay.name == "broker" else self.placeholder
        deadline = time.monotonic() + PROBE_SECONDS  # nginx writes it after it has answered
        while (got := log.read_text().removeprefix(before)) == "" and time.monotonic() < deadline:
            time.sleep(0.01)
        if got != f"Bearer {wanted}\n":
            raise Failure(f"{relay.name}: the origin did not receive the token that it should")
        return agreed


NGINX = """
daemon off;
worker_processes 1;
pid {lab}/nginx.pid;
error_log {lab}/nginx.log;
events {{ worker_connections 4096; }}
http {{
  log_format probe '$http_authorization';
  access_log off;
  default_type text/plain;
  keepalive_requests 1000000000;
  client_body_temp_path {lab}/nginx-body;
  proxy_temp_path {lab}/nginx-proxy;
  fastcgi_temp_path {lab}/nginx-fastcgi;
  uwsgi_temp_path {lab}/nginx-uwsgi;
  scgi_temp_path {lab}/nginx-scgi;
  server {{
    listen 127.0.0.1:{port} ssl backlog=4096;
    server_name localhost;
    ssl_certificate {lab}/origin.crt;
    ssl_certificate_key {lab}/origin.key;
    ssl_protocols TLSv1.2 TLSv1.3;
    location = /kilobyte {{ return 200 "{body}"; }}
    location = /probe {{ access_log {probes} probe; return 200 "seen"; }}
  }}
}}
"""


# ---- the relays: each gives (how load speaks to it, command line) --------------------------------

def _floor(lab, port):
    return "connect", [str(lab.path / "tls_floor"), str(port),
                       *(str(lab.path / name) for name in ("leaf.crt", "leaf.key", "outside.crt"))]


def _floor_resuming(lab, port):
    dialect, command = _floor(lab, port)
    return dialect, [*command, "resume"]


def _broker(lab, port):
    if not BROKER_TLS.exists():
        raise Failure(f"{BROKER_TLS} is missing: run ./dev build, or set BROKER_TLS")
    orders = {
        **policy(),
        "rules": [{"capability": f"net:connect:localhost:{ORIGIN}", "at": "bench.json:1:1"}],
        "seals": [{"capability": f"env:inject:TOKEN?to=localhost:{ORIGIN}",
                   "placeholder": lab.placeholder, "at": "bench.json:2:1"}],
        # How the broker is told what to verify origins against.
        "roots": {"file": str(lab.path / "outside.crt"), "directory": ""},
    }
    handed = {"TOKEN": lab.file("token", lab.token), "ca.key": lab.path / "inside.key.der",
              "ca.crt": lab.path / "inside.crt.der"}
    return "connect", [str(lab.path / "supervise"), str(port), "broker",
                       str(lab.path / BROKER_TLS.name), lab.file(f"audit-{port}.jsonl", ""),
                       lab.file(f"policy-{port}.json", json.dumps(orders)),
                       *(f"{name}={path}" for name, path in handed.items())]


def _squid_with(lab, port, action):
    """As its manual wants it for speed: certificates made once and kept in memory, an ECDSA authority
    (squid gives its leaves the key of it), nothing logged, nothing cached."""
    store = lab.path / f"squid-{port}-certificates"
    made = subprocess.run(lab.as_ordinary([CERTGEN, "-c", "-s", str(store), "-M", "4MB"]),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode != 0:
        raise Failure(f"{CERTGEN}: {made.stdout}")
    config = lab.file(f"squid-{port}.conf", f"""
http_port 127.0.0.1:{port} ssl-bump tls-cert={lab.path}/inside.crt tls-key={lab.path}/inside.key \\
  generate-host-certificates=on dynamic_cert_mem_cache_size=4MB
sslcrtd_program {CERTGEN} -s {store} -M 4MB
sslcrtd_children 4 startup=2 idle=1
tls_outgoing_options cafile={lab.path}/outside.crt
ssl_bump {action} all
workers 1
acl all_ports port 1-65535
http_access allow all_ports
http_access deny all
cache deny all
access_log none
cache_log {lab.path}/squid-{port}-cache.log
cache_store_log none
pid_filename {lab.path}/squid-{port}.pid
coredump_dir {lab.path}
pinger_enable off
max_filedescriptors 19000
shutdown_lifetime 0 seconds
""")
    return "connect", ["squid", "-N", "-f", config]


def _squid(lab, port):
    """The origin's handshake first, then the client's with a copy of the origin's certificate: one
    connection to the origin for each client's, as all other relays here have it. "peek", "stare" and
    "bump" would do the same with the client's SNI, but keep no certificate in memory: each connection
    then asks certgen, at about twice the cost."""
    return _squid_with(lab, port, "server-first")


def _squid_pool(lab, port):
    """The client's handshake at once, whatever the origin is. Requests of all clients share a few
    connections to the origin, so that most clients cost no second handshake."""
    return _squid_with(lab, port, "bump")


def _mitmproxy(lab, port):
    """Without a screen, without printing and without keeping flows."""
    own = lab.path / f"mitmproxy-{port}"
    own.mkdir()
    authority = "".join((lab.path / f"inside.{kind}").read_text() for kind in ("key", "crt"))
    lab.file(f"{own.name}/mitmproxy-ca.pem", authority)
    os.chown(own, ORDINARY, ORDINARY)
    settings = {"confdir": own, "flow_detail": 0, "stream_large_bodies": "64k", "http2": "false",
                "ssl_verify_upstream_trusted_ca": lab.path / "outside.crt"}
    return "connect", ["mitmdump", "--quiet", "--listen-host", "127.0.0.1", "--listen-port", str(port),
                       *(word for name, value in settings.items()
                         for word in ("--set", f"{name}={value}"))]


TLS_RELAYS = {"floor": _floor, "floor-resume": _floor_resuming, "broker": _broker, "squid": _squid,
              "squid-pool": _squid_pool, "mitmproxy": _mitmproxy}
