"""Makes a process of ours carry out one system call, as if it had been taken over (x86-64, as root)."""

import contextlib
import ctypes
import os
import platform
import struct

GETREGS, SETREGS, SINGLESTEP, ATTACH, DETACH = 12, 13, 9, 16, 17
REGISTERS = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss "
             "fs_base gs_base ds es fs gs").split()
LAYOUT = f"{len(REGISTERS)}Q"
WITHOUT_RESTART = (1 << 64) - 1
INSTRUCTION = 2  # bytes of `syscall`, which the process has just passed
ALL_KINDS = 0x40000000
CAN_INJECT = platform.machine() == "x86_64" and os.geteuid() == 0

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def _ptrace(request, pid, data=None):
    if _libc.ptrace(request, pid, None, data) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"ptrace: {os.strerror(error)}")


def _registers(pid):
    buffer = ctypes.create_string_buffer(struct.calcsize(LAYOUT))
    _ptrace(GETREGS, pid, buffer)
    return dict(zip(REGISTERS, struct.unpack(LAYOUT, buffer.raw)))


def _set_registers(pid, values):
    packed = struct.pack(LAYOUT, *(values[name] for name in REGISTERS))
    _ptrace(SETREGS, pid, ctypes.create_string_buffer(packed, len(packed)))


@contextlib.contextmanager
def _stopped(pid):
    _ptrace(ATTACH, pid)
    os.waitpid(pid, ALL_KINDS)
    try:
        yield _registers(pid)
    finally:
        _ptrace(DETACH, pid)


def call(pid, number, *arguments):
    """The result, negative for an errno. The process must be waiting in a system call."""
    with _stopped(pid) as before:
        changed = dict(before, rip=before["rip"] - INSTRUCTION, rax=number, orig_rax=WITHOUT_RESTART)
        changed.update(zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments))
        _set_registers(pid, changed)
        _ptrace(SINGLESTEP, pid)
        os.waitpid(pid, ALL_KINDS)
        result = _registers(pid)["rax"]
        _set_registers(pid, before)
        return result - (1 << 64) if result >> 63 else result
