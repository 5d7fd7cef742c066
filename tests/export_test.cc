// Golden tests of `capgate export`: tests/export/CASE of some cases of tests/golden.
//
//   FORMAT.txt    how it refuses, where the format cannot say everything
//   FORMAT.json   what `export --to FORMAT --json` prints, with all of that accepted
//
// CAPGATE_UPDATE_GOLDEN=1 rewrites them. For every good case of tests/golden, reviewed or not: what
// is accepted is exactly what stands in `unenforced`.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "lower/exports.h"
#include "support/manifests.h"
#include "support/source_directory.h"

namespace capgate {
namespace {

namespace fs = std::filesystem;
using support::Strings;

const fs::path tests = fs::path(support::source_directory()) / "tests";
// Of each kind of server one, and those that hold what formats differ in.
const Strings reviewed{
    "every-kind",  "filesystem",      "git",      "github",        "net-every-port",
    "net-private", "no-capabilities", "postgres", "sealed-github", "writable-child"};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void compare(const fs::path& expected, const std::string& actual) {
  if (std::getenv("CAPGATE_UPDATE_GOLDEN") != nullptr && std::getenv("CI") == nullptr) {
    fs::create_directories(expected.parent_path());
    std::ofstream(expected, std::ios::binary) << actual;
  }
  ASSERT_TRUE(fs::exists(expected)) << "no golden " << expected << "; got:\n" << actual;
  EXPECT_EQ(read_text(expected), actual) << "see " << expected;
}

Strings good_cases() {
  Strings out;
  for (const auto& entry : fs::directory_iterator(tests / "golden")) {
    const std::string name = entry.path().filename();
    if (entry.is_directory() && !name.starts_with("bad-")) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

struct Ran {
  int code = 0;
  cli::Output output;
};

// In the case's own folder, so that diagnostics name the file as a user would.
Ran export_case(const std::string& name, std::string_view exporter, const Strings& accepted,
                const Strings& further = {}) {
  const fs::path folder = tests / "golden" / name;
  fs::current_path(folder);
  Strings words{"export", fs::exists("manifest.yaml") ? "manifest.yaml" : "manifest.json", "--to",
                std::string(exporter)};
  const std::string options = fs::exists("options.txt") ? read_text("options.txt") : "";
  for (const std::string_view line : split(options, '\n')) {
    if (!line.empty()) words.emplace_back(line);
  }
  for (const std::string& capability : accepted) {
    words.push_back("--accept-unenforced=" + capability);
  }
  words.insert(words.end(), further.begin(), further.end());
  Ran ran;
  ran.code = cli::run_cli(words, ran.output);
  return ran;
}

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
  std::ranges::sort(out);
  return out;
}

class Exports : public testing::TestWithParam<std::string> {
 protected:
  Exports() { ::setenv("NO_COLOR", "1", 1); }
};

TEST_P(Exports, WhatIsAcceptedIsWhatIsUnenforced) {
  for (const std::string_view format_name : lower::exporter_names) {
    const std::string name(format_name);
    // It carries the manifest as it is, which is none without --seal.
    if (name == "mcpb-meta" && GetParam() == "seal-option") continue;
    const Ran refused = export_case(GetParam(), name, {});
    const Strings accepted = acceptable(refused.output.err);
    EXPECT_EQ(refused.code, accepted.empty() ? 0 : 4) << name << refused.output.err;
    if (refused.code != 0) EXPECT_EQ(refused.output.out, "");
    const Ran done = export_case(GetParam(), name, accepted, {"--json"});
    ASSERT_EQ(done.code, 0) << name << done.output.out;
    EXPECT_EQ(done.output.err, "");
    const text::Document artifact = support::json_document(done.output.out);
    Strings unenforced;
    for (const text::Value item : artifact.root().find("unenforced")->elements()) {
      unenforced.emplace_back(item.text());
    }
    EXPECT_EQ(unenforced, accepted) << name;
    if (std::ranges::find(reviewed, GetParam()) == reviewed.end()) continue;
    const fs::path folder = tests / "export" / GetParam();
    compare(folder / (name + ".json"), done.output.out);
    const fs::path refusal = folder / (name + ".txt");
    if (refused.code != 0) {
      compare(refusal, refused.output.err);
    } else {
      EXPECT_FALSE(fs::exists(refusal));
    }
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Exports, testing::ValuesIn(good_cases()), test_name);

}  // namespace
}  // namespace capgate
