#include "core/holdings.h"

#include <gtest/gtest.h>

#include <string_view>

#include "core/grammar.h"
#include "support/manifests.h"
#include "support/timing.h"

namespace capgate::core {
namespace {

using support::Strings;

constexpr std::string_view home = "/home/u";

// What serverCapabilities of a manifest come to, with the home directory bound.
Policy policy_of(const Strings& capabilities) {
  auto manifest = support::read_manifest(support::manifest_json({capabilities}),
                                         {{.name = "HOME", .values = {std::string(home)}}});
  if (!manifest) {
    ADD_FAILURE() << manifest.error().front().message;
    return {};
  }
  auto policy = merge(*manifest);
  EXPECT_TRUE(policy);
  return policy ? *std::move(policy) : Policy{};
}

Capability parse(std::string_view text) {
  const auto parsed = parse_capability(text, {});
  EXPECT_TRUE(parsed) << text;
  return parsed->front();
}

bool is_covered(const Strings& held, std::string_view asked) {
  const Policy policy = policy_of(held);
  const Holdings holdings(policy, home);
  const Holdings* layers[] = {&holdings};
  return covers(layers, parse(asked));
}

struct Row {
  Strings held;
  std::string_view asked;
  bool expected;
};

void expect_all(std::span<const Row> rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(is_covered(row.held, row.asked), row.expected)
        << (row.held.empty() ? "nothing" : row.held.front()) << " / " << row.asked;
  }
}

TEST(Holdings, Files) {
  const Row rows[] = {
      {{"fs:write:/w/**"}, "fs:read:/w/a", true},
      {{"fs:write:/w/**"}, "fs:read:/w", true},
      {{"fs:write:/w/**"}, "fs:delete:/w/a/b/**", true},
      {{"fs:read:/w/**"}, "fs:write:/w/a", false},
      {{"fs:read:/w/a"}, "fs:read:/w", false},
      {{"fs:read:/w"}, "fs:read:/wa", false},
      {{"fs:create:/w", "fs:delete:/w"}, "fs:write:/w/a", true},
      {{"fs:create:/w"}, "fs:delete:/w/a", false},
      {{}, "fs:read:/w", false},
  };
  expect_all(rows);
}

TEST(Holdings, WhatIsHeldBackIsOpenedByItsOwnGrantAlone) {
  const Row rows[] = {
      {{"fs:read:/w/**"}, "fs:read:/w/.env", false},
      {{"fs:read:/w/**", "fs:read:/w/.env"}, "fs:read:/w/.env", true},
      {{"fs:read:/w/**"}, "fs:read:/w/.git/hooks", false},
      {{"fs:write:/w/**"}, "fs:write:/w/.git/hooks/pre-commit", false},
      {{"fs:write:/w/.git/hooks"}, "fs:write:/w/.git/hooks/pre-commit", true},
      {{"fs:write:/w/**", "fs:read:/w/.env"}, "fs:write:/w/.env", false},
      {{"fs:read:/home/u/notes/**"}, "fs:read:/home/u/notes/a", true},
      {{"fs:read:/home/u/.config/**"}, "fs:read:/home/u/.config/gh", false},
      {{"fs:read:/home/u/.aws"}, "fs:read:/home/u/.aws/config", true},
  };
  expect_all(rows);
}

// /tmp is the sandbox's own.
TEST(Holdings, TheTemporaryDirectoryHoldsNothingOfTheHost) {
  const Row rows[] = {
      {{"fs:write:/tmp"}, "fs:write:/tmp", true},
      {{"fs:write:/tmp"}, "fs:read:/tmp/x", false},
      {{"fs:write:/tmp", "fs:read:/tmp/x"}, "fs:read:/tmp/x/y", true},
  };
  expect_all(rows);
}

TEST(Holdings, Globs) {
  const Row rows[] = {
      {{"fs:read:/w/**"}, "fs:read:/w/*.md", true},
      {{"fs:read:/w/*"}, "fs:read:/w/*.md", true},
      {{"fs:read:/w/*.md"}, "fs:read:/w/*.md", true},
      {{"fs:read:/w/*.md"}, "fs:read:/w/*", false},
      {{"fs:read:/w/*.md"}, "fs:read:/w/a.md", false},
      {{"fs:read:/w/*"}, "fs:read:/w/a/*.md", false},
  };
  expect_all(rows);
}

TEST(Holdings, Hosts) {
  const Row rows[] = {
      {{"net:connect:*.a.test:443"}, "net:connect:b.a.test:443", true},
      {{"net:connect:*.a.test:443"}, "net:connect:*.b.a.test:443", true},
      {{"net:connect:*.a.test:443"}, "net:connect:a.test:443", false},
      {{"net:connect:a.test"}, "net:connect:a.test:80", true},
      {{"net:connect:a.test:80"}, "net:connect:a.test", false},
      {{"net:connect:*"}, "net:connect:a.test:80", true},
      {{"net:connect:*"}, "net:connect:localhost:80", false},
      {{"net:connect:a.test:443?methods=GET,POST"}, "net:connect:a.test:443?methods=GET", true},
      {{"net:connect:a.test:443?methods=GET"}, "net:connect:a.test:443", false},
      {{"net:connect:a.test:443?paths=/repos/**"}, "net:connect:a.test:443?paths=/repos/x", true},
      {{"net:connect:a.test:443?paths=/repos/**"}, "net:connect:a.test:443?paths=/repos", false},
      {{"net:connect:a.test:443"}, "net:connect:a.test:443?sni=strict", true},
      {{"net:connect:a.test:443?sni=strict"}, "net:connect:a.test:443", false},
      {{"net:listen:8080"}, "net:listen:8080", true},
      {{"net:listen:8080"}, "net:listen:8081", false},
  };
  expect_all(rows);
}

TEST(Holdings, VariablesProgramsAndTheRest) {
  const Row rows[] = {
      {{"env:inject:A"}, "env:read:A", true},
      {{"env:read:A"}, "env:inject:A", false},
      {{"env:inject:A"}, "env:inject:A?to=a.test:443", true},
      {{"env:inject:A?to=a.test:443", "env:inject:A?to=b.test:443"},
       "env:inject:A?to=b.test:443",
       true},
      {{"env:inject:A?to=a.test:443"}, "env:inject:A?to=b.test:443", false},
      {{"env:inject:A?to=a.test:443"}, "env:inject:A", false},
      {{"env:inject:A?to=a.test:443"}, "env:read:A", false},
      {{"exec:spawn:git"}, "exec:spawn:git", true},
      {{"exec:spawn:git"}, "exec:spawn:rg", false},
  };
  expect_all(rows);
}

TEST(Holdings, ALimitIsCoveredByALargerOneOrTheDefault) {
  const Row rows[] = {
      {{"limit:memory:2G"}, "limit:memory:1G", true},
      {{"limit:memory:2G"}, "limit:memory:2G", true},
      {{"limit:memory:2G"}, "limit:memory:3G", false},
      {{}, "limit:memory:2G", true},
      {{}, "limit:memory:3G", false},
      {{}, "limit:cpu:150%", true},
      {{"limit:memory:2G"}, "limit:pids:9", true},
  };
  expect_all(rows);
}

TEST(Holdings, TheRelatedGrantIsTheOneWithAnotherExtent) {
  const Policy policy =
      policy_of({"fs:read:/w/**", "net:connect:a.test:443?methods=GET", "env:read:A"});
  const Holdings holdings(policy, home);
  const Holdings* layers[] = {&holdings};
  const auto related_to = [&](std::string_view text) {
    const auto found = related(layers, parse(text));
    return found ? print(*found) : "";
  };
  EXPECT_EQ(related_to("fs:write:/w/a"), "fs:read:/w/**");
  EXPECT_EQ(related_to("fs:write:/w/.env"), "");
  EXPECT_EQ(related_to("net:connect:a.test:443"), "net:connect:a.test:443?methods=GET");
  EXPECT_EQ(related_to("env:inject:A"), "env:read:A");
  EXPECT_EQ(related_to("exec:spawn:git"), "");
}

// A path of nothing but slashes on both sides: each is looked for above the other.
TEST(Holdings, ALongPathCostsAboutAsMuchMoreAsItIsLonger) {
  const auto seconds = [](std::size_t n) {
    std::string path;
    for (std::size_t i = 0; i < n; ++i) path += "/a";
    const Policy policy = policy_of({"net:connect:a.test:443?paths=" + path + "/b/**"});
    const Holdings holdings(policy, home);
    const Holdings* layers[] = {&holdings};
    const Capability asked = parse("net:connect:a.test:443?paths=" + path + "/c");
    return support::shortest_seconds([&] { EXPECT_FALSE(covers(layers, asked)); });
  };
  const double ratio = seconds(64'000) / seconds(8'000);
  EXPECT_LT(ratio, 36) << "eight times as much, with room for a busy machine; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::core
