#include "egress/url_path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace capgate::egress {
namespace {

TEST(UrlPath, APatternIsComparedPartByPart) {
  struct Case {
    std::string_view pattern;
    std::string_view path;
    bool matches;
  };
  constexpr Case cases[] = {
      {"/", "/", true},
      {"/", "/a", false},
      {"/*", "/a", true},
      {"/*", "/", false},
      {"/*", "/a/b", false},
      {"/**", "/", true},
      {"/**", "/a/b/", true},
      {"/a*c*e", "/abcde", true},
      {"/a*c*e", "/ace", true},
      {"/a*c*e", "/abcd", false},
      {"/a*c", "/acbc", true},
      {"/a/**/b", "/a/x/b", true},
      {"/a/**/b", "/a/x/y/b", false},  // inside a pattern "**" is one part, the narrower reading
      {"/a/**", "/a/", true},
      {"/a/**", "/a", false},
      {"/a/**", "/ab/c", false},
      {"/a", "/a/", false},
      {"/a/", "/a", false},
      {"/a", "", false},
      {"/a", "a", false},
      {"/**", "*", false},
      {"/**", "http://a.test/", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(path_matches(c.pattern, c.path), c.matches) << c.pattern << " " << c.path;
  }
}

TEST(UrlPath, WhatCanBeReadInTwoWaysMatchesNothing) {
  const std::string_view doubtful[] = {
      "/.",     "/..",      "/a/../b",      "/a/%2e%2E/b", "/a/.%2e",  "/%252e%252e/b", "/a/..;x/b",
      "/a//b",  "//a",      "/a%2fb",       "/a%252fb",    "/a\\b",    "/a%5Cb",        "/a%00b",
      "/a\x01", "/a%0d%0a", "/%2525252e./", "/a%",         "/a%2",     "/a%g0",         "",
      "a",      "/a%2f",    "/%2e",         "/a;b/..;c/d", "/a/%2e;b", "/a/\x7f"};
  for (const std::string_view path : doubtful) {
    EXPECT_TRUE(is_ambiguous_path(path)) << path;
    EXPECT_FALSE(path_matches("/**", path)) << path;
  }
}

// A server that decodes fewer times than we do would see another path.
TEST(UrlPath, IsDoubtfulWhereItIsEncodedMoreThanFourTimes) {
  EXPECT_FALSE(is_ambiguous_path("/a%25252541"));
  EXPECT_TRUE(is_ambiguous_path("/a%2525252541"));
}

TEST(UrlPath, OrdinaryPathsAreNotDoubtful) {
  for (const std::string_view path : {"/", "/a", "/a/", "/a.b/..c/d..", "/...", "/a%20b", "/a;b=c",
                                      "/100%25", "/%C3%A9", "/a:b@c,d"}) {
    EXPECT_FALSE(is_ambiguous_path(path)) << path;
    EXPECT_TRUE(path_matches("/**", path)) << path;
  }
}

}  // namespace
}  // namespace capgate::egress
