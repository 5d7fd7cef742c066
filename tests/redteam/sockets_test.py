"""Attacks 20-28: services of the host, by stand-ins that greet whoever connects."""

import contextlib
import os
import signal
import socket
import unittest

from redteam import FILTER, HIDDEN, Redteam, canary, service, started_by_root_and_user

FAMILIES = range(1, 46)
TYPES = (1, 2, 3, 5, 10)  # stream, datagram, raw, sequential, packet
INTERNET = {(family, kind) for family in (2, 10) for kind in (1, 2)}
# No Unix socket can be made, and where one can: no such path.
NO_SOCKET = (*FILTER, *HIDDEN, "ECONNREFUSED", "EAFNOSUPPORT")


@started_by_root_and_user
class Services(Redteam):
    """Each service answers outside; inside it has no address, and no variable tells it."""

    @contextlib.contextmanager
    def listening(self, path):
        if not path.startswith("@"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with service(socket.AF_UNIX, "\0" + path[1:] if path.startswith("@") else path):
            if not path.startswith("@"):
                os.chmod(path, 0o777)
            yield

    def assert_out_of_reach(self, path, variables=(), allow=()):
        env = {name: path for name in variables}
        with self.listening(path):
            (answer, names) = self.assert_open(self.outside(f"unix={path}", "env", env=env))
            self.assertEqual(answer.detail, "hello from the host")
            for name in variables:
                self.assertIn(name, names.detail)
            # A socket in a granted directory is out of reach only where none can be made.
            for more in [list(allow)] + ([] if allow else [["ipc:connect:self"]]):
                (found, names) = self.inside(f"unix={path}", "env", env=env, allow=more)
                self.assert_shut([found], *NO_SOCKET)
                for name in variables:
                    self.assertNotIn(name, names.detail)

    def test_20_abstract_sockets(self):
        self.assert_out_of_reach("@" + canary())

    def test_21_container_engines(self):
        for name in ("docker.sock", "podman/podman.sock", "containerd/containerd.sock"):
            with self.subTest(name=name):
                self.assert_out_of_reach(self.tree.path(f"run/{name}"), ["DOCKER_HOST"])

    def test_21_a_socket_inside_a_granted_directory(self):
        for action in ("read", "write"):
            with self.subTest(action=action):
                self.assert_out_of_reach(f"{self.work}/{action}/docker.sock",
                                         allow=[f"fs:{action}:{self.work}"])

    def test_22_23_buses_by_path_and_by_abstract_name(self):
        names = ["DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR"]
        for path in (self.tree.path("run/user/bus"), self.tree.path("run/system_bus_socket"),
                     "@/tmp/dbus-" + canary()):
            with self.subTest(path=path):
                self.assert_out_of_reach(path, names)

    def test_24_ssh_agent(self):
        self.assert_out_of_reach(self.tree.path("ssh/agent.1"), ["SSH_AUTH_SOCK", "SSH_AGENT_PID"])

    def test_25_gpg_agent(self):
        self.assert_out_of_reach(self.tree.path("gnupg/S.gpg-agent"),
                                 ["GNUPGHOME", "GPG_AGENT_INFO"])

    def test_26_x11_by_path_and_by_abstract_name(self):
        for path in (self.tree.path(".X11-unix/X99"), "@/tmp/.X11-unix/" + canary()):
            with self.subTest(path=path):
                self.assert_out_of_reach(path, ["DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY"])

    def test_g9_the_hosts_loopback_is_another_one(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            attempt = f"tcp=127.0.0.1,{port}"
            (answer,) = self.assert_open(self.outside(attempt))
            self.assertEqual(answer.detail, "hello from the host")
            self.assert_shut(self.inside(attempt), "ECONNREFUSED")
            self.assert_shut(self.inside("tcp=192.0.2.1,80"), "ENETUNREACH", "ECONNREFUSED")

    def test_27_no_descriptor_is_handed_in(self):
        secret = canary()
        file = self.tree.file("secret", secret)
        path = f"{self.work}/giver"
        with giving(path, file):
            (found,) = self.assert_open(self.outside(f"passed_descriptor={path}"))
            self.assertEqual(found.detail, secret)
            for allow in ([f"fs:write:{self.work}"], ["ipc:connect:self"]):
                self.assert_shut(self.inside(f"passed_descriptor={path}", allow=allow), *NO_SOCKET)


@contextlib.contextmanager
def giving(path, file):
    """A service that passes an open descriptor of the file to whoever connects."""
    with socket.socket(socket.AF_UNIX) as listener, open(file, "rb") as given:
        listener.bind(path)
        os.chmod(path, 0o777)
        listener.listen()
        giver = os.fork()
        if giver == 0:
            try:
                while True:
                    with listener.accept()[0] as connection:
                        socket.send_fds(connection, [b"x"], [given.fileno()])
            finally:
                os._exit(1)
        try:
            yield
        finally:
            os.kill(giver, signal.SIGKILL)
            os.waitpid(giver, 0)


class Families(Redteam):
    """Attack 28: which sockets can be made at all."""

    def made(self, results):
        return {tuple(int(word) for word in result.name.split("=")[1].split(",")[:2])
                for result in results if result.open}

    def test_28_only_tcp_and_udp_sockets_can_be_made(self):
        attempts = [f"socket={family},{kind},0" for family in FAMILIES for kind in TYPES]
        outside = self.made(self.outside(*attempts, userns=True))
        self.assertLess(INTERNET | {(1, 1), (16, 3), (17, 3)}, outside)
        self.assertEqual(self.made(self.inside(*attempts)), INTERNET)

    def test_28_other_protocols_of_the_internet_cannot_be_made(self):
        """ICMP, SCTP, UDP-Lite, MPTCP and raw: more kernel than a server needs."""
        attempts = [f"socket={family},{kind},{protocol}" for family in (2, 10)
                    for kind, protocol in ((2, 1), (2, 58), (1, 132), (5, 132), (2, 136), (1, 262),
                                           (3, 255), (3, 1))]
        outside = self.outside(*attempts, userns=True)
        self.assertTrue(any(result.open for result in outside), outside)
        self.assert_shut(self.inside(*attempts), "EPERM", "EPROTONOSUPPORT")

    def test_28_a_grant_of_unix_sockets_is_one_of_unix_sockets(self):
        attempts = [f"socket={family},{kind},0" for family in FAMILIES for kind in TYPES]
        made = self.made(self.inside(*attempts, allow=["ipc:connect:self"]))
        self.assertEqual({family for family, _ in made}, {1, 2, 10})

    def test_28_pairs_that_lead_nowhere_else(self):
        self.assert_open(self.outside("socketpair=1,2"))
        self.assert_open(self.inside("socketpair=1,1", "socketpair=1,5"))
        self.assert_shut(self.inside("socketpair=1,2"), "EPERM")


if __name__ == "__main__":
    unittest.main()
