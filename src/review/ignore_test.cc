#include "review/ignore.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "text/yaml.h"

namespace capgate::review {
namespace {

Checked<IgnoreFile> parse(std::string text) {
  const auto document = text::parse_yaml(text::share(std::move(text)));
  EXPECT_TRUE(document);
  return parse_ignore_file(*document);
}

std::string entry(std::string_view more) {
  return format("ignore:\n  - rule: NET_ANY\n    reason: it fetches any page\n{}", more);
}

Finding finding(std::string_view rule, const std::string& tool, const std::string& capability) {
  return {.rule = rule,
          .level = Level::warning,
          .message = "m",
          .help = "h",
          .file = "a/m.json",
          .position = {3, 4},
          .end = {3, 9},
          .identity = tool + "\n" + capability,
          .tool = tool,
          .capability = capability};
}

Reviewed review_on(const std::string& text, std::string_view today,
                   std::vector<std::string> checked = {"a/m.json"}) {
  const auto file = parse(text);
  EXPECT_TRUE(file) << (file ? "" : file.error().front().message);
  const Source source("i.yaml", text);
  return apply_ignore_file(
      *file, {finding("NET_ANY", "", "net:connect:*")},
      {.source = &source, .file = "i.yaml", .today = today, .checked = checked});
}

std::string verdict(const Reviewed& reviewed) {
  std::string out;
  for (const Finding& each : reviewed.findings) out += std::string(each.rule) + " ";
  return out + "| " + std::to_string(reviewed.suppressed.size());
}

TEST(IgnoreFile, AFindingIsIgnoredThroughItsLastDay) {
  const std::string text = entry("    expires: 2027-06-30\n");
  EXPECT_EQ(verdict(review_on(text, "2026-11-16")), "| 1");
  EXPECT_EQ(verdict(review_on(text, "2027-06-30")), "| 1");
  EXPECT_EQ(verdict(review_on(text, "2027-07-01")), "NET_ANY IGNORE_EXPIRED | 0");
  EXPECT_EQ(verdict(review_on(entry("    expires: never\n"), "9999-01-01")), "| 1");
}

TEST(IgnoreFile, TheReasonIsKept) {
  const auto reviewed = review_on(entry("    expires: never\n"), "2026-11-16");
  ASSERT_EQ(reviewed.suppressed.size(), 1U);
  EXPECT_EQ(reviewed.suppressed[0].reason, "it fetches any page");
}

TEST(IgnoreFile, WhatNarrowsAnEntryMustMatch) {
  const std::string end = "    expires: never\n";
  EXPECT_EQ(verdict(review_on(entry("    capability: 'net:connect:*'\n" + end), "2026-01-01")),
            "| 1");
  EXPECT_EQ(verdict(review_on(entry("    file: ./a//m.json\n" + end), "2026-01-01")), "| 1");
  EXPECT_EQ(verdict(review_on(entry("    capability: net:connect:A.com\n" + end), "2026-01-01")),
            "NET_ANY IGNORE_UNUSED | 0");
  EXPECT_EQ(verdict(review_on(entry("    tool: t\n" + end), "2026-01-01")),
            "NET_ANY IGNORE_UNUSED | 0");
}

TEST(IgnoreFile, AnEntryAboutAnotherFileIsNotUnused) {
  EXPECT_EQ(verdict(review_on(entry("    file: b.json\n    expires: never\n"), "2026-01-01")),
            "NET_ANY | 0");
  EXPECT_EQ(verdict(review_on(entry("    file: b.json\n    expires: never\n"), "2026-01-01",
                              {"a/m.json", "b.json"})),
            "NET_ANY IGNORE_UNUSED | 0");
}

TEST(IgnoreFile, MistakesAreToldWithTheirPlace) {
  struct Row {
    std::string text;
    std::string message;
  };
  const Row rows[] = {
      {"ignore:\n  - rule: NET_ANY\n    expires: never\n", "reason is missing"},
      {entry(""), "expires is missing"},
      {entry("    expires: 2027-02-29\n"), "\"2027-02-29\" is no date"},
      {entry("    expires: soon\n"), "\"soon\" is no date"},
      {entry("    expires: never\n    tol: x\n"), "unknown key \"tol\""},
      {"ignore:\n  - rule: NET_ANYY\n    reason: r\n    expires: never\n",
       "there is no rule \"NET_ANYY\""},
      {"ignore:\n  - rule: NET_ANY\n    reason: ''\n    expires: never\n",
       "reason is a text that is not empty"},
      {entry("    expires: never\n    capability: net\n"), "\"net\" is no capability"},
      {"ignore: 3\n", "ignore is a list of entries"},
      {"ignore: [NET_ANY]\n", "an entry is a mapping"},
      {"- rule: NET_ANY\n", "an ignore file is a mapping with the one key ignore"},
      {"ignore: []\nmore: 1\n", "an ignore file is a mapping with the one key ignore"},
  };
  for (const Row& row : rows) {
    const auto file = parse(row.text);
    ASSERT_FALSE(file) << row.text;
    EXPECT_TRUE(file.error().front().message.starts_with(row.message))
        << file.error().front().message;
    EXPECT_EQ(file.error().front().code, Code::ignore_shape);
    EXPECT_LE(file.error().front().where.end, row.text.size());
  }
  EXPECT_TRUE(parse("ignore:\n"));
  EXPECT_TRUE(parse("ignore: []\n"));
}

TEST(IgnoreFile, DatesAreDays) {
  for (const char* date : {"2024-02-29", "2000-02-29", "2026-12-31", "0001-01-01"}) {
    EXPECT_TRUE(is_date(date)) << date;
  }
  for (const char* date : {"2026-02-29", "1900-02-29", "2026-13-01", "2026-00-10", "2026-04-31",
                           "2026-1-01", "26-01-01", "2026/01/01", "2026-01-0x", ""}) {
    EXPECT_FALSE(is_date(date)) << date;
  }
}

TEST(IgnoreFile, PathsArePlain) {
  EXPECT_EQ(plain_path("./a//b.json"), "a/b.json");
  EXPECT_EQ(plain_path("a/../b.json"), "b.json");
  EXPECT_EQ(plain_path("../b.json"), "../b.json");
  EXPECT_EQ(plain_path("/../b.json"), "/b.json");
  EXPECT_EQ(plain_path(""), "");
}

}  // namespace
}  // namespace capgate::review
