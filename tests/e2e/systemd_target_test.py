"""The systemd target: judged by systemd-analyze, and carried out by a real systemd."""

import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import launch
import systemd_lab

GOLDEN = os.path.join(launch.ROOT, "tests/golden")
SCORES = os.path.join(launch.ROOT, "tests/e2e/systemd/exposure.txt")
MOST_EXPOSED = 1.5
# systemd-analyze looks for the programs of a unit on this machine.
NOT_HERE = re.compile(r"Command \S+ is not executable: No such file or directory$")


def analyze(*words):
    return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False,
                          timeout=launch.SECONDS)


def services():
    return sorted(glob.glob(os.path.join(GOLDEN, "*/systemd/*.service")))


def exposure(path):
    done = analyze("security", "--offline=yes", "--no-pager", path)
    return float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout).group(1))


def exposure_table():
    return "".join(f"{path.split(os.sep)[-3]} {os.path.basename(path)} {exposure(path)}\n"
                   for path in services())


class Analyzed(unittest.TestCase):
    """What systemd itself says of every golden unit."""

    def test_every_unit_is_understood_without_a_warning(self):
        for folder in sorted(glob.glob(os.path.join(GOLDEN, "*/systemd"))):
            units = glob.glob(os.path.join(folder, "*.s*[et]"))
            done = analyze("verify", "--man=no", *units)
            said = [line for line in done.stderr.splitlines() if not NOT_HERE.search(line)]
            self.assertEqual(said, [], folder)

    def test_a_mistake_in_a_unit_would_be_said(self):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "x.service")
            with open(path, "w", encoding="utf-8") as file:
                file.write("[Service]\nExecStart=/bin/true\nPrivateNetwrok=yes\n")
            self.assertIn("PrivateNetwrok", analyze("verify", "--man=no", path).stderr)

    def test_the_exposure_of_every_unit_is_the_reviewed_one(self):
        table = exposure_table()
        for line in table.splitlines():
            self.assertLessEqual(float(line.split()[-1]), MOST_EXPOSED, line)
        if os.environ.get("CAPGATE_UPDATE_GOLDEN"):
            with open(SCORES, "w", encoding="utf-8") as file:
                file.write(table)
        with open(SCORES, encoding="utf-8") as file:
            self.assertEqual(table, file.read())


PROBE = r"""
import json, os, socket, sys
facts = {}
def ask(name, question):
    try:
        facts[name] = question()
    except OSError as error:
        facts[name] = error.strerror or getattr(error, "reason", str(error))
def write(path):
    with open(path, "w") as file:
        file.write("x")
    return "written"
def start(program, *words):
    return os.spawnv(os.P_WAIT, program, [program, *words])
def status(*names):
    with open("/proc/self/status") as file:
        return "".join(line for line in file if line.startswith(names)).split()
def copy_and_start(path):
    with open("/usr/bin/true", "rb") as source, open(path, "wb") as copy:
        copy.write(source.read())
    os.chmod(path, 0o755)
    return start(path)
request = json.loads(sys.stdin.readline())
for name, expression in request.items():
    ask(name, lambda: eval(expression))
facts["argv"] = sys.argv[1:]
print(json.dumps(facts), flush=True)
"""
CLIENT = r"""
import socket
client = socket.socket(socket.AF_UNIX)
client.settimeout(30)
client.connect(SOCKET)
client.sendall(REQUEST.encode() + b"\n")
answer = b""
while chunk := client.recv(65536):
    answer += chunk
with open("/out/answer", "wb") as file:
    file.write(answer)
"""
# Two servers outside of the sandbox, in the network of the lab.
ORIGINS = r"""
import http.server, subprocess, threading
subprocess.run(["ip", "address", "add", "10.1.2.3/32", "dev", "lo"], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
class Origin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"origin {self.server.server_port}".encode())
for port in (8080, 8081):
    server = http.server.ThreadingHTTPServer(("10.1.2.3", port), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
"""
PROGRAMS = os.path.dirname(launch.CAPGATE)
HOSTILE = ["a;b", ";", "$HOME", "${X}", "50%", "%n", 'a"b\\c', "it's", "two words", "é"]


class Run(unittest.TestCase):
    """One connection to the socket is one server, in what the unit says."""

    def ask(self, capabilities, questions, binds=(), extra=None, prepare=""):
        manifest = launch.server(*capabilities)
        options = ("--program", "/opt/probe.py", "--", "/usr/bin/python3", "/opt/probe.py", *HOSTILE)
        with systemd_lab.lab(manifest, *options) as lab:
            lab.write("lab/probe.py", PROBE)
            lab.write("units/lab.target",
                      systemd_lab.TARGET.replace("lab.service", "lab.service e2e.socket"))
            for name, text in (extra or {}).items():
                lab.write(name, text)
            client = (f"{prepare}\nSOCKET = '/run/capgate/e2e.sock'\nREQUEST = {json.dumps(questions)!r}\n"
                      + CLIENT)
            probe = (os.path.join(lab.place, "lab/probe.py"), "/opt/probe.py")
            answer, log = lab.run(client, [probe, *binds])
            self.assertTrue(answer, log)
            return json.loads(answer)

    def test_the_server_gets_its_words_and_an_empty_root(self):
        facts = self.ask([], {
            "root": "sorted(os.listdir('/'))", "etc": "sorted(os.listdir('/etc'))",
            "opt": "os.listdir('/opt')", "proc": "[n for n in os.listdir('/proc') if n == '1']",
            "sys": "os.listdir('/sys')", "home": "os.listdir('/home')",
            "var": "os.listdir('/var')", "write_root": "write('/x')", "write_usr": "write('/usr/x')",
            "write_tmp": "write('/tmp/x')", "write_shm": "write('/dev/shm/x')",
            "user": "[os.getuid(), os.getgid(), os.getgroups()]",
            "caps": "status('Cap')", "locks": "status('NoNewPrivs', 'Seccomp:')",
            "net": "[line.split(':')[0].strip() for line in open('/proc/self/net/dev')][2:]",
            "unix": "socket.socket(socket.AF_UNIX).fileno()",
            "env": "sorted(os.environ)",
            "tmp": "os.statvfs('/tmp').f_blocks * os.statvfs('/tmp').f_frsize",
            "open_files": "__import__('resource').getrlimit(7)",
            "outside": "socket.create_connection(('10.1.2.3', 8080), 5).fileno()"}, prepare=ORIGINS)
        self.assertEqual(facts["argv"], HOSTILE)
        self.assertLessEqual(set(facts["root"]), {"bin", "dev", "etc", "lib", "lib64", "opt", "proc",
                                                  "run", "sbin", "sys", "tmp", "usr"})
        self.assertEqual(facts["etc"], ["hosts", "ld.so.cache"])
        self.assertEqual(facts["opt"], ["probe.py"])
        self.assertEqual(facts["proc"], [])
        for place in ("home", "sys", "var"):
            self.assertEqual(facts[place], "No such file or directory", place)
        for place in ("write_root", "write_usr"):
            self.assertEqual(facts[place], "Read-only file system", place)
        for place in ("write_tmp", "write_shm"):
            self.assertEqual(facts[place], "written", place)
        self.assertEqual(facts["user"], [990, 990, [990]])
        self.assertEqual(set(facts["caps"][1::2]), {"0" * 16})
        self.assertEqual(facts["locks"][1::2], ["1", "2"])
        self.assertEqual(facts["net"], ["lo"])
        self.assertEqual(facts["outside"], "Network is unreachable")
        self.assertEqual(facts["unix"], "Address family not supported by protocol")
        self.assertEqual(facts["env"], ["HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"])
        self.assertEqual(facts["tmp"], 256 << 20)
        self.assertEqual(facts["open_files"], [1024, 1024])

    def test_programs_that_are_not_declared_cannot_be_started(self):
        questions = {"self": "start('/usr/bin/python3', '-c', '')", "true": "start('/usr/bin/true')",
                     "loader": "start('/lib64/ld-linux-x86-64.so.2', '/usr/bin/true')",
                     "bin": "start('/bin/true')", "written": "copy_and_start('/tmp/true')"}
        facts = self.ask([], questions)
        self.assertEqual(facts["self"], 0)
        for name in ("true", "loader", "bin", "written"):
            self.assertEqual(facts[name], 127, name)
        facts = self.ask(["exec:spawn:true"], questions)
        for name in ("self", "true", "loader", "bin"):
            self.assertEqual(facts[name], 0, name)
        self.assertEqual(facts["written"], 127)

    def test_grants_are_what_they_say_and_nothing_beside_them(self):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
            os.chmod(place, 0o755)
            for name in ("read", "write"):
                os.mkdir(os.path.join(place, name))
                with open(os.path.join(place, name, "file"), "w", encoding="utf-8") as file:
                    file.write(name)
            os.chown(os.path.join(place, "write"), 990, 990)
            odd = '/srv/odd: 50% of "it", x'
            facts = self.ask(
                [f"fs:read:{json.dumps(odd)}", "fs:write:/srv/write/**"],
                {"srv": "sorted(os.listdir('/srv'))", "read": f"open({odd!r} + '/file').read()",
                 "write_read": f"write({odd!r} + '/new')", "write": "write('/srv/write/new')",
                 "start": "copy_and_start('/srv/write/true')"},
                [(os.path.join(place, "read"), odd), (os.path.join(place, "write"), "/srv/write"),
                 (os.path.join(place, "read"), "/srv/other")])
        self.assertEqual(facts["srv"], [odd.split("/")[-1], "write"])
        self.assertEqual(facts["read"], "read")
        self.assertEqual(facts["write_read"], "Read-only file system")
        self.assertEqual(facts["write"], "written")
        self.assertEqual(facts["start"], 127)

    def test_injected_values_come_from_the_file_and_without_it_nothing_starts(self):
        facts = self.ask(["env:inject:KEY"], {"key": "os.environ['KEY']"},
                         extra={"capgate/e2e.env": "KEY=a b$c%n\n"})
        self.assertEqual(facts["key"], "a b$c%n")
        with self.assertRaisesRegex(AssertionError, "Failed to load environment files"):
            self.ask(["env:inject:KEY"], {"key": "1"})

    def test_declared_egress_goes_through_the_unit_of_the_broker(self):
        ask = ("__import__('urllib.request').request.urlopen('http://10.1.2.3:{}/', timeout=20)"
               ".read().decode()")
        facts = self.ask(
            ["net:connect:10.1.2.3:8080?proto=http"],
            {"allowed": ask.format(8080), "refused": ask.format(8081),
             "direct": "socket.create_connection(('10.1.2.3', 8080), 5).fileno()",
             "unix": "socket.socket(socket.AF_UNIX).fileno()",
             "write": "write('/run/capgate/x')", "start": "start('/usr/bin/python3', '-c', '')"},
            [(PROGRAMS, "/opt/bin")], prepare=ORIGINS)
        self.assertEqual(facts["allowed"], "origin 8080")
        self.assertEqual(facts["refused"], "Forbidden")
        self.assertEqual(facts["direct"], "Network is unreachable")
        self.assertEqual(facts["unix"], "Operation not permitted")
        self.assertEqual(facts["write"], "Read-only file system")
        self.assertEqual(facts["start"], "Operation not permitted")


if __name__ == "__main__":
    unittest.main()
