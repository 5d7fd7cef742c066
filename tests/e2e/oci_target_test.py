"""oci: the config.json that the oci target prints, started by runc and crun."""

import glob
import json
import os
import socket
import sys
import unittest

import launch
from cases import PROBE, Case, quoted, service
from egress_service import ServiceCase
from oci_runtime import CRUN, RUNC, Bundle

USER = f"{launch.ORDINARY}:{launch.ORDINARY}"
STARTERS = {"RuncByRoot": (RUNC, 0), "RuncByUser": (RUNC, launch.ORDINARY),
            "CrunByRoot": (CRUN, 0), "CrunByUser": (CRUN, launch.ORDINARY)}
# How those mounts of goldens end that are files.
FILES = (".jsonl", "bus", "socket", "localtime")
THREADS = """
import threading
stop = threading.Event()
try:
    for number in range(40):
        threading.Thread(target=stop.wait).start()
    print("all")
except RuntimeError:
    print("refused")
finally:
    stop.set()
"""


def probe(*attempts):
    """The command that makes these attempts; see probe.py, which the rootfs holds."""
    return [launch.PYTHON, "-I", "-S", "/probe.py", json.dumps(attempts)]


def started_by(*names):
    """Replaces a class of tests by one for each of these starters."""
    def replace(cases):
        for name in names:
            runtime, uid = STARTERS[name]
            body = {"runtime": runtime, "uid": uid, "__module__": cases.__module__,
                    "__qualname__": cases.__name__ + name}
            setattr(sys.modules[cases.__module__], cases.__name__ + name,
                    type(cases.__name__ + name, (cases,), body))
        # under its own name it would run once more, started by nobody
    return replace


class OciCase(Case):
    """Tests of one bundle that `runtime` starts for `uid`."""

    runtime = None
    uid = None

    def setUp(self):
        super().setUp()
        self.bundle = Bundle(self.tree)
        self.tree.file("bundle/rootfs/probe.py", PROBE)

    def compile(self, capabilities, command, options=()):
        return launch.compile_manifest(launch.server("fs:read:/usr/**", *capabilities), "--target",
                                       "oci", "--user", USER, *options, "--", *command)

    def run_bundle(self, capabilities, command, *, options=(), stdin=b""):
        self.bundle.write(self.compile(capabilities, command, options))
        return self.bundle.run(self.runtime, self.uid, stdin)

    def attempt(self, capabilities, *attempts, options=()):
        """The results of the attempts in the container of these capabilities."""
        done = self.run_bundle(capabilities, probe(*attempts), options=options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)


@started_by(*STARTERS)
class Isolation(OciCase):
    """What holds for every bundle, without any capability."""

    def test_the_server_has_no_privilege_and_is_an_ordinary_user_outside(self):
        status, uids, gids, host = self.attempt(
            [], ["read", "/proc/self/status"], ["read", "/proc/self/uid_map"],
            ["read", "/proc/self/gid_map"], ["hostname"])
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.assertEqual(int(facts[name], 16), 0, name)
        self.assertEqual((facts["NoNewPrivs"], facts["Seccomp"]), ("1", "2"))
        self.assertEqual(uids.split(), ["0", str(launch.ORDINARY), "1"])
        self.assertEqual(gids.split(), ["0", str(launch.ORDINARY), "1"])
        self.assertEqual(host, "capgate")

    def test_nothing_of_the_host_is_there(self):
        secret = self.tree.file("other/secret.txt", "not granted")
        self.assert_open_outside(["read", secret], ["names", "/sys/class/net"])
        read, system, keys, processes, devices = self.attempt(
            [], ["read", secret], ["names", "/sys"], ["read", "/proc/keys"], ["processes"],
            ["names", "/dev"])
        self.assertEqual((read, system, keys, processes), ("ENOENT", "ENOENT", "", [1]))
        self.assertLessEqual(set(devices), {
            "console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr",
            "stdin", "stdout", "tty", "urandom", "zero"})

    def test_every_namespace_is_its_own(self):
        [inside] = self.attempt([], ["namespaces"])
        for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts"):
            self.assertNotEqual(inside[name], os.readlink(f"/proc/self/ns/{name}"), name)

    def test_only_tmp_is_writable(self):
        self.assertEqual(
            self.attempt([], ["write", "/new"], ["write", "/etc/new"], ["write", "/usr/new"],
                         ["write", "/proc/self/oom_score_adj", "500"], ["write", "/tmp/new"]),
            ["EROFS", "EROFS", "EROFS", "EROFS", "done"])

    def test_no_file_of_the_kernel_is_writable(self):
        """Masked files are /dev/null, which everyone may write."""
        masked = {"/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                  "/proc/sched_debug", "/proc/timer_list", "/proc/timer_stats"}
        [writable] = self.attempt([], ["writable_kernel_files"])
        self.assertLessEqual(set(writable), masked)

    def test_there_is_no_network(self):
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            self.assert_open_outside(["connect", "127.0.0.1", port])
            self.assertEqual(
                self.attempt([], ["connect", "127.0.0.1", port], ["connect", "192.0.2.1", 443],
                             ["interfaces"]),
                ["ECONNREFUSED", "ENETUNREACH", ["lo"]])

    def test_the_filter_refuses_processes_namespaces_and_setuid_bits(self):
        own = self.tree.directory("own")
        new_user = 0x10000000
        attempts = (["fork"], ["unshare", new_user], ["make_with_mode", f"{own}/s", 0o4755])
        self.assert_open_outside(*attempts)
        self.assertEqual(self.attempt([f"fs:write:{own}"], *attempts), ["EPERM"] * 3)

    def test_standard_input_output_and_status_pass_through(self):
        echo = "import sys; sys.stdout.write(sys.stdin.read()); sys.exit(42)"
        done = self.run_bundle([], [launch.PYTHON, "-I", "-S", "-c", echo], stdin=b'{"id":1}\n')
        self.assertEqual((done.returncode, done.stdout), (42, b'{"id":1}\n'))

    def test_the_environment_is_the_printed_one(self):
        [seen] = self.attempt(["env:inject:TOKEN"], ["environment"],
                              options=["--accept-unenforced=env:inject:TOKEN"])
        self.assertEqual(set(seen) - {"LC_CTYPE"}, {"PATH", "HOME", "TMPDIR", "LANG"})


@started_by(*STARTERS)
class Goldens(OciCase):
    """Every reviewed config.json is taken by the runtimes."""

    def test_every_golden_starts(self):
        """With what the machine has: its mounts lead to a directory or file of the test, and its
        server is a program that ends at once."""
        self.tree.directory("any/out")  # one golden has a grant inside another one
        sources = {True: self.tree.file("any/file", ""), False: self.tree.path("any")}
        goldens = sorted(glob.glob(f"{launch.ROOT}/tests/golden/*/oci/config.json"))
        self.assertGreater(len(goldens), 15)
        for path in goldens:
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            for mount in config["mounts"]:
                if mount["type"] == "bind":
                    is_file = mount["destination"].endswith(FILES)
                    mount["source"] = sources[is_file]
            config["mounts"].insert(0, {"destination": "/usr", "type": "bind", "source": "/usr",
                                        "options": ["bind", "ro"]})
            for mapping in ("uidMappings", "gidMappings"):
                config["linux"][mapping][0]["hostID"] = launch.ORDINARY
            config["process"]["args"] = ["/usr/bin/true"]
            self.bundle.write({"files": [{"name": "config.json", "contents": json.dumps(config)}]})
            done = self.bundle.run(self.runtime, self.uid)
            self.assertEqual(done.returncode, 0, f"{path}: {done.stderr.decode()}")


@started_by(*STARTERS)
class Grants(OciCase):
    """Mounts open the declared paths, and nothing beside them."""

    def test_access_is_what_is_declared(self):
        shown = self.tree.file("t/data/a.txt", "granted")
        beside = self.tree.file("t/other.txt", "not granted")
        work = self.tree.directory("t/work")
        self.assertEqual(
            self.attempt([f"fs:read:{shown}", f"fs:write:{work}"], ["read", shown],
                         ["write", shown], ["read", beside], ["write", f"{work}/new"]),
            ["granted", "EROFS", "ENOENT", "done"])
        self.assertEqual(os.stat(f"{work}/new").st_uid, launch.ORDINARY)

    def test_odd_paths_are_mounted_as_they_are_written(self):
        for name in ('with "quotes"', "a,ro,b:c", "`x` 'y' %s", "\\back", "größe"):
            path = self.tree.directory(f"odd/{name}")
            self.tree.file(f"odd/{name}/a.txt", name)
            self.assertEqual(self.attempt([f"fs:read:{quoted(path)}"], ["read", f"{path}/a.txt"],
                                          ["write", f"{path}/a.txt"]), [name, "EROFS"])

    def test_credentials_and_startup_files_inside_a_grant_are_protected(self):
        home = self.tree.directory("home")
        ring = self.tree.file("home/.local/share/keyrings/login.keyring", "canary")
        plain = self.tree.file("home/.local/share/notes.txt", "granted")
        hook = self.tree.file("home/p/.git/hooks/pre-commit", "true")
        attempts = (["read", ring], ["read", plain], ["write", hook], ["write", f"{home}/p/x"])
        self.assertEqual(
            self.attempt([f"fs:read:{home}/.local/share/**", f"fs:write:{home}/p/**"], *attempts,
                         options=["--set", f"HOME={home}"]),
            ["ENOENT", "granted", "EROFS", "done"])

    def test_a_socket_is_reached_where_it_is_granted(self):
        path = self.tree.path("granted.sock")
        with service(socket.AF_UNIX, path):
            os.chmod(path, 0o777)
            self.assertEqual(self.attempt([f"ipc:connect:unix:{path}"], ["connect_unix", path]),
                             ["hello from the host"])
            self.assertEqual(self.attempt([], ["connect_unix", path]), ["EACCES"])

    def test_a_missing_grant_starts_nothing(self):
        done = self.run_bundle([f"fs:read:{self.tree.path('missing')}"], ["/usr/bin/id"])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")

    def test_files_and_disk_are_limited(self):
        limits, small, large = self.attempt(
            ["limit:files:64", "limit:disk:1M"], ["read", "/proc/self/limits"],
            ["fill", "/tmp", 1 << 19], ["fill", "/tmp", 2 << 20])
        self.assertRegex(limits, r"Max open files +64 +64 ")
        self.assertEqual((small, large), ("done", "ENOSPC"))


# crun 1.8 started by root makes a writable mount without the option noexec.
@started_by("RuncByRoot", "RuncByUser", "CrunByUser")
class Programs(OciCase):
    """What the server writes cannot be started."""

    def test_a_writable_grant_holds_no_program_to_start(self):
        work = self.tree.directory("work")
        program = self.tree.file("work/program", "#!/usr/bin/python3\nprint('ran')\n")
        os.chmod(program, 0o755)
        for grant, answer in ((f"fs:read:{work}", (0, b"ran\n")), (f"fs:write:{work}", (1, b""))):
            done = self.run_bundle([grant], [program])
            self.assertEqual((min(done.returncode, 1), done.stdout), answer)


@started_by(*STARTERS)
class Egress(OciCase, ServiceCase):
    """Declared endpoints are reached through `capgate egress`, others are not."""

    def request(self, origin):
        return ["/usr/bin/curl", "-sS", "--max-time", "10", "--noproxy", "nobody.invalid",
                "--write-out", "%{http_code}", f"http://localhost:{origin.port}/"]

    def serve_and_run(self, command, *capabilities):
        """The service belongs to the ordinary user, whoever starts the bundle."""
        starter, self.uid = self.uid, launch.ORDINARY
        self.serve()
        self.uid = starter
        return self.run_bundle([f"net:connect:localhost:{self.web.port}", *capabilities], command,
                               options=["--egress-dir", self.directory])

    def test_a_declared_endpoint_is_reached(self):
        done = self.serve_and_run(self.request(self.web))
        self.assertEqual((done.returncode, done.stdout), (0, b"hello from the origin200"),
                         done.stderr.decode())

    def test_another_one_is_refused(self):
        done = self.serve_and_run(self.request(self.other))
        self.assertTrue(done.stdout.endswith(b"403"), done)
        self.assertNotIn(b"hello", done.stdout)

    def test_the_server_gets_nothing_of_what_the_forwarder_needs(self):
        done = self.serve_and_run(probe(["fork"], ["make_socket", "AF_UNIX"], ["thread"],
                                        ["connect", "192.0.2.1", 443], ["interfaces"]))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        fork, unix, thread, outside, interfaces = json.loads(done.stdout)
        self.assertEqual((fork, thread, outside, interfaces),
                         ("EPERM", "done", "ENETUNREACH", ["lo"]))
        self.assertNotEqual(unix, "done")

    def test_without_the_service_nothing_starts(self):
        done = self.run_bundle([f"net:connect:localhost:{self.web.port}"], self.request(self.web),
                               options=["--egress-dir", self.directory])
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn(b"hello", done.stdout)


# crun 1.8 leaves the cgroup alone when an ordinary user starts it on version 1.
@started_by("RuncByRoot", "RuncByUser", "CrunByRoot")
class CgroupLimits(OciCase):
    """Limits that the starter's cgroup carries."""

    def test_memory(self):
        hog = [launch.PYTHON, "-I", "-S", "-c", "x = bytearray(96 << 20); print(len(x))"]
        for limit, code in (("256M", 0), ("48M", 137)):
            done = self.run_bundle([f"limit:memory:{limit}"], hog)
            self.assertEqual(done.returncode, code, done.stderr.decode())

    def test_pids(self):
        self.tree.file("bundle/rootfs/threads.py", THREADS)
        for limit, answer in ((64, b"all\n"), (12, b"refused\n")):
            done = self.run_bundle([f"limit:pids:{limit}"],
                                   [launch.PYTHON, "-I", "-S", "/threads.py"])
            self.assertEqual(done.stdout, answer, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
