"""bwrap, docker, podman and compose with their declared egress, on the real engines.

Each sandbox has no network. One request to what is declared passes, through `capgate egress`; one
to another port is refused, and the answer names the capability.
"""

import contextlib
import http.server
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import unittest

import launch
from cases import Case, probe
from container_origin import GREETING, Origin
from docker_daemon import BUSYBOX, Daemon, busybox_image, shared
from podman_engine import Podman

COMPOSE = os.environ.get("COMPOSE", "/usr/bin/docker-compose")


@contextlib.contextmanager
def origin():
    """The port of a web server at the host's loopback."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def egress(directory, capabilities, *, uid=0, options=()):
    """`capgate egress` for these capabilities, with its socket in the directory."""
    manifest = json.dumps(launch.server(*capabilities)).encode()
    process = subprocess.Popen(
        [launch.CAPGATE, "egress", "--policy", "-", "--json", "--audit", f"{directory}.audit",
         "--listen", f"unix:{directory}/egress.sock", *options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
        env={"HOME": os.path.dirname(directory), "PATH": os.defpath},
        preexec_fn=lambda: launch.become(uid))
    try:
        process.stdin.write(manifest)
        process.stdin.close()
        if not process.stdout.readline():
            raise RuntimeError("capgate egress did not start: " + process.stderr.read().decode())
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        process.stderr.read()
        process.wait(timeout=launch.SECONDS)
        process.stdout.close()
        process.stderr.close()


def request(port, host="127.0.0.1"):
    """What a client of a proxy says."""
    return (f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Connection: close\r\n\r\n").encode()


class EgressTests:
    """What holds with every engine. A subclass runs commands in a `sandbox`."""

    target = None
    options = ()
    uid = 0  # of capgate egress
    egress_options = ()
    busybox = "busybox"

    def sandbox(self, artifact, command, stdin=b""):
        """The finished run of a command with the artifact."""
        raise NotImplementedError

    def compile(self, *capabilities):
        return launch.compile_manifest(
            launch.server(*capabilities), "--target", self.target,
            "--egress-dir", self.tree.path("egress"), *self.options)

    def ask(self, capabilities, port):
        """What the sandbox gets when it asks its proxy for that port of the host's loopback."""
        artifact = self.compile(*capabilities)
        with egress(self.tree.path("egress"), capabilities, uid=self.uid,
                    options=self.egress_options):
            done = self.sandbox(artifact, [self.busybox, "nc", "127.0.0.1", "3128"],
                                stdin=request(port))
        return done.stdout + done.stderr

    def test_what_is_declared_passes(self):
        with origin() as port:
            answer = self.ask([f"net:connect:127.0.0.1:{port}"], port)
        self.assertIn(b"200", answer.split(b"\r\n")[0])
        self.assertIn(GREETING, answer)

    def test_what_is_not_declared_is_refused_and_named(self):
        with origin() as port, origin() as other:
            answer = self.ask([f"net:connect:127.0.0.1:{port}"], other)
        self.assertIn(b"403", answer.split(b"\r\n")[0])
        self.assertIn(f"net:connect:127.0.0.1:{other}".encode(), answer)
        self.assertNotIn(GREETING, answer)

    def beside_a_broker(self, *command):
        """What a command prints in a sandbox whose declared endpoint nobody serves."""
        capabilities = ["net:connect:*"]
        artifact = self.compile(*capabilities)
        with egress(self.tree.path("egress"), capabilities, uid=self.uid,
                    options=self.egress_options):
            done = self.sandbox(artifact, [self.busybox, *command])
        return done.stdout.decode()

    def test_programs_are_told_of_the_proxy(self):
        self.assertIn("HTTPS_PROXY=http://127.0.0.1:3128", self.beside_a_broker("env"))

    def test_the_sandbox_itself_has_no_network(self):
        lines = self.beside_a_broker("cat", "/proc/net/dev").splitlines()[2:]
        self.assertEqual([line.split(":")[0].strip() for line in lines], ["lo"])

    def test_without_the_broker_nothing_starts(self):
        artifact = self.compile("net:connect:192.0.2.1:443")
        done = self.sandbox(artifact, [self.busybox, "echo", "the server ran"])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")


class BwrapByRoot(EgressTests, Case):
    """bwrap, started by root."""

    target = "bwrap"
    busybox = BUSYBOX
    starter = 0

    def sandbox(self, artifact, command, stdin=b""):
        return launch.run_bwrap(artifact, command, uid=self.starter, stdin=stdin)

    def attempts(self, capabilities, *attempts):
        artifact = self.compile(*capabilities)
        with egress(self.tree.path("egress"), capabilities, uid=self.uid):
            done = self.sandbox(artifact, probe(*attempts))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def test_the_server_has_less_than_the_forwarder(self):
        path = "/run/capgate/egress.sock"
        results = self.attempts(["net:connect:192.0.2.1:443"], ("fork",), ("thread",),
                                ("connect_unix", path), ("kind", path), ("remove", path),
                                ("interfaces",))
        self.assertEqual(results[0], "EPERM")
        self.assertNotEqual(results[1], "EPERM")
        self.assertEqual(results[2], "EPERM")
        self.assertEqual(results[3], "file")  # it is there
        self.assertEqual(results[4], "EROFS")
        self.assertEqual(results[5], ["lo"])

    def test_an_ipc_grant_leaves_the_server_its_sockets(self):
        results = self.attempts(["net:connect:192.0.2.1:443", "ipc:connect:self"],
                                ("make_socket", "AF_UNIX"), ("fork",))
        self.assertNotEqual(results[0], "EPERM")
        self.assertEqual(results[1], "EPERM")


class BwrapByUser(BwrapByRoot):
    """bwrap, started by an ordinary user, whose broker it is."""

    uid = launch.ORDINARY
    starter = launch.ORDINARY


class Docker(EgressTests, Case):
    """docker, with a broker of root's."""

    RESOURCES = ("docker",)
    target = "docker"
    egress_options = ("--socket-mode", "0666")

    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(shared())

    def sandbox(self, artifact, command, stdin=b""):
        prefix = artifact.get("commandPrefix", [])
        return self.engine.run(artifact, [*prefix, *command], stdin=stdin)

    def test_without_the_prefix_nothing_starts(self):
        capabilities = ["net:connect:192.0.2.1:443"]
        artifact = {**self.compile(*capabilities), "commandPrefix": []}
        with egress(self.tree.path("egress"), capabilities, options=self.egress_options):
            done = self.sandbox(artifact, ["echo", "the server ran"])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")


class PodmanTests(EgressTests):
    """podman: egress, and what the flags keep without it."""

    RESOURCES = ("podman",)
    target = "podman"
    starter = 0

    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(Podman(cls.starter))

    def sandbox(self, artifact, command, stdin=b""):
        return self.engine.run(artifact, command, stdin=stdin)

    def container(self, capabilities, script):
        """What a shell script prints in a container of these capabilities; it must end well."""
        done = self.sandbox(self.compile(*capabilities), ["sh", "-c", script])
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        return done.stdout.decode()

    def facts(self, capabilities, **questions):
        """The answers to several questions, each a shell command; what it says on stderr counts."""
        script = "".join(f"printf '\\036{name}\\n'; {{ {command}; }} 2>&1\n"
                         for name, command in questions.items())
        # On a busy machine podman loses output of a container that ends at once, and ends with 0.
        for _ in range(3):
            parts = self.container(capabilities, script + "true\n").split("\x1e")[1:]
            answers = (part.partition("\n") for part in parts)
            found = {name: answer.strip() for name, _, answer in answers}
            if found.keys() == questions.keys():
                break
        self.assertEqual(found.keys(), questions.keys(), "output of the container was lost")
        return found

    def test_the_server_is_an_unprivileged_user(self):
        facts = self.facts(
            [], id="id", host="hostname",
            caps="grep -E '^Cap' /proc/self/status | tr -d '\\t\\n'",
            locks="grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'")
        self.assertTrue(facts["id"].startswith("uid=1000"), facts["id"])
        self.assertEqual(facts["host"], "capgate")
        self.assertEqual(facts["caps"], "".join(
            f"Cap{name}:{'0' * 16}" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")))
        self.assertEqual(facts["locks"], "NoNewPrivs:1Seccomp:2")

    def test_only_tmp_is_writable_and_nothing_in_it_can_be_executed(self):
        facts = self.facts([], root="touch /new", etc="touch /etc/new", run="touch /run/new",
                           tmp="echo ok >/tmp/new && cat /tmp/new",
                           program="cp /bin/busybox /tmp/true && /tmp/true")
        for place in ("root", "etc", "run"):
            self.assertIn("Read-only file system", facts[place])
        self.assertEqual(facts["tmp"], "ok")
        self.assertIn("Permission denied", facts["program"])

    def test_without_egress_there_is_no_network(self):
        facts = self.facts([], interfaces="ls /sys/class/net", out="nc -w 2 192.0.2.1 443",
                           namespace="unshare -U true")
        self.assertEqual(facts["interfaces"], "lo")
        self.assertIn("Network is unreachable", facts["out"])
        self.assertIn("Operation not permitted", facts["namespace"])

    def test_the_private_tmp_and_the_files_are_bounded(self):
        facts = self.facts(["limit:disk:1M", "limit:files:64"], files="ulimit -n",
                           disk="dd if=/dev/zero of=/tmp/x bs=1M count=2")
        self.assertEqual(facts["files"], "64")
        self.assertIn("No space left on device", facts["disk"])

    def test_access_is_what_is_declared(self):
        tree = self.tree
        tree.file("t/a.txt", "granted")
        child = tree.directory("t/out")
        odd = tree.directory("odd: 'x' =y %s")
        facts = self.facts(
            [f"fs:read:{tree.path('t')}/**", f"fs:write:{child}", f'fs:write:"{odd}"'],
            read=f"cat {tree.path('t')}/a.txt", write=f"echo x >>{tree.path('t')}/a.txt",
            child=f"echo written >{child}/new && echo ok", sibling=f"ls {tree.root}",
            odd=f"cd {shlex.quote(odd)} && touch x && echo ok")
        self.assertEqual(facts["read"], "granted")
        self.assertIn("Read-only file system", facts["write"])
        self.assertEqual((facts["child"], facts["odd"]), ("ok", "ok"))
        self.assertEqual(facts["sibling"].split("\n")[-1], "t")

    def test_a_missing_source_is_an_error_and_is_made_nowhere(self):
        artifact = self.compile(f"fs:read:{self.tree.path('missing')}")
        done = self.sandbox(artifact, ["echo", "the server ran"])
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(self.tree.path("missing")))

    def test_declared_variables_arrive_and_others_do_not(self):
        artifact = self.compile("env:inject:TOKEN")
        env = {"TOKEN": "the value", "OTHER": "canary", "HTTP_PROXY": "http://canary"}
        done = self.engine.run(artifact, ["env"], env=env)
        seen = done.stdout.decode()
        self.assertIn("TOKEN=the value", seen)
        self.assertNotIn("canary", seen)


class PodmanByRoot(PodmanTests, Case):
    """Root's podman, with a broker of root's."""

    options = ("--rootful",)
    egress_options = ("--socket-mode", "0666")

    def test_memory_and_processes_are_bounded(self):
        done = self.sandbox(self.compile("limit:memory:32M"),
                            ["sh", "-c", "head -c 100000000 /dev/zero | tail | wc -c"])
        self.assertNotIn(b"100000000", done.stdout)
        done = self.sandbox(self.compile("limit:pids:8"),
                            ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done"])
        self.assertIn(b"can't fork", done.stderr)


class PodmanByUser(PodmanTests, Case):
    """A user's own podman and broker: the caller is the server's user inside."""

    starter = launch.ORDINARY
    uid = launch.ORDINARY

    def test_memory_is_bounded_or_podman_says_that_it_is_not(self):
        """With cgroups v1 nobody but root has limits; docs/targets/podman.md says so."""
        done = self.sandbox(self.compile("limit:memory:32M"),
                            ["sh", "-c", "head -c 100000000 /dev/zero | tail | wc -c"])
        said = b"Resource limits are not supported and ignored on cgroups V1" in done.stderr
        self.assertEqual(b"100000000" in done.stdout, said, done.stderr)

    def test_the_callers_files_are_the_servers(self):
        path = self.tree.file("mine", "secret")
        os.chmod(path, 0o600)
        self.assertEqual(self.container([f"fs:read:{path}"], f"cat {path}"), "secret")


class PodmanInOtherHands(Case):
    """An artifact in the hands of the podman that it is not for."""

    RESOURCES = ("podman",)

    def compile(self, *options):
        return launch.compile_manifest(launch.server(), "--target", "podman", *options)

    def test_root_cannot_use_a_users_artifact(self):
        with Podman() as podman:
            done = podman.run(self.compile(), ["echo", "the server ran"])
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")


ORIGIN = "10.99.0.1"
# Serves one port after the other; the first line says which are open.
SERVE = """
import http.server, sys, threading
sys.path.insert(0, sys.argv[1])
from container_origin import Origin
servers = [http.server.ThreadingHTTPServer((sys.argv[2], port), Origin) for port in (8080, 8081)]
for server in servers: threading.Thread(target=server.serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Compose(Case):
    """The compose file: the broker is a service of its own, and only it has a network."""

    RESOURCES = ("docker",)

    @classmethod
    def setUpClass(cls):
        cls.engine = cls.enterClassContext(Daemon())
        programs = [os.path.join(os.path.dirname(launch.CAPGATE), name)
                    for name in ("capgate", "capgate-broker")]
        cls.capgate_image = cls.engine.import_image(busybox_image(programs))
        cls.engine.command("tag", cls.engine.image, "server:e2e")
        cls.enterClassContext(cls.origins())

    @classmethod
    @contextlib.contextmanager
    def origins(cls):
        """Two ports of an address in the engine's own network."""
        (inside,) = cls.engine.first_processes()
        enter = ["nsenter", "--target", str(inside), "--net", "--"]
        subprocess.run([*enter, "ip", "address", "add", f"{ORIGIN}/32", "dev", "lo"], check=True)
        with subprocess.Popen([*enter, launch.PYTHON, "-c", SERVE, os.path.dirname(__file__), ORIGIN],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            try:
                if server.stdout.readline() != b"ready\n":
                    raise RuntimeError("no origin")
                yield
            finally:
                server.stdin.close()

    def project(self, capabilities, command):
        """The directory with the files of the artifact."""
        directory = self.tree.directory("project")
        launch.compile_manifest(launch.server(*capabilities), "--target", "compose", "--image",
                                "server:e2e", "--output", directory, "--", *command)
        self.addCleanup(self.compose, directory, "down", "--volumes")
        return directory

    def compose(self, directory, *words, stdin=b"", env=None):
        return subprocess.run(
            [COMPOSE, *words], input=stdin, capture_output=True, cwd=directory, check=False,
            timeout=4 * launch.SECONDS,
            env={"DOCKER_HOST": self.engine.client()[-1], "PATH": os.defpath, "HOME": self.tree.root,
                 "CAPGATE_IMAGE": self.capgate_image, **(env or {})})

    def run_server(self, capabilities, command, **options):
        directory = self.project(capabilities, command)
        return self.compose(directory, "run", "--rm", "-T", "server", **options)

    def ask(self, port):
        done = self.run_server([f"net:connect:{ORIGIN}:8080"], ["nc", "127.0.0.1", "3128"],
                               stdin=request(port, ORIGIN))
        return done.stdout + done.stderr

    def test_what_is_declared_passes(self):
        answer = self.ask(8080)
        self.assertIn(GREETING, answer)

    def test_what_is_not_declared_is_refused_and_named(self):
        answer = self.ask(8081)
        self.assertIn(f"net:connect:{ORIGIN}:8081".encode(), answer)
        self.assertNotIn(GREETING, answer)

    def test_the_server_itself_has_no_network(self):
        done = self.run_server([f"net:connect:{ORIGIN}:8080"], ["ls", "/sys/class/net"])
        self.assertEqual(done.stdout.decode().split(), ["lo"], done.stderr.decode())

    def test_without_egress_the_server_is_alone_and_closed(self):
        script = ("id; ls /sys/class/net; touch /new; grep Seccomp: /proc/self/status; "
                  "grep CapEff /proc/self/status; echo $TOKEN $$OTHER; ulimit -n")
        done = self.run_server(["env:inject:TOKEN", "limit:files:64"], ["sh", "-c", script],
                               env={"TOKEN": "the value", "OTHER": "canary"})
        lines = done.stdout.decode().split("\n")
        self.assertTrue(lines[0].startswith("uid=1000"), done.stderr.decode())
        self.assertEqual(lines[1], "lo")
        self.assertIn("Seccomp:\t2", lines)
        self.assertIn("CapEff:\t0000000000000000", lines)
        self.assertIn("64", lines)
        self.assertIn("the value", done.stdout.decode())
        self.assertNotIn("canary", done.stdout.decode())
        self.assertIn("Read-only file system", done.stderr.decode())

    def version(self):
        said = subprocess.run([COMPOSE, "version", "--short"], capture_output=True, text=True,
                              check=True, timeout=launch.SECONDS).stdout
        return tuple(int(word) for word in re.findall(r"\d+", said)[:2])

    def test_access_is_what_is_declared(self):
        """Compose before 2.27 cannot leave out the mounts below a read-only one, and says so."""
        path = self.tree.file("t/a.txt", "granted")
        child = self.tree.directory("t/out")
        script = f"cat {path}; echo x >>{path}; echo written >{child}/new; ls {self.tree.root}"
        done = self.run_server([f"fs:read:{self.tree.path('t')}/**", f"fs:write:{child}"],
                               ["sh", "-c", script])
        said = done.stderr.decode()
        if self.version() < (2, 27):
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn("services.server.volumes", said)
            self.assertEqual(os.listdir(child), [])
            return
        self.assertEqual(done.stdout.decode().split("\n")[0], "grantedt")
        self.assertIn("Read-only file system", said)
        self.assertEqual(self.tree.text("t/out/new"), "written\n")

    def test_without_an_image_for_the_broker_nothing_starts(self):
        done = self.run_server([f"net:connect:{ORIGIN}:8080"], ["echo", "the server ran"],
                               env={"CAPGATE_IMAGE": ""})
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")
        self.assertIn("CAPGATE_IMAGE", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
