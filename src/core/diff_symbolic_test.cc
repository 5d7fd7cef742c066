// A comparison with variables that nobody bound: where it says that nothing widened, nothing does
// whatever they are bound to.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "core/diff.h"
#include "core/symbolic.h"
#include "support/generators.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

using support::Strings;

// "+" for what widened, "-" for what narrowed.
struct Outcome {
  std::string signs;
  bool is_wider = false;
};

// Nothing: one of the two is no manifest, so nobody can run it.
std::optional<Outcome> compared(const Strings& before, const Strings& after,
                                const Bindings& bindings) {
  Symbols symbols;
  const auto read = [&](const Strings& lines) {
    return parse_manifest(support::json_document(support::manifest_json({lines})), bindings,
                          symbols);
  };
  const auto old = read(before);
  const auto now = read(after);
  if (!old || !now) return {};
  const auto change = diff(*old, *now);
  if (!change) return {};
  Outcome out{.signs = {}, .is_wider = change->is_wider()};
  for (const GrantChange& each : change->server) {
    out.signs += each.kind == GrantChange::Kind::widened ? "+" : "-";
  }
  return out;
}

Strings joined(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string added(const Strings& before, const std::string& line) {
  const auto out = compared(before, joined(before, {line}), {});
  if (!out) ADD_FAILURE() << line;
  return out ? out->signs : "no manifest";
}

std::string changed(const Strings& before, const Strings& after) {
  const auto out = compared(before, after, {});
  return out ? out->signs : "no manifest";
}

TEST(DiffSymbolic, AHostThatNobodyKnowsIsNoPartOfAWildcard) {
  EXPECT_EQ(added({"net:connect:*"}, "net:connect:${HOST}:443"), "+");
  EXPECT_EQ(added({"net:connect:*"}, "net:connect:api.${DOMAIN}:443"), "+");
  EXPECT_EQ(added({"net:connect:*"}, "net:connect:*.${DOMAIN}"), "+");
  EXPECT_EQ(added({"net:connect:*.test"}, "net:connect:a.${DOMAIN}"), "+");
  EXPECT_EQ(added({"net:connect:*"}, "net:connect:${USER}.a.test"), "") << "public in any case";
  EXPECT_EQ(added({"net:connect:*.a.test"}, "net:connect:${USER}.a.test:443"), "");
  EXPECT_EQ(added({"net:connect:${HOST}"}, "net:connect:${HOST}:443"), "") << "the same host";
  EXPECT_EQ(added({"net:connect:${HOST}:443"}, "net:connect:${HOST}:443?methods=GET"), "");
  EXPECT_EQ(added({"net:connect:${HOST}:443"}, "net:connect:${HOST}"), "+");
}

TEST(DiffSymbolic, APathThatNobodyKnowsMayBeHeldBack) {
  EXPECT_EQ(added({"fs:read:/srv/p/**"}, "fs:read:/srv/p/${F}"), "+");
  EXPECT_EQ(added({"fs:write:/srv/p/**"}, "fs:read:/srv/p/a${F}/b"), "+");
  EXPECT_EQ(added({"fs:read:${CFG}/**"}, "fs:read:${CFG}/gh/**"), "+");
  EXPECT_EQ(added({"fs:read:/home/${U}/.config/**"}, "fs:read:/home/${U}/.config/gh"), "+");
  EXPECT_EQ(added({"fs:read:/srv/p/**"}, "fs:read:/srv/p/${F}*.md"), "+") << "F=.git/hooks/x";
  EXPECT_EQ(added({"fs:read:/srv/p/*"}, "fs:read:/srv/p/${F}*.md"), "+");
  EXPECT_EQ(added({"fs:read:${D}/**"}, "fs:read:${D}/*"), "+") << "D=/tmp is the sandbox's own";
  EXPECT_EQ(added({"fs:read:${D}/*"}, "fs:read:${D}/*.md"), "");
  EXPECT_EQ(added({"fs:write:${D}/**"}, "fs:read:${D}"), "") << "the same directory";
  EXPECT_EQ(added({"fs:read:${HOME}/p/**"}, "fs:read:${HOME}/p/sub/**"), "")
      << "what HOME holds is known";
  EXPECT_EQ(added({"fs:read:${HOME}/p/**"}, "fs:read:${HOME}/p/.env"), "+");
  EXPECT_EQ(added({"fs:read:${HOME}/p/**"}, "fs:read:${HOME}/p/${X}"), "+");
}

TEST(DiffSymbolic, WhatIsTheSameStaysTheSame) {
  const Strings lines = {"fs:read:${REPO}/**",  "fs:read:${REPO}/sub/**",  "fs:read:${REPO}/*.md",
                         "net:connect:*",       "net:connect:${HOST}:443", "fs:write:/srv/${A}",
                         "fs:read:/srv/**",     "exec:spawn:${P}",         "env:read:${N}",
                         "fs:read:/srv/${A}/b", "fs:read:/srv/${A}*",      "net:connect:a.${D}"};
  const Strings turned(lines.rbegin(), lines.rend());
  EXPECT_EQ(changed(lines, lines), "");
  EXPECT_EQ(changed(lines, turned), "");
}

TEST(DiffSymbolic, WhatIsGoneIsLess) {
  EXPECT_EQ(changed({"net:connect:*", "net:connect:${HOST}:443"}, {"net:connect:*"}), "-");
  EXPECT_EQ(changed({"fs:read:/srv/**", "fs:read:/srv/${F}"}, {"fs:read:/srv/**"}), "-");
  EXPECT_EQ(changed({"fs:read:${D}/**"}, {"fs:read:${D}/a"}), "+-")
      << "less, or a file that was held back";
}

TEST(DiffSymbolic, AWordThatNobodyWroteIsNoStandIn) {
  EXPECT_FALSE(has_stand_in("/srv/unbound/x"));
  EXPECT_FALSE(may_be_private(*parse_host("api.github.com")));
  EXPECT_TRUE(may_be_private(*parse_host("localhost")));
  Symbols symbols;
  EXPECT_TRUE(has_stand_in(symbols.directory("A")));
  for (const std::string line : {"net:connect:${A}", "net:connect:x.${A}", "env:read:${A}",
                                 "exec:spawn:${A}", "fs:read:/w/${A}"}) {
    EXPECT_TRUE(has_stand_in(print(symbols.parse(line, {})->front()))) << line;
  }
}

std::string any_line() {
  using support::pick;
  if (*rc::gen::resize(100, rc::gen::inRange(0, 2)) == 0) {
    return format("fs:{}:{}", pick({"read", "create", "write"}),
                  pick({"/w/**",
                        "/w/a",
                        "/w/*",
                        "/w/${A}",
                        "/w/${A}/b",
                        "/w/${A}*",
                        "/w/a/${B}/**",
                        "${A}",
                        "${A}/**",
                        "${A}/gh/**",
                        "${A}/*",
                        "${A}/*.md",
                        "${A}/${B}",
                        "${B}/**",
                        "${B}/.config/gh",
                        "/home/${A}/.config",
                        "/home/${A}/.config/gh",
                        "${HOME}/p",
                        "${HOME}/p/q",
                        "${HOME}/p/${A}",
                        "/tmp"}));
  }
  return format("net:connect:{}{}",
                pick({"*", "*.a.test", "${A}", "${B}", "x.${A}", "${A}.a.test", "*.${A}",
                      "${A}.${B}", "10.0.0.1", "a.test", "localhost"}),
                pick({"", ":80", ":443", ":80?methods=GET"}));
}

Strings some_lines() {
  return *rc::gen::resize(6, rc::gen::container<Strings>(rc::gen::exec(any_line)));
}

const std::vector<std::string> nasty = {
    ".env",     ".git/hooks", "/home/u/.config", "/home/u", "/tmp", "localhost",
    "10.0.0.1", "test",       "169.254.169.254", "a.test",  "x",    "u"};

RC_GTEST_PROP(DiffSymbolicProperty, WhereNothingWidensNothingDoesWhateverIsBound, ()) {
  const Strings before = some_lines();
  // Mostly what was there, so that most lines are the same.
  Strings after = some_lines();
  for (const std::string& line : before) {
    if (*rc::gen::resize(100, rc::gen::inRange(0, 4)) != 0) after.push_back(line);
  }
  const auto unbound = compared(before, after, {});
  RC_PRE(unbound.has_value());
  if (unbound->is_wider) return;
  for (const std::string& a : nasty) {
    for (const std::string& b : nasty) {
      const Bindings bindings = {{.name = "A", .values = {a}}, {.name = "B", .values = {b}}};
      const auto bound = compared(before, after, bindings);
      if (bound && bound->is_wider) {
        RC_FAIL(format("A={} B={}: {} -> {}", a, b, join(before, " "), join(after, " ")));
      }
    }
  }
}

RC_GTEST_PROP(DiffSymbolicProperty, NothingChangesWhereNothingChanged, ()) {
  Strings lines = some_lines();
  const Strings before = lines;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::swap(lines[i], lines[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  const auto same = compared(before, lines, {});
  RC_PRE(same.has_value());
  RC_ASSERT(same->signs.empty());
}

}  // namespace
}  // namespace capgate::core
