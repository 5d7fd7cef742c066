#include "review/sarif.h"

#include <gtest/gtest.h>

#include "review/lint_rules.h"
#include "text/json.h"

namespace capgate::review {
namespace {

Finding finding(std::string file, std::string message) {
  return {.rule = "NET_ANY",
          .level = Level::warning,
          .message = std::move(message),
          .help = "",
          .file = std::move(file),
          .position = {3, 4},
          .end = {3, 9},
          .identity = "x"};
}

std::string message_of(std::string message) {
  const std::string log = print_sarif({.rules = lint_rules(),
                                       .findings = {finding("a.json", std::move(message))},
                                       .suppressed = {}});
  const auto document = text::parse_json(log);
  EXPECT_TRUE(document);
  const auto results = (*document->root().find("runs")->elements().begin()).find("results");
  return std::string((*results->elements().begin()).find("message")->find("text")->text());
}

TEST(Sarif, PathsAreReferences) {
  EXPECT_EQ(uri_of("a/b.json"), "a/b.json");
  EXPECT_EQ(uri_of("a b#c?%.json"), "a%20b%23c%3F%25.json");
  EXPECT_EQ(uri_of("c:x.json"), "c%3Ax.json");
  EXPECT_EQ(uri_of("/srv/a b.json"), "file:///srv/a%20b.json");
  EXPECT_EQ(uri_of("\xc3\xa4.json"), "%C3%A4.json");
}

TEST(Sarif, ForeignTextIsNeitherLinkNorPlaceholder) {
  EXPECT_EQ(message_of("tool \"[x](http://evil.example)\""),
            "tool \"\\[x\\](http://evil.example)\"");
  EXPECT_EQ(message_of("{0} of {HOME}"), "{{0}} of {{HOME}}");
  EXPECT_EQ(message_of("net:connect:[::1]:80"), "net:connect:[::1]:80");
}

TEST(Sarif, IgnoredFindingsStandThereWithTheirReason) {
  const std::string log =
      print_sarif({.rules = lint_rules(),
                   .findings = {},
                   .suppressed = {{.finding = finding("a.json", "m"), .reason = "it is right"}}});
  EXPECT_NE(log.find("\"justification\": \"it is right\""), std::string::npos);
  EXPECT_NE(log.find("\"kind\": \"external\""), std::string::npos);
}

TEST(Sarif, FingerprintsTellRuleFileAndIdentityApart) {
  const Finding one = finding("a.json", "m");
  Finding moved = one;
  moved.position = {99, 1};
  EXPECT_EQ(fingerprint(one), fingerprint(moved));
  EXPECT_NE(fingerprint(one), fingerprint(finding("b.json", "m")));
  Finding other = one;
  other.identity = "y";
  EXPECT_NE(fingerprint(one), fingerprint(other));
}

}  // namespace
}  // namespace capgate::review
