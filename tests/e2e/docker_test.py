"""docker: the flags that the docker target prints, on a real engine."""

import glob
import json
import os
import socket
import unittest

import launch
from cases import Case, probe, quoted, service
from docker_daemon import BUSYBOX, shared

RESOURCES = ("docker",)


def setUpModule():
    DockerCase.daemon = unittest.enterModuleContext(shared())


class DockerCase(Case):
    """Tests that run commands in containers of one engine."""

    daemon = None

    def compile(self, *capabilities, options=()):
        return launch.compile_manifest(launch.server(*capabilities), "--target", "docker", *options)

    def container(self, capabilities, script, **options):
        """What a shell script prints in the container of these capabilities; it must end well."""
        artifact = self.compile(*capabilities)
        done = self.daemon.run(artifact, ["sh", "-c", script], **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode()

    def facts(self, capabilities, **questions):
        """The answers to several questions, each a shell command; what it says on stderr counts."""
        script = "".join(f"printf '\\036{name}\\n'; {{ {command}; }} 2>&1\n"
                         for name, command in questions.items())
        parts = self.container(capabilities, script + "true\n").split("\x1e")[1:]
        answers = (part.partition("\n") for part in parts)
        return {name: answer.strip() for name, _, answer in answers}

    def assert_open_outside_shell(self, script):
        """The control of an attack: the same commands work for an ordinary user outside."""
        done = launch.run_outside([BUSYBOX, "sh", "-c", script])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()


class Isolation(DockerCase):
    """What holds for every container, without any capability."""

    def test_the_server_is_an_unprivileged_user_below_an_init(self):
        facts = self.facts(
            [], id="id", host="hostname", init="tr '\\0' ' ' </proc/1/cmdline",
            caps="grep -E '^Cap' /proc/self/status | tr -d '\\t\\n'",
            locks="grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'")
        self.assertEqual(facts["id"], "uid=1000 gid=1000 groups=1000")
        self.assertEqual(facts["host"], "capgate")
        self.assertRegex(facts["init"], r"^/\S*docker-init -- sh ")
        self.assertEqual(facts["caps"], "".join(
            f"Cap{name}:{'0' * 16}" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")))
        self.assertEqual(facts["locks"], "NoNewPrivs:1Seccomp:2")

    def test_another_user_can_be_chosen(self):
        artifact = self.compile(options=("--user", "4242:4343"))
        self.assertEqual(self.daemon.run(artifact, ["id"]).stdout.decode().split()[:2],
                         ["uid=4242", "gid=4343"])

    def test_only_tmp_is_writable(self):
        facts = self.facts([], root="touch /new", bin="touch /bin/new", etc="touch /etc/new",
                           tmp="echo ok >/tmp/new && cat /tmp/new", home="echo $HOME")
        for place in ("root", "bin", "etc"):
            self.assertIn("Read-only file system", facts[place])
        self.assertEqual((facts["tmp"], facts["home"]), ("ok", "/tmp"))

    def test_nothing_in_tmp_can_be_executed(self):
        facts = self.facts([], run="cp /bin/busybox /tmp/true && /tmp/true")
        self.assertIn("Permission denied", facts["run"])

    def test_there_is_no_network(self):
        facts = self.facts([], interfaces="ls /sys/class/net",
                           routes="tail -n +2 /proc/net/route", out="nc -w 2 192.0.2.1 443")
        self.assertEqual(facts["interfaces"], "lo")
        self.assertEqual(facts["routes"], "")
        self.assertIn("Network is unreachable", facts["out"])

    def test_the_filter_refuses_namespaces_and_setuid_bits(self):
        control = f"cd {self.tree.root} && unshare -U true && touch s && chmod 4755 s && ls -l s"
        self.assertTrue(self.assert_open_outside_shell(control).startswith("-rwsr-xr-x"))
        facts = self.facts([], namespace="unshare -U true",
                           setuid="touch /tmp/s && chmod 4755 /tmp/s",
                           plain="chmod 755 /tmp/s && echo ok")
        self.assertIn("Operation not permitted", facts["namespace"])
        self.assertIn("Operation not permitted", facts["setuid"])
        self.assertEqual(facts["plain"], "ok")

    def test_without_its_filter_no_container_starts(self):
        artifact = {**self.compile(), "fds": []}
        done = self.daemon.run(artifact, ["echo", "the server ran"])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")
        self.assertIn("/dev/fd/3", done.stderr.decode())

    def test_standard_input_output_and_status_pass_through(self):
        done = self.daemon.run(self.compile(), ["cat"], stdin=b'{"jsonrpc":"2.0"}\n')
        self.assertEqual((done.returncode, done.stdout), (0, b'{"jsonrpc":"2.0"}\n'))
        done = self.daemon.run(self.compile(), ["sh", "-c", "exit 42"])
        self.assertEqual((done.returncode, done.stdout), (42, b""))

    def test_nothing_of_a_container_stays(self):
        self.container([], "echo x >/tmp/x")
        self.assertEqual(self.daemon.command("ps", "--all", "--quiet"), "")


class Environment(DockerCase):
    """Values come by name from the environment of the docker command, and only declared ones."""

    def test_declared_variables_arrive_and_others_do_not(self):
        env = {"TOKEN": "the value", "OTHER": "canary"}
        artifact = self.compile("env:inject:TOKEN")
        self.assertNotIn("the value", " ".join(artifact["argv"]))
        seen = self.daemon.run(artifact, ["env"], env=env).stdout.decode().splitlines()
        self.assertIn("TOKEN=the value", seen)
        self.assertEqual(names_with_values(seen), {"TOKEN", "HOME", "HOSTNAME", "PATH"})

    def test_proxies_of_the_docker_command_do_not_arrive(self):
        """Their addresses may hold passwords. Without the artifact they do arrive."""
        address = "http://user:canary@proxy.example:3128"
        keys = ("httpProxy", "httpsProxy", "ftpProxy", "noProxy", "allProxy")
        with self.daemon.configured({"proxies": {"default": dict.fromkeys(keys, address)}}):
            control = self.daemon.command("run", "--rm", "--network", "none", "--ulimit",
                                          "nofile=1024", self.daemon.image, "env")
            seen = self.daemon.run(self.compile("env:inject:HTTP_PROXY"), ["env"],
                                   env={"HTTP_PROXY": "declared"}).stdout.decode()
        self.assertIn(f"https_proxy={address}", control)
        self.assertNotIn("canary", seen)
        self.assertEqual(names_with_values(seen.splitlines()),
                         {"HTTP_PROXY", "HOME", "HOSTNAME", "PATH"})


class Grants(DockerCase):
    """Mounts open the declared paths, and nothing beside them."""

    def test_access_is_what_is_declared(self):
        """D1: a writable child does not widen its read-only parent."""
        self.tree.file("t/data/a.txt", "granted")
        child = self.tree.directory("t/data/out")
        self.tree.file("other/b.txt", "not granted")
        tree = self.tree.path("t")
        facts = self.facts(
            [f"fs:read:{tree}/**", f"fs:write:{child}"], read=f"cat {tree}/data/a.txt",
            write=f"echo x >>{tree}/data/a.txt", create=f"touch {tree}/new",
            child=f"echo written >{child}/new && echo ok", sibling=f"ls {self.tree.root}",
            above="ls /var")
        self.assertEqual(facts["read"], "granted")
        self.assertIn("Read-only file system", facts["write"])
        self.assertIn("Read-only file system", facts["create"])
        self.assertEqual((facts["child"], facts["sibling"], facts["above"]), ("ok", "t", "tmp"))
        self.assertEqual(self.tree.text("t/data/out/new"), "written\n")

    def test_a_file_is_granted_without_its_directory(self):
        """D2: dots in a name mean nothing."""
        file = self.tree.file("d/hosts.allow", "granted")
        self.tree.file("d/b.txt", "not granted")
        facts = self.facts([f"fs:read:{file}"], read=f"cat {file}",
                           beside=f"ls {self.tree.path('d')}")
        self.assertEqual(facts, {"read": "granted", "beside": "hosts.allow"})

    def test_unusual_names_are_granted_exactly(self):
        """D8: no name can add a field to a mount."""
        names = ["a:b", "a,b", 'dou"ble', '"quoted"', "x,readonly=false", "with space", "--volume",
                 "target=evil", "äöü", "back\\slash", "'single'", ",", '",source=', "a=b"]
        for name in names:
            self.tree.file(f"d/{name}/a.txt", name)
        self.tree.file("d/sibling/a.txt", "not granted")
        scopes = [quoted(self.tree.path(f"d/{name}")) for name in names]
        output = self.container([f"fs:read:{scope}" for scope in scopes], f"""
cd {self.tree.path('d')}
for name in *; do
  cat "./$name/a.txt" && echo && ! touch "./$name/new" 2>/dev/null || exit 1
done""")
        self.assertEqual(sorted(output.splitlines()), sorted(names))

    def test_a_missing_source_is_an_error_and_is_made_nowhere(self):
        """D7: --volume would make it, as an empty directory of root."""
        missing = self.tree.path("missing")
        for action in ("read", "write"):
            with self.subTest(action=action):
                done = self.daemon.run(self.compile(f"fs:{action}:{missing}"), ["echo", "ran"])
                self.assertEqual((done.returncode, done.stdout), (125, b""))
                self.assertIn(missing, done.stderr.decode())
                self.assertEqual(self.tree.snapshot(), {})

    def test_a_granted_path_below_tmp_lies_on_the_private_tmp(self):
        """D18: /tmp stays private and writable."""
        host = self.make_tree("/tmp")
        host.file("granted/a.txt", "granted")
        sibling = host.file("b.txt", "not granted")
        granted = host.path("granted")
        facts = self.facts([f"fs:read:{granted}"], read=f"cat {granted}/a.txt",
                           sibling=f"cat {sibling}", own="echo ok >/tmp/own && cat /tmp/own")
        self.assertEqual((facts["read"], facts["own"]), ("granted", "ok"))
        self.assertIn("No such file", facts["sibling"])

    def test_the_local_time_zone_is_mounted(self):
        if not os.path.exists("/etc/localtime"):
            self.skipTest("this host has no /etc/localtime")
        facts = self.facts(["clock:tzdata"], zone="head -c 4 /etc/localtime",
                           zones="ls /usr/share/zoneinfo | grep -x Etc")
        self.assertEqual(facts, {"zone": "TZif", "zones": "Etc"})


class Sockets(DockerCase):
    """A service of the host is reached through exactly the declared socket."""

    def attempt(self, capabilities, *attempts):
        """The probe needs the host's Python, which is granted to the container for that."""
        loader = (glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*"))[0]
        interpreter = [f"fs:read:{path}" for path in (loader, "/usr/lib", launch.PYTHON)]
        done = self.daemon.run(self.compile(*interpreter, *capabilities), probe(*attempts))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def test_a_declared_socket_works_and_its_sibling_is_absent(self):
        declared, other = self.tree.path("declared.sock"), self.tree.path("other.sock")
        with service(socket.AF_UNIX, declared), service(socket.AF_UNIX, other):
            for path in (declared, other):
                os.chmod(path, 0o777)
            results = self.assert_open_outside(("connect_unix", declared), ("connect_unix", other))
            self.assertEqual(results, ["hello from the host"] * 2)
            results = self.attempt([f"ipc:connect:{quoted('unix:' + declared)}"],
                                   ("connect_unix", declared), ("connect_unix", other))
        self.assertEqual(results, ["hello from the host", "ENOENT"])

    def test_without_a_grant_no_unix_socket_can_be_made(self):
        families = [("make_socket", "AF_UNIX"), ("make_socket", "AF_NETLINK", "SOCK_RAW")]
        self.assert_open_outside(*families)
        self.assertEqual(self.attempt([], *families, ("make_socket", "AF_INET")),
                         ["EACCES", "EAFNOSUPPORT", "done"])


class Limits(DockerCase):
    """Limits are set, and hold."""

    def test_safe_defaults_are_set(self):
        facts = self.facts([], files="ulimit -n; ulimit -H -n",
                           pids=cgroup_value("pids", "pids.max"),
                           memory=cgroup_value("memory", "memory.limit_in_bytes", "memory.max"),
                           tmp="df -k /tmp | tail -n 1 | awk '{print $2}'")
        self.assertEqual(facts, {"files": "1024\n1024", "pids": "256", "memory": str(2 << 30),
                                 "tmp": str(256 << 10)})

    def test_declared_limits_are_set(self):
        facts = self.facts(["limit:files:64", "limit:pids:32", "limit:cpu:50%"],
                           files="ulimit -n; ulimit -H -n", pids=cgroup_value("pids", "pids.max"),
                           cpu=cgroup_value("cpu", "cpu.cfs_quota_us", "cpu.max"))
        self.assertEqual((facts["files"], facts["pids"]), ("64\n64", "32"))
        self.assertEqual(facts["cpu"].split()[0], "50000")

    def test_processes_are_bounded(self):
        done = self.daemon.run(self.compile("limit:pids:8"),
                          ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; echo all"])
        self.assertNotIn(b"all", done.stdout)
        self.assertIn("can't fork", done.stderr.decode())

    def test_memory_is_bounded(self):
        """tail keeps all that it reads, 64 MB at most."""
        command = ["sh", "-c", "head -c 64m /dev/zero | tail -c 64m | wc -c"]
        done = self.daemon.run(self.compile("limit:memory:128M"), command)
        self.assertEqual(done.stdout, b"67108864\n")
        done = self.daemon.run(self.compile("limit:memory:16M"), command)
        self.assertNotEqual(done.stdout, b"67108864\n")

    def test_the_private_tmp_is_bounded(self):
        facts = self.facts(["limit:disk:1M"], fits="head -c 512k /dev/zero >/tmp/a && echo ok",
                           more="dd if=/dev/zero of=/tmp/b bs=1M count=1")
        self.assertEqual(facts["fits"], "ok")
        self.assertIn("No space left on device", facts["more"])


def names_with_values(lines):
    """The names of variables that are not empty."""
    return {name for name, _, value in (line.partition("=") for line in lines) if value}


def cgroup_value(controller, first_version, second_version=None):
    """A shell command that prints a limit, from cgroup v1 or v2."""
    name = second_version or first_version
    return (f"cat /sys/fs/cgroup/{controller}/{first_version} 2>/dev/null || "
            f"cat /sys/fs/cgroup/{name}")


if __name__ == "__main__":
    unittest.main()
