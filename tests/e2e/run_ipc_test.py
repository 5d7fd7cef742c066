"""capgate run: Unix sockets, netlink, time zones and a loopback of its own, in use."""

import os
import socket
import unittest

import launch
from cases import service, started_by_root_and_user
from ipc_cases import CONNECT, GREETING, IpcCase, unix
from run_cases import adopt_orphans, allow, python


def setUpModule():
    adopt_orphans()


@started_by_root_and_user
class UnixSocket(IpcCase):
    def test_the_declared_one_is_reached_and_its_sibling_is_not(self):
        path, sibling = self.listen("declared"), self.listen("sibling")
        for each in (path, sibling):
            self.assertEqual(self.outside(python(CONNECT, each)).strip(), GREETING)
        self.assertEqual(self.greeting(allow(unix(path)), path), GREETING)
        self.assertEqual(self.greeting(allow(unix(path)), sibling), "ENOENT")
        self.assertEqual(self.attempt(allow(unix(path)), f"os.listdir({self.work!r})"),
                         ["['declared']"])

    def test_without_the_capability_it_is_not_there(self):
        path = self.listen("declared")
        done = self.run_server([], python(CONNECT, path))
        self.assertEqual(done.stdout.decode().strip(), "EPERM", done.stderr.decode())
        self.assertEqual(self.greeting(allow("ipc:connect:self"), path), "ENOENT")

    def test_one_in_a_granted_directory_is_told(self):
        """Before ABI 9 Landlock has no right for it: then the report must not be silent."""
        path = self.listen("declared")
        words = allow(f"fs:read:{self.work}/**", "ipc:connect:self")
        report = self.report(words, ["/usr/bin/true"])
        told = [line for line in report["notHeld"] if "socket of the host" in line]
        if report["landlockAbi"] < 9:
            self.assertEqual((self.greeting(words, path), len(told)), (GREETING, 1), report)
        else:
            self.assertEqual((self.greeting(words, path), len(told)), ("EACCES", 0), report)

    def test_one_declared_in_a_granted_directory_is_reached(self):
        path = self.listen("declared")
        for action in ("read", "write"):
            words = allow(f"fs:{action}:{self.work}/**", unix(path))
            self.assertEqual(self.greeting(words, path), GREETING)

    def test_one_that_is_missing_is_a_refusal(self):
        missing = os.path.join(self.work, "missing")
        said = self.refusal(allow(unix(missing)))
        self.assertIn(f"cannot open {missing}: No such file", said)
        self.assertIn("help: ", said)
        self.assertFalse(os.path.lexists(missing))

    def test_a_file_is_no_socket(self):
        path = self.file("plain")
        self.assertIn(f"{path} is no socket", self.refusal(allow(unix(path))))

    def test_one_that_only_its_owner_may_use_stays_so(self):
        """A user gets no further than without us; root's grant is the owner's own right."""
        path = self.listen("private", 0o600, owner=54321)
        if self.uid == 0:
            self.assertEqual(self.greeting(allow(unix(path)), path), GREETING)
        else:
            self.assertEqual(self.outside(python(CONNECT, path)).strip(), "EACCES")
            self.assertEqual(self.greeting(allow(unix(path)), path), "EACCES")

    def test_it_can_be_neither_removed_nor_replaced(self):
        path = self.listen("declared")
        seen = self.attempt(allow(unix(path)), f"os.unlink({path!r})", f"os.chmod({path!r}, 0)",
                            f"os.rename({path!r}, {path + '2'!r})")
        self.assertEqual(seen, ["EROFS"] * 3)
        self.assertEqual(self.outside(python(CONNECT, path)).strip(), GREETING)


@started_by_root_and_user
class OwnSockets(IpcCase):
    server = python("""
import socket
path = "/tmp/own"
with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
    listener.bind(path)
    listener.listen()
    client.connect(path)
    with listener.accept()[0] as other:
        other.sendall(b"to myself")
    print(client.recv(100).decode())
""")

    def test_a_server_talks_to_itself(self):
        before = sorted(os.listdir("/tmp"))
        self.assertEqual(self.output(allow("ipc:connect:self"), self.server), "to myself\n")
        self.assertNotIn("own", set(os.listdir("/tmp")) - set(before))

    def test_without_the_capability_there_are_no_unix_sockets(self):
        done = self.run_server([], self.server)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("PermissionError: [Errno 1]", done.stderr.decode())

    def test_names_without_a_file_do_not_lead_out(self):
        """Abstract sockets belong to the network namespace."""
        name = f"\0capgate-e2e-{os.getpid()}"
        code = ("import socket, sys\n"
                "with socket.socket(socket.AF_UNIX) as client:\n"
                "    try:\n"
                "        client.connect('\\0' + sys.argv[1])\n"
                "        print(client.recv(100).decode())\n"
                "    except ConnectionRefusedError:\n"
                "        print('nobody')\n")
        with service(socket.AF_UNIX, name):
            self.assertEqual(self.outside(python(code, name[1:])).strip(), GREETING)
            seen = self.output(allow("ipc:connect:self"), python(code, name[1:]))
        self.assertEqual(seen.strip(), "nobody")


@started_by_root_and_user
class Netlink(IpcCase):
    command = ["/usr/sbin/ip", "-oneline", "link"]

    def test_the_own_network_is_read(self):
        self.assertIn("lo:", self.outside(self.command))
        seen = self.output(allow("ipc:connect:netlink-route"), self.command)
        self.assertEqual([line.split(": ")[1] for line in seen.splitlines()], ["lo"])

    def test_without_the_capability_it_is_not(self):
        done = self.run_server([], self.command)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("Address family not supported", done.stderr.decode())

    def test_no_other_protocol_of_netlink(self):
        netlink = "__import__('socket').socket(16, 3, {})".format  # AF_NETLINK, SOCK_RAW
        audit, uevent, route = 9, 15, 0
        seen = self.attempt(allow("ipc:connect:netlink-route"),
                            *[f"{netlink(each)} and True" for each in (audit, uevent, route)])
        self.assertEqual(seen, ["EAFNOSUPPORT", "EAFNOSUPPORT", "True"])


@started_by_root_and_user
class TimeZone(IpcCase):
    """The zone files are part of /usr; which of them is the host's own says something of it."""

    def test_the_zone_of_the_host(self):
        code = ("import os, time\n"
                "print(os.path.realpath('/etc/localtime'), time.tzname, time.timezone)")
        outside = self.outside(python(code))
        self.assertIn("/usr/share/zoneinfo/", outside)
        self.assertEqual(self.output(allow("clock:tzdata"), python(code)), outside)

    def test_without_the_capability_it_is_not_known(self):
        self.assertEqual(self.attempt([], "os.lstat('/etc/localtime')"), ["ENOENT"])

    def test_every_zone_can_be_read(self):
        zone = "len(open('/usr/share/zoneinfo/Europe/Berlin', 'rb').read()) > 0"
        self.assertEqual(self.attempt(allow("clock:tzdata"), zone), ["True"])


NODE_SERVER = """
const http = require("http"), { Worker } = require('worker_threads');
const code = `const { parentPort, workerData } = require("worker_threads");
              parentPort.postMessage(workerData * 2)`;
const workers = [1, 2, 3].map((n) => new Promise((resolve, reject) => {
  const worker = new Worker(code, { eval: true, workerData: n });
  worker.on('message', resolve).on('error', reject);
}));
const server = http.createServer((request, response) => response.end('seen ' + request.url));
server.listen(0, '127.0.0.1', async () => {
  const sums = await Promise.all(workers);
  const answer = await fetch(`http://127.0.0.1:${server.address().port}/path`);
  console.log(sums.join(), await answer.text());
  server.closeAllConnections();
  server.close();
});
"""


@started_by_root_and_user
class Node(IpcCase):
    def test_worker_threads_and_a_server_on_its_own_loopback(self):
        command = [launch.NODE, "-e", NODE_SERVER]
        self.assertEqual(self.outside(command), "2,4,6 seen /path\n")
        self.assertEqual(self.output([], command), "2,4,6 seen /path\n")

    def test_its_loopback_is_not_the_hosts(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            code = (f"require('net').connect({port}, '127.0.0.1')"
                    ".on('data', (data) => console.log(String(data)))"
                    ".on('error', (error) => console.log(error.code))")
            self.assertEqual(self.outside([launch.NODE, "-e", code]).strip(), GREETING)
            self.assertEqual(self.output([], [launch.NODE, "-e", code]).strip(), "ECONNREFUSED")


if __name__ == "__main__":
    unittest.main()
