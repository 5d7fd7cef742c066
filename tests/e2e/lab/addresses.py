"""The lab's map: which addresses and names there are, and what answers at them.

The addresses look public, because capgate refuses those that are set aside for documentation. They
exist in the lab's own network namespaces only.
"""

HOST4 = "44.128.1.2"       # the lab's host itself
HOST6 = "2a0e:45::2"
GATE4 = "44.128.1.1"       # the internet's end of the cable
GATE6 = "2a0e:45::1"
HOST_CARD, GATE_CARD = "02:00:00:00:00:02", "02:00:00:00:00:01"
RESOLVER = "44.128.0.53"
OTHER_RESOLVER = "44.128.0.99"  # that a program may have hard-coded
API, API6 = "44.128.0.10", "2a0e:44::10"
OTHER = "44.128.0.11"
GIT = "44.128.0.12"
EVIL, EVIL6 = "44.128.0.66", "2a0e:44::66"
RAW, RAW6 = "44.128.0.20", "2a0e:44::20"
DATABASE = "44.128.0.30"
STUB = "44.128.0.40"       # counts what arrives at the web's ports and answers plain HTTP
VICTIM = "44.128.0.41"     # the same; what no rule of a test allows
VAULT = "44.128.0.50"      # services that take tokens: vault.py
VAULT_RAW_PORT = 8443
CLOSED = "44.128.0.90"     # answers, but nobody listens
SILENT = "44.129.0.1"      # whatever is sent there is lost
METADATA = "169.254.169.254"
PRIVATE, PRIVATE6 = "10.66.0.5", "fd66::5"
CARRIER = "100.64.0.5"

# What belongs to the internet's side of the cable.
FAR4 = ("44.128.0.0/24", METADATA + "/32", PRIVATE + "/32", CARRIER + "/32")
FAR6 = ("2a0e:44::/64", PRIVATE6 + "/128")
LOST4 = "44.129.0.0/24"

VAULT_NAMES = ("api.github.com", "api.search.brave.com", "vault.example.test",
               "other-vault.example.test")
# At the same place, each with a certificate that no client accepts.
BROKEN_NAMES = ("expired.example.test", "self-signed.example.test", "misnamed.example.test")

NAMES = {
    "api.example.test": [API, API6],
    "v4.example.test": [API],
    "v6.example.test": [API6],
    "other.example.test": [OTHER],
    "git.example.test": [GIT],
    "evil.test": [EVIL, EVIL6],
    "raw.example.test": [RAW, RAW6],
    "db.example.test": [DATABASE],
    "stub.example.test": [STUB],
    "victim.test": [VICTIM],
    "twin.example.test": [CLOSED, API],       # the first address is dead
    "lost.example.test": [SILENT, API],       # the first one never answers
    "silent.example.test": [SILENT],
    **dict.fromkeys((*VAULT_NAMES, *BROKEN_NAMES), [VAULT]),
    "private.example.test": [PRIVATE],
    "private6.example.test": [PRIVATE6],
    "carrier.example.test": [CARRIER],
    "metadata.example.test": [METADATA],
    "loopback.example.test": ["127.0.0.1"],
    "loopback6.example.test": ["::1"],
    "mapped.example.test": ["::ffff:127.0.0.1"],
    "zero.example.test": ["0.0.0.0"],
    "self.example.test": [HOST4],
}

# Names of the web server's certificate.
WEB_NAMES = ("api.example.test", "v4.example.test", "v6.example.test", "twin.example.test",
             "lost.example.test", "other.example.test", "git.example.test", "evil.test",
             "db.example.test", *VAULT_NAMES)
WEB_ADDRESSES = (API, API6, OTHER, GIT, EVIL, EVIL6, DATABASE)

# (address, port, what listens there); stubs.py says what each does.
STUBS = (
    *((address, port, "web") for address in (STUB, VICTIM, METADATA, PRIVATE, PRIVATE6, CARRIER)
      for port in (80, 8080)),
    *((address, 443, "count") for address in (STUB, VICTIM, METADATA, PRIVATE, PRIVATE6)),
    *((address, port, kind) for address in (RAW, RAW6)
      for port, kind in ((7000, "echo"), (7001, "greeter"), (7002, "count"), (7003, "web"))),
    *((address, 7000, "datagrams") for address in (RAW, RAW6)),
    *((address, 53, kind) for address in (RESOLVER, OTHER_RESOLVER)
      for kind in ("dns datagrams", "dns")),
    *((address, 9000, "echo") for address in (API, API6)),  # a port beside the web's
)
# At the host's own addresses, which no name of a rule may lead to.
NEAR_STUBS = tuple((address, port, kind) for address in ("127.0.0.1", "::1", HOST4, HOST6)
                   for port, kind in ((80, "web"), (443, "count"), (5432, "greeter"),
                                      (5433, "greeter")))
