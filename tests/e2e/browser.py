"""A real browser without a window: Debian's Chromium, driven over a pipe.

    with Browser() as browser:
        page = browser.open(path, width=1280, dark=True)
        page.evaluate("document.title")
        page.screenshot(), page.print_pdf(), page.accessible_names("img")

It runs as an ordinary user. Every request that a page makes and every message of its console is
kept in `page.requests` and `page.messages`.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

import launch

CHROMIUM = "/usr/bin/chromium"
SECONDS = 60
# Of its own: its hundreds of threads must not count for tests of how many a user may have.
USER = launch.ORDINARY + 1000
# No name leads anywhere, no service of the maker is asked.
WORDS = ["--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update",
         "--disable-dev-shm-usage", "--hide-scrollbars"]


class Browser:
    def __init__(self):
        self._last_id = 0
        self._buffer = b""
        self._events = []

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self._home = tempfile.mkdtemp(prefix="capgate-browser-", dir=launch.PLACE)
            stack.callback(shutil.rmtree, self._home, ignore_errors=True)
            os.chown(self._home, USER, USER)
            ours_in, theirs_out = os.pipe()
            theirs_in, ours_out = os.pipe()
            stack.callback(os.close, ours_in)
            self._in, self._out = ours_in, ours_out

            def prepare():
                # Chromium reads orders from 3 and answers on 4.
                high_in, high_out = os.dup2(theirs_in, 203), os.dup2(theirs_out, 204)
                os.dup2(high_in, 3, inheritable=True)
                os.dup2(high_out, 4, inheritable=True)
                os.closerange(5, 256)
                launch.become(USER)

            log = stack.enter_context(tempfile.TemporaryFile())
            self._log = log
            self._process = subprocess.Popen(  # pylint: disable=consider-using-with
                [CHROMIUM, *WORDS, f"--user-data-dir={self._home}/profile", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False,
                preexec_fn=prepare, cwd=self._home,
                env={"HOME": self._home, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
            os.close(theirs_in)
            os.close(theirs_out)
            stack.callback(self._end)
            self.call("Browser.getVersion")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def _end(self):
        os.close(self._out)  # the end of its orders: it ends by itself
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method, session=None, **params):
        """The result of one order. Events that come meanwhile are kept."""
        self._last_id += 1
        order = {"id": self._last_id, "method": method, "params": params}
        if session:
            order["sessionId"] = session
        data = json.dumps(order).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data):]
        while True:
            message = self._read()
            if message.get("id") != self._last_id:
                self._events.append(message)
                continue
            if "error" in message:
                raise AssertionError(f"{method}: {message['error']}")
            return message["result"]

    def wait_for(self, session, method):
        """The next event of this name; the others stay."""
        seen = 0
        while True:
            for index in range(seen, len(self._events)):
                event = self._events[index]
                if event.get("sessionId") == session and event.get("method") == method:
                    return self._events.pop(index)
            seen = len(self._events)
            self._events.append(self._read())

    def take_events(self, session):
        own = [event for event in self._events if event.get("sessionId") == session]
        self._events = [event for event in self._events if event.get("sessionId") != session]
        return own

    def _read(self):
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            data = os.read(self._in, 1 << 16) if ready else b""
            if not data:
                self._log.seek(0)
                raise AssertionError(f"the browser is silent: {self._log.read()[-2000:]}")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, **look):
        """A page with this file in it, loaded. See Page.look."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Network", "Runtime", "Log", "DOM", "Accessibility"):
            page.call(f"{domain}.enable")
        page.look(**look)
        page.call("Page.navigate", url=f"file://{path}")
        self.wait_for(session, "Page.loadEventFired")
        page.settle()
        return page


class Page:
    def __init__(self, browser, session):
        self._browser = browser
        self._session = session
        self.requests = []
        self.messages = []

    def call(self, method, **params):
        return self._browser.call(method, session=self._session, **params)

    def look(self, width=1280, height=900, dark=False, zoom=1, media=""):
        """How big the window is, which colours the user prefers, and how far they zoomed in."""
        self.call("Emulation.setDeviceMetricsOverride", width=width // zoom, height=height // zoom,
                  deviceScaleFactor=zoom, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media, features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def settle(self):
        """Collects what the page did so far, after two frames were drawn."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => "
                      "requestAnimationFrame(done)))")
        for event in self._browser.take_events(self._session):
            params = event.get("params", {})
            if event["method"] == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif event["method"] == "Runtime.consoleAPICalled":
                self.messages.append(json.dumps(params["args"]))
            elif event["method"] == "Runtime.exceptionThrown":
                self.messages.append(json.dumps(params["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                self.messages.append(params["entry"]["text"])

    def evaluate(self, expression):
        """The value of a JavaScript expression. The page itself has no script."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            code = {"Tab": 9, "Enter": 13}[key]
            text = {"text": "\r"} if key == "Enter" and kind == "rawKeyDown" else {}
            self.call("Input.dispatchKeyEvent", type="keyDown" if text else kind, key=key,
                      code=key, windowsVirtualKeyCode=code, **text)

    def accessible(self, role):
        """(name, description) of everything that has this role for a screen reader."""
        found = []
        for node in self.call("Accessibility.getFullAXTree")["nodes"]:
            if not node.get("ignored") and node.get("role", {}).get("value") == role:
                found.append((node.get("name", {}).get("value", ""),
                              node.get("description", {}).get("value", "")))
        return found

    def screenshot(self, whole=True):
        """PNG bytes of the whole page, or of the window."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def print_pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])
