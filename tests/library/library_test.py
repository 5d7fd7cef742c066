"""libcapgate as it is installed: programs in C++, C and Python find it, link it and get from it the
very bytes that `capgate compile` prints.

CAPGATE is the release program; the library is installed from the same build into a directory of the
test's own."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAPGATE = pathlib.Path(os.environ.get("CAPGATE", ROOT / "build/release/bin/capgate"))
BUILD = CAPGATE.parent.parent
GOLDEN = ROOT / "tests/golden"
EXAMPLES = ROOT / "examples/library"
SECONDS = 300
SUCCESS = b'{"ok":true,"artifact":'
CXX = ["g++", "clang++-19"]
EXPORTED = re.compile(r"capgate_(call|free|version)|_ZNK?7capgate2v0\w+")
# What `capgate compile` calls an option, and what a request does.
OPTIONS = {"--tool": "tool", "--user": "user", "--arch": "arch", "--seal": "seal",
           "--writable-root": "writableRoot", "--program": "programs",
           "--accept-unenforced": "acceptUnenforced", "--image": "image",
           "--broker-image": "brokerImage", "--rootful": "rootful", "--egress-dir": "egressDir",
           "--egress-port": "egressPort", "--egress-target": "egressTarget",
           "--script": "script", "--network-policy": "networkPolicy"}
REPEATABLE = {"--program", "--accept-unenforced"}
# What a request says in another way, and what is for people.
OTHER_WORDS = {"--target", "--set", "--validators", "--pretty", "--explain", "--json", "--help",
               "--output"}
# A string of JSON holds text, and a request's validators are not a file of their own.
NO_REQUEST = {"bad-json-invalid-utf8", "bad-json-overlong-utf8", "bad-json-utf16",
              "bad-validators-shape"}


def run(*command, **options):
    """The finished command, whose failure is the test's."""
    done = subprocess.run([str(word) for word in command], capture_output=True, timeout=SECONDS,
                          check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout.decode()}{done.stderr.decode()}")
    return done.stdout


def words_of(folder, target=None):
    files = ["options.txt"] + ([f"{target}.options.txt", f"../{target}.options.txt"] if target
                               else [])
    return [word for name in files if (folder / name).exists()
            for word in (folder / name).read_text().splitlines() if word]


def request_of(folder, words, target):
    """What asks the library for the same as these words ask the program."""
    path = next(folder.glob("manifest.*"))
    options = {}
    if "--" in words:
        at = words.index("--")
        words, options["command"] = words[:at], words[at + 1:]
    for word in words:
        name, _, value = word.partition("=")
        if name == "--target":
            target = value
        elif name == "--set":
            variable, _, bound = value.partition("=")
            options.setdefault("variables", {}).setdefault(variable, []).append(bound)
        elif name == "--validators":
            options["validators"] = json.loads((folder / value).read_text())["validators"]
        elif name in REPEATABLE:
            options.setdefault(OPTIONS[name], []).append(value)
        elif name == "--egress-port":
            options[OPTIONS[name]] = int(value)
        else:
            options[OPTIONS[name]] = value if value else True
    return {"manifest": path.read_text(), "name": path.name, "target": target or "bwrap",
            "options": options}


def capgate_compile(folder, words, *more):
    path = next(folder.glob("manifest.*"))
    return subprocess.run([CAPGATE, "compile", path.name, *more, *words], cwd=folder, check=False,
                          capture_output=True, timeout=SECONDS)


class LibraryCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="capgate-library-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.prefix = cls.directory / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "library")
        cls.library = next(cls.prefix.rglob("libcapgate.so.0"))
        cls.libraries = cls.library.parent
        cls.version = run(CAPGATE, "version").decode().split()[1]
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": str(cls.libraries),
                           "PKG_CONFIG_PATH": str(cls.libraries / "pkgconfig"),
                           "CAPGATE_LIBRARY": str(cls.library)}

    def flags(self, *options):
        return run("pkg-config", *options, "capgate", env=self.environment).decode().split()

    def assert_prints_what_capgate_prints(self, *command):
        """The program's output for a manifest is the CLI's, for each target that needs no more."""
        folder = GOLDEN / "github"
        for target in ("apparmor", "bwrap", "docker", "plan", "podman", "worker"):
            expected = capgate_compile(folder, [f"--target={target}"]).stdout
            self.assertNotEqual(expected, b"", target)
            self.assertEqual(run(*command, "manifest.json", target, cwd=folder,
                                 env=self.environment), expected, target)


def targets():
    return [target["name"] for target in json.loads(run(CAPGATE, "targets", "--json"))]


class Installed(LibraryCase):
    def test_holds_the_library_and_nothing_else(self):
        names = sorted(path.name for path in self.prefix.rglob("*") if not path.is_dir())
        self.assertEqual(names, [
            "capgate-config-version.cmake", "capgate-config.cmake", "capgate-targets-release.cmake",
            "capgate-targets.cmake", "capgate.h", "capgate.pc", "capgate_c.h", "libcapgate.a",
            "libcapgate.so", "libcapgate.so.0", f"libcapgate.so.{self.version}"])

    def test_names_no_place_of_the_build(self):
        for path in self.prefix.rglob("*"):
            if path.is_file():
                self.assertFalse(str(ROOT).encode() in path.read_bytes(), path)

    def test_exports_the_interface_and_nothing_else(self):
        for words in (["-D", self.library], [self.libraries / "libcapgate.a"]):
            lines = run("nm", "--defined-only", "--extern-only", *words).decode().splitlines()
            names = {line.split()[2] for line in lines if len(line.split()) == 3}
            self.assertIn("capgate_call", names)
            self.assertEqual([name for name in names if not EXPORTED.fullmatch(name)], [])
            self.assertLess(len(names), 40, "not an interface any more")

    def test_needs_the_language_runtime_and_nothing_else(self):
        dynamic = run("readelf", "--dynamic", self.library).decode()
        self.assertEqual(set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) -
                         {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6",
                          "ld-linux-x86-64.so.2"}, set())
        self.assertRegex(dynamic, r"SONAME.*\[libcapgate\.so\.0\]")
        self.assertNotIn("TEXTREL", dynamic)
        self.assertIn("BIND_NOW", dynamic)

    def test_headers_stand_alone(self):
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror",
                  "-fsyntax-only", f"-I{self.prefix}/include"]
        for compiler in CXX:
            for standard in ("20", "23"):
                for header in ("capgate.h", "capgate_c.h"):
                    run(compiler, f"-std=c++{standard}", *strict, "-x", "c++", "-",
                        input=f"#include <capgate/{header}>\n".encode())
        for compiler in ("gcc", "clang-19"):
            run(compiler, "-std=c99", *strict, "-x", "c", "-",
                input=b"#include <capgate/capgate_c.h>\n")

    def test_programs_are_a_component_of_their_own(self):
        prefix = self.directory / "programs"
        run("cmake", "--install", BUILD, "--prefix", prefix, "--component", "programs")
        self.assertEqual(sorted(path.name for path in prefix.rglob("*") if path.is_file()),
                         ["capgate", "capgate-broker", "capgate-broker-tls", "capgate-store",
                          "capgate-unpack"])


class Consumers(LibraryCase):
    def build_with_cmake(self, language, *options):
        build = self.directory / f"cmake-{language}-{len(list(self.directory.iterdir()))}"
        run("cmake", "-S", EXAMPLES / language, "-B", build, "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)
        run("cmake", "--build", build)
        return build / "compile"

    def test_cpp_with_find_package(self):
        for compiler in CXX:
            with self.subTest(compiler):
                program = self.build_with_cmake("cpp", f"-DCMAKE_CXX_COMPILER={compiler}")
                self.assertNotIn(b"libcapgate", run("readelf", "--dynamic", program))
                self.assert_prints_what_capgate_prints(program)

    def test_cpp_with_pkg_config(self):
        for compiler in CXX:
            for standard in ("20", "23"):
                with self.subTest(compiler, standard=standard):
                    program = self.directory / f"pkg-{compiler}-{standard}"
                    run(compiler, f"-std=c++{standard}", EXAMPLES / "cpp/main.cc", "-o", program,
                        *self.flags("--cflags", "--libs"))
                    self.assertIn(b"libcapgate.so.0", run("readelf", "--dynamic", program))
                    self.assert_prints_what_capgate_prints(program)

    def test_cpp_shows_mistakes(self):
        program = self.build_with_cmake("cpp")
        folder = GOLDEN / "bad-fs-relative"
        done = subprocess.run([program, "manifest.json"], cwd=folder, capture_output=True,
                              text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("CAP_FS_RELATIVE", done.stderr)

    def test_c(self):
        static = self.directory / "c-static"
        run("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", EXAMPLES / "c/main.c", "-o", static,
            *self.flags("--cflags"), self.libraries / "libcapgate.a", "-lstdc++", "-lm")
        for program in (self.build_with_cmake("c"), static):
            answer = run(program, "manifest.json", "docker", cwd=GOLDEN / "github",
                         env=self.environment)
            expected = capgate_compile(GOLDEN / "github", ["--target=docker"]).stdout
            self.assertEqual(answer, SUCCESS + expected.rstrip(b"\n") + b"}\n")

    def test_python(self):
        done = run(sys.executable, EXAMPLES / "python/compile.py", "manifest.json", "docker",
                   cwd=GOLDEN / "github", env=self.environment)
        expected = json.loads(capgate_compile(GOLDEN / "github", ["--target=docker"]).stdout)
        self.assertEqual(done.decode().splitlines(), expected["argv"])

    def test_the_archive_goes_into_another_shared_library(self):
        """With names that the program has, too: ours are local and do not meet them."""
        source = self.directory / "plugin.cc"
        source.write_text('#include <capgate/capgate_c.h>\n'
                          'extern "C" { void yaml_parser_parse() { __builtin_abort(); }\n'
                          'void SHA256Init() { __builtin_abort(); }\n'
                          'char* ask(const char* text, size_t size, size_t* length)'
                          ' { return capgate_call(text, size, length); } }\n')
        for compiler, linker in (("g++", "bfd"), ("clang++-19", "lld")):
            plugin = self.directory / f"plugin-{linker}.so"
            run(compiler, "-shared", "-fPIC", f"-fuse-ld={linker}", source, "-o", plugin,
                f"-I{self.prefix}/include", self.libraries / "libcapgate.a")
            loaded = ctypes.CDLL(str(plugin))
            loaded.ask.restype = ctypes.c_char_p
            request = b'{"manifest":"name: a\\nversion: b\\ntools: []"}'
            answer = loaded.ask(request, len(request), None)
            self.assertTrue(answer.startswith(SUCCESS), answer)


class Goldens(LibraryCase):
    """Every golden case, through the C interface from Python."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["CAPGATE_LIBRARY"] = str(cls.library)
        sys.path.insert(0, str(EXAMPLES / "python"))
        import capgate
        cls.capgate = capgate

    def answer(self, folder, words, target=None):
        return self.capgate.call_raw(json.dumps(request_of(folder, words, target)).encode())

    def test_the_library_is_of_the_same_version(self):
        self.assertEqual(self.capgate.version(), self.version)
        self.assertEqual(self.flags("--modversion"), [self.version])
        self.assertEqual(self.capgate.targets(), targets())

    def test_every_option_of_compile_has_a_key(self):
        """An option that the command line gets, the library gets, too: LowerOptions, request.cc."""
        usage = run(CAPGATE, "compile", "--help").decode()
        named = set(re.findall(r"(?m)^ +(--[a-z-]+)", usage))
        self.assertIn("--program", named)
        self.assertEqual(named - OPTIONS.keys() - OTHER_WORDS, set())
        for name, key in OPTIONS.items():
            if name in named:
                request = {"manifest": "", "options": {key: {}}}
                answer = self.capgate.call_raw(json.dumps(request).encode())
                self.assertNotIn(b"unknown key", answer, name)

    def test_artifacts_have_the_same_bytes(self):
        compared = 0
        for folder in sorted(GOLDEN.glob("[!b]*/")) + [GOLDEN / "brave-search"]:
            for target in targets():
                words = words_of(folder, target)
                done = capgate_compile(folder, [f"--target={target}", *words])
                with self.subTest(folder.name, target=target):
                    answer = self.answer(folder, words, target)
                    if done.returncode == 0:
                        self.assertEqual(answer, SUCCESS + done.stdout.rstrip(b"\n") + b"}")
                        compared += 1
                    else:
                        self.assert_same_mistakes(answer, folder, [f"--target={target}", *words])
        self.assertGreater(compared, 40)

    def test_refusals_have_the_same_diagnostics(self):
        compared = 0
        for folder in sorted(GOLDEN.glob("bad-*")):
            if folder.name in NO_REQUEST:
                continue
            answer = self.answer(folder, words_of(folder))
            with self.subTest(folder.name):
                self.assert_same_mistakes(answer, folder, words_of(folder))
                compared += 1
        self.assertGreater(compared, 140)

    def assert_same_mistakes(self, answer, folder, words):
        done = capgate_compile(folder, words, "--json")
        found = json.loads(answer)["diagnostics"]
        if done.returncode == 2:
            self.assertEqual([one["code"] for one in found], ["OPTION_INVALID"])
            return
        keys = ("code", "message", "help", "file", "line", "column")
        said = [{key: one[key] for key in keys if key in one}
                for one in json.loads(done.stdout)["diagnostics"]]
        self.assertEqual(found, said)


if __name__ == "__main__":
    unittest.main()
