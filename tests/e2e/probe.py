"""Runs inside a sandbox, and outside as its control: makes attempts and tells how each ended.

    python3 -c SOURCE '[["read", "/a"], ["write", "/b"]]'  ->  ["contents", "EROFS"]

Each attempt is the name of a function below with its arguments. What it returns is the result; an
OSError counts as the name of its errno. Every attempt is harmless when it succeeds, also for root
and without a sandbox: `write`, `remove` and the like are for paths that the test made itself; what
belongs to the system is only opened, and new files in it have no name and are gone at once.
"""

import ctypes
import errno
import fcntl
import grp
import json
import os
import pwd
import signal
import socket
import sys
import threading


def refuse_to_be_root():
    """A probe that root runs outside of any sandbox could do harm."""
    with open("/proc/self/uid_map", encoding="ascii") as uid_map:
        first, _, count = uid_map.read().split()[:3]
    if os.getuid() == 0 and first == "0" and int(count) > 65536:
        sys.exit(99)


# ---- files ----------------------------------------------------------------------------------

def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text="written"):
    """Changes a file that is there, or makes it."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return "done"


def names(path):
    return sorted(os.listdir(path))


def remove(path):
    os.remove(path)
    return "done"


def make_directory(path, mode=0o777):
    os.mkdir(path, mode)
    return "done"


def kind(path):
    """What stands at a path, without following it."""
    if os.path.islink(path):
        return "link"
    if os.path.isdir(path):
        return "directory"
    return "file" if os.lstat(path) else ""


def open_for_writing(path):
    """Opens a file that is there, and changes nothing."""
    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    return "done"


def make_nameless(directory):
    """Makes a file that has no name in the directory, and is gone when it is closed."""
    os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o600))
    return "done"


def fill(directory, size):
    """Writes `size` bytes into such a file, in pieces."""
    with open(os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o600), "wb", buffering=0) as file:
        for _ in range(0, size, 65536):
            file.write(b"x" * 65536)
    return "done"


def make_with_mode(path, mode):
    """Makes a file and then sets its mode."""
    write(path)
    os.chmod(path, mode)
    return oct(os.stat(path).st_mode & 0o7777)


def open_with_mode(path, mode):
    """Makes a file with its mode in one call."""
    os.umask(0)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    return oct(os.stat(path).st_mode & 0o7777)


def make_device(path):
    """Device 0:0, the only one that an ordinary user may make: it marks a removed file in overlays
    and opens nothing."""
    os.mknod(path, 0o20666, os.makedev(0, 0))
    return "done"


def capacity(path):
    info = os.statvfs(path)
    return info.f_frsize * info.f_blocks


def mounts():
    """Mount point and options of every mount."""
    lines = read("/proc/self/mountinfo").splitlines()
    return [[line.split()[4], line.split()[5].split(",")] for line in lines]


def writable_kernel_files():
    """Files of /proc outside of the processes' own that can be opened for writing. Nothing is
    written. Those that everyone may write on any machine do not count."""
    found = []
    for at, directories, files in os.walk("/proc"):
        if at == "/proc":
            directories[:] = [name for name in directories
                              if not name.isdigit() and name != "pressure"]
        for path in (os.path.join(at, name) for name in files):
            if not os.path.islink(path) and attempt("open_for_writing", path) == "done":
                found.append(path)
    return sorted(found)


# ---- processes and programs -------------------------------------------------------------------

def status(field):
    """One field of /proc/self/status."""
    for line in read("/proc/self/status").splitlines():
        if line.startswith(field + ":"):
            return line.split(None, 1)[1] if len(line.split()) > 1 else ""
    raise KeyError(field)


def ids():
    return [os.getresuid(), os.getresgid(), os.getgroups()]


def user():
    entry = pwd.getpwuid(os.getuid())
    return [entry.pw_name, entry.pw_dir, grp.getgrgid(os.getgid()).gr_name]


def namespaces():
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")}


def leads_its_session():
    return os.getsid(0) == os.getpid()


def environment():
    return dict(os.environ)


def environments():
    """What every visible process was started with, as one text."""
    texts = []
    for pid in processes():
        with open(f"/proc/{pid}/environ", "rb") as file:
            texts.append(file.read().decode())
    return "\0".join(texts)


def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def descriptors():
    """Open descriptors, without the one that reads the list."""
    return sorted(int(name) for name in os.listdir("/proc/self/fd")
                  if os.path.lexists(f"/proc/self/fd/{name}"))


def kill(pid):
    os.kill(pid, signal.SIGTERM)
    return "done"


def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "done"


def thread():
    seen = []
    worker = threading.Thread(target=lambda: seen.append(threading.get_native_id() != os.getpid()))
    worker.start()
    worker.join()
    return "done" if seen == [True] else "none"


def spawn(*command):
    """What a program prints."""
    import subprocess  # here: it takes as long as everything else together
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def unshare(flags):
    if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return "done"


def push_terminal_input():
    """TIOCSTI on standard input, with an address that cannot be read: see what answers."""
    return fcntl.ioctl(0, 0x5412, 0)


# ---- sockets ----------------------------------------------------------------------------------

def hostname():
    return socket.gethostname()


def interfaces():
    lines = read("/proc/net/dev").splitlines()[2:]
    return sorted(line.split(":")[0].strip() for line in lines)


def make_socket(family, kind_of_socket="SOCK_STREAM"):
    socket.socket(getattr(socket, family), getattr(socket, kind_of_socket)).close()
    return "done"


def connect(host, port):
    """The first line that a TCP service says."""
    with socket.create_connection((host, port), timeout=5) as connection:
        return connection.recv(100).decode()


def send_datagram(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram:
        datagram.sendto(b"x", (host, port))
    return "done"


def connect_unix(path):
    """The first line that a Unix service says; an abstract one starts with '@'."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect("\0" + path[1:] if path.startswith("@") else path)
        return connection.recv(100).decode()


# ---- the run ----------------------------------------------------------------------------------

def attempt(name, *arguments):
    try:
        return globals()[name](*arguments)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def main():
    refuse_to_be_root()
    signal.alarm(20)
    print(json.dumps([attempt(*step) for step in json.loads(sys.argv[1])]))


main()
