// node fetch.mjs fetch|https CA URL...: one line for each URL, its status or its error.
import fs from 'node:fs';
import https from 'node:https';
import http from 'node:http';
import net from 'node:net';

const [how, ca, ...urls] = process.argv.slice(2);
// Long: a busy machine is no error, and a request that hangs must fail the test, not look refused.
const milliseconds = 25000;
// Node gives each address 250 ms and then fails with ETIMEDOUT, although the address would answer.
net.setDefaultAutoSelectFamilyAttemptTimeout(milliseconds);

function getOnce(url) {
  const module = url.startsWith('https:') ? https : http;
  return new Promise((resolve, reject) => {
    const options = {ca: fs.readFileSync(ca), agent: false, timeout: milliseconds};
    const request = module.get(url, options, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });
}

async function fetchOnce(url) {
  const response = await fetch(url, {signal: AbortSignal.timeout(milliseconds)});
  await response.text();
  return response.status;
}

for (const url of urls) {
  try {
    console.log(url, await (how === 'fetch' ? fetchOnce : getOnce)(url));
  } catch (error) {
    const cause = error.cause ?? error;
    console.log(url, 'error', cause.code ?? cause.message);
  }
}
