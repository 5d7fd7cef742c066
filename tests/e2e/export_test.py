"""capgate export: the command, and srt really started with the file that it writes.

Each line that the export calls unenforced is shown to be open, or closed for everyone; each that it
calls kept is shown to hold, with a control that works outside.
"""

import glob
import json
import os
import socket
import subprocess
import unittest

import egress_lab
import launch
import srt_package
from cases import Case, probe, service
from starters import started_by_user

CURL = ["/usr/bin/curl", "-sS", "--max-time", "10", "--noproxy", ""]
GOLDENS = os.path.join(launch.ROOT, "tests/golden")


def setUpModule():
    srt_package.install()


def export(manifest, *options):
    return launch.capgate("export", "-", *options, text=json.dumps(manifest))


class SrtCase(Case):
    """Settings for srt, made of capabilities, and commands that run in it."""

    def settings(self, *capabilities, accept=(), **changes):
        """The path of the exported file; `changes` replace lists of its filesystem part."""
        words = [f"--accept-unenforced={capability}" for capability in accept]
        done = export(launch.server(*capabilities), "--to", "srt", "--program",
                      srt_package.PACKAGE, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        artifact = json.loads(done.stdout)
        self.assertEqual(sorted(artifact["unenforced"]), sorted(accept))
        written = json.loads(artifact["files"][0]["contents"])
        written["filesystem"].update(changes)
        return self.tree.file("settings.json", json.dumps(written))

    def finished(self, settings, command, **env):
        words = srt_package.words(settings, command)
        return srt_package.finished(lambda: launch.finish(launch.start(
            words, {"fds": []}, uid=self.uid, env=srt_package.environment(**env))))

    def attempt_with(self, settings, *attempts, **env):
        done = self.finished(settings, probe(*attempts), **env)
        self.assertEqual(done.returncode, 0, done.stderr.decode() + done.stdout.decode())
        return json.loads(done.stdout)

    uid = launch.ORDINARY


class Meaning(SrtCase):
    """What settings mean to srt, and what `capgate import` makes of the same file."""

    def written(self, filesystem, **more):
        lists = {"denyRead": [], "allowRead": [], "allowWrite": [], "denyWrite": []}
        network = {"allowedDomains": [], "deniedDomains": []}
        return self.tree.file("settings.json", json.dumps(
            {"filesystem": {**lists, **filesystem}, "network": network, **more}))

    def tried(self, settings, directory, *attempts):
        words = srt_package.words(settings, probe(*attempts))
        words[1] = f"--chdir={directory}"
        done = srt_package.finished(lambda: launch.finish(launch.start(
            words, {"fds": []}, uid=self.uid, env=srt_package.environment())))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def imported(self, settings):
        done = launch.capgate("import", settings, "--json")
        return done, json.loads(done.stdout) if done.returncode == 0 else None

    def test_a_relative_deny_starts_where_srt_does(self):
        secret = self.tree.file("work/secrets/key", "secret")
        beside = self.tree.file("work/beside", "beside")
        self.tree.directory("elsewhere")
        work = self.tree.path("work")
        attempts = (["read", secret], ["read", beside])
        settings = self.written({"denyRead": ["secrets"], "allowWrite": [work]})
        self.assertEqual(self.tried(settings, work, *attempts)[1], "beside")
        self.assertNotEqual(self.tried(settings, work, *attempts)[0], "secret")
        # The file lies beside both: its directory is none of them.
        self.assertEqual(self.tried(settings, self.tree.path("elsewhere"), *attempts),
                         ["secret", "beside"])
        done, _ = self.imported(settings)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("a relative path starts where srt is started", done.stdout)

    def test_a_credential_wins_over_what_may_be_read(self):
        secret = self.tree.file("data/key", "secret")
        data = self.tree.path("data")
        for path in (secret, data):
            for filesystem in ({"allowRead": [secret]}, {"allowWrite": [secret]},
                               {"denyRead": [data], "allowRead": [secret]}):
                settings = self.written(filesystem,
                                        credentials={"files": [{"path": path, "mode": "deny"}]})
                self.assertNotEqual(self.tried(settings, srt_package.SOURCE, ["read", secret]),
                                    ["secret"], (path, filesystem))
                done, answer = self.imported(settings)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertEqual(answer["manifest"]["serverCapabilities"], [])
        control = self.written({"denyRead": [data], "allowRead": [secret]})
        self.assertEqual(self.tried(control, srt_package.SOURCE, ["read", secret]), ["secret"])
        self.assertEqual(self.imported(control)[1]["manifest"]["serverCapabilities"],
                         [f"fs:read:{secret}"])


@started_by_user("test_reads_are_an_allowlist", "test_what_is_only_readable_is_not_written")
class Files(SrtCase):
    """What is granted works and nothing else is seen."""

    def test_reads_are_an_allowlist(self):
        inside = self.tree.file("data/inside", "inside")
        outside = self.tree.file("other/outside", "outside")
        attempts = (["read", inside], ["read", outside], ["read", "/etc/passwd"],
                    ["names", "/sys/class"])
        self.assert_open_outside(*attempts)
        settings = self.settings(f"fs:read:{self.tree.path('data')}/**")
        self.assertEqual(self.attempt_with(settings, *attempts),
                         ["inside", "ENOENT", "ENOENT", "ENOENT"])
        # Without `/` in denyRead everything is open: the line is what makes it hold.
        open_settings = self.settings(f"fs:read:{self.tree.path('data')}/**", denyRead=[])
        self.assertEqual(self.attempt_with(open_settings, ["read", outside]), ["outside"])

    def test_what_is_only_readable_is_not_written(self):
        path = self.tree.file("data/file", "old")
        settings = self.settings(f"fs:read:{self.tree.path('data')}/**")
        got = self.attempt_with(settings, ["write", path], ["remove", path],
                                ["write", self.tree.path("data/new")], ["read", path])
        self.assertEqual(got, ["EROFS", "EROFS", "EROFS", "old"])
        self.assertEqual(self.tree.text("data/file"), "old")

    def test_a_file_alone(self):
        path = self.tree.file("data/file", "file")
        beside = self.tree.file("data/beside", "beside")
        settings = self.settings(f"fs:read:{path}")
        self.assertEqual(self.attempt_with(settings, ["read", path], ["read", beside]),
                         ["file", "ENOENT"])

    def test_unenforced_entries_are_those_that_match_and_where_links_lead(self):
        for name in ("a.md", ".hidden.md", "b.txt", "deep/c.md"):
            self.tree.file("notes/" + name, name)
        self.tree.link("notes/link.md", self.tree.file("secret", "secret"))
        grant = f"fs:read:{self.tree.path('notes')}/*.md"
        settings = self.settings(grant, accept=[grant])
        names = ("a.md", ".hidden.md", "b.txt", "deep/c.md", "link.md")
        got = self.attempt_with(settings, *(["read", self.tree.path(f"notes/{name}")]
                                            for name in names))
        self.assertEqual(got, ["a.md", ".hidden.md", "ENOENT", "ENOENT", "secret"])

    def test_the_private_tmp(self):
        settings = self.settings("fs:write:/tmp/**")
        name = os.path.basename(self.tree.root)
        got = self.attempt_with(settings, ["write", f"/tmp/{name}", "inside"],
                                ["read", f"/tmp/{name}"])
        self.assertEqual(got[1], "inside")
        self.assertFalse(os.path.exists(f"/tmp/{name}"))

    def test_what_is_shared_by_all_is_not_written(self):
        settings = self.settings()
        self.assertIn(self.attempt_with(settings, ["write", "/tmp/claude/capgate-e2e"])[0],
                      ("EROFS", "ENOENT", "EACCES"))
        self.assertFalse(os.path.exists("/tmp/claude/capgate-e2e"))


class Writes(SrtCase):
    """Writable grants, for an ordinary user, whose files they are."""

    def test_a_granted_write_works_and_others_do_not_reach_the_host(self):
        inside = self.tree.directory("work")
        outside = self.tree.file("other/file", "old")
        attempts = (["write", f"{inside}/new"], ["remove", f"{inside}/new"],
                    ["write", f"{inside}/kept"])
        self.assert_open_outside(["write", outside, "old"])
        settings = self.settings(f"fs:write:{inside}/**")
        got = self.attempt_with(settings, *attempts, ["write", outside])
        self.assertNotIn("EROFS", got[:3])
        self.assertEqual(got[3], "ENOENT")
        self.assertEqual(self.tree.text("work/kept"), "written")
        self.assertEqual(self.tree.text("other/file"), "old")

    def test_what_the_host_runs_later_stays_as_it_is(self):
        inside = self.tree.directory("work")
        hook = self.tree.file("work/.git/hooks/pre-commit", "old")
        settings = self.settings(f"fs:write:{inside}/**")
        got = self.attempt_with(settings, ["write", hook], ["write", f"{inside}/.mcp.json"],
                                ["write", f"{inside}/plain"])
        self.assertIn(got[0], ("EROFS", "EACCES"))
        self.assertIn(got[1], ("EROFS", "EACCES"))
        self.assertEqual(self.tree.text("work/.git/hooks/pre-commit"), "old")
        self.assertEqual(sorted(os.listdir(inside)), [".git", "plain"])

    def test_secrets_inside_a_grant_are_hidden(self):
        path = self.tree.file("work/.env", "KEY=secret")
        self.assert_open_outside(["read", path])
        for action in ("read", "write"):
            settings = self.settings(f"fs:{action}:{self.tree.path('work')}/**")
            got = self.attempt_with(settings, ["read", path], ["write", path])
            self.assertNotIn("secret", str(got))
            self.assertEqual(self.tree.text("work/.env"), "KEY=secret")

    def test_unenforced_below_a_readable_directory_nothing_is_written(self):
        inside = self.tree.directory("data/out")
        grants = [f"fs:read:{self.tree.path('data')}/**", f"fs:write:{inside}/**"]
        settings = self.settings(*grants, accept=grants[1:])
        self.assertEqual(self.attempt_with(settings, ["write", f"{inside}/new"]), ["EROFS"])

    def test_unenforced_what_can_be_added_can_be_removed(self):
        path = self.tree.file("work/file", "old")
        grant = f"fs:create:{self.tree.path('work')}/**"
        settings = self.settings(grant, accept=[grant])
        self.attempt_with(settings, ["remove", path])
        self.assertFalse(os.path.exists(path))

    def test_unenforced_entries_cannot_be_written(self):
        path = self.tree.file("work/a.md", "old")
        grant = f"fs:write:{self.tree.path('work')}/*.md"
        settings = self.settings(grant, accept=[grant])
        self.assertEqual(self.attempt_with(settings, ["write", path], ["read", path]),
                         ["EROFS", "old"])


class Unenforced(SrtCase):
    """What the export says that srt does not hold to is so."""

    def test_the_environment_is_passed_on_whole(self):
        settings = self.settings("env:inject:KEY", accept=["env:inject:KEY"])
        got = self.attempt_with(settings, ["environment"], KEY="value", OTHER="other")[0]
        self.assertIn("value", str(got))
        self.assertIn("other", str(got))

    def test_every_program_can_be_started(self):
        settings = self.settings("exec:spawn:git", accept=["exec:spawn:git"])
        self.assertEqual(self.attempt_with(settings, ["spawn", "/usr/bin/echo", "started"]),
                         ["started\n"])

    def test_no_resource_is_limited(self):
        settings = self.settings("limit:files:64", accept=["limit:files:64"])
        got = self.attempt_with(settings, ["spawn", "/bin/sh", "-c", "ulimit -n"])
        self.assertGreater(int(got[0].replace("unlimited", str(2 ** 30))), 64)

    def test_unix_sockets_are_closed_for_everyone(self):
        path = self.tree.path("socket")
        grant = f'ipc:connect:"unix:{path}"'
        with service(socket.AF_UNIX, path):
            os.chmod(path, 0o777)
            self.assert_open_outside(["connect_unix", path])
            settings = self.settings(grant, accept=[grant])
            self.assertEqual(self.attempt_with(settings, ["connect_unix", path],
                                               ["make_socket", "AF_UNIX"]), ["EPERM", "EPERM"])

    def test_nobody_can_connect_to_a_listener(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        grant = f"net:listen:{port}"
        settings = self.settings(grant, accept=[grant])
        script = (f"import socket; s = socket.create_server(('127.0.0.1', {port}));"
                  "print('listens', flush=True); input()")
        process = launch.start(srt_package.words(settings, [launch.PYTHON, "-c", script]),
                               {"fds": []}, uid=self.uid, env=srt_package.environment())
        try:
            self.assertEqual(process.stdout.readline(), b"listens\n")
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)
        finally:
            launch.finish(process, b"\n")

    def test_a_host_that_it_does_not_take_is_closed(self):
        settings = self.settings("net:connect:*", accept=["net:connect:*"])
        with service(socket.AF_INET, ("127.0.0.1", 0)) as (_, port):
            self.assert_open_outside(["connect", "127.0.0.1", port])
            script = 'echo started; curl "$@"; echo "ended with $?"'
            done = self.finished(settings, ["/bin/sh", "-c", script, "sh", *CURL[1:],
                                            f"http://127.0.0.1:{port}/"])
        # curl ran and got nothing: no proxy answers where no host is allowed.
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertRegex(done.stdout, rb"\Astarted\nended with (7|52|56)\n\Z")


class Network(SrtCase):
    """Hosts and ports, in a network of the test's own."""

    @classmethod
    def setUpClass(cls):
        cls.lab = egress_lab.Lab()
        cls.addClassCleanup(cls.lab.close)

    def fetch(self, settings, url, *words):
        """What curl gets in the sandbox, through srt's proxy: its status, and the exit code."""
        command = [*CURL, *words, "--output", "/dev/null", "--write-out", "%{http_code}", url]
        words = srt_package.words(settings, command)
        done = srt_package.finished(lambda: self.lab.run(words, env=srt_package.environment()))
        self.assertRegex(done.stdout, rb"\A[0-9]{3}\Z", done.stderr.decode())  # curl was started
        return done.stdout.decode(), done.returncode

    def outside(self, url):
        done = self.lab.run([*CURL, "--output", "/dev/null", "--write-out", "%{http_code}", url])
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_an_allowed_pair_and_nothing_else(self):
        settings = self.settings("net:connect:api.example.test:80",
                                 "net:connect:v4.example.test:80",
                                 "net:connect:v6.example.test:80",
                                 "net:connect:*.example.org:443")
        for host in ("v4.example.test", "v6.example.test"):
            self.assertEqual(self.fetch(settings, f"http://{host}/"), ("200", 0), host)
        self.assertEqual(self.outside("http://api.example.test/"), "200")
        self.assertEqual(self.outside("http://other.example.test/"), "200")
        self.assertEqual(self.fetch(settings, "http://api.example.test/"), ("200", 0))
        self.assertEqual(self.fetch(settings, "http://api.example.test/", "--proxytunnel"),
                         ("200", 0))
        self.assertEqual(self.fetch(settings, "http://other.example.test/")[0], "403")
        self.assertEqual(self.fetch(settings, "http://api.example.test:443/")[0], "403")
        self.assertEqual(self.fetch(settings, f"http://{egress_lab.addresses.API}/")[0], "403")

    def test_without_the_proxy_there_is_no_network(self):
        settings = self.settings("net:connect:api.example.test:80")
        status, code = self.fetch(settings, f"http://{egress_lab.addresses.API}/",
                                  "--noproxy", "*")
        self.assertEqual(status, "000")
        self.assertNotEqual(code, 0)

    def test_a_name_does_not_lead_into_a_private_network(self):
        host = "private.example.test"
        self.assertEqual(self.outside(f"http://{host}/"), "200")
        closed = self.settings(f"net:connect:{host}:80")
        self.assertNotEqual(self.fetch(closed, f"http://{host}/")[0], "200")
        opened = self.settings(f"net:connect:{host}:80?private=true")
        self.assertEqual(self.fetch(opened, f"http://{host}/"), ("200", 0))
        for name in ("metadata.example.test", "loopback.example.test"):
            still = self.settings(f"net:connect:{name}:80?private=true")
            self.assertNotEqual(self.fetch(still, f"http://{name}/")[0], "200", name)

    def test_a_wildcard_is_without_its_apex(self):
        settings = self.settings("net:connect:*.example.test:80")
        self.assertEqual(self.fetch(settings, "http://api.example.test/"), ("200", 0))
        self.assertEqual(self.fetch(settings, "http://example.test/")[0], "403")

    def test_another_name_in_the_request_is_refused(self):
        settings = self.settings("net:connect:api.example.test:80")
        self.assertEqual(self.fetch(settings, "http://api.example.test/", "--header",
                                    "Host: other.example.test")[0], "421")

    def test_unenforced_requests_are_not_looked_at(self):
        grant = "net:connect:api.example.test:80?methods=GET"
        settings = self.settings(grant, accept=[grant])
        get, delete = (self.fetch(settings, "http://api.example.test/", "--request", method)
                       for method in ("GET", "DELETE"))
        self.assertEqual((get, delete), (("200", 0), ("200", 0)))


class Goldens(SrtCase):
    """srt takes every golden file of ours."""

    def test_srt_starts_with_each(self):
        paths = sorted(glob.glob(f"{launch.ROOT}/tests/export/*/srt.json"))
        self.assertGreater(len(paths), 5)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                settings = json.loads(json.load(file)["files"][0]["contents"])
            settings["filesystem"]["allowRead"].append(srt_package.PACKAGE)
            with self.subTest(path):
                done = self.finished(self.tree.file("settings.json", json.dumps(settings)),
                                     ["/usr/bin/echo", "started"])
                self.assertEqual((done.returncode, done.stdout), (0, b"started\n"),
                                 done.stderr.decode())


class Command(Case):
    """What the command prints where."""

    manifest = launch.server("fs:read:/srv/data/**", "net:connect:api.example.com:443")

    def test_the_file_goes_to_stdout_and_words_to_stderr(self):
        done = export(self.manifest, "--to", "toolhive")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["read"], ["/srv/data"])
        self.assertIn("not covered: exec\n", done.stderr)
        self.assertIn("note: ", done.stderr)

    def test_what_cannot_be_said_is_an_error_until_it_is_accepted(self):
        refused = export(self.manifest, "--to", "vscode")
        self.assertEqual((refused.returncode, refused.stdout), (4, ""))
        self.assertIn("ADAPTER_UNSUPPORTED", refused.stderr)
        words = ["--accept-unenforced", "fs:read:/srv/data/**", "--accept-unenforced",
                 "net:connect:api.example.com:443"]
        half = export(self.manifest, "--to", "vscode", *words[:2])
        self.assertEqual((half.returncode, half.stdout), (4, ""))
        done = export(self.manifest, "--to", "vscode", *words)
        self.assertEqual(done.returncode, 0)
        self.assertIn("unenforced: fs:read:/srv/data/**\n", done.stderr)

    def test_json_holds_the_file_and_what_it_does_not(self):
        done = export(self.manifest, "--to", "toolhive", "--json")
        self.assertEqual(done.stderr, "")
        artifact = json.loads(done.stdout)
        self.assertEqual(artifact["provenance"]["target"], "toolhive")
        self.assertEqual(artifact["unenforced"], [])
        self.assertIn("exec", artifact["notCovered"])
        self.assertIn("manifestHash", artifact["provenance"])
        json.loads(artifact["files"][0]["contents"])

    def test_output_names_a_file(self):
        path = self.tree.path("profile.json")
        done = export(self.manifest, "--to", "toolhive", "-o", path)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(json.loads(self.tree.text("profile.json"))["privileged"], False)
        again = export(self.manifest, "--to", "toolhive", "-o", path)
        self.assertEqual(again.returncode, 2)
        self.assertIn("exists", again.stderr)
        self.assertEqual(
            export(self.manifest, "--to", "toolhive", "-o", path, "--force").returncode, 0)
        self.tree.link("link.json", self.tree.file("elsewhere", "old"))
        linked = export(self.manifest, "--to", "toolhive", "--force", "-o",
                        self.tree.path("link.json"))
        self.assertEqual(linked.returncode, 2)
        self.assertEqual(self.tree.text("elsewhere"), "old")

    def test_output_that_cannot_be_written(self):
        nowhere = self.tree.path("no/where")
        for place, code, words in ((nowhere, 1, f"cannot write {nowhere}: No such file"),
                                   (self.tree.root, 2, "is a directory"),
                                   (self.tree.root + "/new/", 2, "is the name of a directory"),
                                   ("/dev/full", 2, "is no regular file")):
            with self.subTest(place=place):
                done = export(self.manifest, "--to", "toolhive", "--force", "-o", place)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)

    def test_what_is_read_is_never_replaced(self):
        """By whatever name, and not with --force either."""
        text = json.dumps(self.manifest)
        path = self.tree.file("g.json", text)
        os.link(path, self.tree.path("same.json"))
        for command in (["export", "--to", "toolhive"], ["report"], ["report", "--against", path]):
            for source in (path, self.tree.path("./same.json")):
                for force in ([], ["--force"]):
                    done = launch.capgate(*command, source, "-o", path, *force)
                    self.assertEqual(done.returncode, 2, (command, source, force))
                    self.assertIn("is the file that is read", done.stderr)
        with open(path, encoding="utf-8") as file:
            done = subprocess.run([launch.CAPGATE, "export", "-", "--to", "toolhive", "--force",
                                   "-o", path], stdin=file, capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.tree.text("g.json"), text)

    def test_options_that_a_format_does_not_take(self):
        for words in (["--to", "srt", "--", "node"], ["--to", "mcpb-meta", "--tool", "tool"],
                      ["--to", "toolhive", "--program", "/opt"], ["--to", "docker"], [],
                      ["--to", "srt", "--program", "relative"]):
            self.assertEqual(export(self.manifest, *words).returncode, 2, words)

    def test_the_manifest_comes_back_out_of_meta_with_its_hash(self):
        for path in sorted(glob.glob(f"{GOLDENS}/*/manifest.json")):
            folder = os.path.dirname(path)
            if "/bad-" in folder or folder.endswith("/seal-option"):  # none without --seal
                continue
            words = []
            if os.path.exists(f"{folder}/options.txt"):
                with open(f"{folder}/options.txt", encoding="utf-8") as file:
                    words = file.read().split()
            done = launch.capgate("export", path, "--to", "mcpb-meta", "--json", *words)
            self.assertEqual(done.returncode, 0, done.stdout)
            artifact = json.loads(done.stdout)
            held = json.loads(artifact["files"][0]["contents"])["dev.capgate/permissions"]
            again = export(held["manifest"], "--to", "mcpb-meta", "--json", *words)
            self.assertEqual(again.returncode, 0, again.stdout)
            for name in ("manifestHash", "policyHash"):
                self.assertEqual(json.loads(again.stdout)["provenance"][name],
                                 artifact["provenance"][name], path)


if __name__ == "__main__":
    unittest.main()
