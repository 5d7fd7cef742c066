"""capgate run on stock Debian kernels in qemu: limits by cgroup v2, by a scope of the user's systemd,
an older Landlock, no IPv6 and no nf_tables.

The guest has no disk and no network, and loads no modules by itself: an initramfs with busybox,
capgate, its broker, a static probe and the checks of tests/e2e/vm. The checks print one line for
each claim, and each line is judged here. The kernels come from Debian's mirror into .deps/vm.
"""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import threading
import unittest

import launch

TIER = "full"
SOURCES = os.path.join(launch.ROOT, "tests/e2e/vm")
PLACE = os.path.join(launch.ROOT, ".deps/vm")
BUSYBOX = "/usr/bin/busybox"
DOWNLOAD_SECONDS = 300
# Without KVM, on a busy machine. A guest that works needs a fraction of it.
BOOT_SECONDS = 150
# With KVM the checks of a guest end after a few seconds.
KVM_SECONDS = 40
KERNEL_WORDS = ("console=ttyS0 quiet panic=-1 cgroup_no_v1=all "
                "lsm=landlock,lockdown,yama,integrity,apparmor,bpf")
# What a redirect needs. Guests find them in /modules, and load none by themselves.
MODULES = {f"{name}.ko" for name in (
    "libcrc32c", "nf_conntrack", "nf_defrag_ipv4", "nf_defrag_ipv6", "nf_nat", "nf_tables",
    "nfnetlink", "nft_chain_nat", "nft_redir")}
NEED_SYSTEMD = ("scope.checks",)
KVM_FAILURE = "KVM internal error"
RESULT = re.compile(r"^RESULT (\S+) (ok|FAIL)(?: (.*))?$", re.MULTILINE)


def command(*words, **options):
    """The output of a command that must succeed."""
    options.setdefault("timeout", BOOT_SECONDS)
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, **options).stdout


def newest_kernel(line):
    """The name of the newest cloud kernel of a line such as 6.12 that apt knows of."""
    names = command("apt-cache", "pkgnames", f"linux-image-{line}.").decode().split()
    pattern = re.compile(rf"linux-image-{re.escape(line)}\.[0-9.+-]+(deb12)?-cloud-amd64")
    kernels = [name for name in names if pattern.fullmatch(name)]
    return max(kernels, default=None, key=lambda name: [int(n) for n in re.findall("[0-9]+", name)])


def kernel(line):
    """The paths of the newest kernel of that line and of its modules, downloaded once."""
    name = newest_kernel(line)
    if name is None:
        command("apt-get", "update", "-qq", timeout=DOWNLOAD_SECONDS)
        name = newest_kernel(line)
    if name is None:
        raise LookupError(f"apt knows no cloud kernel {line}")
    image = os.path.join(PLACE, name)
    modules = f"{image}.modules"
    if not os.path.exists(modules):
        os.makedirs(PLACE, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PLACE) as place:
            command("apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", name, cwd=place,
                    timeout=DOWNLOAD_SECONDS)
            package, = os.listdir(place)
            command("dpkg-deb", "-x", package, "contents", cwd=place)
            version = name.removeprefix("linux-image-")
            contents = os.path.join(place, "contents")
            os.rename(os.path.join(contents, "boot", f"vmlinuz-{version}"), image)
            kept = os.path.join(place, "modules")
            os.mkdir(kept)
            for path in glob.glob(f"{contents}/lib/modules/**/*.ko", recursive=True):
                if os.path.basename(path) in MODULES:
                    os.rename(path, os.path.join(kept, os.path.basename(path)))
            os.rename(kept, modules)
    return image, modules


def build_root(place):
    """The guest's tree, but for the checks."""
    for directory in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc"):
        os.makedirs(os.path.join(place, directory))
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink(f"usr/{name}", os.path.join(place, name))
    programs = os.path.join(place, "usr/bin")
    shutil.copy(BUSYBOX, programs)
    for name in command(BUSYBOX, "--list").decode().split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(programs, name))
    for name in ("capgate", "capgate-broker"):
        shutil.copy(os.path.join(os.path.dirname(launch.CAPGATE), name), programs)
    command("gcc", "-static", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread",
            os.path.join(SOURCES, "probe.c"), "-o", os.path.join(programs, "probe"))
    with open(os.path.join(place, "etc/passwd"), "w", encoding="utf-8") as accounts:
        accounts.write("root:x:0:0::/root:/bin/sh\n"
                       f"user:x:{launch.FIRST_ORDINARY}:{launch.FIRST_ORDINARY}::/home/user:/bin/sh\n")
    for name in ("library", "network", "init"):
        shutil.copy(os.path.join(SOURCES, name), place)
    os.chmod(os.path.join(place, "init"), 0o755)


def pack(root, image):
    names = "\0".join(os.path.relpath(os.path.join(at, name), root)
                      for at, directories, files in os.walk(root) for name in directories + files)
    with open(image, "wb") as file:
        subprocess.run(["cpio", "--create", "--null", "--format=newc", "--owner=0:0", "--quiet"],
                       cwd=root, input=names.encode(), stdout=file, check=True,
                       timeout=BOOT_SECONDS)


SYSTEMD = ["/usr/lib/systemd/systemd", "/usr/bin/systemctl", "/usr/bin/dbus-daemon"]
UNITS = ["system/dbus.socket", "system/dbus.service", "user/dbus.socket", "user/dbus.service"]
# What the units of the bus wait for by default.
TARGETS = ("sysinit.target", "basic.target", "sockets.target", "shutdown.target")
LAB_UNITS = {
    "lab.target": "[Unit]\nDefaultDependencies=no\nWants=lab.service\n",
    "lab.service": ("[Unit]\nDefaultDependencies=no\nWants=dbus.socket user-manager.service\n"
                    "After=dbus.socket user-manager.service\n"
                    "[Service]\nType=oneshot\nExecStart=/bin/sh /checks\nTimeoutStartSec=infinity\n"
                    "StandardOutput=tty\nStandardError=tty\nTTYPath=/dev/console\n"),
    # As user@.service of systemd, but without PAM and logind.
    "user-manager.service": (
        "[Unit]\nDefaultDependencies=no\nAfter=dbus.socket\n[Service]\nType=notify\n"
        f"User={launch.FIRST_ORDINARY}\nSlice=user-{launch.FIRST_ORDINARY}.slice\n"
        "Delegate=pids memory cpu\n"
        f"RuntimeDirectory=user/{launch.FIRST_ORDINARY}\nRuntimeDirectoryMode=0700\n"
        f"Environment=XDG_RUNTIME_DIR=/run/user/{launch.FIRST_ORDINARY}\n"
        "ExecStart=/usr/lib/systemd/systemd --user --unit=lab-user.target --log-target=null\n"),
}


def copy_whole(path, root):
    """A file or directory of this machine, at its real path in the guest, links followed."""
    real = os.path.realpath(path)
    target = root + real
    if os.path.isdir(real):
        shutil.copytree(real, target, dirs_exist_ok=True, symlinks=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(real, target)
    wanted = path.replace("/lib", "/usr/lib", 1) if path.startswith("/lib") else path
    if wanted != real and not os.path.lexists(root + wanted):
        os.makedirs(os.path.dirname(root + wanted), exist_ok=True)
        os.symlink(real, root + wanted)


def add_systemd(root):
    """This machine's systemd and message bus with their libraries, and the units of the lab."""
    for program in SYSTEMD:
        # Busybox has none of these names but for links of its own.
        copy_whole(program, root)
        for library in re.findall(r"(/\S+) \(0x", command("ldd", program).decode()):
            copy_whole(library, root)
    for unit in UNITS:
        copy_whole(f"/usr/lib/systemd/{unit}", root)
    copy_whole("/usr/share/dbus-1", root)
    units = os.path.join(root, "etc/systemd/system")
    os.makedirs(units)
    os.makedirs(os.path.join(root, "etc/systemd/user"))
    for name, text in LAB_UNITS.items():
        with open(os.path.join(units, name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(os.path.join(root, "etc/systemd/user/lab-user.target"), "w", encoding="utf-8") as file:
        file.write("[Unit]\nDefaultDependencies=no\nWants=dbus.socket\nAfter=dbus.socket\n")
    for directory in ("system", "user"):
        for name in TARGETS:
            with open(os.path.join(root, "etc/systemd", directory, name), "w",
                      encoding="utf-8") as file:
                file.write("[Unit]\nDefaultDependencies=no\n")
    with open(os.path.join(root, "etc/passwd"), "a", encoding="utf-8") as accounts:
        accounts.write("messagebus:x:101:101::/:/bin/false\n")
    with open(os.path.join(root, "etc/group"), "w", encoding="utf-8") as groups:
        groups.write(f"root:x:0:\nmessagebus:x:101:\nuser:x:{launch.FIRST_ORDINARY}:\n")
    with open(os.path.join(root, "etc/machine-id"), "w", encoding="utf-8") as identity:
        identity.write("0" * 31 + "1\n")


def boot(line, checks, words):
    """What the console shows until the guest powers off."""
    image, modules = kernel(line)
    with tempfile.TemporaryDirectory() as place:
        root = os.path.join(place, "root")
        build_root(root)
        if checks in NEED_SYSTEMD:
            add_systemd(root)
        shutil.copytree(modules, os.path.join(root, "modules"))
        shutil.copy(os.path.join(SOURCES, checks), os.path.join(root, "checks"))
        initramfs = os.path.join(place, "initramfs")
        pack(root, initramfs)
        options = ["-kernel", image, "-initrd", initramfs, "-append", f"{KERNEL_WORDS} {words}"]
        accelerator, console = "kvm", run_guest("kvm", options, KVM_SECONDS)
        if not RESULT.search(console.replace("\r", "")):
            accelerator, console = "tcg", run_guest("tcg", options, BOOT_SECONDS)
        print(f"note: kernel {line} is {os.path.basename(image)}, accelerated by {accelerator}")
        return console


def run_guest(accelerator, options, seconds):
    """The console of one guest. Where there is no KVM, QEMU ends at once. A virtual machine may have a
    /dev/kvm that cannot execute all instructions of a guest: then it stands still."""
    guest = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", accelerator, "-m", "512", "-smp", "1", "-nographic",
         "-no-reboot", "-nic", "none", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    late = threading.Timer(seconds, guest.kill)
    late.start()
    console = ""
    with guest:
        try:
            for line in guest.stdout:
                console += line.decode(errors="replace")
                if KVM_FAILURE in console:
                    break
        finally:
            late.cancel()
            guest.kill()
    return console


class Kernels(unittest.TestCase):
    def assert_all_true(self, line, checks, words=""):
        console = boot(line, checks, words).replace("\r", "")
        results = RESULT.findall(console)
        for name, verdict, detail in results:
            with self.subTest(kernel=line, claim=name):
                self.assertEqual(verdict, "ok", detail)
        self.assertIn(("done", "ok", ""), results, f"the checks did not end:\n{console}")

    def test_limits_by_cgroup_v2_and_the_network_without_nf_tables(self):
        self.assert_all_true("6.12", "limits.checks")

    def test_limits_by_a_scope_of_the_users_systemd(self):
        self.assert_all_true("6.12", "scope.checks")

    def test_files_under_landlock_abi_2_and_the_network_without_ipv6(self):
        self.assert_all_true("6.1", "landlock.checks", "ipv6.disable=1")


if __name__ == "__main__":
    unittest.main()
