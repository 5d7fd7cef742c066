"""worker: a real Node keeps what worker.json says, started exactly as printed."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from launch import NODE, SECONDS, capgate

PROBE = """
import fs from 'node:fs';
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';
const attempts = {
  read: (path) => fs.readFileSync(path, 'utf8'),
  write: (path) => fs.writeFileSync(path, 'x') ?? 'ok',
  link: (path) => fs.symlinkSync('/etc/passwd', path) ?? 'ok',
  spawn: () => spawnSync('/bin/true').status,
  worker: () => { new Worker('', { eval: true }); return 'ok'; },
  env: () => ({ ...process.env }),
  list: (path) => fs.readdirSync(path),
};
const results = [];
for (const [kind, value] of JSON.parse(process.argv[2])) {
  try { results.push(attempts[kind](value)); } catch (error) { results.push(error.code); }
}
console.log(JSON.stringify(results));
"""
EATER = "const all = []; for (;;) all.push(new Array(100000).fill(Math.random()));"


class WorkerTarget(unittest.TestCase):
    """What the Worker can reach, and with which error it cannot."""

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="capgate-worker-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("out", "code", "tmp", "in", "inside", "a,b", "it's \"odd\"", "start"):
            os.mkdir(self.path(name))
            self.write(f"{name}/x", name)
        os.unlink(self.path("tmp/x"))
        self.write("outside", "secret")
        self.write("code/probe.mjs", PROBE)
        self.write("code/eater.mjs", EATER)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def compile(self, *capabilities):
        manifest = {"name": "s", "version": "1",
                    "tools": [{"name": "t", "capabilities": list(capabilities)}]}
        done = capgate("compile", "-", "--target", "worker", "--program", self.path("code"), "-o",
                       self.path("out"), text=json.dumps(manifest))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def start(self, module, *words, env=None, cwd=None):
        done = subprocess.run([NODE, self.path("out/worker.mjs"), self.path("code", module), *words],
                              env={"TMPDIR": self.path("tmp"), **(env or {})},
                              cwd=cwd or self.path("start"), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(os.listdir(self.path("tmp")), [], "a directory is left")
        return done

    def attempt(self, *attempts, **options):
        done = self.start("probe.mjs", json.dumps(attempts), **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_read_outside_is_refused_and_inside_it_works(self):
        self.compile(f"fs:read:{self.path('in')}/**")
        results = self.attempt(("read", self.path("in/x")), ("read", self.path("outside")),
                               ("read", self.path("inside/x")), ("list", self.folder),
                               ("read", "/etc/passwd"), ("write", self.path("in/x")),
                               ("write", self.path("in/new")))
        self.assertEqual(results, ["in"] + ["ERR_ACCESS_DENIED"] * 6)

    def test_the_directory_where_it_is_started_opens_nothing(self):
        self.compile()
        for cwd in ("/", self.folder, self.path("start")):
            self.assertEqual(self.attempt(("read", self.path("start/x")), ("read", "/etc/passwd"),
                                          cwd=cwd), ["ERR_ACCESS_DENIED"] * 2, cwd)

    def test_a_write_grant_writes_and_no_other(self):
        self.compile(f"fs:write:{self.path('in')}/**", f"fs:read:{self.path('inside')}")
        results = self.attempt(("write", self.path("in/new")), ("write", self.path("inside/new")),
                               ("link", self.path("in/link")))
        self.assertEqual(results[:2], ["ok", "ERR_ACCESS_DENIED"])
        self.assertEqual(results[2], "ERR_ACCESS_DENIED", "a link could lead anywhere")

    def test_a_server_that_could_write_its_own_options_does_not_start(self):
        self.compile(f"fs:write:{self.path('out')}/**")
        done = self.start("probe.mjs", "[]")
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertIn("move it", done.stderr)

    def test_odd_paths_are_one_path(self):
        for name in ("a,b", "it's \"odd\""):
            self.compile("fs:read:" + json.dumps(self.path(name)))
            self.assertEqual(self.attempt(("read", self.path(name, "x")),
                                          ("read", self.path("in/x"))),
                             [name, "ERR_ACCESS_DENIED"])

    def test_the_environment_is_what_is_declared(self):
        self.compile("env:inject:KEY", "env:read:TZ")
        env = {"KEY": "k\nl", "TZ": "UTC", "SECRET": "s"}
        self.assertEqual(self.attempt(("env", None), env=env), [{"KEY": "k\nl", "TZ": "UTC"}])
        done = self.start("probe.mjs", "[]", env={"KEY": "k"})
        self.assertEqual((done.returncode, done.stdout), (125, ""))
        self.assertIn("the variable TZ is not set", done.stderr)

    def test_no_process_and_no_nested_worker_starts(self):
        artifact = self.compile("exec:spawn:git")
        self.assertEqual(artifact["notCovered"], ["exec:spawn:git"])
        self.assertEqual(self.attempt(("spawn", None), ("worker", None)), ["ERR_ACCESS_DENIED"] * 2)

    def test_memory_ends_at_its_limit(self):
        self.compile("limit:memory:48M")
        done = self.start("eater.mjs")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ERR_WORKER_OUT_OF_MEMORY", done.stderr)

    def test_streams_status_and_signals(self):
        self.compile()
        self.write("code/echo.mjs", "process.stdin.on('data', (d) => process.stdout.write(d));"
                                    "process.stdin.on('end', () => process.exit(7));")
        done = subprocess.run([NODE, self.path("out/worker.mjs"), self.path("code/echo.mjs")],
                              env={"TMPDIR": self.path("tmp")}, input="hello", text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "hello", ""))
        self.write("code/idle.mjs", "console.log('ready'); setInterval(() => {}, 1000);")
        with subprocess.Popen([NODE, self.path("out/worker.mjs"), self.path("code/idle.mjs")],
                              env={"TMPDIR": self.path("tmp")}, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as started:
            self.assertEqual(started.stdout.readline(), "ready\n")
            started.send_signal(signal.SIGTERM)
            self.assertEqual(started.wait(SECONDS), 143)
        self.assertEqual(os.listdir(self.path("tmp")), [])

    def test_what_flags_cannot_say_is_listed_and_stays_closed(self):
        create = f"fs:create:{self.path('in')}/**"
        entries = f"fs:read:{self.path('inside')}/*.md"
        artifact = self.compile(create, entries, "limit:pids:8", "net:connect:a.example:443")
        self.assertEqual(sorted(artifact["notCovered"]),
                         sorted([create, entries, "limit:pids:8", "net:connect:a.example:443"]))
        self.assertEqual(self.attempt(("read", self.path("in/x")), ("read", self.path("inside/x"))),
                         ["ERR_ACCESS_DENIED"] * 2)


if __name__ == "__main__":
    unittest.main()
