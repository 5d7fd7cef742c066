// srt's own HTTP proxy, with a list of one allowed host.
//
//   node proxy.mjs MODULE PORT
const [module, port] = process.argv.slice(2);
const { createHttpProxyServer } = await import(module);

const allowed = new Set(["127.0.0.1"]);
createHttpProxyServer({ filter: (_port, host) => allowed.has(host) }).listen({
  host: "127.0.0.1",
  port: Number(port),
  backlog: 4096,
});
