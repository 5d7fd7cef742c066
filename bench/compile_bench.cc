// What compiling a manifest costs inside a process that already runs (a gateway, a build step):
// parse, check, merge, lower, print. Reading files and starting a process are bench/cli-ratios.
//
//   compile_bench github.json [more.json ...] [--benchmark_filter=bwrap]
//
// For each manifest there are these rows:
//   floor   what no compiler can avoid: copy the source, hash it, copy the artifact
//   parse   text to document
//   check   text to policy: what `capgate check` does
//   bwrap, docker, plan   text to printed artifact, where the target can express the manifest
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "core/seal.h"
#include "lower/targets.h"
#include "sys/file.h"
#include "text/json.h"

namespace capgate {
namespace {

struct Compiled {
  text::Document document;
  core::Manifest manifest;
  core::Policy policy;
};

Checked<Compiled> compile(const std::string& source) {
  Compiled out{.document = TRY(text::parse_json(source)), .manifest = {}, .policy = {}};
  out.manifest = TRY(core::parse_manifest(out.document, {}));
  if (auto mistakes = core::check_seals(out.manifest); !mistakes.empty()) {
    return std::unexpected(std::move(mistakes));
  }
  out.policy = TRY(core::merge(out.manifest));
  return out;
}

Checked<std::string> print_for(const lower::Target& target, const std::string& source) {
  const Compiled compiled = TRY(compile(source));
  const lower::Options options;
  const lower::Input input{compiled.manifest, compiled.policy, options};
  const lower::Artifact artifact = TRY(target.lower(input));
  return print_json(artifact, input, text::JsonWriter::Style::compact);
}

struct Subject {
  std::string name;  // github, for .../github.json
  std::string source;
  std::string artifact;
  std::size_t declared = 0;
};

// A failed compilation is fast and would look like progress.
template <typename T>
void keep(benchmark::State& state, const Checked<T>& result) {
  if (!result) state.SkipWithError(result.error().front().message.c_str());
  benchmark::DoNotOptimize(&*result);
}

template <typename Work>
void add(std::string_view row, const Subject& subject, Work work) {
  const std::string name = std::string(row) + "/" + subject.name;
  benchmark::RegisterBenchmark(name.c_str(), [work, &subject](benchmark::State& state) {
    for (auto _ : state) work(state);
    state.counters["capabilities"] = static_cast<double>(subject.declared);
    state.counters["per_second"] =
        benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  })->Unit(benchmark::kMicrosecond);
}

void add_rows(const Subject& subject) {
  add("floor", subject, [&](benchmark::State&) {
    std::string source = subject.source;
    std::string artifact = subject.artifact;
    benchmark::DoNotOptimize(source.data());
    benchmark::DoNotOptimize(artifact.data());
    benchmark::DoNotOptimize(sha256_hex_portable(source).data());
  });
  add("parse", subject, [&](auto& state) { keep(state, text::parse_json(subject.source)); });
  add("check", subject, [&](auto& state) { keep(state, compile(subject.source)); });
  for (const std::string_view name : {"bwrap", "docker", "plan"}) {
    const lower::Target& target = *lower::find_target(name);
    if (!print_for(target, subject.source)) continue;
    add(target.name, subject, [&](auto& state) { keep(state, print_for(target, subject.source)); });
  }
}

bool read_subject(const std::string& path, std::vector<Subject>& out) {
  auto source = sys::read_file(path, text::largest_document);
  if (!source) {
    std::fprintf(stderr, "compile_bench: cannot read %s\n", path.c_str());
    return false;
  }
  const std::size_t begin = path.rfind('/') + 1;  // 0 without a slash
  Subject subject{.name = path.substr(begin, path.rfind('.') - begin), .source = *source};
  const auto compiled = compile(*source);
  if (!compiled) {
    std::fprintf(stderr, "compile_bench: %s does not compile\n", path.c_str());
    return false;
  }
  subject.declared = compiled->manifest.declared.size();
  subject.artifact = print_for(*lower::find_target(lower::default_target), *source).value_or("");
  out.push_back(std::move(subject));
  return true;
}

}  // namespace
}  // namespace capgate

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);  // takes its own words out of argv
  std::vector<capgate::Subject> subjects;
  for (int i = 1; i < argc; ++i) {
    if (!capgate::read_subject(argv[i], subjects)) return 1;
  }
  for (const capgate::Subject& subject : subjects) capgate::add_rows(subject);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
