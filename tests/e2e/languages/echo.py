#!/usr/bin/python3 -I
"""Four threads talk to an echo service on the loopback interface; then a process is tried."""

import concurrent.futures
import socket
import subprocess
import sys

THREADS = 4


def serve(listener):
    for _ in range(THREADS):
        with listener.accept()[0] as connection:
            connection.sendall(connection.recv(16))


def talk(address, text):
    with socket.create_connection(address) as connection:
        connection.sendall(text)
        return connection.recv(16) == text


def can_start_a_process():
    try:
        subprocess.run([sys.executable, "--version"], check=True, stdout=subprocess.DEVNULL)
        return True
    except OSError:
        return False


with socket.create_server(("127.0.0.1", 0)) as own, \
        concurrent.futures.ThreadPoolExecutor(THREADS + 1) as pool:
    pool.submit(serve, own)
    talks = [pool.submit(talk, own.getsockname(), b"%d" % i) for i in range(THREADS)]
    echoed = sum(each.result() for each in talks)
print(f"echoed {echoed}, started {int(can_start_a_process())}")
