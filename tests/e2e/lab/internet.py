"""The internet of the lab: a network of its own with a resolver, a web server and stubs."""

import asyncio
import signal
import sys

import addresses
import network
import web
from stubs import Stubs
from vault import Vault


def configure():
    # An IPv6 address is bound only if an interface has it; a local route is not enough.
    network.set_variable("ipv6/ip_nonlocal_bind", 1)
    network.configure(
        "link set lo up",
        f"address add {addresses.GATE4}/24 dev inet0",
        f"address add {addresses.GATE6}/64 dev inet0",
        "link set inet0 up",
        f"neighbour add {addresses.HOST6} lladdr {addresses.HOST_CARD} dev inet0 nud permanent",
        *(f"route add local {place} dev lo" for place in addresses.FAR4 + addresses.FAR6))


async def serve(root):
    stubs = Stubs()
    await stubs.listen(addresses.STUBS)
    await stubs.listen_for_orders(f"{root}/far")
    vault = Vault(root)
    await vault.listen()
    print("ready", flush=True)
    await asyncio.Event().wait()


def main():
    root = sys.argv[1]
    network.use_addresses_at_once()
    print("alone", flush=True)
    web.prepare(root)
    sys.stdin.readline()
    configure()
    server = web.start(root)
    signal.signal(signal.SIGCHLD, lambda *_: server.poll())
    asyncio.run(serve(root))


if __name__ == "__main__":
    main()
