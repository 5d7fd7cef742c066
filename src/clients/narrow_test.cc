#include "clients/narrow.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/grammar.h"
#include "core/merge.h"

namespace capgate::clients {
namespace {

core::Manifest of(const std::vector<std::string>& capabilities) {
  core::Manifest out;
  for (const std::string& text : capabilities) {
    const auto parsed = core::parse_capability(text, {});
    EXPECT_TRUE(parsed) << text;
    out.declared.push_back({.capability = parsed->front(), .where = {}});
  }
  return out;
}

std::string beyond(const std::vector<std::string>& base, const std::vector<std::string>& wanted) {
  return join(grants_beyond(of(base), of(wanted)), " ");
}

TEST(Narrow, LessIsNotBeyond) {
  EXPECT_EQ(beyond({}, {}), "");
  EXPECT_EQ(beyond({"fs:read:/w/**"}, {}), "");
  EXPECT_EQ(beyond({"fs:write:/w/**"}, {"fs:read:/w/a"}), "");
  EXPECT_EQ(beyond({"net:connect:*.example.com:443"}, {"net:connect:api.example.com:443"}), "");
  EXPECT_EQ(beyond({"net:connect:a.example:443"}, {"net:connect:a.example:443?methods=GET"}), "");
  EXPECT_EQ(beyond({"net:connect:a.example:80?methods=GET,POST"},
                   {"net:connect:a.example:80?methods=GET"}),
            "");
  EXPECT_EQ(beyond({"limit:memory:1G"}, {"limit:memory:512M"}), "");
  EXPECT_EQ(beyond({}, {"limit:memory:512M"}), "") << "less than the default";
  EXPECT_EQ(beyond({"env:read:LANG", "exec:spawn:git"}, {"exec:spawn:git"}), "");
}

TEST(Narrow, EachGrantBeyondIsNamed) {
  EXPECT_EQ(beyond({}, {"fs:read:/w"}), "fs:read:/w");
  EXPECT_EQ(beyond({"fs:read:/w/**"}, {"fs:write:/w/a", "fs:read:/w/b", "fs:read:/x"}),
            "fs:write:/w/a fs:read:/x");
  EXPECT_EQ(beyond({"net:connect:a.example:443?methods=GET"}, {"net:connect:a.example:443"}),
            "net:connect:a.example:443");
  EXPECT_EQ(beyond({"net:connect:a.example:443"}, {"net:connect:a.example:80"}),
            "net:connect:a.example:80");
  EXPECT_EQ(beyond({"limit:memory:512M"}, {"limit:memory:1G"}), "limit:memory:1G");
  EXPECT_EQ(beyond({}, {"limit:memory:64G"}), "limit:memory:64G") << "more than the default";
  EXPECT_EQ(beyond({"exec:spawn:git"}, {"exec:spawn:git?nestedSandbox=true"}),
            "exec:spawn:git?nestedSandbox=true");
}

TEST(Narrow, AValueThatWasSealedIsBeyondWhenItIsHeld) {
  const std::vector<std::string> sealed = {"net:connect:a.example:443",
                                           "env:inject:TOKEN?to=a.example:443"};
  EXPECT_EQ(beyond(sealed, sealed), "");
  EXPECT_EQ(beyond(sealed, {"env:inject:TOKEN"}), "env:inject:TOKEN");
  EXPECT_EQ(beyond(sealed, {"env:read:TOKEN"}), "env:read:TOKEN") << "the launcher's value is held";
}

TEST(Narrow, AnAssertionGrantsNothing) { EXPECT_EQ(beyond({}, {"assert:db.ro:\"text\""}), ""); }

TEST(Narrow, WhatHoldsTheServerBackIsKept) {
  const core::Manifest base = of({"limit:memory:512M", "limit:pids:10", "assert:a.b:\"base\"",
                                  "assert:c.d:\"base\"", "fs:read:/w"});
  core::Manifest wanted = of({"limit:memory:256M", "assert:a.b:\"own\""});
  keep_bounds(base, wanted);
  const auto policy = core::merge(wanted);
  ASSERT_TRUE(policy);
  EXPECT_EQ(core::policy_lines(*policy),
            (std::vector<std::string>{"limit:memory:256M", "limit:pids:10", "assert:a.b:\"own\"",
                                      "assert:c.d:\"base\""}));
}

}  // namespace
}  // namespace capgate::clients
