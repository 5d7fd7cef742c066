"""--egress-target squid, with the real squid in a lab of its own."""

import glob
import os
import subprocess
import tempfile
import time
import unittest

import launch
from cases import stop
from egress_cases import open_lab
from egress_target_cases import (CURL, PROXY_PORT, READY, RULES, Module, ProxyCase, ProxyTests,
                                 compile_egress)

SQUID = "/usr/sbin/squid"
# Of its shared memory, so that it meets no other squid; what a killed one leaves is removed.
SERVICE = f"capgate{os.getpid()}"
RUN = [SQUID, "-n", SERVICE, "-N", "-f"]


def setUpModule():
    unittest.addModuleCleanup(remove_shared_memory)
    open_lab()


def remove_shared_memory():
    for path in glob.glob(f"/dev/shm/{SERVICE}-*"):
        os.unlink(path)


class Squid(ProxyTests, ProxyCase):
    target = "squid"

    @classmethod
    def command(cls, file):
        return [*RUN, file]

    @property
    def tls(self):
        return ("--cacert", Module.lab.ca)


class StartedByRoot(unittest.TestCase):
    """In a network of its own, with an origin on its loopback: squid gives up its rights itself."""

    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd="/")
        self.addCleanup(stop, process)
        return process.pid

    def enter(self, pid, *command):
        return subprocess.run(["/usr/bin/nsenter", f"--target={pid}", "--net", "--", *command],
                              capture_output=True, text=True, check=False,
                              timeout=3 * launch.SECONDS)

    def wait_for(self, pid, port):
        done = self.enter(pid, launch.PYTHON, "-c", READY, str(port))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_allowed_passes_and_refused_is_refused(self):
        (file,) = compile_egress("squid", "net:connect:127.0.0.1:80")["files"]
        place = self.enterContext(tempfile.TemporaryDirectory(dir="/var/tmp"))
        os.chmod(place, 0o755)
        path = os.path.join(place, file["name"])
        with open(path, "w", encoding="utf-8") as out:
            out.write(file["contents"])
        # Each line is one process, and the first one is the namespace.
        pid = self.start("/usr/bin/unshare", "--net", "/bin/sh", "-c",
                         'ip link set lo up && exec "$@"', "sh", launch.PYTHON, "-m",
                         "http.server", "80", "--bind", "127.0.0.1", "--directory", place)
        self.wait_until_it_left(pid)
        self.wait_for(pid, 80)
        remove_shared_memory()  # that of another user, in the lab
        self.start("/usr/bin/nsenter", f"--target={pid}", "--net", "--", *RUN, path)
        self.wait_for(pid, PROXY_PORT)
        for url, code in (("http://127.0.0.1/", "200"), ("http://127.0.0.1:81/", "403"),
                          ("http://127.0.0.2/", "403"), ("http://localhost/", "403")):
            done = self.enter(pid, *CURL, "--proxy", f"http://127.0.0.1:{PROXY_PORT}",
                              "--noproxy", "", url)
            self.assertEqual(done.stdout.split()[1], code, url)

    def wait_until_it_left(self, pid):
        """Until the process is in another network than this one."""
        here = os.stat("/proc/self/ns/net").st_ino
        end = time.monotonic() + launch.SECONDS
        while os.stat(f"/proc/{pid}/ns/net").st_ino == here:
            self.assertLess(time.monotonic(), end)


class Parsed(unittest.TestCase):
    def parse(self, text, uid):
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
            file.write(text)
            file.flush()
            os.chmod(file.name, 0o644)
            return subprocess.run([SQUID, "-k", "parse", "-f", file.name], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  preexec_fn=lambda: launch.become(uid)).stdout

    def test_squid_takes_every_line_without_a_complaint(self):
        (file,) = compile_egress("squid", *RULES)["files"]
        for uid in (0, launch.ORDINARY):
            said = self.parse(file["contents"], uid)
            complaints = [line for line in said.splitlines()
                          if any(word in line for word in ("WARNING", "ERROR", "FATAL", "Bungled"))]
            # That it does not name itself to origins is meant.
            self.assertEqual([line for line in complaints if "use of Via" not in line], [])
            lines = [line for line in file["contents"].splitlines() if not line.startswith("#")]
            self.assertEqual(said.count("Processing: "), len(lines))

    def test_a_broken_file_would_be_seen(self):
        self.assertIn("Bungled", self.parse("http_access allow nothing_like_it\n", 0))


if __name__ == "__main__":
    unittest.main()
