// What `capgate export` writes, `capgate import` reads again, for every format that has both ways,
// every good case of tests/golden and every sample of those formats.
//
// All that the format cannot say is accepted by name. Then, between the manifest and the one that
// comes back:
//
//   Nothing is wider, except by a grant that stands in `unenforced`: at the same path; at the same
//   host, on any port; at NAME where it is *.NAME. And a limit may be gone that stands there.
//
//   Nothing is missing, except what stands in `unenforced`; kinds of which the file says nothing
//   (all but fs and net:connect, and clock:tzdata of srt); the private /tmp, which needs no word;
//   and of a host what only srt can say (private=true) or none (sni=any, proto=tcp).
//
// mcpb-meta carries everything: nothing changes at all.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "core/diff.h"
#include "core/grammar.h"
#include "import/formats.h"
#include "import/own_meta.h"
#include "lower/common.h"
#include "lower/exports.h"
#include "support/manifests.h"
#include "support/source_directory.h"
#include "text/json_or_yaml.h"

namespace capgate {
namespace {

namespace fs = std::filesystem;
using core::Capability;
using support::Strings;

const fs::path tests = fs::path(support::source_directory()) / "tests";
constexpr std::string_view home = "/home/me";

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Strings files_in(const fs::path& folder) {
  Strings out;
  for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

Strings good_cases() {
  Strings out = files_in(tests / "golden");
  std::erase_if(out, [](const std::string& name) {
    return name.starts_with("bad-") || name.ends_with(".txt");
  });
  return out;
}

// ---- a manifest, and how it is read -------------------------------------------------------------

struct Start {
  fs::path file;
  Strings options;  // --set=NAME=VALUE, --seal
  core::Bindings bindings;
};

Start golden(const std::string& name) {
  const fs::path folder = tests / "golden" / name;
  const bool is_yaml = fs::exists(folder / "manifest.yaml");
  Start out{.file = folder / (is_yaml ? "manifest.yaml" : "manifest.json")};
  const std::string options =
      fs::exists(folder / "options.txt") ? read_text(folder / "options.txt") : "";
  for (const std::string_view line : split(options, '\n')) {
    if (!line.empty()) out.options.emplace_back(line);
  }
  return out;
}

void bind(Start& start) {
  for (const std::string& option : start.options) {
    if (!option.starts_with("--set=")) continue;
    const std::string pair = option.substr(6);
    const std::size_t equals = pair.find('=');
    start.bindings.push_back({.name = pair.substr(0, equals), .values = {pair.substr(equals + 1)}});
  }
}

std::string home_of(const Start& start) {
  const auto bound = std::ranges::find(start.bindings, "HOME", &core::Binding::name);
  return bound == start.bindings.end() ? std::string(home) : bound->values.front();
}

core::Manifest parse(const Start& start, const std::string& name, const std::string& text) {
  const auto document = text::parse_json_or_yaml(name, text::share(std::string(text)));
  if (!document) {
    ADD_FAILURE() << document.error().front().message;
    return {};
  }
  auto manifest = core::parse_manifest(*document, start.bindings);
  if (!manifest) {
    ADD_FAILURE() << name << ": " << manifest.error().front().message << "\n" << text;
    return {};
  }
  return *std::move(manifest);
}

// ---- out and back -------------------------------------------------------------------------------

// The capabilities that the helps of a refusal name.
Strings acceptable(const std::string& diagnostics) {
  constexpr std::string_view word = "or accept it with --accept-unenforced '";
  Strings out;
  for (const std::string_view line : split(diagnostics, '\n')) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = at + word.size();
    out.emplace_back(line.substr(begin, line.size() - begin - 1));
  }
  return out;
}

struct Exported {
  std::string contents;
  Strings unenforced;
};

Exported write_as(const Start& start, std::string_view format_name) {
  Strings words{"export", start.file, "--to", std::string(format_name)};
  words.insert(words.end(), start.options.begin(), start.options.end());
  cli::Output first;
  cli::run_cli(words, first);
  for (const std::string& one : acceptable(first.err))
    words.push_back("--accept-unenforced=" + one);
  words.emplace_back("--json");
  cli::Output output;
  if (cli::run_cli(words, output) != 0) {
    ADD_FAILURE() << format_name << " " << output.out << output.err;
    return {};
  }
  const text::Document artifact = support::json_document(output.out);
  Exported out;
  for (const text::Value file : artifact.root().find("files")->elements()) {
    out.contents = file.find("contents")->text();
  }
  for (const text::Value item : artifact.root().find("unenforced")->elements()) {
    out.unenforced.emplace_back(item.text());
  }
  return out;
}

std::optional<imports::Imported> read_as(std::string_view format_name, const std::string& text,
                                         const Start& start) {
  const text::Document document = support::json_document(text);
  const auto found = imports::detect_format(document);
  if (!found || (*found)->name != format_name) {
    ADD_FAILURE() << "not taken for " << format_name << ":\n" << text;
    return {};
  }
  auto imported = (*found)->read(
      document,
      {.file = "back", .directory = "/srv/project", .home = home_of(start), .server = ""});
  if (imported) return *std::move(imported);
  for (const Diagnostic& mistake : imported.error()) {
    ADD_FAILURE() << format_name << ": " << code_name(mistake.code) << ": " << mistake.message;
  }
  return {};
}

// ---- the rule -----------------------------------------------------------------------------------

struct Rule {
  std::string_view format;
  const Strings& unenforced;

  [[nodiscard]] bool lists(const Capability& capability) const {
    return std::ranges::find(unenforced, print(capability)) != unenforced.end();
  }

  template <typename Kind, typename Fits>
  [[nodiscard]] bool lists_one(Fits fits) const {
    return std::ranges::any_of(unenforced, [&](const std::string& text) {
      const auto parsed = core::parse_capability(text, {});
      const auto* one = parsed ? std::get_if<Kind>(&parsed->front()) : nullptr;
      return one != nullptr && fits(*one);
    });
  }

  [[nodiscard]] bool may_be_wider(const core::GrantChange& change) const {
    if (!change.after) {
      return lists(*change.before) ||
             std::holds_alternative<core::AssertCapability>(*change.before);
    }
    if (const auto* file = std::get_if<core::FsCapability>(&*change.after)) {
      return lists_one<core::FsCapability>(
          [&](const core::FsCapability& one) { return one.path.base == file->path.base; });
    }
    const auto* net = std::get_if<core::NetConnect>(&*change.after);
    if (net == nullptr) return false;
    const core::HostPattern& host = net->endpoint.host;
    return lists_one<core::NetConnect>([&](const core::NetConnect& one) {
      const core::HostPattern& other = one.endpoint.host;
      return other == host ||
             (other.kind == core::HostPattern::Kind::subdomains && other.text == host.text);
    });
  }

  [[nodiscard]] bool may_be_missing(const core::GrantChange& change) const {
    if (lists(*change.before)) return true;
    if (const auto* file = std::get_if<core::FsCapability>(&*change.before)) {
      return lower::is_private_tmp(*file);
    }
    if (const auto* net = std::get_if<core::NetConnect>(&*change.before)) {
      using core::NetRefinements;
      const NetRefinements& refine = net->refinements;
      return (refine.private_network && format != "srt") ||
             refine.sni == NetRefinements::Sni::any || refine.proto == NetRefinements::Proto::tcp;
    }
    const auto* clock = std::get_if<core::ClockCapability>(&*change.before);
    return clock == nullptr || format != "srt" ||
           clock->source != core::ClockCapability::Source::tzdata;
  }
};

std::string show(const core::GrantChange& change) {
  return format("{} -> {}", change.before ? print(*change.before) : "nothing",
                change.after ? print(*change.after) : "nothing");
}

void expect_same(const Rule& rule, const core::Manifest& before, const core::Manifest& after) {
  const auto change = core::diff(before, after);
  ASSERT_TRUE(change) << rule.format;
  for (const core::GrantChange& grant : change->server) {
    const bool is_wider = grant.kind == core::GrantChange::Kind::widened;
    EXPECT_TRUE(is_wider ? rule.may_be_wider(grant) : rule.may_be_missing(grant))
        << rule.format << (is_wider ? " is wider: " : " misses: ") << show(grant);
  }
}

void out_and_back(const Start& start, std::string_view format_name) {
  const std::string name = start.file.filename();
  const core::Manifest before = parse(start, name, read_text(start.file));
  const Exported exported = write_as(start, format_name);
  const auto imported = read_as(format_name, exported.contents, start);
  ASSERT_TRUE(imported) << start.file << "\n" << exported.contents;
  const core::Manifest after = parse(start, "back.json", print_manifest(*imported));
  SCOPED_TRACE(format("{}\n{}", start.file.string(), print_manifest(*imported)));
  expect_same({.format = format_name, .unenforced = exported.unenforced}, before, after);
}

// ---- tests --------------------------------------------------------------------------------------

class RoundTrip : public testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, NeverWiderAndNothingMissing) {
  Start start = golden(GetParam());
  bind(start);
  for (const std::string_view name : {"srt", "toolhive", "vscode"}) out_and_back(start, name);
}

constexpr std::string_view around_meta[][2] = {
    {"mcpb",
     R"({"manifest_version": "0.3", "name": "x", "version": "1", "description": "d",
         "author": {"name": "a"}, "server": {"type": "node", "entry_point": "i.js",
         "mcp_config": {"command": "node", "args": ["i.js"]}}, "_meta": )"},
    {"server-json",
     R"({"name": "com.example/x", "version": "1", "packages": [{"registryType": "oci",
         "identifier": "x", "transport": {"type": "stdio"}}], "_meta": )"},
};

TEST_P(RoundTrip, MetaLosesNothing) {
  if (GetParam() == "seal-option") return;  // no manifest without --seal, which meta does not take
  Start start = golden(GetParam());
  bind(start);
  const core::Manifest before = parse(start, start.file.filename(), read_text(start.file));
  const Exported exported = write_as(start, "mcpb-meta");
  EXPECT_EQ(exported.unenforced, Strings());
  for (const auto& [name, begin] : around_meta) {
    const auto imported = read_as(name, format("{}{}}}", begin, exported.contents), start);
    ASSERT_TRUE(imported);
    for (const imports::Loss& loss : imported->losses) {
      EXPECT_FALSE(loss.subject == imports::own_meta_key &&
                   loss.kind == imports::Loss::Kind::dropped)
          << loss.message;
    }
    const core::Manifest after = parse(start, "back.json", print_manifest(*imported));
    const auto change = core::diff(before, after);
    ASSERT_TRUE(change);
    EXPECT_TRUE(change->is_empty()) << name << "\n" << print_manifest(*imported);
    EXPECT_EQ(std::tie(after.name, after.version, after.seal),
              std::tie(before.name, before.version, before.seal));
    EXPECT_TRUE(
        std::ranges::equal(before.tools, after.tools, {}, &core::Tool::name, &core::Tool::name));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, RoundTrip, testing::ValuesIn(good_cases()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

// The other way round: a sample, as a manifest, as the same format again, and back.
TEST(SampleTrip, ComesBackTheSame) {
  const fs::path folder = fs::path(testing::TempDir()) / format("round-trip-{}", ::getpid());
  fs::create_directories(folder);
  for (const std::string_view name : {"srt", "toolhive", "vscode"}) {
    for (const std::string& sample : files_in(tests / "import/samples" / name)) {
      Start start{.file = folder / format("{}-{}", name, sample)};
      const auto imported =
          read_as(name, read_text(tests / "import/samples" / name / sample), start);
      ASSERT_TRUE(imported) << sample;
      for (const std::string& variable : imported->variables) {
        start.options.push_back(format("--set={}=/srv/bound", variable));
      }
      bind(start);
      std::ofstream(start.file, std::ios::binary) << print_manifest(*imported);
      out_and_back(start, name);
    }
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace capgate
