"""capgate doctor: what it says of this host, and of hosts where one thing is taken away.

Each of those is made for one run, in namespaces of its own or behind a seccomp filter, so that the
real kernel gives the real error. The control of all of them is the first class: the same command on
the same host with nothing taken away.
"""

import ctypes
import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

import launch
from cases import Case

RESOURCES = ("doctor",)  # each looks for cgroups that any doctor left

CHECKS = ["namespaces", "id-map", "loopback", "private-mounts", "tmpfs", "proc", "pivot",
          "landlock", "seccomp", "listener", "cgroup", "memfd-exec", "any-address", "redirect",
          "broker", "audit", "locked-memory", "broker-tls", "store"]
CALLS = {"x86_64": {"clone3": 435, "socket": 41, "ioctl": 16, "landlock_create_ruleset": 444, "seccomp": 317,
                    "memfd_create": 319, "pivot_root": 155, "fsopen": 430},
         "aarch64": {"clone3": 435, "socket": 198, "ioctl": 29, "landlock_create_ruleset": 444, "seccomp": 277,
                     "memfd_create": 279, "pivot_root": 41, "fsopen": 430}}[os.uname().machine]
NETLINK_SOCKET = ("socket", 0, 16)
NETFILTER_SOCKET = ("socket", 2, 12)
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2


def refuse_calls(errors):
    """Installs a filter that answers these calls, for this process and its children. A call is a
    name, or a name with the index and the value of one argument; its answer is an errno."""
    code = b""
    for call, error in errors.items():
        name, *argument = call if isinstance(call, tuple) else (call,)
        code += struct.pack("HBBI", 0x20, 0, 0, 0)  # load the number of the call
        code += struct.pack("HBBI", 0x15, 0, 3 if argument else 1, CALLS[name])
        if argument:
            code += struct.pack("HBBI", 0x20, 0, 0, 16 + 8 * argument[0])
            code += struct.pack("HBBI", 0x15, 0, 1, argument[1])
        code += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | error)
    code += struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    if LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or \
            LIBC.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def cgroups_of_doctors():
    """Groups that a doctor made, anywhere."""
    return [os.path.join(at, name) for at, names, _ in os.walk("/sys/fs/cgroup")
            for name in names if name.startswith("capgate-doctor")]


class DoctorCase(Case):
    """Runs of a copy that everyone can start."""

    def setUp(self):
        super().setUp()
        self.program = self.tree.path("capgate")
        self.broker = self.tree.path("capgate-broker")
        self.tls_broker = self.tree.path("capgate-broker-tls")
        self.store = self.tree.path("capgate-store")
        self.state = self.tree.directory("state")
        for path in (self.program, self.broker, self.tls_broker, self.store):
            shutil.copy(os.path.join(os.path.dirname(launch.CAPGATE), os.path.basename(path)), path)
            os.chmod(path, 0o755)

    def run_doctor(self, *words, uid=launch.ORDINARY, errors=None, before=()):
        """The finished doctor. `before` are words in front of it, such as unshare's."""
        def prepare():
            launch.become(uid)
            if errors:
                refuse_calls(errors)

        return subprocess.run([*before, self.program, "doctor", *words], preexec_fn=prepare,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/",
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                   "XDG_STATE_HOME": self.state},
                              timeout=launch.SECONDS, check=False)

    def diagnose(self, code, **options):
        """The JSON of a doctor that must end with this exit code; findings by the name of their
        check."""
        done = self.run_doctor("--json", **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        value = json.loads(done.stdout)
        self.assertEqual(value["schemaVersion"], 1)
        self.assertEqual(value["enforceable"], code == 0)
        self.assertEqual([finding["check"] for finding in value["findings"]], CHECKS)
        value["findings"] = {finding["check"]: finding for finding in value["findings"]}
        return value

    def assert_failed(self, value, check, cause, *remedies):
        """This check failed for this cause, and its remedies say all of these."""
        finding = value["findings"][check]
        self.assertEqual((finding["status"], finding.get("cause")), ("failed", cause), finding)
        text = json.dumps(finding["remedies"])
        for remedy in remedies:
            self.assertIn(remedy, text)


class ThisHost(DoctorCase):
    """The reference host of the tests can enforce a sandbox: everything else builds on it."""

    def test_every_required_check_is_ok_for_root_and_user(self):
        for uid in (0, launch.ORDINARY):
            with self.subTest(uid=uid):
                value = self.diagnose(0, uid=uid)
                for check in CHECKS:
                    if check not in ("cgroup", "landlock"):
                        self.assertEqual(value["findings"][check]["status"], "ok", check)
                self.assertIn(value["findings"]["landlock"]["status"], ("ok", "limited"))
                self.assertGreaterEqual(value["host"]["landlockAbi"], 1)
                self.assertEqual(value["host"]["kernel"], os.uname().release)
                self.assertEqual(value["host"]["uid"], uid)

    def test_an_ordinary_user_has_no_control_group_and_is_told(self):
        value = self.diagnose(0, uid=launch.ORDINARY)
        self.assertEqual(value["host"]["cgroup"], "none", "a user without a session")
        self.assertEqual(value["findings"]["cgroup"]["status"], "limited")
        self.assertTrue(value["findings"]["cgroup"]["remedies"])

    def test_the_words_say_the_same_as_the_data(self):
        done = self.run_doctor()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("A sandbox can be enforced here.\n"))
        for check, finding in self.diagnose(0)["findings"].items():
            self.assertRegex(done.stdout, rf"(?m)^  {finding['status']} +{check} ")

    def test_nothing_is_left_behind(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            mounts = file.read()
        for uid in (0, launch.ORDINARY):
            self.diagnose(0, uid=uid)
        self.assertEqual(cgroups_of_doctors(), [])
        with open("/proc/self/mountinfo", encoding="utf-8") as file:
            self.assertEqual(file.read(), mounts)
        own = [pid for pid in os.listdir("/proc") if pid.isdigit() and self.is_own(pid)]
        self.assertEqual(own, [])
        self.assertEqual(sorted(os.listdir(self.tree.root)), 
                         ["capgate", "capgate-broker", "capgate-broker-tls", "capgate-store", "state"])
        self.assertEqual(os.listdir(self.state), [])

    def is_own(self, pid):
        try:
            return os.readlink(f"/proc/{pid}/exe") == self.program
        except OSError:
            return False

    def test_extra_words_are_refused(self):
        self.assertEqual(self.run_doctor("extra").returncode, 2)


class UserNamespaces(DoctorCase):
    """Limits and mappings, in a user namespace of the test's own: they reach no further."""

    def without(self, limit, root_flags="-Ur"):
        """Words that take away one kind of namespace and then go on."""
        return ["unshare", root_flags, "sh", "-c",
                f'echo 0 > /proc/sys/user/{limit} && exec "$@"', "sh"]

    def test_no_user_namespaces(self):
        for uid in (0, launch.ORDINARY):
            with self.subTest(uid=uid):
                value = self.diagnose(6, uid=uid, before=self.without("max_user_namespaces"))
                self.assert_failed(value, "namespaces", "user-namespace-limit",
                                   "sysctl -w user.max_user_namespaces=15000")
                self.assertEqual(value["host"]["settings"]["user.max_user_namespaces"], 0)
                self.assertEqual(value["findings"]["pivot"]["status"], "untested")

    def test_no_network_namespaces(self):
        value = self.diagnose(6, before=self.without("max_net_namespaces"))
        self.assert_failed(value, "namespaces", "namespace-limit",
                           "sysctl -w user.max_net_namespaces=15000")

    def test_in_a_user_namespace_with_nothing_taken_away(self):
        self.diagnose(0, before=["unshare", "-Ur"])

    def test_a_user_without_a_mapping(self):
        value = self.diagnose(6, before=["unshare", "-U"])
        self.assert_failed(value, "namespaces", "unmapped-user")


class Mounts(DoctorCase):
    """What containers and chroots do to the tree, in a mount namespace of the test's own."""

    def in_mounts(self, script):
        return ["unshare", "-Urm", "sh", "-c", f'{script} && exec "$@"', "sh"]

    def test_a_covered_proc(self):
        value = self.diagnose(6, before=self.in_mounts("mount -t tmpfs none /proc/irq"))
        self.assert_failed(value, "proc", "container-proc")
        self.assertEqual(value["findings"]["tmpfs"]["status"], "ok")
        self.assertEqual(value["findings"]["pivot"]["status"], "untested")

    def test_a_chroot(self):
        root = self.tree.directory("root")
        self.tree.directory("root/proc")
        program = self.tree.path("root/capgate")
        shutil.copy(self.program, program)
        os.chmod(program, 0o755)
        self.program = "/capgate"
        value = self.diagnose(6, before=[*self.in_mounts(f"mount --rbind /proc {root}/proc"),
                                         "chroot", root])
        self.assert_failed(value, "namespaces", "chroot")

    def test_apparmor_is_named_where_it_restricts(self):
        script = ("mount -t tmpfs none /proc/sys/kernel && echo 6.8.0 > /proc/sys/kernel/osrelease"
                  " && echo 1 > /proc/sys/kernel/apparmor_restrict_unprivileged_userns")
        # Its symptom: the namespaces are there, and a capability in them is worth nothing.
        value = self.diagnose(6, before=self.in_mounts(script), errors={"ioctl": errno.EPERM})
        self.assertEqual(value["findings"]["namespaces"]["status"], "ok")
        self.assert_failed(value, "loopback", "apparmor", "/etc/apparmor.d/capgate", "userns,",
                           "profile capgate /usr/local/bin/capgate flags=(unconfined)",
                           "apparmor_parser -r /etc/apparmor.d/capgate")


class RefusedCalls(DoctorCase):
    """Kernels and containers that lack a call, played by a seccomp filter."""

    def test_a_filter_that_refuses_namespaces(self):
        for error in (errno.EPERM, errno.ENOSYS):
            value = self.diagnose(6, errors={"clone3": error})
            self.assert_failed(value, "namespaces", "container-filter", "seccomp")

    def test_a_network_that_cannot_be_set_up(self):
        value = self.diagnose(6, errors={"ioctl": errno.EPERM})
        self.assert_failed(value, "loopback", "container-filter")
        self.assertEqual(value["findings"]["id-map"]["status"], "ok")

    def test_other_parts_of_a_sandbox(self):
        for call, check in (("fsopen", "tmpfs"), ("pivot_root", "pivot"), ("seccomp", "seccomp")):
            with self.subTest(call=call):
                value = self.diagnose(6, errors={call: errno.EPERM})
                self.assert_failed(value, check, "container-filter")

    def test_landlock_that_was_not_started(self):
        value = self.diagnose(6, errors={"landlock_create_ruleset": errno.EOPNOTSUPP})
        self.assert_failed(value, "landlock", "landlock-not-started", "lsm=landlock,")
        self.assertEqual(value["findings"]["pivot"]["status"], "ok")

    def test_a_program_in_memory_is_not_required(self):
        value = self.diagnose(0, errors={"memfd_create": errno.EACCES})
        self.assertEqual(value["findings"]["memfd-exec"]["status"], "limited")


class Network(DoctorCase):
    """What is missing for the network of a server limits, and says what is refused without it."""

    def assert_limited(self, value, check, cause, refused):
        finding = value["findings"][check]
        self.assertEqual((finding["status"], finding.get("cause")), ("limited", cause), finding)
        self.assertIn(refused, finding["detail"])
        return json.dumps(finding["remedies"])

    def test_a_kernel_without_nf_tables(self):
        value = self.diagnose(0, errors={NETFILTER_SOCKET: errno.EPROTONOSUPPORT})
        remedy = self.assert_limited(value, "redirect", "no-redirect", "net:connect:*")
        self.assertIn("modprobe -a nf_tables nft_chain_nat nft_redir", remedy)
        self.assertIn("net:connect:HOST:PORT", remedy)
        for check in ("any-address", "loopback", "pivot"):
            self.assertEqual(value["findings"][check]["status"], "ok")

    def test_a_filter_that_refuses_routes(self):
        value = self.diagnose(0, errors={NETLINK_SOCKET: errno.EPERM})
        for check in ("any-address", "redirect"):
            self.assert_limited(value, check, "container-filter", "refused")
        self.assertEqual(value["findings"]["pivot"]["status"], "ok")

    def test_no_broker(self):
        os.remove(self.broker)
        value = self.diagnose(0)
        remedy = self.assert_limited(value, "broker", "no-broker", "net:connect and net:listen")
        self.assertIn("install capgate-broker", remedy)

    def test_a_broker_that_others_can_write(self):
        os.chmod(self.broker, 0o777)
        value = self.diagnose(0)
        remedy = self.assert_limited(value, "broker", "no-broker", self.broker)
        self.assertIn("chmod go-w", remedy)

    def test_no_place_for_the_log(self):
        os.chmod(self.state, 0o555)
        value = self.diagnose(0)
        remedy = self.assert_limited(value, "audit", "audit-not-writable",
                                     f"{self.state}/capgate/audit")
        self.assertIn("--audit FILE", remedy)
        os.chmod(self.state, 0o755)
        self.assertEqual(self.diagnose(0, uid=0)["findings"]["audit"]["status"], "ok")

    def test_no_programs_for_secrets(self):
        for path, check, word in ((self.tls_broker, "broker-tls", "to="), (self.store, "store", "store:")):
            os.remove(path)
            value = self.diagnose(0)
            remedy = self.assert_limited(value, check, f"no-{check}", word)
            self.assertIn(f"install {os.path.basename(path)}", remedy)

    def test_too_little_memory_to_lock(self):
        for uid in (0, launch.ORDINARY):
            value = self.diagnose(0, uid=uid, before=("/usr/bin/prlimit", "--memlock=65536:65536"))
            remedy = self.assert_limited(value, "locked-memory", "memory-not-locked", "env:inject")
            self.assertRegex(remedy, "(?i)memlock")
            self.assertEqual(value["findings"]["broker-tls"]["status"], "ok")

    def test_without_namespaces_it_is_untested(self):
        value = self.diagnose(6, errors={"clone3": errno.EPERM})
        for check in ("any-address", "redirect"):
            self.assertEqual(value["findings"][check]["status"], "untested")
        for check in ("broker", "audit", "locked-memory", "broker-tls", "store"):
            self.assertEqual(value["findings"][check]["status"], "ok")


def earlier_groups():
    """The directories of this process's groups in the v1 hierarchies that set limits."""
    found = {}
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, group = line.rstrip("\n").split(":", 2)
            for controller in ("memory", "pids", "cpu"):
                at = f"/sys/fs/cgroup/{controller}"
                if controller in controllers.split(",") and os.path.isdir(at):
                    found[controller] = at + group.rstrip("/")
    return found


class ControlGroups(DoctorCase):
    """Groups that root gave to an ordinary user."""

    def setUp(self):
        super().setUp()
        self.groups = {controller: f"{at}/capgate-given-{os.getpid()}"
                       for controller, at in earlier_groups().items()}
        if set(self.groups) != {"memory", "pids", "cpu"}:
            self.skipTest("no cgroup v1 with memory, pids and cpu on this host")
        for group in self.groups.values():
            os.mkdir(group)
            self.addCleanup(os.rmdir, group)

    def diagnose_in(self, *controllers):
        """What a doctor says that sits in the groups, of which the user owns these."""
        for controller in controllers:
            for path in (self.groups[controller], f"{self.groups[controller]}/cgroup.procs"):
                os.chown(path, launch.ORDINARY, launch.ORDINARY)
        # Moved by root, from outside of the doctor: an ordinary user could not.
        enter = " && ".join(f"echo $$ > {group}/cgroup.procs" for group in self.groups.values())
        become = f"setpriv --reuid {launch.ORDINARY} --regid {launch.ORDINARY} --clear-groups"
        return self.diagnose(0, uid=0, before=["sh", "-c", f'{enter} && exec {become} "$@"', "sh"])

    def test_all_delegated(self):
        value = self.diagnose_in("memory", "pids", "cpu")
        self.assertEqual(value["host"]["cgroup"], "v1")
        self.assertEqual(value["findings"]["cgroup"]["status"], "ok")

    def test_some_delegated(self):
        value = self.diagnose_in("memory")
        self.assertEqual(value["findings"]["cgroup"]["status"], "limited")
        self.assertIn("without pids and cpu", value["findings"]["cgroup"]["detail"])

    def test_none_delegated(self):
        value = self.diagnose_in()
        self.assertEqual(value["host"]["cgroup"], "none")
        self.assertEqual(value["findings"]["cgroup"]["cause"], "no-delegation")


if __name__ == "__main__":
    sys.exit(unittest.main())
