"""bwrap: programs that are declared run, others do not, and common interpreters work."""

import json
import os
import shutil
import unittest

import launch
from cases import BwrapCase, started_by_root_and_user

CLONE_NEWUSER = 0x10000000
PROGRAM = ("--program", launch.PYTHON)
BUSYBOX = "/usr/bin/busybox"

# In a mount namespace of its own: /usr with a link to bin instead of the directory sbin.
SBIN_AS_LINK = """
mount -t tmpfs -o mode=755 tmpfs "$0" && mkdir "$0/upper" "$0/work" && ln -s bin "$0/upper/sbin" &&
mount -t overlay -o "lowerdir=/usr,upperdir=$0/upper,workdir=$0/work" overlay /usr && exec "$@"
"""

# Threads work, processes do not: printed as one line of JSON.
NODE_SCRIPT = """
const { Worker } = require("worker_threads");
const { spawnSync } = require("child_process");
const os = require("os");
const user = os.userInfo();
const spawned = spawnSync("/usr/bin/true");
const job = "require('worker_threads').parentPort.postMessage('ran')";
new Worker(job, { eval: true }).on("message", (said) => console.log(JSON.stringify({
  user: [user.username, user.uid, user.homedir], hostname: os.hostname(),
  cpus: os.cpus().length > 0, worker: said,
  spawned: spawned.error ? spawned.error.code : "done" })));
"""


@started_by_root_and_user
class Processes(BwrapCase):
    """New processes need an exec capability, threads never do."""

    def test_without_exec_threads_run_and_processes_do_not(self):
        self.assert_open_outside(("fork",), ("spawn", "/usr/bin/true"))
        results = self.attempt([], ("fork",), ("spawn", "/usr/bin/true"), ("thread",))
        self.assertEqual(results, ["EPERM", "EPERM", "done"])

    def test_a_declared_program_runs_and_another_is_not_there(self):
        self.assert_open_outside(("spawn", "/usr/bin/id"))
        artifact = self.compile("exec:spawn:uname", options=PROGRAM)
        results = self.attempt_with(
            artifact, ("spawn", "/usr/bin/uname"), ("spawn", "/usr/bin/id"), ("spawn", "/bin/sh"),
            ("names", "/usr/bin"), ("names", "/usr/sbin"), ("names", "/usr/local/bin"), ("fork",))
        self.assertEqual(results, ["Linux\n", "ENOENT", "ENOENT", ["python3", "uname"], [], [],
                                   "done"])

    def test_program_directories_are_read_only(self):
        artifact = self.compile("exec:spawn:uname", options=PROGRAM)
        results = self.attempt_with(
            artifact, ("make_nameless", "/usr/bin"), ("open_for_writing", "/usr/bin/uname"),
            ("make_nameless", "/usr/sbin"), ("make_nameless", "/usr/local/bin"))
        # Of an existing file the kernel asks for its mode first, which only root has passed.
        existing = "EROFS" if self.uid == 0 else "EACCES"
        self.assertEqual(results, ["EROFS", existing, "EROFS", "EROFS"])

    def test_programs_run_where_sbin_is_a_link(self):
        """As on Arch and Fedora: hiding /usr/sbin must not hide /usr/bin."""
        artifact = self.compile("exec:spawn:uname", options=("--program", BUSYBOX))
        layers = self.tree.directory("layers")
        bwrap = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups",
                 launch.BWRAP, *artifact["argv"], BUSYBOX, "sh", "-c", "ls /usr/bin; uname"]
        done = launch.finish(launch.start(
            ["unshare", "--mount", "sh", "-c", SBIN_AS_LINK, layers, *bwrap], artifact,
            env={"PATH": os.defpath}))
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.stdout.decode().split(), ["busybox", "uname", "Linux"])

    def test_exec_without_the_servers_program_is_refused(self):
        """Every program below /usr would stay visible, so the target cannot keep the promise."""
        with self.assertRaisesRegex(ValueError, "ADAPTER_UNSUPPORTED.*exec:spawn:uname"):
            self.compile("exec:spawn:uname")

    def test_the_loader_cannot_start_a_hidden_program(self):
        loader = "/lib64/ld-linux-x86-64.so.2"
        if not os.path.exists(loader):
            self.skipTest(f"this machine has no {loader}")
        self.assertIn("uid=", self.assert_open_outside(("spawn", loader, "/usr/bin/id"))[0])
        artifact = self.compile("exec:spawn:uname", options=PROGRAM)
        results = self.attempt_with(artifact, ("spawn", loader, "/usr/bin/uname"),
                                    ("kind", "/usr/bin/id"))
        self.assertEqual(results, ["Linux\n", "ENOENT"])

    def test_a_program_that_the_server_writes_runs_and_the_artifact_says_so(self):
        """bwrap has no mount without execution, so this is a fact to be noted, not a promise."""
        artifact = self.compile("exec:spawn:uname", options=("--program", BUSYBOX))
        script = "cp /usr/bin/busybox $HOME/echo && $HOME/echo ran"
        self.assertEqual(self.run_command(artifact, [BUSYBOX, "sh", "-c", script]), "ran\n")
        self.assertTrue([note for note in artifact["notes"]
                         if "a program that the server itself writes" in note])

    def test_a_nested_sandbox_may_make_a_user_namespace(self):
        plain = self.compile("exec:spawn:uname", options=PROGRAM)
        self.assertEqual(self.attempt_with(plain, ("unshare", CLONE_NEWUSER)), ["EPERM"])
        nested = self.compile("exec:spawn:uname?nestedSandbox=true", options=PROGRAM)
        results = self.attempt_with(nested, ("unshare", CLONE_NEWUSER), ("processes",),
                                    ("interfaces",))
        self.assertEqual(results, ["done", [1], ["lo"]])


@started_by_root_and_user
class Interpreters(BwrapCase):
    """Programs that servers are written for start and work."""

    def test_python_runs(self):
        output = self.run_command(self.compile(), [launch.PYTHON, "-c", "import ssl; print(6 * 7)"])
        self.assertEqual(output, "42\n")

    def test_a_static_program_runs(self):
        self.assertEqual(self.run_command(self.compile(), [BUSYBOX, "echo", "hello"]), "hello\n")

    def test_standard_input_and_output_are_the_servers_own(self):
        output = self.run_command(self.compile(), [BUSYBOX, "cat"], stdin=b'{"jsonrpc":"2.0"}\n')
        self.assertEqual(output, '{"jsonrpc":"2.0"}\n')

    def test_the_exit_status_passes_through(self):
        done = launch.run_bwrap(self.compile(), [BUSYBOX, "sh", "-c", "exit 42"], uid=self.uid)
        self.assertEqual((done.returncode, done.stdout), (42, b""))

    def test_node_runs_with_threads_and_without_processes(self):
        node, capabilities = launch.NODE, []
        if not node.startswith("/usr/"):
            # Where every user may go: the repository may lie in a closed directory.
            node = self.copy_program(launch.NODE, "node")
            capabilities = [f"fs:read:{node}"]
        output = self.run_command(self.compile(*capabilities), [node, "-e", NODE_SCRIPT])
        self.assertEqual(json.loads(output), {
            "user": ["user", 1000, "/home/user"], "hostname": "capgate", "cpus": True,
            "worker": "ran", "spawned": "EPERM"})

    def copy_program(self, program, name):
        copy = shutil.copy(program, self.tree.path(name))
        os.chmod(copy, 0o755)
        return copy

    def test_a_program_outside_of_usr_runs_from_its_grant(self):
        own = self.copy_program(BUSYBOX, "busybox")
        self.assertEqual(self.run_command(self.compile(f"fs:read:{own}"), [own, "echo", "ran"]),
                         "ran\n")


if __name__ == "__main__":
    unittest.main()
