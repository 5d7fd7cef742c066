// Golden tests: one folder of tests/golden per case, with manifest.json or manifest.yaml.
//
//   options.txt, TARGET.options.txt   words for the command line, one a line
//   TARGET.json                       the whole artifact that `compile --target TARGET` prints
//   TARGET.txt                        or the diagnostics with which it refuses
//   diagnostics.txt                   for folders named bad-*: how `compile` refuses, for any
//   target
//
// CAPGATE_UPDATE_GOLDEN=1 rewrites the expected files; the reviewer then reads the difference.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "lower/targets.h"
#include "support/source_directory.h"

namespace capgate {
namespace {

namespace fs = std::filesystem;

const fs::path golden_root = fs::path(support::source_directory()) / "tests/golden";

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_updating() {
  return std::getenv("CAPGATE_UPDATE_GOLDEN") != nullptr && std::getenv("CI") == nullptr;
}

void compare(const fs::path& expected, const std::string& actual) {
  if (is_updating()) std::ofstream(expected, std::ios::binary) << actual;
  ASSERT_TRUE(fs::exists(expected)) << "no golden " << expected << "; got:\n" << actual;
  EXPECT_EQ(read_text(expected), actual) << "see " << expected;
}

void append_words(std::vector<std::string>& words, const fs::path& file) {
  if (!fs::exists(file)) return;
  const std::string text = read_text(file);
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) words.emplace_back(line);
  }
}

struct Ran {
  int code = 0;
  cli::Output output;
};

// Runs `compile` in the case's own folder, so that diagnostics name the file as a user would.
Ran compile_case(const fs::path& folder, std::string_view target) {
  fs::current_path(folder);
  const bool yaml = fs::exists(folder / "manifest.yaml");
  std::vector<std::string> words{"compile", yaml ? "manifest.yaml" : "manifest.json"};
  append_words(words, "options.txt");
  if (!target.empty()) {
    append_words(words, format("{}.options.txt", target));
    words.insert(words.end(), {"--target", std::string(target), "--pretty"});
  }
  Ran ran;
  ran.code = cli::run_cli(words, ran.output);
  return ran;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  Golden() { ::setenv("NO_COLOR", "1", 1); }
};

std::vector<std::string> cases(bool bad) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_root)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory() && name.starts_with("bad-") == bad) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

class GoodManifest : public Golden {};

TEST_P(GoodManifest, LowersToTheReviewedArtifacts) {
  const fs::path folder = golden_root / GetParam();
  for (const lower::Target& target : lower::targets()) {
    const Ran ran = compile_case(folder, target.name);
    const fs::path artifact = folder / format("{}.json", target.name);
    const fs::path refusal = folder / format("{}.txt", target.name);
    if (is_updating()) fs::remove(ran.code == 0 ? refusal : artifact);
    EXPECT_FALSE(fs::exists(ran.code == 0 ? refusal : artifact)) << target.name;
    if (ran.code == 0) {
      EXPECT_EQ(ran.output.err, "");
      compare(artifact, ran.output.out);
    } else {
      EXPECT_EQ(ran.output.out, "");
      compare(refusal, format("exit {}\n{}", ran.code, ran.output.err));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoodManifest, testing::ValuesIn(cases(false)), test_name);

class BadManifest : public Golden {};

TEST_P(BadManifest, IsRefusedWithTheReviewedDiagnostics) {
  const fs::path folder = golden_root / GetParam();
  const Ran ran = compile_case(folder, "");
  EXPECT_TRUE(ran.code == 3 || ran.code == 4 || ran.code == 2) << "exit " << ran.code;
  EXPECT_EQ(ran.output.out, "") << "a refused manifest gives no artifact";
  compare(folder / "diagnostics.txt", format("exit {}\n{}", ran.code, ran.output.err));
}

INSTANTIATE_TEST_SUITE_P(Cases, BadManifest, testing::ValuesIn(cases(true)), test_name);

TEST(GoldenCases, AreThereInSufficientNumber) {
  EXPECT_GE(cases(false).size(), 16U);
  EXPECT_GE(cases(true).size(), 40U);
}

}  // namespace
}  // namespace capgate
