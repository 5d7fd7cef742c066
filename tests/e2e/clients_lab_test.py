"""The clients of clients_lab start the servers of a file as it is, before anything wraps it."""

import json
import os
import unittest

import clients_lab
import launch
import npm_servers
from run_cases import RunCase

FIXTURES = ("npm_servers", "inspector")
FILESYSTEM = "@modelcontextprotocol/server-filesystem/dist/index.js"


def setUpModule():
    npm_servers.install()
    clients_lab.install_inspector()


class Unwrapped(RunCase):
    def setUp(self):
        super().setUp()
        self.note = self.file("note", "as it is")
        program = os.path.join(npm_servers.MODULES, FILESYSTEM)
        servers = {"files": {"command": launch.NODE, "args": [program, self.work]},
                   "remote": {"url": "https://example.com/mcp"},
                   "variable": {"command": launch.PYTHON, "args": ["-c", "raise SystemExit(1)"],
                                "env": {"NAME": "value"}}}
        self.config = self.file("config.json", json.dumps({"mcpServers": servers}))

    def test_only_stdio_servers_are_read(self):
        config = clients_lab.read_config(self.config)
        self.assertEqual(sorted(config), ["files", "variable"])
        self.assertEqual(config["variable"].env, {"NAME": "value"})

    def test_a_tool_is_called_by_each_client(self):
        entry = clients_lab.read_config(self.config)["files"]
        for client in clients_lab.CLIENTS:
            with self.subTest(client=client):
                answer = clients_lab.talk(
                    entry, client, [clients_lab.call("read_text_file", path=self.note)],
                    uid=self.uid, env={"HOME": self.home})
                self.assertNotIn("error", answer)
                tools, text = answer["results"]
                self.assertIn("read_text_file", tools)
                self.assertEqual(text, {"text": "as it is"})

    def test_a_tool_is_called_by_the_inspector(self):
        result = clients_lab.inspect(self.config, "files", "read_text_file", path=self.note,
                                     uid=self.uid, env={"HOME": self.home})
        self.assertEqual(result["content"][0]["text"], "as it is")
        with self.assertRaises(RuntimeError):
            clients_lab.inspect(self.config, "variable", "any", uid=self.uid,
                                env={"HOME": self.home})

    def test_a_server_that_does_not_start_is_told(self):
        entry = clients_lab.read_config(self.config)["variable"]
        answer = clients_lab.talk(entry, clients_lab.SDK_1, [], uid=self.uid,
                                  env={"HOME": self.home})
        self.assertIn("error", answer)


if __name__ == "__main__":
    unittest.main()
