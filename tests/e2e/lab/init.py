"""Process 1 of the lab: builds the two networks, starts the origins, and keeps everything alive.

    unshare --user --map-root-user --mount --net --pid --fork --mount-proc python3 init.py DIRECTORY

It is root of namespaces that an ordinary user made. It says "ready" on stdout. When its stdin ends
it ends, and the kernel ends every process of the lab with it.
"""

import asyncio
import os
import signal
import subprocess
import sys

import addresses
import network
from stubs import Stubs

HOSTS = "127.0.0.1 localhost\n::1 localhost\n"


def mount(*words):
    subprocess.run(["/usr/bin/mount", *words], check=True)


def own_etc(root):
    """A copy of /etc that the lab may change; what only root may read stays out of it."""
    copy = f"{root}/memory/etc"
    os.mkdir(copy)
    subprocess.run(["/usr/bin/cp", "-a", "/etc/.", copy], check=False, stderr=subprocess.DEVNULL)
    for name, text in (("resolv.conf", f"nameserver {addresses.RESOLVER}\n"), ("hosts", HOSTS)):
        if os.path.lexists(f"{copy}/{name}"):
            os.unlink(f"{copy}/{name}")
        with open(f"{copy}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    mount("--bind", copy, "/etc")


def start_internet(root):
    """The process that the other network belongs to, after it has made it."""
    here = os.path.dirname(os.path.abspath(__file__))
    process = subprocess.Popen(
        ["/usr/bin/unshare", "--net", sys.executable, "-B", f"{here}/internet.py", root],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    expect(process, b"alone\n")
    return process


def expect(process, words):
    line = process.stdout.readline()
    if line != words:
        raise RuntimeError(f"the internet says {line!r} instead of {words!r}")


def lay_cable(internet, root):
    network.use_addresses_at_once()
    network.configure(
        "link set lo up",
        f"link add host0 address {addresses.HOST_CARD} type veth peer name inet0 "
        f"address {addresses.GATE_CARD} netns {internet.pid}",
        f"address add {addresses.HOST4}/24 dev host0",
        f"address add {addresses.HOST6}/64 dev host0",
        "link set host0 up",
        f"neighbour add {addresses.GATE6} lladdr {addresses.GATE_CARD} dev host0 nud permanent",
        *(f"route add {place} via {addresses.GATE4}"
          for place in (*addresses.FAR4, addresses.LOST4)),
        *(f"route add {place} via {addresses.GATE6}" for place in addresses.FAR6))
    internet.stdin.write(b"cable\n")
    internet.stdin.flush()
    expect(internet, b"ready\n")
    for address in (addresses.API, addresses.API6):
        network.wait_for(address, 443)
    # For commands that a test runs on the other side.
    with open(f"{root}/internet.net", "wb"):
        pass
    mount("--bind", f"/proc/{internet.pid}/ns/net", f"{root}/internet.net")


def reap():
    """As process 1 it is the parent of every orphan. Its own child, the internet, lives on."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


async def serve(root):
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGCHLD, reap)
    stubs = Stubs()
    await stubs.listen(addresses.NEAR_STUBS)
    await stubs.listen_for_orders(f"{root}/near")
    ended = asyncio.Event()
    loop.add_reader(0, lambda: os.read(0, 4096) or ended.set())
    print("ready", flush=True)
    await ended.wait()


def main():
    root = sys.argv[1]
    os.mkdir(f"{root}/memory")
    mount("-t", "tmpfs", "memory", f"{root}/memory")
    internet = start_internet(root)
    own_etc(root)
    lay_cable(internet, root)
    asyncio.run(serve(root))


if __name__ == "__main__":
    main()
