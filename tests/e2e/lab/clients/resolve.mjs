// node resolve.mjs NAME...: what c-ares, which Node carries, finds for each name.
import dns from 'node:dns';

const resolver = new dns.promises.Resolver({timeout: 20000, tries: 1});
for (const name of process.argv.slice(2)) {
  for (const type of ['A', 'AAAA', 'TXT', 'MX']) {
    try {
      console.log(name, type, ...(await resolver.resolve(name, type)));
    } catch (error) {
      console.log(name, type, error.code);
    }
  }
}
