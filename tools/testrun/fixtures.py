"""Starts fixtures that many jobs share, when the first job asks for one, and ends them with the run.

A job connects to the socket fixtures.sock in the directory that CAPGATE_TEST_SHARED names, and
writes the name of a fixture. The answer is one JSON line that describes it, or {"error": text}. The
fixture runs in a process of its own, `tests/e2e/shared_fixtures.py NAME`, until its stdin closes: it
ends even if the runner is killed. A job cannot start it, because a job's processes end with the job.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import socketserver
import subprocess
import threading

SECONDS_TO_START = 300
SECONDS_TO_END = 60


class Fixtures:
    def __init__(self, program, directory, log):
        self._program = program
        self._log = log
        self._directory = str(directory)
        self._guard = threading.Lock()
        self._locks = {}
        self._answers = {}
        self._processes = []
        self._closed = False
        server = self._server = socketserver.ThreadingUnixStreamServer(
            str(pathlib.Path(directory, "fixtures.sock")), self._make_handler())
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def _make_handler(fixtures):  # pylint: disable=no-self-argument
        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                name = self.rfile.readline().decode().strip()
                with contextlib.suppress(BrokenPipeError):
                    self.wfile.write(json.dumps(fixtures.get(name)).encode() + b"\n")
        return Handler

    def get(self, name):
        """The description of the fixture, started now if it does not run yet."""
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._answers:
                self._answers[name] = self._start(name)
            return self._answers[name]

    def _start(self, name):
        with self._guard:
            if self._closed:
                return {"error": "the run ends"}
            process = subprocess.Popen([*self._program, name], stdin=subprocess.PIPE, cwd="/",
                                       stdout=subprocess.PIPE, stderr=self._log, start_new_session=True,
                                       env={**os.environ, "CAPGATE_TEST_PLACE": self._directory})
            self._processes.append(process)
        ready, _, _ = select.select([process.stdout], [], [], SECONDS_TO_START)
        line = process.stdout.readline() if ready else b""
        try:
            return json.loads(line)
        except ValueError:
            return {"error": f"the shared fixture {name} did not start; see {self._log.name}"}

    def close(self):
        """Ends all fixtures. Messages about those that did not end well."""
        with self._guard:
            self._closed = True
        self._server.shutdown()
        self._server.server_close()
        for process in self._processes:
            process.stdin.close()
        trouble = []
        for process in self._processes:
            try:
                status = process.wait(SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                status = process.wait()
            process.stdout.close()
            if status != 0:
                trouble.append(f"shared fixture {process.args[-1]}: status {status}")
        return trouble
