"""What examples/converse and examples/use_token share: words on the terminal, and web servers to talk to."""

import contextlib
import http.server
import os
import shlex
import sys
import threading


def title(text):
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(f"\n\033[1m{text}\033[0m" if bold else f"\n{text}", flush=True)


def show_command(command):
    print("$ " + shlex.join(map(str, command)), flush=True)


@contextlib.contextmanager
def web_server(page, tls=None):
    """The port of a web server on this machine's loopback. `page` makes the text from the headers."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = page(self.headers).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        # In the connection's own thread, where a client that says nothing holds up nobody else.
        def finish_request(self, request, client_address):
            if tls:
                request = tls.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)

        # A client that goes away is no news here.
        def handle_error(self, request, client_address):
            pass

    with Server(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
