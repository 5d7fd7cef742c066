// Every sample of a foreign format: tests/import/samples/FORMAT/NAME is recognised as that format
// alone, and read as tests/import/expected/FORMAT/NAME.txt says: the manifest, how the server is
// started, and the loss report.
//
// CAPGATE_UPDATE_GOLDEN=1 rewrites the expected files; the reviewer then reads the difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/text.h"
#include "core/manifest.h"
#include "import/formats.h"
#include "support/source_directory.h"
#include "text/json.h"
#include "text/json_or_yaml.h"

namespace capgate::imports {
namespace {

namespace fs = std::filesystem;

const fs::path root = fs::path(support::source_directory()) / "tests/import";
const ImportPlace place{
    .file = "sample", .directory = "/srv/project", .home = "/home/me", .server = ""};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_updating() {
  return std::getenv("CAPGATE_UPDATE_GOLDEN") != nullptr && std::getenv("CI") == nullptr;
}

std::string shown(const Imported& imported) {
  std::string out = print_manifest(imported);
  if (!imported.command.empty()) out += format("command: {}\n", join(imported.command, " "));
  if (!imported.variables.empty()) out += format("variables: {}\n", join(imported.variables, " "));
  for (const Loss& loss : imported.losses) {
    out += format("{}: {}: {}\n", kind_name(loss.kind), loss.subject, loss.message);
  }
  return out;
}

Checked<core::Manifest> parse_manifest(const Imported& imported) {
  auto document = text::parse_json(print_manifest(imported));
  if (!document) return std::unexpected(std::move(document).error());
  core::Bindings bindings;
  for (const std::string& name : imported.variables) {
    bindings.push_back({.name = name, .values = {name == "HOME" ? "/home/me" : "/srv/bound"}});
  }
  return core::parse_manifest(*document, bindings);
}

std::vector<fs::path> samples() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(root / "samples")) {
    if (entry.is_regular_file()) out.push_back(fs::relative(entry.path(), root / "samples"));
  }
  std::ranges::sort(out);
  return out;
}

class SampleTest : public testing::TestWithParam<fs::path> {};

TEST_P(SampleTest, IsReadAsExpected) {
  const fs::path sample = GetParam();
  const std::string name = sample.parent_path().string();
  auto document = text::parse_json_or_yaml(sample.filename().string(),
                                           text::share(read_text(root / "samples" / sample)));
  ASSERT_TRUE(document) << document.error().front().message;

  const auto format = detect_format(*document);
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_EQ((*format)->name, name);

  const auto imported = (*format)->read(*document, place);
  ASSERT_TRUE(imported) << imported.error().front().message;
  EXPECT_EQ(imported->format, name);
  const auto manifest = parse_manifest(*imported);
  ASSERT_TRUE(manifest) << manifest.error().front().message;
  EXPECT_TRUE(std::ranges::is_sorted(imported->capabilities));

  const fs::path expected = root / "expected" / (sample.string() + ".txt");
  if (is_updating()) {
    fs::create_directories(expected.parent_path());
    std::ofstream(expected, std::ios::binary) << shown(*imported);
  }
  ASSERT_TRUE(fs::exists(expected)) << "no " << expected << "; got:\n" << shown(*imported);
  EXPECT_EQ(read_text(expected), shown(*imported));
}

INSTANTIATE_TEST_SUITE_P(All, SampleTest, testing::ValuesIn(samples()), [](const auto& info) {
  std::string name = info.param.string();
  std::ranges::replace_if(name, [](char c) { return !is_alnum(c); }, '_');
  return name;
});

TEST(Samples, EveryFormatHasOne) {
  for (const Format& format : formats()) {
    EXPECT_TRUE(fs::exists(root / "samples" / format.name)) << format.name;
  }
}

}  // namespace
}  // namespace capgate::imports
