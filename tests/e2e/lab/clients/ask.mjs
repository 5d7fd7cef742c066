// node ask.mjs fetch|https|http2 URL...: asks with the token of the environment, and prints a line
// of JSON for each URL: {"status": 200, "body": "..."} or {"error": "CODE"}.
import http2 from 'node:http2';
import https from 'node:https';

const [how, ...urls] = process.argv.slice(2);
const headers = {authorization: `Bearer ${process.env.TOKEN}`};

async function byFetch(url) {
  const response = await fetch(url, {headers});
  return {status: response.status, body: await response.text()};
}

function byHttps(url) {
  return new Promise((resolve, reject) => {
    https.get(url, {headers, agent: false}, (response) => {
      let body = '';
      response.on('data', (data) => { body += data; });
      response.on('end', () => resolve({status: response.statusCode, body}));
    }).on('error', reject);
  });
}

function byHttp2(url) {
  const {origin, pathname, search} = new URL(url);
  return new Promise((resolve, reject) => {
    const session = http2.connect(origin);
    session.on('error', reject);
    const stream = session.request({':path': pathname + search, ...headers});
    let body = '', status, trailers;
    stream.on('response', (fields) => { status = fields[':status']; });
    stream.on('trailers', (fields) => { trailers = {...fields}; });
    stream.on('data', (data) => { body += data; });
    stream.on('error', reject);
    stream.on('end', () => { session.close(); resolve({status, body, trailers}); });
  });
}

for (const url of urls) {
  try {
    const ask = {fetch: byFetch, https: byHttps, http2: byHttp2}[how];
    console.log(JSON.stringify(await ask(url)));
  } catch (error) {
    const cause = error.cause ?? error;
    console.log(JSON.stringify({error: cause.code ?? cause.message}));
  }
}
