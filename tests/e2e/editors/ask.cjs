// Asks one engine one question: node ask.cjs QUESTION < order.json > answer.json
'use strict';

const fs = require('fs');
const path = require('path');

const order = JSON.parse(fs.readFileSync(0, 'utf8'));

// ajv in strict mode: an unknown keyword in the schema, or one that cannot apply, throws. Allowed are
// lists of which the first item is special, and "not both of these keys".
function valid({schema, values}) {
  const isOld = schema.$schema.includes('draft-07');
  const Ajv = isOld ? require('ajv').default : require('ajv/dist/2020').default;
  const ajv = new Ajv({strict: true, strictTuples: false, strictRequired: false, allErrors: true,
                       allowUnionTypes: true});
  for (const word of ['defaultSnippets', 'errorMessage', 'markdownDescription',
                      'enumDescriptions']) {
    ajv.addKeyword(word);
  }
  const validate = ajv.compile(schema);
  return values.map(value => validate(value));
}

// Milliseconds of processor time of each pattern on each text; the best of three where it is slow.
function times({patterns, texts}) {
  return patterns.map(pattern => {
    const expression = new RegExp(pattern, 'u');
    const once = text => {
      const begin = process.cpuUsage();
      expression.test(text);
      const {user, system} = process.cpuUsage(begin);
      return (user + system) / 1e3;
    };
    return texts.map(text => {
      const first = once(text);
      return first < 50 ? first : Math.min(first, once(text), once(text));
    });
  });
}

// What VS Code shows of a JSON file.
async function json({schema, text, offset}) {
  const engine = require('vscode-json-languageservice');
  const service = engine.getLanguageService({});
  service.configure({validate: true,
                     schemas: [{uri: 'mem://schema', fileMatch: ['*'], schema}]});
  const file = engine.TextDocument.create('file:///manifest.json', 'json', 1, text);
  const parsed = service.parseJSONDocument(file);
  const at = file.positionAt(offset);
  const hover = await service.doHover(file, at, parsed);
  return {
    diagnostics: (await service.doValidation(file, parsed)).map(each => ({
      message: each.message,
      text: file.getText(each.range),
    })),
    completions: (await service.doComplete(file, at, parsed)).items,
    hover: hover ? JSON.stringify(hover.contents) : '',
  };
}

// The same of a YAML file, from the language server over its own protocol.
async function yaml({schemaFile, text, position}) {
  const rpc = require('vscode-jsonrpc/node');
  const {spawn} = require('child_process');
  const server = spawn(process.execPath, [
    path.join(__dirname, 'node_modules/yaml-language-server/bin/yaml-language-server'), '--stdio',
  ], {stdio: ['pipe', 'pipe', 'inherit']});
  const link = rpc.createMessageConnection(new rpc.StreamMessageReader(server.stdout),
                                           new rpc.StreamMessageWriter(server.stdin));
  const uri = 'file:///capgate-test/file.yaml';
  const settings = {validate: true, hover: true, completion: true, schemaStore: {enable: false},
                    schemas: {[`file://${schemaFile}`]: 'file.yaml'}};
  link.onRequest('workspace/configuration', ({items}) =>
    items.map(item => (item.section === 'yaml' ? settings : null)));
  link.onRequest('client/registerCapability', () => null);
  const published = new Promise(done => {
    link.onNotification('textDocument/publishDiagnostics', told => {
      if (told.uri === uri) done(told.diagnostics);
    });
  });
  link.listen();
  try {
    await link.sendRequest('initialize', {
      processId: process.pid, rootUri: null,
      capabilities: {workspace: {configuration: true},
                     textDocument: {completion: {completionItem: {snippetSupport: true}}}},
    });
    await link.sendNotification('initialized', {});
    await link.sendNotification('workspace/didChangeConfiguration', {settings: {yaml: settings}});
    await link.sendNotification('textDocument/didOpen',
                                {textDocument: {uri, languageId: 'yaml', version: 1, text}});
    const diagnostics = await published;
    const here = {textDocument: {uri}, position};
    const completions = await link.sendRequest('textDocument/completion', here);
    const hover = await link.sendRequest('textDocument/hover', here);
    return {
      diagnostics: diagnostics.map(each => ({
        message: each.message,
        text: text.split('\n')[each.range.start.line]
          .slice(each.range.start.character, each.range.end.character),
      })),
      completions: completions.items || completions,
      hover: hover ? JSON.stringify(hover.contents) : '',
    };
  } finally {
    link.dispose();
    server.kill();
  }
}

const questions = {valid, times, json, yaml};
Promise.resolve(questions[process.argv[2]](order)).then(answer => {
  process.stdout.write(JSON.stringify(answer));
}).catch(error => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
