"""Attacks 29-34: system calls and call tables that the filter must answer itself."""

import os
import shutil
import unittest

from launcher_test import MountCalls  # isort: skip
from redteam import CHILDREN, FILTER, Redteam

URING = ["io_uring_setup", "io_uring_enter", "io_uring_register"]
KERNEL = ["bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key"]
MACHINE = ["clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "swapon"]
FILES = ["name_to_handle_at", "open_by_handle_at", "fanotify_mark", "openat2"]
PROCESSES = ["ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
             "process_mrelease", "kcmp", "pidfd_getfd", "move_pages", "migrate_pages"]
ARGUMENTS = ["personality", "seccomp_listener", "prctl_set_mm"]
# The kernel itself refuses these to users with the filter's own errors, or was built without them:
# a control needs root in a virtual machine. Their rules are tested by src/lower/seccomp_test.cc.
NOT_TESTABLE_HERE = {"reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module",
                     "delete_module", "swapoff", "acct", "iopl", "ioperm"}
NAMESPACES = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"]


class Calls(Redteam):
    """Answered by the filter, with and without an exec capability."""

    def test_29_io_uring(self):
        self.assert_answered_by_the_filter(URING, "ENOSYS")

    def test_30_clone3_does_not_exist_and_threads_start(self):
        self.assert_answered_by_the_filter(["clone3"], "ENOSYS")
        self.assert_open(self.inside("thread"))

    def test_33_calls_on_other_processes(self):
        self.assert_answered_by_the_filter(PROCESSES, "EPERM")

    def test_34_programs_in_the_kernel_and_keyrings(self):
        self.assert_answered_by_the_filter(KERNEL, "EPERM")

    def test_34_the_machine(self):
        self.assert_answered_by_the_filter(MACHINE, "EPERM")

    def test_files_without_paths(self):
        self.assert_answered_by_the_filter(FILES, *FILTER)

    def test_refused_arguments_of_allowed_calls(self):
        self.assert_answered_by_the_filter(ARGUMENTS, "EPERM")

    def test_34_what_the_kernel_refuses_anyway_is_refused_too(self):
        """No proof, since the control is shut as well; it would show a filter that opens them."""
        attempts = [f"call={name}" for name in sorted(NOT_TESTABLE_HERE)]
        self.assert_shut(self.inside(*attempts), *FILTER)

    def test_every_call_of_the_probe_is_tested(self):
        """A call added to the probe must be added to a list, here or in launcher_test.py."""
        (named,) = self.outside("name_calls")
        tested = {*URING, *KERNEL, *MACHINE, *FILES, *PROCESSES, *ARGUMENTS, *NOT_TESTABLE_HERE,
                  *MountCalls.CALLS, "clone3", "setns"}
        self.assertEqual(set(named.detail.strip(",").split(",")), tested)


class Namespaces(Redteam):
    """Attack 31: in a namespace of its own a server would have every capability."""

    def test_31_no_namespace_can_be_made_or_joined(self):
        attempts = [f"unshare={name}" for name in [*NAMESPACES, "time"]]
        attempts += [f"{call}={name}" for call in ("clone", "clone_high") for name in NAMESPACES]
        self.assert_open(self.outside(*attempts, userns=True))
        self.assert_open(self.outside("unshare=user", "clone=user"))
        self.assertEqual(self.outside("call=setns")[0].why, "EBADF")
        for allow in ([], [CHILDREN]):
            self.assert_shut(self.inside(*attempts, "call=setns", allow=allow), "EPERM")


class CallTables(Redteam):
    """Attack 32: the same calls by other numbers."""

    def test_32_calls_of_i386_kill_the_process(self):
        (outside,) = self.outside("int80")
        self.assert_shut(self.inside("int80"), "SIGSYS")
        self.assert_shut(self.inside("int80", allow=[CHILDREN]), "SIGSYS")
        if not outside.open:
            self.not_testable("a kernel without the calls of i386")

    def test_32_calls_of_x32_kill_the_process(self):
        """A kernel without x32 answers ENOSYS: then it is the difference that shows the filter."""
        (outside,) = self.outside("x32")
        self.assertTrue(outside.open or outside.why == "ENOSYS", outside)
        self.assert_shut(self.inside("x32"), "SIGSYS")


class Programs(Redteam):
    """No exec capability: one process, one program. With one: the declared programs only."""

    MAKE = ["fork", "vfork", "clone_process"]

    def test_no_process_can_be_made(self):
        self.assert_open(self.outside(*self.MAKE))
        self.assert_shut(self.inside(*self.MAKE), "EPERM")
        self.assert_open(self.inside(*self.MAKE, allow=[CHILDREN]))

    def ran(self, attempt, allow=()):
        """Whether the attempt became another program: the probe's name for nothing says so."""
        done = self.finish(self.sandboxed([self.probe, "--direct", attempt], allow))
        return b"no attempt is called ran" in done.stderr, done.stdout.decode()

    def test_no_second_program_can_be_started(self):
        """Where no cgroup counts memory, as for an ordinary user here, there are no files in it."""
        for call, uid, reason in (("exec", self.uid, "EPERM"), ("exec_descriptor", self.uid, "EPERM"),
                                  ("exec_memory", self.uid, "ENOSYS"), ("exec_memory", 0, "EPERM")):
            with self.subTest(call=call, uid=uid):
                self.uid = uid
                outside = self.start_outside(f"{call}={self.probe}")
                self.assertIn(b"no attempt is called ran", outside.communicate()[1], "the control")
                ran, said = self.ran(f"{call}={self.probe}")
                self.assertFalse(ran)
                self.assertIn(f"shut {reason}", said)

    def test_with_an_exec_capability_only_declared_programs_run(self):
        allow = [CHILDREN, f"fs:write:{self.work}"]
        self.assertFalse(self.ran(f"exec_memory={self.probe}", allow)[0])
        self.assert_open(self.outside("open_read=/usr/bin/sh", "open_read=/usr/bin/env"))
        self.assert_shut(self.inside("open_read=/usr/bin/sh", "open_read=/usr/bin/env",
                                     "open_read=/usr/bin/python3", "open_read=/usr/sbin/ldconfig",
                                     allow=allow), "ENOENT", "EACCES")
        self.assert_open(self.inside("open_read=/usr/bin/true", allow=allow))

    def test_a_program_that_the_server_brings_along_does_not_run(self):
        """A copy in a writable grant, on the host and made before: not executable inside."""
        copy = shutil.copy(self.probe, self.tree.path("work/copy"))
        os.chmod(copy, 0o755)
        outside = self.start_outside(f"exec={copy}")
        self.assertIn(b"no attempt is called ran", outside.communicate()[1], "the control")
        ran, said = self.ran(f"exec={copy}", [CHILDREN, f"fs:write:{self.work}"])
        self.assertFalse(ran)
        self.assertIn("shut EACCES", said)


if __name__ == "__main__":
    unittest.main()
