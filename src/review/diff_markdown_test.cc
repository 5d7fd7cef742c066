#include <gtest/gtest.h>

#include "base/format.h"
#include "review/diff_print.h"

namespace capgate::review {
namespace {

using Kind = core::GrantChange::Kind;

ShownChange change(Kind kind, std::string capability) {
  return {.kind = kind,
          .sentence = "may now do it",
          .capability = std::move(capability),
          .before = {},
          .after = {},
          .places = {}};
}

ShownServer server(std::string name, Verdict verdict, std::vector<ShownChange> changes) {
  return {.name = std::move(name),
          .file = {},
          .verdict = verdict,
          .changes = std::move(changes),
          .tools = {}};
}

TEST(DiffMarkdown, TheWorstServerIsNotHiddenBehindOthers) {
  std::vector<ShownServer> servers;
  for (int i = 0; i < 200; ++i) {
    servers.push_back(server(format("calm{}", i), Verdict::less,
                             {change(Kind::narrowed, format("fs:read:/w/{}", i))}));
  }
  servers.push_back(server("zmoved", Verdict::moved, {change(Kind::moved, "fs:read:/m")}));
  servers.push_back(
      server("zwide", Verdict::more, {change(Kind::widened, "net:connect:evil.test:443")}));
  const std::string text = diff_markdown(servers, {.unbound = {}, .notes = {}});
  const std::size_t worst = text.find("net:connect:evil.test:443");
  ASSERT_NE(worst, std::string::npos);
  ASSERT_NE(text.find("zmoved"), std::string::npos);
  EXPECT_LT(worst, text.find("zmoved"));
  EXPECT_LT(text.find("zmoved"), text.find("calm0"));
  EXPECT_TRUE(text.contains("And 182 more servers"));
}

TEST(DiffMarkdown, OfAListThatIsCutEachSortIsKept) {
  std::vector<ShownChange> changes;
  for (int i = 0; i < 1000; ++i) {
    changes.push_back(change(Kind::widened, format("fs:read:/w/{}", i)));
  }
  for (const std::string_view rare :
       {"fs:write:/x", "fs:create,delete:/y", "net:connect:evil.test:443", "net:listen:80",
        "exec:spawn:sh", "env:inject:TOKEN", "env:read:LANG", "ipc:connect:x11", "clock:tzdata",
        "limit:memory:64G"}) {
    changes.push_back(change(Kind::widened, std::string(rare)));
  }
  const ShownServer servers[] = {server("s", Verdict::more, changes)};
  const std::string text = diff_markdown(servers, {.unbound = {}, .notes = {}});
  for (const std::string_view rare :
       {"fs:write:/x", "net:connect:evil.test:443", "net:listen:80", "exec:spawn:sh",
        "env:inject:TOKEN", "env:read:LANG", "ipc:connect:x11", "clock:tzdata", "limit:memory:64G",
        "fs:read:/w/0"}) {
    EXPECT_TRUE(text.contains(format("`{}`", rare))) << rare;
  }
  EXPECT_TRUE(text.contains("and 970 more"));
  EXPECT_LT(text.find("exec:spawn:sh"), text.find("fs:write:/x"));
  EXPECT_LT(text.find("net:connect:evil"), text.find("fs:read:/w/0"));
}

TEST(DiffMarkdown, WhatFitsKeepsItsOrder) {
  const ShownServer servers[] = {
      server("s", Verdict::more,
             {change(Kind::widened, "fs:read:/a"), change(Kind::widened, "exec:spawn:sh")})};
  const std::string text = diff_markdown(servers, {.unbound = {}, .notes = {}});
  EXPECT_LT(text.find("fs:read:/a"), text.find("exec:spawn:sh"));
}

TEST(DiffMarkdown, OfManyToolsAndLinesTheWorstAreKept) {
  ShownServer one = server("s", Verdict::more, {});
  for (int i = 0; i < 100; ++i) {
    ShownTool tool{.name = format("calm{}", i),
                   .presence = core::ToolChange::Presence::both,
                   .changes = {change(Kind::narrowed, "fs:read:/w")}};
    one.tools.push_back(tool);
  }
  ShownTool last{.name = "zlast", .presence = core::ToolChange::Presence::both, .changes = {}};
  for (int i = 0; i < 50; ++i) {
    last.changes.push_back(change(Kind::narrowed, format("fs:read:/n/{}", i)));
  }
  last.changes.push_back(change(Kind::moved, "exec:spawn:sh"));
  one.tools.push_back(last);
  const ShownServer servers[] = {one};
  const std::string text = diff_markdown(servers, {.unbound = {}, .notes = {}});
  EXPECT_TRUE(text.contains("zlast"));
  EXPECT_TRUE(text.contains("exec:spawn:sh"));
}

}  // namespace
}  // namespace capgate::review
