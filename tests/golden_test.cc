// Golden tests: one folder of tests/golden per case, with manifest.json or manifest.yaml.
//
//   options.txt, TARGET.options.txt   words for the command line, one a line
//   ../TARGET.options.txt             the same for every case, at the end
//   egress-KIND.json, egress-KIND/    TARGET egress with --egress-target KIND
//   TARGET.json                       the whole artifact that `compile --target TARGET` prints
//   TARGET/NAME                       its files, as --output writes them
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

// A target, or one of the kinds of rules that egress gives.
struct View {
  std::string name;
  const lower::Target* target = nullptr;
  std::vector<std::string> words = {};
};

std::vector<View> views() {
  std::vector<View> out;
  for (const lower::Target& target : lower::targets()) {
    out.push_back({.name = std::string(target.name), .target = &target});
    if (target.name != "egress") continue;
    for (const std::string kind : {"squid", "nftables", "envoy", "mitmproxy"}) {
      out.push_back(
          {.name = "egress-" + kind, .target = &target, .words = {"--egress-target", kind}});
    }
  }
  return out;
}

// Runs `compile` in the case's own folder, so that diagnostics name the file as a user would.
Ran compile_case(const fs::path& folder, const View* view, const fs::path& files = {}) {
  fs::current_path(folder);
  const bool yaml = fs::exists(folder / "manifest.yaml");
  std::vector<std::string> words{"compile", yaml ? "manifest.yaml" : "manifest.json"};
  append_words(words, "options.txt");
  if (view != nullptr) {
    const std::string target(view->target->name);
    append_words(words, format("{}.options.txt", view->name));
    words.insert(words.end(), {"--target", target, "--pretty"});
    words.insert(words.end(), view->words.begin(), view->words.end());
    if (!files.empty()) words.insert(words.end(), {"--output", files.string()});
    append_words(words, format("../{}.options.txt", target));
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

// The files beside an artifact: the reviewed ones, neither more nor fewer.
void compare_files(const fs::path& expected, const fs::path& written) {
  const auto names = [](const fs::path& folder) {
    std::vector<std::string> out;
    if (!fs::exists(folder)) return out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path().filename());
    std::ranges::sort(out);
    return out;
  };
  if (is_updating()) {
    fs::remove_all(expected);
    if (!names(written).empty()) fs::create_directory(expected);
  }
  for (const std::string& name : names(written)) {
    compare(expected / name, read_text(written / name));
  }
  EXPECT_EQ(names(expected), names(written)) << expected;
}

// A folder of this test alone, which goes away with it.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / "capgate-golden-XXXXXX") {
    std::string name = path_;
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class GoodManifest : public Golden {};

TEST_P(GoodManifest, LowersToTheReviewedArtifacts) {
  const fs::path folder = golden_root / GetParam();
  for (const View& view : views()) {
    const Folder files;
    const bool has_files = view.target->files;
    const Ran ran = compile_case(folder, &view, has_files ? files.path() : fs::path());
    const fs::path artifact = folder / format("{}.json", view.name);
    const fs::path refusal = folder / format("{}.txt", view.name);
    if (is_updating()) fs::remove(ran.code == 0 ? refusal : artifact);
    EXPECT_FALSE(fs::exists(ran.code == 0 ? refusal : artifact)) << view.name;
    if (ran.code == 0) {
      EXPECT_EQ(ran.output.err, "");
      compare(artifact, ran.output.out);
    } else {
      EXPECT_EQ(ran.output.out, "");
      compare(refusal, format("exit {}\n{}", ran.code, ran.output.err));
    }
    if (has_files) compare_files(folder / view.name, files.path());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoodManifest, testing::ValuesIn(cases(false)), test_name);

class BadManifest : public Golden {};

TEST_P(BadManifest, IsRefusedWithTheReviewedDiagnostics) {
  const fs::path folder = golden_root / GetParam();
  const Ran ran = compile_case(folder, nullptr);
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
