#include "lower/worker.h"

#include "base/format.h"
#include "base/text.h"
#include "core/rights.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "text/json_write.h"

namespace capgate::lower {
namespace {

using core::FileRights;
using core::LimitCapability;

constexpr std::string_view launcher =
    R"(// Starts a server's module in a Worker with the options of worker.json, which lies beside this file:
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
)";

class WorkerOptions {
 public:
  explicit WorkerOptions(const Input& input)
      : input_(input), policy_(input.policy), support_("worker", input) {
    artifact_.target = "worker";
  }

  Checked<Artifact> lower() {
    allow_code();
    allow_files();
    limit();
    artifact_.env_injections = names();
    artifact_.files.push_back({.name = "worker.json", .contents = settings()});
    artifact_.files.push_back({.name = "worker.mjs", .contents = std::string(launcher)});
    note();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void allow(std::string_view what, std::string_view path) {
    flags_.push_back(format("--allow-fs-{}={}", what, path));
  }

  // The grammar of --program knows no asterisk, which would stand for anything in Node's flags.
  void allow_code() {
    for (const std::string& program : input_.options.programs) {
      if (!program.contains('*')) allow("read", program);
    }
  }

  // Nothing can be taken out of a directory that a flag opens.
  [[nodiscard]] bool is_kept(const core::FsCapability& fs) const {
    const FileRights rights = core::rights_of(fs.actions);
    return fs.path.shape != core::PathPattern::Shape::entries && !fs.path.base.contains('*') &&
           rights.has(FileRights::modify) == rights.has(FileRights::remove) &&
           core::credentials_below(fs.path.base, input_.options.home).empty();
  }

  void allow_files() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (!is_kept(fs) || is_private_tmp(fs)) {
        artifact_.not_covered.push_back(print(core::Capability(fs)));
        continue;
      }
      allow("read", fs.path.base);
      if (core::rights_of(fs.actions).has(FileRights::modify)) allow("write", fs.path.base);
    }
  }

  void limit() {
    for (const auto& grant : policy_.limits) {
      const LimitCapability& limit = grant.capability;
      const std::uint64_t megabytes = limit.value >> 20;
      if (limit.kind == LimitCapability::Kind::memory && megabytes > 0) {
        heap_ = megabytes;
      } else {
        artifact_.not_covered.push_back(print(core::Capability(limit)));
      }
    }
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& grant : policy_.variables) {
      if (grant.capability.to.empty()) out.push_back(grant.capability.name);
    }
    return out;
  }

  [[nodiscard]] std::string settings() const {
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("execArgv").begin_array().string("--permission");
    for (const std::string& flag : flags_) json.string(flag);
    json.end_array().key("env").begin_array();
    for (const std::string& name : artifact_.env_injections) json.string(name);
    json.end_array().key("resourceLimits").begin_object();
    json.key("maxOldGenerationSizeMb").number(heap_);
    json.end_object().end_object();
    return std::move(json).take() + '\n';
  }

  void note() {
    artifact_.notes = policy_notes(input_);
    for (const std::string_view text :
         {"worker: the network, signals and the clock are not limited: run it in a sandbox that "
          "limits them",
          "worker: a link inside a granted directory is followed out of it",
          "worker: the limit is the heap's; buffers lie outside of it",
          "worker: no child process, no nested Worker and no native module can be started",
          "fs: what host programs run later (.git/hooks, .vscode ...) is not protected inside "
          "writable grants"}) {
      artifact_.notes.emplace_back(text);
    }
    if (input_.options.programs.empty()) {
      artifact_.notes.emplace_back(
          "worker: the server's own module must lie in a grant, or be named with --program");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  std::vector<std::string> flags_;
  std::uint64_t heap_ = std::uint64_t{2} << 10;  // the default limit of every sandbox, in MiB
};

}  // namespace

Checked<Artifact> lower_to_worker(const Input& input) { return WorkerOptions(input).lower(); }

}  // namespace capgate::lower
