"""Sets up the network namespace of the calling process."""

import socket
import subprocess
import time

SECONDS = 10


def configure(*commands):
    """Commands of ip(8), in one go."""
    subprocess.run(["/usr/sbin/ip", "-batch", "-"], input="\n".join(commands) + "\n", text=True,
                   check=True)


def set_variable(name, value):
    with open(f"/proc/sys/net/{name}", "w", encoding="ascii") as file:
        file.write(str(value))


def use_addresses_at_once():
    """Nobody else is on the cable: no address waits until it is known to be the only one."""
    set_variable("ipv6/conf/all/accept_dad", 0)
    set_variable("ipv6/conf/default/accept_dad", 0)


def wait_for(address, port):
    """Until somebody answers there."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection((address, port), 0.1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
