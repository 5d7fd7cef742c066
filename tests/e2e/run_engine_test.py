"""capgate run --engine bwrap, podman and docker, on the real engines, by root and by a user.

Whatever the engine, a server starts, talks, ends and is limited as natively; and nothing is left.
"""

import contextlib
import glob
import json
import os
import signal
import subprocess
import unittest

import launch
from cases import stop
from container_target_test import GREETING, origin, request
from docker_daemon import BUSYBOX, shared
from podman_engine import CAP_SYS_RESOURCE, Podman, has_capability
from run_cases import RunCase, adopt_orphans, allow, python, reap_orphans

KILLED = 128 + signal.SIGKILL
TERMINATED = 128 + signal.SIGTERM
BYTES = bytes(range(256)) * 1024
# The handler's 50 ms are its work, and no synchronisation.
SLOW_TO_END = """
import os, signal, time
def end(*_):
    time.sleep(0.05)
    os.write(1, b'ended')
    os._exit(0)
signal.signal(signal.SIGTERM, end)
read, write = os.pipe()
os.set_blocking(write, False)
signal.set_wakeup_fd(write)
os.write(1, b'ready')
while True: os.read(read, 1)
"""
LEAVES_A_CHILD = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2): os.close(fd)
        os.execv('/usr/bin/sleep', ['sleep', sys.argv[1]])
    os._exit(0)
os.wait()
os.write(1, b'ready')
sys.stdin.read()
"""


def setUpModule():
    adopt_orphans()


def processes_with(marker):
    """Which processes of the host have these words on their command line."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue  # it ended meanwhile
        if marker.encode() in words:
            found.append(words)
    return found


class EngineTests:
    """What holds with every engine. A subclass says how capgate is started, and what runs."""

    engine = None
    words = ()  # of capgate run, besides --engine
    box = "busybox"
    spawns = ()  # capabilities that let the server start programs
    uid = 0

    def caller(self):
        """The words before capgate's own."""
        return []

    def caller_environment(self):
        return {"HOME": self.home, "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": self.runtime}

    def slow_to_end(self):
        return [self.box, "sh", "-c", "trap 'usleep 50000; echo -n ended; exit 0' TERM; "
                                      "echo -n ready; while :; do sleep 0.1; done"]

    def leaves_a_child(self, marker):
        # The child says so itself, and has the marker among its words before and after its exec.
        child = f"echo -n ready; exec sleep {marker} <&- >&- 2>&-"
        return [self.box, "sh", "-c", f"setsid sh -c '{child}' {marker} & exec cat"]

    def setUp(self):
        super().setUp()
        self.runtime = self.own(self.tree.directory("runtime"), 0o700)

    def start(self, words, command, *, env=None, **options):
        caller = self.caller()
        become = None if caller else lambda: launch.become(self.uid)
        process = subprocess.Popen(
            [*caller, launch.CAPGATE, "run", "--engine", self.engine, *self.words, *words, "--",
             *command],
            stdin=options.get("stdin", subprocess.PIPE), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd="/", preexec_fn=become,
            env={**self.caller_environment(), **(env or {})})
        self.addCleanup(stop, process)
        return process

    def ready(self, words, command):
        process = self.start(words, command)
        if process.stdout.read(5) != b"ready":
            self.fail(process.stderr.read().decode())
        return process

    def assert_nothing_left(self, _=0):
        self.assertEqual(os.listdir(self.runtime), self.left_in_runtime())
        self.assertEqual(self.containers(), "")

    def compile_options(self):
        """What `compile` must be told of this host, which `run` finds out."""
        raise NotImplementedError

    def left_in_runtime(self):
        return []

    def containers(self):
        """Names of containers, running or not."""
        return ""

    # ---- streams and status

    def test_bytes_pass_untouched(self):
        done = self.run_server([], [self.box, "cat"], stdin=BYTES)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout, BYTES)
        self.assert_nothing_left()

    def test_stderr_and_status_are_the_servers(self):
        done = self.run_server([], [self.box, "sh", "-c", "echo out; echo err >&2; exit 7"])
        self.assertEqual((done.returncode, done.stdout), (7, b"out\n"))
        self.assertIn(b"err\n", done.stderr)

    def test_the_end_of_input_ends_it(self):
        process = self.ready([], [self.box, "sh", "-c", "echo -n ready; read line; exit 3"])
        process.stdin.close()
        self.assertEqual(process.wait(launch.SECONDS), 3)

    # ---- what it sees

    def test_only_declared_variables_arrive(self):
        done = self.run_server(allow("env:inject:TOKEN"), [self.box, "env"],
                               env={"TOKEN": "the value", "OTHER": "canary",
                                    "HTTP_PROXY": "http://canary"})
        self.assertIn(b"TOKEN=the value\n", done.stdout, done.stderr.decode())
        self.assertNotIn(b"canary", done.stdout)

    def test_a_declared_variable_that_is_not_set_is_refused(self):
        said = self.refusal(allow("env:inject:TOKEN"), [self.box, "echo", "the server ran"])
        self.assertIn("TOKEN", said)

    def test_files_are_what_is_granted(self):
        inside = self.file("granted/a.txt", "granted", mode=0o644)
        outside = self.file("secret.txt", "secret", mode=0o644)
        self.open_to_the_server()
        self.assertEqual(launch.run_outside(["/usr/bin/cat", outside]).stdout, b"secret")
        words = allow(f"fs:read:{os.path.dirname(inside)}/**")
        self.assertEqual(self.output(words, [self.box, "cat", inside]), "granted")
        done = self.run_server(words, [self.box, "cat", outside])
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        done = self.run_server(words, [self.box, "sh", "-c", f"echo x >{inside}"])
        self.assertIn(b"Read-only file system", done.stderr)

    def open_to_the_server(self):
        """The control is an ordinary user's, and a container of root has another one."""
        for path in (self.work, os.path.join(self.work, "granted")):
            os.chmod(path, 0o755)

    def test_what_is_granted_must_be_there(self):
        said = self.refusal(allow(f"fs:read:{self.work}/missing/**"),
                            [self.box, "echo", "the server ran"])
        self.assertIn("missing", said)
        self.assertFalse(os.path.exists(f"{self.work}/missing"))

    # ---- its end

    def test_a_handler_of_term_comes_to_its_end(self):
        process = self.ready([], self.slow_to_end())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(launch.SECONDS), 0)
        self.assertEqual(process.stdout.read(), b"ended")
        self.assert_nothing_left()

    def test_term_ends_one_without_a_handler(self):
        process = self.ready([], [self.box, "sh", "-c", "echo -n ready; exec cat"])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(launch.SECONDS), TERMINATED)
        self.assert_nothing_left()

    def test_grace_ends_one_that_reads_no_input(self):
        process = self.ready(["--grace", "1"], self.slow_to_end())
        process.stdin.close()
        self.assertEqual(process.wait(launch.SECONDS), 0)
        self.assertEqual(process.stdout.read(), b"ended")

    def test_children_in_another_session_end_with_it(self):
        marker = f"98765{os.getpid()}"
        process = self.ready(allow(*self.spawns), self.leaves_a_child(marker))
        self.assertNotEqual(processes_with(marker), [])
        process.stdin.close()
        self.assertEqual(process.wait(launch.SECONDS), 0)
        self.assertEqual(processes_with(marker), [])
        self.assert_nothing_left()

    def test_the_time_is_limited(self):
        done = self.run_server(allow("limit:time:1s"), self.slow_to_end(), stdin=None)
        self.assertEqual(done.returncode, KILLED)
        self.assertIn(b"time limit 1s reached", done.stderr)
        self.assert_nothing_left()

    # ---- the network

    def ask(self, declared, asked):
        audit = os.path.join(self.home, "audit.jsonl")
        done = self.run_server(["--audit", audit, *allow(f"net:connect:127.0.0.1:{declared}")],
                               [self.box, "nc", "127.0.0.1", "3128"], stdin=request(asked))
        with open(audit, encoding="utf-8") as file:
            return done.stdout, [json.loads(line) for line in file]

    def test_a_declared_endpoint_is_reached(self):
        with origin() as port:
            answer, log = self.ask(port, port)
        self.assertIn(GREETING, answer)
        self.assertIn("allowed", [line.get("verdict") for line in log])
        self.assert_nothing_left()

    def test_another_is_refused_and_written_down(self):
        with origin() as port, origin() as other:
            answer, log = self.ask(port, other)
        self.assertNotIn(GREETING, answer)
        self.assertIn(f"net:connect:127.0.0.1:{other}".encode(), answer)
        self.assertIn(f"net:connect:127.0.0.1:{other}", [line.get("remedy") for line in log])

    # ---- refusals and the report

    def test_what_it_cannot_keep_is_refused(self):
        said = self.refusal(allow("net:listen:8080"), [self.box, "echo", "the server ran"])
        self.assertIn("ADAPTER_UNSUPPORTED", said)
        self.assertIn(f"{self.engine} cannot enforce net:listen:8080", said)
        self.assertIn("use the native engine", said)

    def test_tracing_is_refused(self):
        self.assertIn("--trace", self.refusal(["--trace", "-"], [self.box, "true"]))

    def test_the_report_names_the_engine_and_what_it_lacks(self):
        report = self.report(allow("limit:time:60s", "limit:files:64"), [self.box, "true"])
        self.assertEqual(report["engine"], self.engine)
        self.assertIn("no Landlock", " ".join(report["notHeld"]))
        self.assertIn("no network but the sandbox's own loopback",
                      [line["guarantee"] for line in report["guarantees"]])
        held = {limit["name"]: limit["by"] for limit in report["limits"]}
        self.assertEqual(held["time"], "the supervisor's clock")
        self.assertIn("rlimit", held["files"])
        self.assertEqual([text for text in report["unenforced"] if "memory" not in text and
                          "pids" not in text], [])
        self.assertEqual(report["exit"], {"status": 0})

    def test_a_dry_run_prints_what_compile_prints(self):
        printed = json.loads(self.output(["--dry-run", *allow("limit:disk:1M")],
                                         [self.box, "true"]))
        compiled = launch.compile_manifest(launch.server("limit:disk:1M"), "--target", self.engine,
                                           *self.compile_options())
        self.assertEqual(printed["argv"], compiled["argv"])
        self.assert_nothing_left()

    def test_files_are_limited(self):
        said = self.output(allow("limit:files:64"), [self.box, "sh", "-c", "ulimit -n"])
        self.assertEqual(said, "64\n")


class BwrapTests(EngineTests):
    """bwrap needs no image: the server's program is the host's."""

    engine = "bwrap"
    box = BUSYBOX
    spawns = ("exec:spawn:sleep",)

    def slow_to_end(self):
        return python(SLOW_TO_END)

    def leaves_a_child(self, marker):
        return python(LEAVES_A_CHILD, marker)

    def compile_options(self):
        return ["--program", BUSYBOX, "--set", f"HOME={self.home}"]

    def test_it_holds_no_descriptor_of_capgate(self):
        done = self.output([], python("import os; print(os.listdir('/proc/self/fd'))"))
        self.assertEqual(len(json.loads(done.replace("'", '"'))), 4)  # the last one is the list's

    def test_other_programs_are_not_there(self):
        said = self.output([], python("import os; print(os.listdir('/usr/bin'))"))
        self.assertEqual([name for name in json.loads(said.replace("'", '"'))
                          if not name.startswith("python3")], [])

    def test_it_starts_in_a_granted_directory(self):
        words = allow(f"fs:read:{self.work}/**")
        process = subprocess.run(
            [launch.CAPGATE, "run", "--engine", "bwrap", *words, "--", BUSYBOX, "pwd"],
            cwd=self.work, env=self.caller_environment(), stdin=subprocess.DEVNULL,
            capture_output=True, preexec_fn=lambda: launch.become(self.uid), check=False)
        self.assertEqual(process.stdout.decode().strip(), self.work, process.stderr.decode())

    def test_a_script_brings_its_interpreter_and_links_are_followed(self):
        script = self.file("server", "#!/usr/bin/env python3\nprint('a script')\n", mode=0o755)
        link = os.path.join(self.work, "link")
        os.symlink(script, link)
        self.assertEqual(self.output([], [link]), "a script\n")

    def test_processes_are_limited(self):
        code = ("import os, sys\n"
                "count = 0\n"
                "try:\n"
                "    while True:\n"
                "        if os.fork() == 0: sys.stdin.read(); os._exit(0)\n"
                "        count += 1\n"
                "except OSError: print(count)\n")
        said = self.output(allow("limit:pids:8", "exec:spawn:sleep"), python(code))
        self.assertEqual(said, "7\n")

    def test_memory_is_limited(self):
        done = self.run_server(allow("limit:memory:64M"),
                               python("b = b'x' * (512 << 20); print('held all of it')"))
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, b"")

    def test_it_dies_with_capgate(self):
        process = self.ready([], self.slow_to_end())
        process.kill()
        process.wait()
        reap_orphans()
        self.assertEqual(process.stdout.read(), b"")

    def test_a_missing_command_is_not_found(self):
        self.refusal([], ["nosuch"], code=127)

    def test_an_image_makes_no_sense(self):
        self.assertIn("--image", self.refusal(["--image", "x"], [BUSYBOX, "true"]))


class Doctor(unittest.TestCase):
    RESOURCES = ("doctor",)

    def test_it_names_the_engines_that_are_installed(self):
        engines = json.loads(launch.capgate("doctor", "--json").stdout)["engines"]
        self.assertEqual(list(engines), ["bwrap", "docker", "podman"])
        self.assertIn("bubblewrap", engines["bwrap"])


class BwrapByRoot(BwrapTests, RunCase):
    uid = 0


class BwrapByUser(BwrapTests, RunCase):
    uid = launch.ORDINARY


class ContainerTests(EngineTests):
    """An image brings the programs. `lab` is the engine that the tests started."""

    lab = None
    image = None
    not_found = 127

    @property
    def words(self):
        return ["--image", self.image]

    def containers(self):
        return self.lab.command("ps", "--all", "--quiet")

    def own(self, path, mode):
        # In a container of root the server is another user than the one who grants.
        return super().own(path, mode | (0o055 if self.uid == 0 else 0))

    def test_an_image_is_needed(self):
        said = self.refusal_of(["--engine", self.engine, "--", "true"])
        self.assertIn(f"--engine {self.engine} needs --image", said)

    def test_no_image_is_fetched(self):
        said = self.refusal_of(["--engine", self.engine, "--image", "localhost/nosuch:1", "--",
                                "true"])
        self.assertIn("localhost/nosuch:1", said)
        self.assertIn(f"{self.engine} pull localhost/nosuch:1", said)

    def refusal_of(self, words):
        caller = self.caller()
        done = subprocess.run(
            [*caller, launch.CAPGATE, "run", *words], stdin=subprocess.DEVNULL,
            capture_output=True, env=self.caller_environment(), cwd="/", check=False,
            timeout=launch.SECONDS,
            preexec_fn=None if caller else lambda: launch.become(self.uid))
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        return done.stderr.decode()

    def test_exec_is_refused(self):
        self.assertIn("exec:spawn:git", self.refusal(allow("exec:spawn:git"), [self.box, "true"]))

    def test_a_variable_that_would_steer_the_engine_is_refused(self):
        said = self.refusal(allow("env:inject:LD_PRELOAD"), [self.box, "true"],
                            env={"LD_PRELOAD": "/nosuch.so"})
        self.assertIn("LD_PRELOAD", said)

    def test_a_missing_command_is_not_found(self):
        done = self.run_server([], ["nosuch"])
        self.assertEqual(done.returncode, self.not_found)
        self.assertNotEqual(done.stderr, b"")
        self.assert_nothing_left()

    def test_it_sees_the_end_when_capgate_is_killed(self):
        process = self.ready([], [self.box, "sh", "-c", "echo -n ready; exec cat"])
        name = self.containers()
        self.assertNotEqual(name, "")
        process.kill()
        process.wait()
        with contextlib.suppress(subprocess.CalledProcessError):  # it may be gone already
            self.lab.command("wait", name)
        for _ in range(50):  # the engine removes it when it has ended; each question takes a while
            if not self.containers():
                break
        self.assertEqual(self.containers(), "")

    def test_a_signal_before_it_runs_leaves_nothing(self):
        process = self.start([], [self.box, "cat"])
        process.send_signal(signal.SIGTERM)
        # The signal ends capgate itself, or the engine's client, which capgate has started by then.
        self.assertIn(process.wait(launch.SECONDS), (-signal.SIGTERM, TERMINATED))
        self.assert_nothing_left()


class LimitTests:
    """Limits that need cgroups, which not every user's engine has."""

    def test_memory_and_processes_are_limited(self):
        done = self.run_server(allow("limit:memory:32M"), [
            self.box, "sh", "-c", "head -c 100000000 /dev/zero | tail | wc -c"])
        self.assertNotIn(b"100000000", done.stdout)
        done = self.run_server(allow("limit:pids:8"), [
            self.box, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 300 & done"])
        self.assertIn(b"can't fork", done.stderr)


class DockerTests(ContainerTests):
    RESOURCES = ("docker",)
    engine = "docker"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lab = cls.enterClassContext(shared())
        cls.image = cls.lab.image
        cls.socket = cls.lab.client()[-1]
        # As a member of the group that may use it.
        os.chown(cls.socket.removeprefix("unix://"), cls.uid, cls.uid)
        os.chmod(cls.lab.directory, 0o755)

    def caller_environment(self):
        return {**super().caller_environment(), "DOCKER_HOST": self.socket}

    def compile_options(self):
        return ["--user", f"{self.uid}:{self.uid}"] if self.uid else []

    def test_another_machine_is_refused(self):
        said = self.refusal([], [self.box, "true"], env={"DOCKER_HOST": "tcp://192.0.2.1:2375"})
        self.assertIn("DOCKER_HOST", said)

    def test_an_engine_that_does_not_answer_is_refused(self):
        said = self.refusal([], [self.box, "true"], env={"DOCKER_HOST": "unix:///nosuch.sock"})
        self.assertIn("docker does not answer", said)


class DockerByRoot(DockerTests, LimitTests, RunCase):
    uid = 0


class DockerByUser(DockerTests, LimitTests, RunCase):
    uid = launch.ORDINARY


class PodmanTests(ContainerTests):
    RESOURCES = ("podman",)
    engine = "podman"
    not_found = 1  # which podman's init says

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        had = set(glob.glob("/sys/fs/cgroup/**/libpod_parent", recursive=True))
        cls.addClassCleanup(cls.remove_cgroups, had)
        cls.lab = cls.enterClassContext(Podman(uid=cls.uid))
        cls.image = cls.lab.image
        settings = cls.lab.client()
        at = settings.index("setpriv")
        cls.enter = settings[:settings.index("env")] if at else []
        cls.places = {word.split("=", 1)[0]: word.split("=", 1)[1]
                      for word in settings if word.startswith(("HOME=", "XDG_RUNTIME_DIR="))}
        cls.configure()

    @classmethod
    def configure(cls):
        """What the tests' podman commands say in words, as configuration."""
        hooks = os.path.join(cls.lab.directory, "hooks")
        os.mkdir(hooks)
        if cls.uid == 0 and not has_capability(CAP_SYS_RESOURCE):
            cls.ask_for_fewer_processes(hooks)
        files = {
            "containers.conf": f'[engine]\nhooks_dir = ["{hooks}"]\n'
                               'cgroup_manager = "cgroupfs"\nruntime = "crun"\n'
                               'events_logger = "file"\n',
            "storage.conf": f'[storage]\ndriver = "vfs"\n'
                            f'graphroot = "{cls.lab.directory}/storage"\n'
                            f'runroot = "{cls.lab.directory}/state"\n'
                            f'rootless_storage_path = "{cls.lab.directory}/storage"\n',
        }
        for name, text in files.items():
            with open(os.path.join(cls.lab.directory, name), "w", encoding="ascii") as file:
                file.write(text)

    @staticmethod
    def ask_for_fewer_processes(hooks):
        """Podman asks for more of them than a root without CAP_SYS_RESOURCE may have."""
        script = os.path.join(hooks, "fewer.py")
        with open(script, "w", encoding="ascii") as file:
            file.write(f"#!{launch.PYTHON}\n"
                       "import json, sys\n"
                       "config = json.load(sys.stdin)\n"
                       "for limit in config['process']['rlimits']:\n"
                       "    if limit['type'] == 'RLIMIT_NPROC': limit['hard'] = limit['soft'] = 4096\n"
                       "json.dump(config, sys.stdout)\n")
        os.chmod(script, 0o755)
        with open(os.path.join(hooks, "fewer.json"), "w", encoding="ascii") as file:
            json.dump({"version": "1.0.0", "hook": {"path": script}, "when": {"always": True},
                       "stages": ["precreate"]}, file)

    @staticmethod
    def remove_cgroups(had):
        for top in set(glob.glob("/sys/fs/cgroup/**/libpod_parent", recursive=True)) - had:
            for at, _, _ in os.walk(top, topdown=False):
                os.rmdir(at)

    def caller(self):
        return self.enter

    def caller_environment(self):
        directory = self.lab.directory
        return {**super().caller_environment(), **self.places,
                "CONTAINERS_CONF": f"{directory}/containers.conf",
                "CONTAINERS_STORAGE_CONF": f"{directory}/storage.conf"}

    def left_in_runtime(self):
        return []

    def assert_nothing_left(self, _=0):
        super().assert_nothing_left()
        self.assertEqual(glob.glob(os.path.join(self.places["XDG_RUNTIME_DIR"], "capgate-*")), [])

    def compile_options(self):
        return ["--rootful"] if self.uid == 0 else []


class PodmanByRoot(PodmanTests, LimitTests, RunCase):
    uid = 0


class PodmanByUser(PodmanTests, RunCase):
    uid = launch.ORDINARY

    def test_limits_that_it_ignores_are_refused(self):
        info = json.loads(self.lab.command("info", "--format", "json"))
        if "memory" in info["host"]["cgroupControllers"]:
            self.assertEqual(self.output(allow("limit:memory:64M"), [self.box, "echo", "x"]), "x\n")
        else:
            said = self.refusal(allow("limit:memory:64M"), [self.box, "echo", "the server ran"])
            self.assertIn("limit:memory:64M cannot be held", said)


if __name__ == "__main__":
    unittest.main()
