#include "cli/catalog_check.h"

#include <gtest/gtest.h>

#include <string>

namespace capgate::cli {
namespace {

constexpr std::string_view good =
    R"({"name": "x", "packages": ["npm:x"], "arguments": {"0": "A"}, "optional": ["KEY"],
        "manifest": {"name": "x", "version": "1",
                     "serverCapabilities": ["env:inject:KEY?to=a.example:443"],
                     "tools": [{"name": "t", "capabilities": ["net:connect:a.example:443"]},
                               {"name": "u", "capabilities": ["fs:read:${A}"]}]}})";

std::string problems_with(std::string_view from, std::string_view to) {
  std::string text(good);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  std::string out;
  for (const std::string& problem : check_entry(text).problems) out += problem + "\n";
  return out;
}

TEST(CatalogCheck, FindsNothingInAnEntryThatIsRight) {
  const CatalogCheck check = check_entry(good);
  EXPECT_EQ(check.name, "x");
  EXPECT_EQ(check.tools, 2U);
  EXPECT_TRUE(check.problems.empty()) << check.problems.front();
}

TEST(CatalogCheck, FindsWhatIsWrong) {
  const std::pair<std::pair<std::string_view, std::string_view>, std::string_view> table[] = {
      {{"{\"name\"", "{\"name"}, "DOC_SYNTAX"},
      {{"\"0\": \"A\"", "\"0\": \"B\""}, "nothing binds ${A}"},
      {{"\"u\"", "\"t\""}, "MANIFEST_DUPLICATE_TOOL"},
      {{"fs:read:${A}", "fs:read:x${A}"}, "CAP_FS_RELATIVE"},
      {{"net:connect:a.example:443", "net:connect:b.example:443"}, "SEAL_UNUSABLE"},
      {{"\"tools\"", "\"tool\""}, "MANIFEST"},
      {{"\"t\", \"capabilities\"", "\"t\", \"capability\""}, "MANIFEST"},
      {{"fs:read:${A}", "net:connect:a.example:53\", \"fs:read:${A}"}, "ADAPTER_UNSUPPORTED"},
  };
  for (const auto& [change, expected] : table) {
    const std::string problems = problems_with(change.first, change.second);
    EXPECT_NE(problems.find(expected), std::string::npos) << change.second << ": " << problems;
  }
}

TEST(CatalogCheck, TheWholeCatalogIsRight) {
  const auto checks = check_catalog();
  EXPECT_GE(checks.size(), 30U);
  for (const CatalogCheck& check : checks) {
    for (const std::string& problem : check.problems)
      ADD_FAILURE() << check.name << ": " << problem;
  }
}

}  // namespace
}  // namespace capgate::cli
