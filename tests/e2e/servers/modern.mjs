// A server built with the official 2.x SDK, which speaks the 2026-07-28 revision. None of the
// published servers in package.json does yet.

import { readFileSync, writeFileSync } from "node:fs";
import { McpServer, fromJsonSchema } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const object = (...names) => fromJsonSchema({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
  required: names,
});
const say = (text) => ({ content: [{ type: "text", text }] });

serveStdio(() => {
  const identity = { name: "modern", version: "1.0.0" };
  const server = new McpServer(identity, { capabilities: { tools: {} } });
  server.registerTool("read", { inputSchema: object("path") },
    ({ path }) => say(readFileSync(path, "utf8")));
  server.registerTool("write", { inputSchema: object("path", "text") },
    ({ path, text }) => { writeFileSync(path, text); return say("written"); });
  return server;
}, { legacy: "reject" });
