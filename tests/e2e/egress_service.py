"""`capgate egress` on this host, sandboxes of other engines beside it, and origins at its loopback.

Nothing here leaves the machine: rules are for ports of localhost where a test's own origin listens.
"""

import contextlib
import hashlib
import json
import os
import socket
import socketserver
import subprocess
import threading

import launch
from cases import Case, stop
from egress_cases import Run

UNSHARE = ["/usr/bin/unshare", "--user", "--map-root-user", "--net", "--pid", "--fork",
           "--kill-child", "--"]
SYSTEM = ["--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64",
          "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev",
          "--tmpfs", "/tmp", "--chdir", "/"]
PROXY = "127.0.0.1:3128"
CURL = ["/usr/bin/curl", "-sS", "--max-time", "25", "--noproxy", ""]
BIG = os.urandom(1 << 20) * 24


class Origin(socketserver.ThreadingTCPServer):
    """One connection after the other, each in a thread that `serve(connection)` is called in."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, serve):
        super().__init__(("127.0.0.1", 0), None)
        self.serve = serve
        self.port = self.server_address[1]

    def finish_request(self, request, client_address):
        self.serve(request)

    def handle_error(self, request, client_address):
        pass  # a client that went away


def web(connection):
    """Plain HTTP: /big is much, everything else says hello."""
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(65536)
        if not data:
            return
        head += data
    body = BIG if head.startswith(b"GET /big") else b"hello from the origin"
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
                       % len(body) + body)


def digest(connection):
    """Everything until the client has finished, then its hash."""
    sha = hashlib.sha256()
    while data := connection.recv(65536):
        sha.update(data)
    connection.sendall(sha.hexdigest().encode())


def echo(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


class ServiceCase(Case):
    """`uid` is who starts capgate egress and the sandboxes."""

    uid = None

    def setUp(self):
        super().setUp()
        self.web = self.origin(web)
        self.other = self.origin(web)
        self.digest = self.origin(digest)
        self.echo = self.origin(echo)
        self.directory = self.tree.path("service")
        self.socket = os.path.join(self.directory, "egress.sock")
        self.audit = os.path.join(self.tree.directory("audit"), "audit.jsonl")
        self.policy = self.tree.file("m.json", json.dumps(launch.server(
            *(f"net:connect:localhost:{origin.port}"
              for origin in (self.web, self.digest, self.echo)))))

    def origin(self, serve):
        origin = Origin(serve)
        threading.Thread(target=origin.serve_forever, kwargs={"poll_interval": 0.05},
                         daemon=True).start()
        self.addCleanup(origin.server_close)
        self.addCleanup(origin.shutdown)
        return origin

    # ---- processes ----------------------------------------------------------------------------

    def popen(self, words, env=None, **streams):
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            words, cwd="/", env={"PATH": "/usr/bin:/bin", "HOME": self.tree.root, **(env or {})},
            preexec_fn=lambda: launch.become(self.uid),
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **streams})
        self.addCleanup(stop, process)
        return process

    def words(self, *options, listen=None, policy=None):
        return [launch.CAPGATE, "egress", "--policy", policy or self.policy, "--listen",
                f"unix:{self.socket}" if listen is None else listen, *options]

    def serve(self, *options, env=None, **more):
        """A service that is ready, and what it said then."""
        process = self.popen(self.words("--json", "--audit", self.audit, *options, **more), env)
        line = process.stdout.readline()
        if not line:
            self.fail(process.stderr.read().decode())
        return process, json.loads(line)

    def refused(self, *options, code, **more):
        """What is said by a service that does not start."""
        done = launch.finish(self.popen(self.words("--audit", self.audit, *options, **more)))
        self.assertEqual((done.returncode, done.stdout), (code, b""), done)
        return done.stderr.decode()

    def end(self, process):
        """How it ended, after SIGTERM; its lines in the log are whole."""
        process.terminate()
        return Run(self, launch.finish(process), self.audit)

    def bwrap(self, *command, options=()):
        return [launch.BWRAP, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *SYSTEM,
                "--ro-bind", self.directory, "/run/capgate", "/run/capgate/capgate-init",
                "forward", *options, "--", *command]

    def unshared(self, *command, options=()):
        return [*UNSHARE, os.path.join(self.directory, "capgate-init"), "forward", *options, "--",
                *command]

    def plain(self, *command):
        """Without a sandbox: nobody but the forwarder is between us and the command."""
        return [os.path.join(self.directory, "capgate-init"), "forward", "--port", "34128", "--",
                *command]

    def run_words(self, words, **more):
        done = launch.finish(self.popen(words, **more))
        return Run(self, done)

    def curl(self, *words):
        return self.run_words(self.bwrap(*CURL, *words))

    def url(self, origin, path="/"):
        return f"http://localhost:{origin.port}{path}"

    def python(self, code, *words, options=()):
        """The finished run of a script in bwrap."""
        return self.run_words(self.bwrap(launch.PYTHON, "-I", "-c", code, *words, options=options))

    @contextlib.contextmanager
    def listening_socket(self, path):
        """A live socket of another program."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            os.chown(path, self.uid, self.uid)
            yield listener


