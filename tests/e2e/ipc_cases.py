"""What the tests of ipc share: sockets of the host, and the control outside of a sandbox."""

import contextlib
import os
import socket
import subprocess

import launch
from cases import quoted, service
from run_cases import RunCase, python

GREETING = "hello from the host"
CONNECT = """
import errno, socket, sys
try:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(sys.argv[1])
        print(client.recv(100).decode())
except OSError as error:
    print(errno.errorcode[error.errno])
"""


class IpcCase(RunCase):
    def outside(self, command, **env):
        """The control: the same command without a sandbox, by the same user."""
        done = subprocess.run(command, env=self.environment(**env), capture_output=True, text=True,
                              preexec_fn=lambda: launch.become(self.uid), check=False, cwd="/",
                              timeout=launch.SECONDS)
        return done.stdout + done.stderr

    def listen(self, name, mode=0o600, owner=None):
        """A socket of the host that greets everyone who connects; its path."""
        path = os.path.join(self.work, name)
        stack = contextlib.ExitStack()
        stack.enter_context(service(socket.AF_UNIX, path))
        self.addCleanup(stack.close)
        who = self.uid if owner is None else owner
        os.chown(path, who, who)
        os.chmod(path, mode)
        return path

    def greeting(self, words, path):
        return self.output(words, python(CONNECT, path)).strip()


def unix(path):
    return f"ipc:connect:{quoted('unix:' + path)}"
