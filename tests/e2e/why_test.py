"""`capgate why` against the sandbox itself: whatever it says, a server that tries it must find the same."""

import json
import os
import socket
import threading
import unittest

import launch
from run_cases import RunCase, python

# Tries every path that it is told, and says for each whether it got at the host's own file: to read
# it, and to write it. Nothing is changed: a file is opened for writing, not written; what is made in
# a directory is removed again, if that may be.
PROBE = """
import json, os, sys
def opened(path, flags):
    try:
        return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return -1
def identity(fd):
    try:
        info = os.fstat(fd)
        return [info.st_dev, info.st_ino]
    finally:
        os.close(fd)
def read(path):
    fd = opened(path, os.O_RDONLY)
    return identity(fd) if fd >= 0 else None
def write(path):
    if os.path.isdir(path):
        made = os.path.join(path, 'made-by-the-probe')
    elif os.path.exists(path):
        fd = opened(path, os.O_WRONLY)
        return identity(fd) if fd >= 0 else None
    else:
        made = path
    fd = opened(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    return identity(fd) if fd >= 0 else None
tried = {}
for path in json.load(sys.stdin):
    tried[path] = {'read': read(path), 'write': write(path)}
json.dump(tried, sys.stdout)
"""


class WhyCase(RunCase):
    def manifest(self, *capabilities):
        path = os.path.join(self.home, "manifest.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(launch.server(*capabilities), file)
        return self.own(path, 0o600)

    def why(self, manifest, *words, code=None):
        done = launch.capgate("why", manifest, "--json", *words, cwd="/", env=self.environment(),
                              preexec_fn=lambda: launch.become(self.uid))
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        else:
            self.assertIn(done.returncode, (0, 7), done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["allowed"], done.returncode == 0)
        return answer


class Paths(WhyCase):
    def setUp(self):
        super().setUp()
        for name in ("tree/a.txt", "tree/deep/b.txt", "tree/.env", "tree/.git/hooks/post-commit",
                     "tree/.git/config", "tree/.vscode/tasks.json", "tree/out/c.txt", "notes/x.md",
                     "notes/y.txt", "notes/.hidden.md", "alone", "other/secret", "grow/old",
                     "shrink/old"):
            self.file(name, "text")
        for name, target in (("tree/inside", "a.txt"), ("tree/outside", "../other/secret"),
                             ("tree/absolute", "/etc/hostname"), ("tree/loop", "loop"),
                             ("tree/above", "deep/../a.txt")):
            os.symlink(target, os.path.join(self.work, name))
            os.lchown(os.path.join(self.work, name), self.uid, self.uid)

    def capabilities(self):
        work = self.work
        return {
            "reads a tree": [f"fs:read:{work}/tree/**"],
            "writes a tree": [f"fs:write:{work}/tree/**"],
            "a writable child": [f"fs:read:{work}/tree/**", f"fs:write:{work}/tree/out/**"],
            "names what is held": [f"fs:write:{work}/tree/**", f"fs:read:{work}/tree/.env",
                                   f"fs:write:{work}/tree/.git/hooks/**"],
            "entries and a file": [f"fs:read:{work}/notes/*.md", f"fs:write:{work}/alone"],
            "grows and shrinks": [f"fs:create:{work}/grow/**", f"fs:delete:{work}/shrink/**"],
            "a program": ["exec:spawn:git", f"fs:read:{work}/tree/**"],
            "nothing": [],
        }

    def asked(self):
        inside = [os.path.join(self.work, name) for name in (
            "", "tree", "tree/a.txt", "tree/new", "tree/deep", "tree/deep/b.txt",
            "tree/.env", "tree/.git", "tree/.git/config", "tree/.git/hooks",
            "tree/.git/hooks/post-commit", "tree/.git/hooks/new", "tree/.vscode/tasks.json",
            "tree/out", "tree/out/c.txt", "tree/out/new", "tree/inside", "tree/outside",
            "tree/absolute", "tree/loop", "tree/above", "notes", "notes/x.md", "notes/y.txt",
            "notes/.hidden.md", "notes/new.md", "alone", "alone/below", "other", "other/secret",
            "grow", "grow/old", "grow/new", "shrink", "shrink/old", "shrink/new", "missing/x")]
        return [*inside, "/", "/etc", "/etc/passwd", "/etc/shadow", "/etc/hostname", "/etc/ssl/certs",
                "/usr", "/usr/lib/os-release", "/usr/new", "/bin/sh", "/usr/bin/git", "/usr/bin/env",
                "/usr/bin/not-there", "/lib", "/proc/self/status", "/proc/1/environ", "/dev/null",
                "/sys", "/run", "/root", "/tmp", self.home, os.path.join(self.home, ".bashrc"),
                "/var/lib/dpkg/status"]

    def host_identity(self, path):
        try:
            info = os.stat(path)
        except OSError:
            return None
        return [info.st_dev, info.st_ino]

    def tried(self, manifest, paths):
        command = python(PROBE)
        done = self.run_server(["-m", manifest], command, stdin=json.dumps(paths).encode())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def was_reached(self, path, got):
        """The host's own file, and not one of the sandbox in its place. What was made is removed."""
        if got is None:
            return False
        host = self.host_identity(path)
        made = os.path.join(path, "made-by-the-probe") if os.path.isdir(path) else path
        for each in (made, path):
            if self.host_identity(each) == got:
                return True
        return host == got

    def test_every_answer_is_what_a_server_finds(self):
        for name, capabilities in self.capabilities().items():
            manifest = self.manifest(*capabilities)
            paths = self.asked()
            before = {path: os.path.exists(path) for path in paths}
            answers = {(path, access): self.why(manifest, "--path", path,
                                                *(["--write"] if access == "write" else []),
                                                "--", launch.PYTHON)
                       for path in paths for access in ("read", "write")}
            tried = self.tried(manifest, paths)
            for (path, access), answer in answers.items():
                reached = self.was_reached(path, tried[path][access])
                with self.subTest(policy=name, path=path.replace(self.work, "WORK"), access=access):
                    if access == "read" and not before[path]:
                        continue  # nothing is there to be read, whatever the policy says
                    self.assertEqual(answer["allowed"], reached, answer["reason"])
            for path in paths:
                if not before[path] and os.path.isfile(path):
                    os.unlink(path)
                made = os.path.join(path, "made-by-the-probe")
                if os.path.exists(made):
                    os.unlink(made)

    def test_both_answers_are_given(self):
        """The comparison above is worth something only where some are allowed and some are not."""
        manifest = self.manifest(f"fs:write:{self.work}/tree/**")
        self.why(manifest, "--path", f"{self.work}/tree/a.txt", "--write", code=0)
        self.why(manifest, "--path", f"{self.work}/other/secret", code=7)

    def test_the_remedy_of_a_denial_allows_it(self):
        manifest = self.manifest(f"fs:read:{self.work}/tree/**")
        for words in (["--path", f"{self.work}/other/secret"],
                      ["--path", f"{self.work}/tree/a.txt", "--write"],
                      ["--path", f"{self.work}/tree/.env"],
                      ["--path", "/usr/bin/git"], ["--exec", "git"], ["--env", "EDITOR"],
                      ["--host", "api.github.com:443"], ["--host", "10.1.2.3:5432"]):
            with self.subTest(words=words):
                answer = self.why(manifest, *words, code=7)
                self.assertTrue(answer["remedy"])
                more = self.manifest(f"fs:read:{self.work}/tree/**", answer["remedy"])
                again = self.why(more, *words, code=0)
                manifest = self.manifest(f"fs:read:{self.work}/tree/**")
                self.assertEqual(again["question"], answer["question"])

    def test_a_grant_that_this_machine_lacks_is_answered_for_by_the_plan(self):
        manifest = self.manifest("fs:read:/not/on/this/machine/**")
        answer = self.why(manifest, "--path", "/not/on/this/machine/x", code=0)
        self.assertIn("run refuses", " ".join(answer["notes"]))
        self.why(manifest, "--path", "/not/on/this/machine/x", "--write", code=7)
        self.why(manifest, "--path", "/not/on/this/machine/.env", code=7)
        self.why(manifest, "--path", "/not/on/this/machines", code=7)

    def test_a_relative_path_starts_here(self):
        manifest = self.manifest(f"fs:read:{self.work}/tree/**")
        done = launch.capgate("why", manifest, "--path", "a.txt", "--json",
                              cwd=os.path.join(self.work, "tree"), env=self.environment())
        self.assertEqual(json.loads(done.stdout)["question"]["subject"], f"{self.work}/tree/a.txt")

    def test_a_path_is_plain_before_it_is_asked_about(self):
        manifest = self.manifest(f"fs:read:{self.work}/tree/**")
        answer = self.why(manifest, "--path", f"{self.work}//tree/./a.txt/", code=0)
        self.assertEqual(answer["question"]["subject"], f"{self.work}/tree/a.txt")
        # What it leads to is the base system's, which the grant has nothing to do with.
        up = "/.." * (self.work.count("/") + 1)
        done = launch.capgate("why", manifest, "--path", f"{self.work}/tree{up}/etc/os-release",
                              env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("has a ..", done.stderr)
        self.assertIn(os.path.realpath("/etc/os-release"), done.stderr)
        done = launch.capgate("why", manifest, "--path", "/not/there/../x", env=self.environment())
        self.assertEqual(done.returncode, 2)
        self.assertIn("without it", done.stderr)

    def test_without_a_current_directory_there_is_no_answer(self):
        manifest = self.manifest(f"fs:read:{self.work}/tree/**")
        gone = os.path.join(self.work, "gone")
        os.mkdir(gone)
        def leave():
            os.chdir(gone)
            os.rmdir(gone)
        for path in ("a.txt", f"{self.work}/tree/a.txt"):
            if not os.path.isdir(gone):
                os.mkdir(gone)
            done = launch.capgate("why", manifest, "--path", path, env=self.environment(),
                                  preexec_fn=leave)
            self.assertEqual((done.returncode, done.stdout), (6, ""), done.stderr)
            self.assertIn("no current directory", done.stderr)


# Connects to each host that it is told, and says which of them greeted it.
CALLER = """
import json, socket, sys
def greeting(host, port):
    try:
        with socket.create_connection((host, port), timeout=20) as caller:
            return caller.recv(16).decode()
    except OSError:
        return ''
json.dump([greeting(host, port) for host, port in json.load(sys.stdin)], sys.stdout)
"""


class Hosts(WhyCase):
    """Who serves greets at once, so that a connection that was taken and dropped is told from one made."""

    def setUp(self):
        super().setUp()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.serving = threading.Thread(target=self.serve)
        self.serving.start()
        self.addCleanup(self.end)

    def serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            with caller:
                caller.sendall(b"hello")

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.serving.join()

    def test_every_answer_is_what_a_server_finds(self):
        port = self.port
        hosts = ["localhost", "127.0.0.1", "::1", "127.0.0.2"]
        for rule in (f"localhost:{port}", f"127.0.0.1:{port}", f"localhost:{port ^ 1}", f"*:{port}"):
            manifest = self.manifest(f"net:connect:{rule}")
            done = self.run_server(["-m", manifest], python(CALLER),
                                   stdin=json.dumps([[host, port] for host in hosts]).encode())
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            for host, said in zip(hosts, json.loads(done.stdout)):
                with self.subTest(rule=rule, host=host):
                    shown = f"[{host}]" if ":" in host else host
                    answer = self.why(manifest, "--host", f"{shown}:{port}")
                    self.assertEqual(answer["allowed"], said == "hello", answer)

    def test_an_address_of_localhost_is_answered_by_its_name(self):
        manifest = self.manifest(f"net:connect:localhost:{self.port}")
        answer = self.why(manifest, "--host", f"127.0.0.1:{self.port}", code=0)
        self.assertEqual(len(answer["lines"]), 1)
        self.assertIn("localhost", " ".join(answer["notes"]))
        self.assertNotIn("means", " ".join(
            self.why(manifest, "--host", f"localhost:{self.port}", code=0)["notes"]))


class Lines(WhyCase):
    def file_with(self, text):
        path = os.path.join(self.home, "lines.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return self.own(path, 0o600)

    def test_the_line_that_decides_is_named_with_its_tool(self):
        manifest = self.file_with(
            '{"name": "s", "version": "1", "serverCapabilities": ["env:read:LANG"],\n'
            ' "tools": [\n'
            '  {"name": "search", "capabilities": ["net:connect:*.example.com:443"]},\n'
            '  {"name": "save", "capabilities": ["net:connect:api.example.com:443"]}]}\n')
        answer = self.why(manifest, "--host", "api.example.com:443", code=0)
        self.assertEqual([(each["line"], each["owner"]) for each in answer["lines"]],
                         [(3, "search"), (4, "save")])
        self.why(manifest, "--host", "www.example.com:443", "--tool", "search", code=0)
        self.why(manifest, "--host", "www.example.com:443", "--tool", "save", code=7)
        self.why(manifest, "--host", "example.com:443", code=7)
        self.why(manifest, "--host", "api.example.com:80", code=7)

    def test_a_line_that_only_reads_does_not_explain_a_write(self):
        manifest = self.file_with(json.dumps({
            "name": "s", "version": "1", "tools": [
                {"name": "look", "capabilities": [f"fs:read:{self.work}/**"]},
                {"name": "change", "capabilities": [f"fs:write:{self.work}/**"]}]}))
        answer = self.why(manifest, "--path", f"{self.work}/x", "--write", code=0)
        self.assertEqual([each["owner"] for each in answer["lines"]], ["change"])

    def test_a_sealed_variable_is_a_placeholder(self):
        manifest = self.manifest("env:inject:TOKEN?to=api.example.com:443",
                                 "net:connect:api.example.com:443")
        self.assertIn("placeholder", self.why(manifest, "--env", "TOKEN", code=0)["reason"])
        notes = self.why(manifest, "--host", "api.example.com:443", code=0)["notes"]
        self.assertIn("TOKEN", " ".join(notes))


class Words(WhyCase):
    def said(self, *words):
        done = launch.capgate("why", *words, env=self.environment())
        return done.returncode, done.stdout, done.stderr

    def test_mistakes_are_told(self):
        manifest = self.manifest()
        for words, wanted in ((["--path", "/x", "--env", "A"], "one question"),
                              ([], "needs a question"), (["--env", "A", "--write"], "--path"),
                              (["--host", "example.com"], "one port"),
                              (["--host", "*.example.com:443"], "one host"),
                              (["--host", "https://example.com/"], "--host"), (["--path", ""], "--path is empty"),
                              (["--env", ""], "--env is empty"),
                              (["--host", ""], "--host is empty"),
                              (["--exec", ""], "--exec is empty")):
            with self.subTest(words=words):
                code, out, err = self.said(manifest, *words)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(wanted, err)
        self.assertEqual(self.said("/not/there.json", "--path", "/x")[0], 3)

    def test_the_text_has_verdict_line_and_remedy(self):
        manifest = self.manifest(f"fs:read:{self.work}/**")
        code, out, _ = self.said(manifest, "--path", f"{self.work}/x", "--write")
        self.assertEqual(code, 7)
        self.assertTrue(out.startswith(f"denied: write {self.work}/x\n"))
        self.assertIn(f"to allow it: fs:write:{self.work}/x", out)

    def test_foreign_text_cannot_move_the_terminal(self):
        manifest = self.manifest()
        _, out, _ = self.said(manifest, "--path", "/x\x1b[2J", "--write")
        self.assertNotIn("\x1b", out)


class AsRoot(Paths):
    """Who starts it does not change what is answered: some of the policies."""

    uid = 0

    def capabilities(self):
        every = super().capabilities()
        return {name: every[name] for name in ("writes a tree", "a program")}


if __name__ == "__main__":
    unittest.main()
