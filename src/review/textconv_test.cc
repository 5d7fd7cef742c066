#include "review/textconv.h"

#include <gtest/gtest.h>

#include "text/json.h"

namespace capgate::review {
namespace {

std::string lines(std::string json) { return plain_lines(*text::parse_json(std::move(json))); }

TEST(Textconv, OrderAndSpellingOfAManifestDoNotShow) {
  const std::string one = lines(
      R"({"name":"s","version":"1","tools":[
          {"name":"b","capabilities":["fs:read:/w//x/**","env:read:LANG"]},
          {"name":"a","capabilities":[]}]})");
  const std::string other = lines(
      R"({"tools":[{"capabilities":[],"name":"a"},
          {"name":"b","capabilities":["env:read:LANG","fs:read:/w/x/**","env:read:LANG"]}],
          "version":"1","name":"s"})");
  EXPECT_EQ(one, other);
  EXPECT_TRUE(one.starts_with("s 1\ntool a: nothing\ntool b\n  env:read:LANG  ")) << one;
  EXPECT_TRUE(one.contains("  fs:read:/w/x/**  ")) << one;
}

TEST(Textconv, WhatIsGrantedShows) {
  const std::string before = lines(R"({"name":"s","version":"1","tools":[]})");
  const std::string after = lines(
      R"({"name":"s","version":"1","tools":[],"serverCapabilities":["net:connect:x.test:443"]})");
  EXPECT_NE(before, after);
  EXPECT_TRUE(after.contains("every tool\n  net:connect:x.test:443")) << after;
}

TEST(Textconv, WhatCannotBeReadIsShownAsItIs) {
  EXPECT_EQ(lines("[1, 2]"), "[1, 2]");
  EXPECT_EQ(lines(R"({"tools": 3})"), R"({"tools": 3})");
  EXPECT_TRUE(lines(R"({"tools":[{"name":"t","capabilities":["fs:read:${X}/**","nonsense",7]}]})")
                  .contains("tool t\n  ? (no text)\n  fs:read:${X}/**\n  nonsense\n"));
}

}  // namespace
}  // namespace capgate::review
