// Starts one MCP server with an official client, takes the steps of the order on stdin, and prints
// what came of each.
//
//   order:  {"client": 1|2, "command": [...], "env": {...}, "cwd": "...",
//            "steps": [{"list": true} | {"call": "tool", "arguments": {...}}]}
//   answer: {"protocol": "...", "server": {...}, "results": [...], "stderr": "..."}
//
// A step that fails gives {"error": "..."} and the next one is taken; a server that does not come
// up gives {"error": "...", "stderr": "..."} and nothing else.

import { readFileSync } from "node:fs";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";

const IDENTITY = { name: "capgate-e2e", version: "1.0.0" };
const PATIENCE = { timeout: 40_000 };
// Some servers log every step; the end is what explains a failure.
const KEPT_OF_STDERR = 4000;

// The 2.x client asks for the newest revision and falls back to `initialize` for older servers.
function makeClient(order, server) {
  if (order.client === 2) {
    const options = { versionNegotiation: { mode: "auto" } };
    return [new Client2(IDENTITY, options), new Stdio2(server)];
  }
  return [new Client1(IDENTITY), new Stdio1(server)];
}

async function take(step, client) {
  try {
    if (step.list) return (await client.listTools({}, PATIENCE)).tools.map((tool) => tool.name);
    const request = { name: step.call, arguments: step.arguments };
    const result = await call(client, request);
    const text = result.content.filter((part) => part.type === "text").map((part) => part.text);
    return { [result.isError ? "error" : "text"]: text.join("\n") };
  } catch (failure) {
    return { error: String(failure) };
  }
}

// The schema of the result is an argument in 1.x only.
function call(client, request) {
  return client instanceof Client2 ? client.callTool(request, PATIENCE)
                                   : client.callTool(request, undefined, PATIENCE);
}

// The 1.x client does not keep the revision it agreed on, but tells its transport.
function rememberProtocol(transport) {
  transport.setProtocolVersion = (version) => { transport.protocol = version; };
}

// A server that ends before the client has written to it leaves the client waiting for ever: the
// client has a moment to say so itself, then it is said for it.
function watchEnd(transport) {
  const watch = { timer: undefined };
  watch.ended = new Promise((_, reject) => {
    transport.onclose = () => {
      watch.timer = setTimeout(() => reject(new Error("the server ended")), 1000);
    };
  });
  watch.ended.catch(() => {});
  return watch;
}

async function talk(order, client, transport, answer) {
  await client.connect(transport, PATIENCE);
  answer.protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocol;
  answer.server = client.getServerVersion();
  answer.results = [];
  for (const step of order.steps) answer.results.push(await take(step, client));
}

async function converse(order) {
  const [command, ...args] = order.command;
  const server = { command, args, env: order.env, cwd: order.cwd, stderr: "pipe" };
  const [client, transport] = makeClient(order, server);
  rememberProtocol(transport);
  const answer = { stderr: "" };
  transport.stderr.on("data", (chunk) => {
    answer.stderr = (answer.stderr + chunk).slice(-KEPT_OF_STDERR);
  });
  const watch = watchEnd(transport);
  try {
    await Promise.race([talk(order, client, transport, answer), watch.ended]);
  } catch (failure) {
    answer.error = String(failure);
  } finally {
    await client.close();
    clearTimeout(watch.timer);
  }
  return answer;
}

const answer = await converse(JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(answer) + "\n");
