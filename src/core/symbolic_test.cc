#include "core/symbolic.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "core/manifest.h"
#include "support/manifests.h"
#include "support/timing.h"

namespace capgate::core {
namespace {

TEST(Symbolic, AVariableStandsForItselfAndIsPrintedAsItself) {
  for (const std::string text :
       {"fs:read:${REPO}/**", "fs:write:${REPO}", "fs:read:/home/${USER}/notes/*.md",
        "fs:read:${A}/x/${B}", "net:connect:${HOST}:443", "net:connect:api.${DOMAIN}:443",
        "net:connect:*.${DOMAIN}", "exec:spawn:${PROGRAM}", "env:read:${NAME}",
        "ipc:connect:\"unix:${SOCKET}\"", "env:inject:T?to=${HOST}:443",
        "net:connect:h:80?paths=/v1/${ORG}"}) {
    Symbols symbols;
    const auto parsed = symbols.parse(text, {});
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message;
    ASSERT_EQ(parsed->size(), 1U);
    EXPECT_EQ(symbols.show(print(parsed->front())), text);
  }
}

TEST(Symbolic, EqualExactlyToItself) {
  Symbols symbols;
  const auto parse = [&](std::string_view text) { return symbols.parse(text, {})->front(); };
  EXPECT_EQ(parse("fs:read:${A}"), parse("fs:read:${A}"));
  EXPECT_NE(parse("fs:read:${A}"), parse("fs:read:${B}"));
  EXPECT_NE(parse("fs:read:${A}B"), parse("fs:read:${AB}"));
  EXPECT_NE(parse("fs:read:${A}1"), parse("fs:read:${A}"));
  EXPECT_NE(parse("fs:read:/${A}"), parse("fs:read:${A}"));
  EXPECT_NE(parse("net:connect:${A}"), parse("net:connect:${A}.cg.test"));
}

TEST(Symbolic, WhatIsBoundKeepsItsValue) {
  Symbols symbols;
  const Bindings bindings = {{.name = "A", .values = {"/x", "/y"}}};
  const auto parsed = symbols.parse("fs:read:${A}/${B}", bindings);
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 2U);
  EXPECT_EQ(symbols.show(print(parsed->back())), "fs:read:/y/${B}");
  EXPECT_EQ(symbols.names(), std::vector<std::string>{"B"});
}

TEST(Symbolic, NobodySpellsAStandIn) {
  Symbols symbols;
  const std::string name = symbols.directory("REPO");
  EXPECT_FALSE(symbols.parse("fs:read:" + name, {}));
  EXPECT_FALSE(symbols.parse("net:connect:CGunboundWORD0x0x0", {}));
}

TEST(Symbolic, NumbersMustBeBound) {
  Symbols symbols;
  for (const std::string text :
       {"net:connect:h:${PORT}", "limit:memory:${MEMORY}", "fs:read:${a}"}) {
    EXPECT_FALSE(symbols.parse(text, {})) << text;
  }
}

TEST(Symbolic, OfAWholeManifest) {
  Symbols symbols;
  const auto document = support::json_document(
      support::manifest_json({{"fs:read:${HOME}/notes", "fs:read:${HOME}/.ssh/config"}}));
  const auto manifest = parse_manifest(document, {}, symbols);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->home, symbols.directory("HOME"));
  EXPECT_EQ(manifest->used_variables.size(), 2U);
  const auto all = support::json_document(support::manifest_json({{"fs:read:${HOME}/**"}}));
  EXPECT_FALSE(parse_manifest(all, {}, symbols)) << "a whole home directory, whichever it is";
}

TEST(Symbols, NamesAmongThoseThatAreUsed) {
  Symbols symbols;
  (void)symbols.directory("HOME");
  ASSERT_TRUE(symbols.parse("fs:read:${B}/**", {}));
  ASSERT_TRUE(symbols.parse("fs:read:${A}/**", {}));
  const std::vector<std::string> used = {"B", "C", "A", "B"};
  EXPECT_EQ(symbols.names_among(used), (std::vector<std::string>{"A", "B"}));
}

TEST(Symbols, ManyCostAboutAsMuchMoreAsThereAreMore) {
  const auto seconds = [](std::size_t n) {
    return support::shortest_seconds([&] {
      Symbols symbols;
      for (std::size_t i = 0; i < n; ++i) (void)symbols.directory(format("VARIABLE_{}", i));
      EXPECT_EQ(symbols.names().size(), n);
    });
  };
  const double ratio = seconds(16'000) / seconds(2'000);
  EXPECT_LT(ratio, 36) << "eight times as much, with room for a busy machine; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::core
