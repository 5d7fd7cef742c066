"""Carries out a part of a sandbox and then becomes a command: what a consumer of the artifact does.

    python3 confine.py bpf FILE -- COMMAND...          installs the program as the kernel takes it
    python3 confine.py libseccomp FILE -- COMMAND...   has libseccomp read the entries of the JSON
    python3 confine.py landrun FLAGS... -- COMMAND...  applies the flags of landrun

landrun is a Go program that Debian does not have. Its flags are read here as it reads them: values
are cut at commas, and white space around the pieces is taken off.
"""

import ctypes
import json
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, MODE_FILTER = 38, 22, 2

# Landlock ABI 5, which is what landrun asks for.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
CHANGE_DIRECTORY = 0x3ff0  # make and remove what a directory can hold, and move it between them
HANDLED_FILES = 0xffff
BIND_TCP, CONNECT_TCP = 1, 2
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def forbid_new_privileges():
    check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def install_bpf(path):
    with open(path, "rb") as file:
        program = file.read()
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    forbid_new_privileges()
    check(LIBC.prctl(PR_SET_SECCOMP, MODE_FILTER, described, 0, 0))


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp"""
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("first", ctypes.c_uint64),
                ("second", ctypes.c_uint64)]


UNKNOWN_CALL = -1
OPERATIONS = {"SCMP_CMP_GE": 5, "SCMP_CMP_MASKED_EQ": 7}


def action_number(action, errno):
    return {"SCMP_ACT_ALLOW": 0x7fff0000, "SCMP_ACT_KILL_PROCESS": 0x80000000,
            "SCMP_ACT_ERRNO": 0x00050000 | errno}[action]


def install_with_libseccomp(path):
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    default = action_number(profile["defaultAction"], profile["defaultErrnoRet"])
    context = ctypes.c_void_p(seccomp.seccomp_init(default))
    for entry in profile["syscalls"]:
        action = action_number(entry["action"], entry.get("errnoRet", 0))
        if action == default:
            continue  # libseccomp refuses a rule that says nothing new, and engines leave it out
        tests = [Comparison(test["index"], OPERATIONS[test["op"]], test["value"],
                            test.get("valueTwo", 0)) for test in entry.get("args", [])]
        for name in entry["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            if number == UNKNOWN_CALL:
                continue  # newer than this libseccomp, and so refused
            result = seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(action), number,
                                                    len(tests), (Comparison * len(tests))(*tests))
            if result != 0:
                raise OSError(-result, f"{name}: {os.strerror(-result)}")
    result = seccomp.seccomp_load(context)
    if result != 0:
        raise OSError(-result, os.strerror(-result))


def path_rights(flag, is_directory):
    rights = READ_FILE
    if flag in ("rw", "rwx"):
        rights |= WRITE_FILE | TRUNCATE | IOCTL_DEV | (CHANGE_DIRECTORY if is_directory else 0)
    if flag in ("rox", "rwx"):
        rights |= EXECUTE
    return rights | (READ_DIR if is_directory else 0)


def apply_landrun(flags):
    """Restricts this process, and returns the environment of the command."""
    attributes = struct.pack("QQ", HANDLED_FILES, BIND_TCP | CONNECT_TCP)
    ruleset = check(LIBC.syscall(CREATE_RULESET, attributes, len(attributes), 0))
    environment = {}
    for flag, value in zip(flags[::2], flags[1::2], strict=True):
        for piece in (piece.strip() for piece in value.split(",")):
            if flag in ("--ro", "--rox", "--rw", "--rwx"):
                parent = os.open(piece, os.O_PATH)
                rights = path_rights(flag[2:], os.path.isdir(piece))
                check(LIBC.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, parent), 0))
            elif flag in ("--bind-tcp", "--connect-tcp"):
                right = BIND_TCP if flag == "--bind-tcp" else CONNECT_TCP
                check(LIBC.syscall(ADD_RULE, ruleset, 2, struct.pack("QQ", right, int(piece)), 0))
            elif flag == "--env":
                name, separator, text = piece.partition("=")
                if separator or name in os.environ:
                    environment[name] = text if separator else os.environ[name]
            else:
                raise ValueError(f"landrun has no {flag}")
    forbid_new_privileges()
    check(LIBC.syscall(RESTRICT_SELF, ruleset, 0))
    return environment


def main():
    mode, *words = sys.argv[1:]
    at = words.index("--")
    arguments, command = words[:at], words[at + 1:]
    environment = dict(os.environ)
    if mode == "bpf":
        install_bpf(*arguments)
    elif mode == "libseccomp":
        install_with_libseccomp(*arguments)
    else:
        environment = apply_landrun(arguments)
    os.execve(command[0], command, environment)


main()
