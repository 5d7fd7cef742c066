"""A registry on this machine: packages of npm and wheels of PyPI that a test makes, over HTTP on
the loopback. It notes which paths were asked for."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse
import zipfile

# A server in a few lines that answers what a client asks first, and asks for its tools.
NODE_SERVER = r"""#!/usr/bin/env node
const lines = require("node:readline").createInterface({input: process.stdin});
const says = require("./says.js");
lines.on("line", (line) => {
  const request = JSON.parse(line);
  if (request.id === undefined) return;
  const result = request.method === "initialize"
    ? {protocolVersion: request.params.protocolVersion, capabilities: {tools: {}},
       serverInfo: {name: "tiny", version: says.version}}
    : {tools: [{name: says.tool, inputSchema: {type: "object"},
                description: process.argv.slice(2).join(" ")}]};
  console.log(JSON.stringify({jsonrpc: "2.0", id: request.id, result}));
});
"""

PYTHON_SERVER = r"""
import json
import sys

from tiny_words import TOOL


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] == "initialize":
            result = {"protocolVersion": request["params"]["protocolVersion"],
                      "capabilities": {"tools": {}},
                      "serverInfo": {"name": "tiny", "version": "1"}}
        else:
            result = {"tools": [{"name": TOOL, "inputSchema": {"type": "object"},
                                 "description": " ".join(sys.argv[1:])}]}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class Registry:
    def __init__(self):
        self.pages = {}   # path: (type, bytes)
        self.asked = []
        self.waits = {}   # path: an event that is waited for before the answer
        self.reached = threading.Event()  # a path that waits was asked for
        self.port = 0

    @property
    def url(self):
        return f"http://localhost:{self.port}/"

    def add_npm(self, name, version, files, **fields):
        """Publishes a version, with the fields of its package.json."""
        package = {"name": name, "version": version, **fields}
        archive = npm_archive({"package.json": json.dumps(package), **files})
        path = f"/{name}/-/{name.split('/')[-1]}-{version}.tgz"
        self.pages[path] = ("application/octet-stream", archive)
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        page = f"/{name}"
        known = json.loads(self.pages[page][1]) if page in self.pages else {
            "name": name, "dist-tags": {}, "versions": {}}
        known["dist-tags"]["latest"] = version
        known["versions"][version] = {
            **package, "dist": {"integrity": f"sha512-{digest}",
                                "shasum": hashlib.sha1(archive).hexdigest(),
                                "tarball": self.url + path[1:]}}
        self.pages[page] = ("application/json", json.dumps(known).encode())
        return f"sha512-{digest}"

    def add_wheel(self, name, version, files, *, scripts=None, requires=()):
        """Publishes a wheel; `scripts` are its console scripts."""
        wheel = make_wheel(name, version, files, scripts or {}, requires)
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        return self.add_file(name, file, wheel)

    def add_file(self, name, file, contents):
        digest = hashlib.sha256(contents).hexdigest()
        self.pages[f"/files/{file}"] = ("application/octet-stream", contents)
        page = f"/simple/{name}/"
        before = self.pages.get(page, ("", b""))[1]
        link = f'<a href="/files/{file}#sha256={digest}">{file}</a><br>\n'.encode()
        self.pages[page] = ("text/html", before + link)
        return f"sha256:{digest}"


def npm_archive(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in sorted(files.items()):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(text.encode())
            info.mode = 0o755 if text.startswith("#!") else 0o644
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


def make_wheel(name, version, files, scripts, requires):
    data = io.BytesIO()
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {other}\n" for other in requires)
    points = "[console_scripts]\n" + "".join(f"{a} = {b}\n" for a, b in scripts.items())
    everything = {**files, f"{info}/METADATA": metadata,
                  f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
                                   "Root-Is-Purelib: true\nTag: py3-none-any\n",
                  f"{info}/entry_points.txt": points}
    record = "".join(f"{path},,\n" for path in [*everything, f"{info}/RECORD"])
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in {**everything, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return data.getvalue()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        registry = self.server.registry
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        registry.asked.append(path)
        if path in registry.waits:
            registry.reached.set()
            registry.waits[path].wait(60)
        kind, contents = registry.pages.get(path, ("application/json", b"{}"))
        self.send_response(200 if path in registry.pages else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(contents)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


@contextlib.contextmanager
def served():
    """The registry while it is served."""
    registry = Registry()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.registry = registry
    registry.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        for event in registry.waits.values():
            event.set()
        server.shutdown()
        server.server_close()
        thread.join()
