"""capgate import: other people's formats become manifests that pass `check`, bundles are read by a
confined process, and bundles that programs could read differently are refused."""

import io
import json
import os
import resource
import stat
import struct
import subprocess
import unittest
import zipfile
import zlib

import launch
from cases import Case
from starters import started_by_user

SAMPLES = os.path.join(launch.ROOT, "tests/import/samples")
# Samples that allow what `check` reports: any host, any program, secrets next to any host.
WITH_FINDINGS = ("deno/command.txt", "gatekit/gatekit.yaml", "rampart/one.yaml",
                 "toolhive/open.json", "wassette/policy.yaml")
UNPACK = os.path.join(os.path.dirname(launch.CAPGATE), "capgate-unpack")
USAGE, UNREADABLE, REFUSED, UNENFORCEABLE = 2, 3, 4, 6

MANIFEST = {
    "manifest_version": "0.3", "name": "notes", "version": "1.0.0", "description": "Notes",
    "author": {"name": "Ada Example"},
    "server": {"type": "node", "entry_point": "index.js",
               "mcp_config": {"command": "node", "args": ["${__dirname}/index.js"],
                              "env": {"NOTES_TOKEN": "${user_config.token}"}}},
    "user_config": {"token": {"type": "string", "title": "T", "description": "T",
                              "sensitive": True}},
    "tools": [{"name": "search", "description": "Finds notes"}],
}


def samples():
    for directory, _, names in sorted(os.walk(SAMPLES)):
        for name in sorted(names):
            yield os.path.basename(directory), os.path.join(directory, name)


def bundle(entries=None, **options):
    """The bytes of a bundle. Names may come twice."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, text in entries or [("index.js", "1;"), ("manifest.json", json.dumps(MANIFEST))]:
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def changed(data, mark, at, value):
    """`data` with bytes of the first header of that mark replaced."""
    place = data.index(mark) + at
    return data[:place] + value + data[place + len(value):]


LOCAL, ENTRY, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"


class Stream(io.BytesIO):
    """Takes what is written, and cannot be wound back: sizes follow the data."""

    def seekable(self):
        return False

    def seek(self, *_):
        raise io.UnsupportedOperation()

    def tell(self):
        raise io.UnsupportedOperation()


def streamed(entries):
    out = Stream()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries:
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def deflated(data):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def with_a_hidden_manifest():
    """Who goes by the directory sees MANIFEST; who reads from the start sees another one first, in
    the bytes of an entry whose stream ends early."""
    stream = deflated(b"x")
    crc = zlib.crc32(b"x")
    inner = b'{"name": "inner"}'
    hidden = LOCAL + struct.pack("<HHHIIIIHH", 20, 0, 0, 0, zlib.crc32(inner), len(inner),
                                 len(inner), 13, 0) + b"manifest.json" + inner
    packed = stream + b"PK\7\10" + struct.pack("<III", crc, len(stream), 1) + hidden
    sizes = struct.pack("<III", crc, len(packed), 1)
    first = (LOCAL + struct.pack("<HHHI", 20, 8, 8, 0) + bytes(12) + struct.pack("<HH", 1, 0)
             + b"x" + packed + b"PK\7\10" + sizes)
    entry = (ENTRY + struct.pack("<HHHHI", 20, 20, 8, 8, 0) + sizes
             + struct.pack("<HHHHHII", 1, 0, 0, 0, 0, 0, 0) + b"x")
    rest = bundle([("manifest.json", json.dumps(MANIFEST))])
    directory, end = rest.index(ENTRY), rest.index(END)
    moved = changed(rest[directory:end], ENTRY, 42, struct.pack("<I", len(first)))
    body = first + rest[:directory]
    return body + entry + moved + END + struct.pack("<HHHHIIH", 0, 0, 2, 2, len(entry + moved),
                                                    len(body), 0)


def read_from_the_start(data):
    """The names that a program sees that knows no directory."""
    at, names = 0, []
    while data[at:at + 4] == LOCAL:
        flags, method = struct.unpack_from("<HH", data, at + 6)
        size, _, name, extra = struct.unpack_from("<IIHH", data, at + 18)
        start = at + 30 + name + extra
        names.append(data[at + 30:at + 30 + name].decode())
        at = start + size
        if flags & 8 and method == 8:
            reader = zlib.decompressobj(-15)
            reader.decompress(data[start:])
            at = len(data) - len(reader.unused_data)
            at += 16 if data[at:at + 4] == b"PK\7\10" else 12
    return names


def processor_seconds():
    """Of all processes that we have waited for: other than wall-clock time, the same when busy."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class ImportCase(Case):
    """Commands of a user who owns nothing but the tree."""

    uid = 0

    def capgate(self, *words, **options):
        def become():
            launch.become(self.uid)
        options.setdefault("timeout", launch.SECONDS)
        return subprocess.run([launch.CAPGATE, "import", *words], capture_output=True, check=False,
                              preexec_fn=become, cwd=self.tree.path("."), **options)

    def bytes_file(self, name, data):
        path = self.tree.file(name, "")
        with open(path, "wb") as file:
            file.write(data)
        return path

    def assert_refused(self, data, words, code=REFUSED):
        done = self.capgate(self.bytes_file("x.mcpb", data))
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertEqual(done.stdout, b"")
        self.assertIn(words, done.stderr.decode())
        self.assertIn("help:", done.stderr.decode())


@started_by_user("test_every_sample_becomes_a_manifest_that_passes_check",
                 "test_a_new_file_is_never_written_over_an_old_one")
class Formats(ImportCase):

    def test_every_sample_becomes_a_manifest_that_passes_check(self):
        seen = set()
        for name, path in samples():
            with self.subTest(path=path):
                done = self.capgate(path, "--json")
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertEqual(done.stderr, b"")
                answer = json.loads(done.stdout)
                self.assertEqual(answer["schemaVersion"], 1)
                self.assertEqual(answer["format"], name)
                self.assertEqual(set(answer), {"schemaVersion", "format", "manifest", "losses",
                                               "command", "variables"})
                for loss in answer["losses"]:
                    self.assertIn(loss["kind"], ("unsaid", "assumed", "dropped"))
                words = []
                for variable in answer["variables"]:
                    value = "/home/me" if variable == "HOME" else "/srv/value"
                    words += ["--set", f"{variable}={value}"]
                compiled = launch.capgate("check", "-", *words, text=json.dumps(answer["manifest"]))
                told = 5 if os.path.relpath(path, SAMPLES) in WITH_FINDINGS else 0
                self.assertEqual(compiled.returncode, told, compiled.stderr)
                seen.add(name)
        self.assertLessEqual({"mcpb", "server-json"}, seen)

    def test_the_manifest_is_data_and_the_report_is_words(self):
        path = self.tree.file("manifest.json", json.dumps(MANIFEST))
        done = self.capgate(path)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout)["serverCapabilities"],
                         ["env:inject:NOTES_TOKEN", "fs:read:${BUNDLE}/**"])
        report = done.stderr.decode()
        for words in ("read as mcpb: notes 1.0.0", "not said by the source", "assumed:",
                      "bind with --set NAME=VALUE: BUNDLE",
                      "the source starts it with: node ${BUNDLE}/index.js"):
            self.assertIn(words, report)
        again = self.capgate("-", input=json.dumps(MANIFEST).encode())
        self.assertEqual(again.stdout, done.stdout)

    def test_a_new_file_is_never_written_over_an_old_one(self):
        path = self.tree.file("manifest.json", json.dumps(MANIFEST))
        self.tree.directory("out")
        os.chmod(self.tree.path("out"), 0o777)
        target = self.tree.path("out/server.json")
        done = self.capgate(path, "-o", target)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr.decode())
        with open(target, encoding="utf-8") as file:
            written = file.read()
        self.assertEqual(json.loads(written)["name"], "notes")
        self.assertEqual(self.capgate(path, "-o", target).returncode, USAGE)
        self.assertEqual(self.capgate(path, "-o", target, "--force").returncode, 0)
        self.assertEqual(os.listdir(self.tree.path("out")), ["server.json"])
        done = self.capgate(path, "-o", path, "--force")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn(b"is the file that is read", done.stderr)
        done = self.capgate(path, "-o", self.tree.path("no/where"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No such file or directory", done.stderr)

    def test_a_server_that_is_not_there_is_not_passed_over(self):
        samples = {"mcpb": "notes-node-0.3.json", "toolhive": "tracker.json", "srt": "build.json",
                   "wassette": "policy.yaml", "deno": "command.txt", "gatekit": "single.yaml",
                   "rampart": "one.yaml", "docker-catalog": "entry.yaml"}
        for folder, name in samples.items():
            path = os.path.join(SAMPLES, folder, name)
            with self.subTest(path=path):
                named = json.loads(self.capgate(path, "--json").stdout)["manifest"]["name"]
                done = self.capgate(path, "--server", "nobody")
                self.assertEqual((done.returncode, done.stdout), (USAGE, b""), done.stderr)
                self.assertIn(b'this one is not "nobody"', done.stderr)
                self.assertEqual(self.capgate(path, "--server", named).returncode, 0)

    def test_what_is_no_foreign_format_is_told_where_it_belongs(self):
        for text, words in (
                (json.dumps(launch.server("fs:read:/srv/x")), "capgate check"),
                ('{"mcpServers": {"a": {"command": "node"}}}', "capgate wrap"),
                ('{"servers": {"a": {"command": ["node"]}}}', "capgate run --profile NAME"),
                ('{"hello": 1}', "--from FORMAT")):
            done = self.capgate(self.tree.file("x.json", text))
            self.assertEqual(done.returncode, REFUSED, text)
            self.assertEqual(done.stdout, b"")
            self.assertIn(words, done.stderr.decode())

    def test_exit_codes(self):
        good = self.tree.file("good.json", json.dumps(MANIFEST))
        later = self.tree.file("later.json", json.dumps({**MANIFEST, "manifest_version": "0.9"}))
        broken = self.tree.file("broken.json", '{"manifest_version": "0.3",}')
        for words, code in (([], USAGE), ([good, "--from", "tar"], USAGE),
                            ([good, "-o", ""], USAGE), (["/nowhere"], UNREADABLE),
                            ([broken], UNREADABLE), ([later], REFUSED),
                            ([good, "--from", "server-json"], REFUSED)):
            done = self.capgate(*words)
            self.assertEqual(done.returncode, code, (words, done.stderr.decode()))
            self.assertEqual(done.stdout, b"")
        self.assertIn('version "0.9" of MCPB is not known', self.capgate(later).stderr.decode())

    def test_foreign_text_does_nothing_to_a_terminal(self):
        hostile = {**MANIFEST, "\x1b[2J": 1, "name": "a\u202eb"}
        done = self.capgate(self.tree.file("x.json", json.dumps(hostile)))
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("\x1b", done.stderr.decode())
        self.assertNotIn("\u202e", done.stderr.decode())


class NeverWider(ImportCase):
    """Sources that once became manifests that grant more than they do."""

    def imported(self, text):
        path = self.tree.file("x.txt", text) if isinstance(text, str) else \
            self.tree.file("x.json", json.dumps(text))
        done = self.capgate(path, "--json")
        return done, json.loads(done.stdout)

    def granted(self, text):
        done, answer = self.imported(text)
        self.assertEqual(done.returncode, 0, done.stdout.decode())
        return answer["manifest"]["serverCapabilities"], answer["losses"]

    def test_relative_paths_start_where_the_program_does(self):
        for text, words in (
                ({"filesystem": {"allowWrite": ["/srv/a"], "denyRead": ["secrets"]}},
                 "a relative path starts where srt is started"),
                ({"filesystem": {"allowWrite": ["/srv/a"], "denyWrite": ["infra"]}},
                 "a relative path starts where srt is started"),
                ({"filesystem": {"allowWrite": ["/srv/a"], "denyRead": ["**/*.key"]}},
                 "a relative path starts where srt is started"),
                ("deno run --allow-read=/srv/proj --deny-read=secrets main.ts",
                 "a relative path starts where Deno is started"),
                ({"servers": {"a": {"command": "a", "sandboxEnabled": True}}, "sandbox": {
                    "filesystem": {"allowWrite": ["/srv/a"], "denyRead": ["secrets"]}}},
                 "a relative path starts where the server is started")):
            done, _ = self.imported(text)
            self.assertEqual(done.returncode, REFUSED, text)
            self.assertIn(words, done.stdout.decode())
        done, answer = self.imported({"filesystem": {"allowWrite": ["."], "denyRead": [".env"]}})
        self.assertEqual(answer["variables"], ["WORKING_DIRECTORY"])
        manifest = json.dumps(answer["manifest"])
        here = launch.capgate("check", "-", "--set", "WORKING_DIRECTORY=/srv/a", text=manifest)
        self.assertEqual(here.returncode, 0, here.stderr)
        everything = launch.capgate("check", "-", "--set", "WORKING_DIRECTORY=/", text=manifest)
        self.assertEqual(everything.returncode, REFUSED)

    def test_a_deny_with_another_variable_is_not_passed_over(self):
        def editor(**filesystem):
            return {"servers": {"a": {"command": "a", "sandboxEnabled": True}},
                    "sandbox": {"filesystem": filesystem}}
        done, _ = self.imported(editor(allowRead=["${workspaceFolder}"],
                                       denyRead=["/home/u/proj/private"]))
        self.assertEqual(done.returncode, REFUSED)
        self.assertEqual(self.granted(editor(allowRead=["${workspaceFolder}"], denyRead=["/"]))[0],
                         ["fs:read:${WORKSPACE_FOLDER}"])

    def test_volumes(self):
        got, losses = self.granted({"image": "x", "volumes": ["/srv/data"], "tools": []})
        self.assertEqual(got, [])
        self.assertIn("volumes", [loss["subject"] for loss in losses])
        done, _ = self.imported({"image": "x", "volumes": ["/srv/a:/a:readonly"], "tools": []})
        self.assertEqual(done.returncode, REFUSED)

    def test_a_constant_is_not_the_secret_of_the_caller(self):
        secret, level = "AWS_SECRET_ACCESS_KEY", "LOG_LEVEL"
        env = {secret: "unused", level: "debug"}
        config = {"command": "node", "args": [], "env": env}
        entry = {"name": "a.b/c", "version": "1", "packages": [
            {"registryType": "npm", "identifier": "p", "transport": {"type": "stdio"},
             "environmentVariables": [{"name": name, "value": value}
                                      for name, value in env.items()]}]}
        sources = (
            {**MANIFEST, "server": {**MANIFEST["server"], "mcp_config": config}},
            {"image": "x", "tools": [],
             "env": [{"name": name, "value": value} for name, value in env.items()]},
            {"servers": {"a": {"command": "a", "sandboxEnabled": True, "env": env}}},
            {"proxy": {"upstream": {"command": "x", "env": env}}},
            {"mcp": {"servers": {"a": {"command": ["x"], "env": env,
                                       "sandbox": {"read": ["/srv/a"]}}}}},
            entry)
        for source in sources:
            got, losses = self.granted(source)
            self.assertIn(f"env:read:{level}", got, source)
            self.assertNotIn(secret, " ".join(got), source)
            told = {kind: " ".join(loss["message"] for loss in losses if loss["kind"] == kind)
                    for kind in ("assumed", "dropped")}
            self.assertIn("your own secret", told["dropped"], source)
            self.assertIn(f'"{level}" to a value of its own, which a manifest does not hold: the '
                          "server will get YOUR value", told["assumed"], source)

    def test_what_stands_beside_something_else(self):
        sandbox = {"read": ["/srv/a"]}
        for source in (
                {"mcp": {"sandbox": sandbox,
                         "servers": {"a": {"command": ["x"], "sandbox": sandbox}}}},
                {"proxy": {"upstream": {"command": "x"}, "upstreams": [{"name": "a"}]}},
                {"proxy": {"upstreams": [{"name": "a", "command": "x"},
                                         {"name": "a", "command": "y"}]}},
                {"version": "1.0", "permissions": {"environment": {
                    "allow": [{"key": "AWS_KEY"}], "deny": [{"key": "AWS_*"}]}}}):
            self.assertEqual(self.imported(source)[0].returncode, REFUSED, source)

    def test_udp_alone_opens_no_host(self):
        got, losses = self.granted({"name": "x", "network": {"outbound": {
            "allow_host": ["a.example.com"], "allow_port": [443], "allow_transport": ["udp"]}}})
        self.assertEqual(got, [])
        self.assertIn("network.outbound.allow_transport", [loss["subject"] for loss in losses])


@started_by_user("test_a_bundle_is_read_like_its_manifest", "test_from_standard_input_only_as_a_file",
                 "test_links")
class Bundles(ImportCase):

    def test_a_bundle_is_read_like_its_manifest(self):
        alone = self.capgate(self.tree.file("manifest.json", json.dumps(MANIFEST)))
        for name in ("notes.mcpb", "notes.dxt", "notes.zip"):
            done = self.capgate(self.bytes_file(name, bundle()))
            self.assertEqual(done.returncode, 0, done.stderr.decode())
            self.assertEqual(done.stdout, alone.stdout)

    def test_from_standard_input_only_as_a_file(self):
        path = self.bytes_file("x.mcpb", bundle())
        with open(path, "rb") as file:
            self.assertEqual(self.capgate("-", stdin=file).returncode, 0)
        done = self.capgate("-", input=bundle())
        self.assertEqual(done.returncode, UNREADABLE)
        self.assertIn("a bundle is read from a file", done.stderr.decode())

    def test_a_manifest_of_something_else_is_refused(self):
        self.assert_refused(bundle([("manifest.json", "{}")]), "manifest_version is missing")

    def test_mistakes_stand_in_the_manifest_of_the_bundle(self):
        done = self.capgate(self.bytes_file("x.mcpb", bundle([("manifest.json", '{"a": }')])))
        self.assertEqual(done.returncode, UNREADABLE)
        self.assertIn("x.mcpb/manifest.json:1:7", done.stderr.decode())

    def test_a_bundle_is_not_another_format(self):
        done = self.capgate("--from", "server-json", self.bytes_file("x.mcpb", bundle()))
        self.assertEqual(done.returncode, USAGE)

    def test_a_signature_is_told_but_not_taken_for_checked(self):
        signature = b"MCPB_SIG_V1" + struct.pack("<I", 3) + b"sig" + b"MCPB_SIG_END"
        done = self.capgate(self.bytes_file("x.mcpb", bundle() + signature))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("which nobody checked here", done.stderr.decode())

    def test_names_that_could_be_the_manifest(self):
        good = ("manifest.json", json.dumps(MANIFEST))
        for entries, words in (
                ([("index.js", "")], "has no manifest.json at its root"),
                ([("inner/manifest.json", "{}")], "has no manifest.json at its root"),
                ([good, good], "has two entries of the name manifest.json"),
                ([good, ("Manifest.JSON", "{}")], "some systems take for manifest.json"),
                ([("./manifest.json", "{}")], "spelled in a roundabout way"),
                ([good, ("/etc/passwd", "")], "has an absolute name"),
                ([good, ("../../x", "")], "leads out of the bundle")):
            with self.subTest(words=words):
                self.assert_refused(bundle(entries), words)

    def test_links(self):
        """Whoever unpacks `x -> .` and x/manifest.json has another manifest."""
        def packed(*entries):
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text, mode in entries:
                    info = zipfile.ZipInfo(name)
                    info.external_attr = mode << 16
                    archive.writestr(info, text, zipfile.ZIP_DEFLATED)
            return out.getvalue()
        link, file = stat.S_IFLNK | 0o777, stat.S_IFREG | 0o644
        good = ("manifest.json", json.dumps(MANIFEST), file)
        self.assert_refused(packed(("manifest.json", "other.json", link), ("other.json", "{}", file)),
                            "has a manifest.json that is a link")
        self.assert_refused(packed(good, ("x", ".", link), ("x/manifest.json", "{}", file)),
                            'has entries below a link: "x"')
        harmless = packed(good, ("bin/x", "../y.js", link), ("bin/x.js", "", file))
        self.assertEqual(self.capgate(self.bytes_file("l.mcpb", harmless)).returncode, 0)

    def test_archives_that_say_two_things(self):
        data = bundle([("manifest.json", json.dumps(MANIFEST)), ("x", "y")])
        second, last = data.index(LOCAL, 1), data.rindex(ENTRY)
        for hostile, words in (
                (b"not a zip", "is no zip archive"),
                (b"#!/bin/sh\n" + data, "not where its end says"),
                (data + b"tail", "something follows its end"),
                (data[:second] + b"PK\3\4" + data[second:], "not where its end says"),
                (changed(data, ENTRY, 42, struct.pack("<I", second)), "before its first entry"),
                (data[:last + 42] + bytes(4) + data[last + 46:], "overlap"),
                (changed(data, LOCAL, 30, b"MANIFEST.JSON"), "says two things"),
                (changed(data, ENTRY, 8, b"\1\0"), "is encrypted"),
                (changed(data, ENTRY, 20, b"\xff\xff\xff\xff"), "zip64"),
                (changed(data, END, 4, b"\1\0"), "several parts"),
                (changed(data, ENTRY, 16, b"\0\0\0\0"), "says two things")):
            with self.subTest(words=words):
                self.assert_refused(hostile, words)

    def test_an_archive_that_was_written_into_a_pipe(self):
        entries = [("index.js", "1;" * 100000), ("manifest.json", json.dumps(MANIFEST))]
        data = streamed(entries)
        self.assertEqual(struct.unpack_from("<H", data, 6)[0] & 8, 8, "sizes follow the data")
        self.assertEqual(read_from_the_start(data), ["index.js", "manifest.json"])
        done = self.capgate(self.bytes_file("x.mcpb", data))
        self.assertEqual(done.returncode, 0, done.stderr.decode())

    def test_no_manifest_is_hidden_from_who_goes_by_the_directory(self):
        data = with_a_hidden_manifest()
        # What makes it an attack: two honest programs see two things.
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            self.assertEqual(json.loads(archive.read("manifest.json"))["name"], "notes")
        self.assertEqual(read_from_the_start(data)[:2], ["x", "manifest.json"])
        self.assert_refused(data, 'is not packed as it says: "x"')

    def test_no_entry_has_a_second_name(self):
        for names, words in (([b"index.js"], None), ([b"index.js", b"manifest.json"], "second name"),
                             ([b"manifest.json"], "second name")):
            extra = b"".join(struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"index.js"))
                             + name for name in names)
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w") as archive:
                info = zipfile.ZipInfo("index.js")
                info.extra = extra
                archive.writestr(info, "1;")
                archive.writestr(zipfile.ZipInfo("manifest.json"), json.dumps(MANIFEST))
            data = out.getvalue()
            with self.subTest(names=names):
                self.assertEqual(data.count(extra), 2)
                if words is None:
                    done = self.capgate(self.bytes_file("x.mcpb", data))
                    self.assertEqual(done.returncode, 0, done.stderr.decode())
                else:
                    self.assert_refused(data, words)
                    # In one of the two headers only.
                    harmless = struct.pack("<HH", 0xcafe, len(extra) - 4) + bytes(len(extra) - 4)
                    self.assert_refused(data.replace(extra, harmless, 1), words)
                    kept = data.rindex(extra)
                    self.assert_refused(data[:kept] + harmless + data[kept + len(extra):], words)

    def test_a_script_of_deno(self):
        path = self.tree.file("fetch.ts", "#!/usr/bin/env -S deno run --allow-net=a.example.com:443\n"
                                          "const x: {y: string} = {y: `[`};\n")
        done = self.capgate(path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"net:connect:a.example.com:443", done.stdout)

    def test_bombs(self):
        self.assert_refused(bundle([("manifest.json", " " * (1 << 20) + "{}")]), "more than 1 MiB")
        small = bundle([("manifest.json", " " * (50 << 20))])
        size = struct.pack("<I", 100)
        lying = changed(changed(small, LOCAL, 22, size), ENTRY, 24, size)
        self.assert_refused(lying, "not packed as it says")
        # Nothing else is unpacked, however much it would be.
        entries = [("big", " " * (200 << 20)), ("manifest.json", json.dumps(MANIFEST))]
        self.assertEqual(self.capgate(self.bytes_file("b.mcpb", bundle(entries))).returncode, 0)

    def test_a_large_bundle_is_quick(self):
        """A gigabyte of data, which is a hole of the file, before a small manifest."""
        entries = [("data.bin", b""), ("manifest.json", json.dumps(MANIFEST))]
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name, text in entries:
                archive.writestr(zipfile.ZipInfo(name), text)
        data = out.getvalue()
        size = 1 << 30
        second, directory, end = data.index(LOCAL, 1), data.index(ENTRY), data.index(END)
        first = changed(data[:second], LOCAL, 18, struct.pack("<II", size, size))
        entry = changed(data[directory:], ENTRY, 20, struct.pack("<II", size, size))
        place = entry.index(ENTRY, 1)
        entry = entry[:place + 42] + struct.pack("<I", second + size) + entry[place + 46:]
        entry = changed(entry, END, 16, struct.pack("<I", directory + size))
        self.assertGreater(end, directory)
        path = self.bytes_file("large.mcpb", first)
        with open(path, "r+b") as file:
            file.seek(second + size)
            file.write(data[second:directory] + entry)
        before = processor_seconds()
        done = self.capgate(path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertLess(processor_seconds() - before, 1, "reading or hashing it all takes longer")

    def test_many_entries(self):
        entries = [(f"node_modules/{i}/index.js", "") for i in range(20000)]
        entries.append(("manifest.json", json.dumps(MANIFEST)))
        self.assertEqual(self.capgate(self.bytes_file("many.mcpb", bundle(entries))).returncode, 0)


class Reader(ImportCase):

    def test_it_needs_its_program(self):
        """A copy of capgate alone, and one beside a reader that others can write."""
        self.tree.directory("bin")
        copy = self.tree.path("bin/capgate")
        path = self.bytes_file("x.mcpb", bundle())
        subprocess.run(["cp", launch.CAPGATE, copy], check=True)
        done = subprocess.run([copy, "import", path], capture_output=True, check=False)
        self.assertEqual(done.returncode, UNENFORCEABLE)
        self.assertIn(b"reading a bundle needs", done.stderr)
        subprocess.run(["cp", UNPACK, self.tree.path("bin/capgate-unpack")], check=True)
        os.chmod(self.tree.path("bin/capgate-unpack"), 0o777)
        done = subprocess.run([copy, "import", path], capture_output=True, check=False)
        self.assertEqual(done.returncode, UNENFORCEABLE)
        self.assertIn(b"can write", done.stderr)
        os.chmod(self.tree.path("bin/capgate-unpack"), 0o755)
        done = subprocess.run([copy, "import", path], capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_reads_nothing_but_regular_files(self):
        read, write = os.pipe()
        os.write(write, bundle())
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            done = subprocess.run([UNPACK], stdin=pipe, capture_output=True, check=False)
        self.assertEqual(done.stdout, b"ris no regular file")

    def test_without_confinement_nothing_is_read(self):
        """Where the kernel refuses what it asks for, it says so and has read no byte."""
        path = self.bytes_file("x.mcpb", bundle())
        with open(path, "rb") as file:
            done = subprocess.run(["/usr/bin/prlimit", "--nofile=3:3", UNPACK], stdin=file,
                                  capture_output=True, check=False)
        self.assertEqual(done.stdout[:1], b"u", done.stdout)
        self.assertNotIn(b"notes", done.stdout)

    def test_it_links_nothing_and_is_no_one_elses(self):
        info = os.stat(UNPACK)
        self.assertEqual(stat.S_IMODE(info.st_mode) & 0o022, 0)
        with open(UNPACK, "rb") as file:
            self.assertNotIn(b"libz.so", file.read())


if __name__ == "__main__":
    unittest.main()
