// Starts a server's module in a Worker with the options of worker.json, which lies beside this file:
//
//   node worker.mjs /absolute/path/of/the/module ARGUMENTS...
//
// It exits as the Worker does; 125 means that nothing was started. Written by capgate compile.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

const refuse = (why) => {
  process.stderr.write(`worker.mjs: ${why}\n`);
  process.exit(125);
};

const settings = JSON.parse(readFileSync(new URL('worker.json', import.meta.url), 'utf8'));
const [module, ...argv] = process.argv.slice(2);
if (Number(process.versions.node.split('.')[0]) < 22) refuse('Node 22 or later is needed');
if (module === undefined || !isAbsolute(module)) refuse('name the module by its absolute path');

// Whoever can change worker.json decides what the next start allows.
const here = dirname(fileURLToPath(import.meta.url)) + '/';
for (const flag of settings.execArgv) {
  const [, path] = /^--allow-fs-write=(.*)$/s.exec(flag) ?? [];
  if (path !== undefined && here.startsWith(path + '/')) refuse(`${here} lies in ${path}: move it`);
}

const env = {};
for (const name of settings.env) {
  if (process.env[name] === undefined) refuse(`the variable ${name} is not set`);
  env[name] = process.env[name];
}

// A Worker may read its process's working directory, whatever its flags say: an empty one.
const place = mkdtempSync(join(tmpdir(), 'capgate-'));
process.chdir(place);
process.on('exit', () => rmSync(place, { recursive: true, force: true }));
for (const [signal, number] of [['SIGHUP', 1], ['SIGINT', 2], ['SIGTERM', 15]]) {
  process.on(signal, () => process.exit(128 + number));
}

const worker = new Worker(module, {
  argv,
  env,
  execArgv: settings.execArgv,
  resourceLimits: settings.resourceLimits,
  stdin: true,
});
process.stdin.pipe(worker.stdin);
worker.stdin.on('error', () => {});
worker.on('error', (error) => {
  process.stderr.write(`worker.mjs: ${error?.code ?? ''} ${error?.message ?? error}\n`);
});
worker.on('exit', (code) => process.exit(code));
