"""A web server for the tests of other engines, also for a process in another network namespace."""

import http.server

GREETING = b"the origin answers"


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers every GET with the same words."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(GREETING)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(GREETING)

    def log_message(self, *_):
        pass
