#include "core/diff.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/holdings.h"
#include "support/generators.h"
#include "support/manifests.h"
#include "support/timing.h"

namespace capgate::core {
namespace {

using support::manifest_json;
using support::read_manifest;
using support::Strings;
using Kind = GrantChange::Kind;

Manifest of(const std::vector<Strings>& tools, const Bindings& bindings = {}) {
  auto manifest = read_manifest(manifest_json(tools), bindings);
  if (!manifest) {
    ADD_FAILURE() << manifest.error().front().message;
    return {};
  }
  return *std::move(manifest);
}

// "+" what widened, "-" what narrowed, "~" what moved; "old > new" where both are known.
std::string print(const GrantChange& change) {
  const std::string sign = change.kind == Kind::widened ? "+"
                           : change.kind == Kind::moved ? "~"
                                                        : "-";
  std::string out = sign;
  if (change.before) out += core::print(*change.before);
  if (change.before && change.after) out += " > ";
  if (!change.before) out += "> ";
  if (change.after) out += core::print(*change.after);
  if (!change.after) out += " >";
  return out;
}

std::string print(const std::vector<GrantChange>& changes) {
  Strings lines;
  for (const GrantChange& change : changes) lines.push_back(print(change));
  return join(lines, "; ");
}

std::string print_tools(const ManifestDiff& diff) {
  Strings lines;
  for (const ToolChange& tool : diff.tools) {
    constexpr std::string_view presence[] = {"", "new ", "gone ", "*"};
    lines.push_back(format("{}{}[{}]", presence[static_cast<std::size_t>(tool.presence)], tool.tool,
                           print(tool.changes)));
  }
  return join(lines, " ");
}

ManifestDiff diff_of(const Manifest& before, const Manifest& after) {
  auto out = diff(before, after);
  if (!out) {
    ADD_FAILURE() << out.error().mistakes.front().message;
    return {};
  }
  return *std::move(out);
}

// Of one tool each.
std::string changed(const Strings& before, const Strings& after) {
  return print(diff_of(of({before}), of({after})).server);
}

TEST(Diff, Files) {
  EXPECT_EQ(changed({"fs:read:/w"}, {"fs:write:/w"}), "+fs:read:/w > fs:write:/w");
  EXPECT_EQ(changed({"fs:write:/w"}, {"fs:read:/w"}), "-fs:write:/w > fs:read:/w");
  EXPECT_EQ(changed({"fs:create,delete:/w"}, {"fs:write:/w"}), "");
  EXPECT_EQ(changed({"fs:create:/w"}, {"fs:delete:/w"}),
            "+fs:create:/w > fs:delete:/w; -fs:create:/w > fs:delete:/w");
  EXPECT_EQ(changed({"fs:read:/w/a", "fs:read:/w/b"}, {"fs:read:/w"}), "+> fs:read:/w");
  EXPECT_EQ(changed({"fs:read:/w"}, {"fs:read:/w/a", "fs:read:/w/b"}), "-fs:read:/w >");
  EXPECT_EQ(changed({"fs:read:/w/**"}, {"fs:read:/w/**", "fs:write:/w/out/**"}),
            "+fs:read:/w/** > fs:write:/w/out/**");
  EXPECT_EQ(changed({"fs:read:/w/*"}, {"fs:read:/w/*.md"}), "-fs:read:/w/* >");
  EXPECT_EQ(changed({"fs:read:/w/*.md"}, {"fs:read:/w/*"}), "+> fs:read:/w/*");
  EXPECT_EQ(changed({"fs:read:/w"}, {"fs:read:/w/**"}), "") << "the same directory";
  EXPECT_EQ(changed({"fs:read:/tmp"}, {"fs:read:/tmp/a"}), "+> fs:read:/tmp/a; -fs:read:/tmp >");
  EXPECT_EQ(changed({"fs:read:/workspace"}, {"fs:read:/work"}),
            "+> fs:read:/work; -fs:read:/workspace >");
}

TEST(Diff, ACredentialInsideAGrantIsOpenedByItsOwnGrantAlone) {
  EXPECT_EQ(changed({"fs:read:/home/u/p/**"}, {"fs:read:/home/u/p/**", "fs:read:/home/u/p/.env"}),
            "+> fs:read:/home/u/p/.env");
  EXPECT_EQ(changed({"fs:read:/w", "fs:read:/w/.env"}, {"fs:read:/w"}), "-fs:read:/w/.env >");
  EXPECT_EQ(changed({"fs:read:/home/u/.ssh"}, {"fs:read:/home/u/.ssh/config"}),
            "-fs:read:/home/u/.ssh >");
}

TEST(Diff, Hosts) {
  EXPECT_EQ(changed({"net:connect:*.a.test:443"}, {"net:connect:x.a.test:443"}),
            "-net:connect:*.a.test:443 >");
  EXPECT_EQ(changed({"net:connect:x.a.test:443"}, {"net:connect:*.a.test:443"}),
            "+> net:connect:*.a.test:443");
  EXPECT_EQ(changed({"net:connect:a.test"}, {"net:connect:a.test:443"}), "-net:connect:a.test >");
  EXPECT_EQ(changed({"net:connect:a.test:443"}, {"net:connect:a.test"}), "+> net:connect:a.test");
  EXPECT_EQ(changed({"net:connect:*"}, {"net:connect:*", "net:connect:10.0.0.1:80"}),
            "+> net:connect:10.0.0.1:80")
      << "a wildcard is no private address";
  EXPECT_EQ(changed({"net:connect:*.a.test"}, {"net:connect:a.test", "net:connect:*.a.test"}),
            "+> net:connect:a.test");
}

TEST(Diff, RefinementsOfARule) {
  const std::string rule = "net:connect:a.test:80";
  const auto refined = [&](std::string_view from, std::string_view to) {
    const auto text = [&](std::string_view refine) {
      return Strings{format("{}{}{}", rule, refine.empty() ? "" : "?", refine)};
    };
    std::string kinds;
    for (const GrantChange& change : diff_of(of({text(from)}), of({text(to)})).server) {
      kinds += change.kind == Kind::widened ? "+" : "-";
    }
    return kinds;
  };
  EXPECT_EQ(refined("methods=GET", ""), "+");
  EXPECT_EQ(refined("", "methods=GET"), "-");
  EXPECT_EQ(refined("methods=GET", "methods=GET,POST"), "+");
  EXPECT_EQ(refined("methods=GET,POST", "methods=GET"), "-");
  EXPECT_EQ(refined("methods=GET", "methods=POST"), "+-");
  EXPECT_EQ(refined("paths=/a", "paths=/b"), "+-");
  EXPECT_EQ(refined("paths=/a/**", "paths=/a/b"), "-");
  EXPECT_EQ(refined("paths=/a/b", "paths=/a/**"), "+");
  EXPECT_EQ(refined("paths=/a/**", "paths=/ab"), "+-");
  EXPECT_EQ(refined("methods=GET&paths=/a", "methods=GET"), "+");
  EXPECT_EQ(refined("methods=GET&paths=/a", "paths=/a"), "+");
  EXPECT_EQ(refined("sni=strict", ""), "+");
  EXPECT_EQ(refined("", "sni=strict"), "-");
  EXPECT_EQ(refined("", "sni=any"), "+");
  EXPECT_EQ(refined("proto=http", ""), "+");
  EXPECT_EQ(refined("", "proto=tcp"), "+");
  EXPECT_EQ(refined("proto=tls", "proto=http"), "+-");
  EXPECT_EQ(refined("", "private=true"), "+");
  EXPECT_EQ(refined("private=true", ""), "-");
  EXPECT_EQ(refined("methods=GET&sni=any", "methods=POST&sni=strict"), "+-");
}

TEST(Diff, SeveralRulesTogetherCoverOne) {
  const std::string rule = "net:connect:a.test:80";
  EXPECT_EQ(changed({rule + "?methods=GET", rule + "?methods=POST"}, {rule + "?methods=GET,POST"}),
            "");
  EXPECT_EQ(changed({rule + "?methods=GET,POST"}, {rule + "?methods=GET", rule + "?methods=POST"}),
            "");
}

TEST(Diff, Variables) {
  const Strings net = {"net:connect:a.test:443", "net:connect:b.test:443"};
  const auto with = [&](std::string_view env) {
    Strings out = net;
    out.emplace_back(env);
    return out;
  };
  const auto env = [&](std::string_view from, std::string_view to) {
    return changed(with(from), with(to));
  };
  EXPECT_EQ(env("env:read:A", "env:inject:A"), "+env:read:A > env:inject:A");
  EXPECT_EQ(env("env:inject:A", "env:read:A"), "-env:inject:A > env:read:A");
  EXPECT_EQ(env("env:inject:A?to=a.test:443", "env:inject:A"),
            "+env:inject:A?to=a.test:443 > env:inject:A");
  EXPECT_EQ(env("env:inject:A", "env:inject:A?to=a.test:443"),
            "-env:inject:A > env:inject:A?to=a.test:443");
  EXPECT_EQ(env("env:inject:A?to=a.test:443", "env:inject:A?to=a.test:443&to=b.test:443"),
            "+env:inject:A?to=a.test:443 > env:inject:A?to=a.test:443&to=b.test:443");
  EXPECT_EQ(env("env:inject:A?to=a.test:443", "env:read:A"),
            "+env:inject:A?to=a.test:443 > env:read:A; -env:inject:A?to=a.test:443 > env:read:A")
      << "the launcher's value is held";
  EXPECT_EQ(env("env:inject:A?to=a.test:443", "env:inject:A?to=a.test:443&as=body").substr(0, 1),
            "+");
}

TEST(Diff, TheRest) {
  EXPECT_EQ(changed({"exec:spawn:git"}, {"exec:spawn:git?nestedSandbox=true"}),
            "+exec:spawn:git > exec:spawn:git?nestedSandbox=true");
  EXPECT_EQ(changed({}, {"exec:spawn:git"}), "+> exec:spawn:git");
  EXPECT_EQ(changed({"net:listen:80"}, {"net:listen:81"}), "+> net:listen:81; -net:listen:80 >");
  EXPECT_EQ(changed({}, {"ipc:connect:x11", "clock:tzdata"}),
            "+> ipc:connect:x11; +> clock:tzdata");
}

TEST(Diff, LimitsAndPromisesHoldAServerBack) {
  EXPECT_EQ(changed({"limit:memory:1G"}, {"limit:memory:2G"}),
            "+limit:memory:1G > limit:memory:2G");
  EXPECT_EQ(changed({"limit:memory:2G"}, {"limit:memory:1G"}),
            "-limit:memory:2G > limit:memory:1G");
  EXPECT_EQ(changed({"limit:cpu:50%"}, {}), "+limit:cpu:50% >");
  EXPECT_EQ(changed({}, {"limit:cpu:50%"}), "-> limit:cpu:50%");
  EXPECT_EQ(changed({"limit:memory:1024M"}, {"limit:memory:1G"}), "");
  EXPECT_EQ(changed({"assert:a:\"x\""}, {}), "+assert:a:\"x\" >");
  EXPECT_EQ(changed({}, {"assert:a:\"x\""}), "-> assert:a:\"x\"");
  EXPECT_EQ(changed({"assert:a:\"x\""}, {"assert:a:\"y\""}), "+assert:a:\"x\" > assert:a:\"y\"");
  EXPECT_EQ(changed({"assert:fetch.block_rfc1918:\"x\""}, {"assert:fetch.block_rfc1918"}), "");
  EXPECT_EQ(changed({"assert:fetch.block_rfc1918"}, {}), "+assert:fetch.block_rfc1918 >");
}

TEST(Diff, ALimitThatNobodyStatesIsTheDefault) {
  EXPECT_EQ(changed({}, {"limit:memory:64G"}), "+> limit:memory:64G");
  EXPECT_EQ(changed({}, {"limit:pids:100000"}), "+> limit:pids:100000");
  EXPECT_EQ(changed({}, {"limit:disk:100G"}), "+> limit:disk:100G");
  EXPECT_EQ(changed({}, {"limit:files:100000"}), "+> limit:files:100000");
  EXPECT_EQ(changed({}, {"limit:memory:1G"}), "-> limit:memory:1G");
  EXPECT_EQ(changed({"limit:memory:64G"}, {}), "-limit:memory:64G >");
  EXPECT_EQ(changed({"limit:memory:1G"}, {}), "+limit:memory:1G >");
  EXPECT_EQ(changed({"limit:memory:2G"}, {}), "") << "as much as the default";
  EXPECT_EQ(changed({}, {"limit:time:1h"}), "-> limit:time:1h") << "none by default";
}

TEST(Diff, OfATwoLayerLimitTheLargerHolds) {
  const auto with = [](std::string server, Strings tool) {
    Manifest manifest = of({{std::move(server)}, std::move(tool)});
    manifest.declared.front().tool = Declared::whole_server;
    return manifest;
  };
  const ManifestDiff change =
      diff_of(with("limit:memory:1G", {}), with("limit:memory:1G", {"limit:memory:4G"}));
  EXPECT_EQ(print(change.server), "+limit:memory:1G > limit:memory:4G");
  EXPECT_EQ(print_tools(change), "t1[+limit:memory:1G > limit:memory:4G]");
}

TEST(Diff, PerTool) {
  const auto tools = [](const std::vector<Strings>& before, const std::vector<Strings>& after) {
    return print_tools(diff_of(of(before), of(after)));
  };
  EXPECT_EQ(tools({{"fs:read:/a"}, {}}, {{"fs:read:/a"}, {"fs:read:/a"}}), "t1[~> fs:read:/a]");
  EXPECT_EQ(tools({{"fs:read:/a"}, {}}, {{}, {"fs:read:/a"}}),
            "t[-fs:read:/a >] t1[~> fs:read:/a]");
  EXPECT_EQ(tools({{"fs:read:/a"}}, {{"fs:read:/a"}, {"fs:read:/a/b", "fs:read:/c"}}),
            "new t1[+> fs:read:/c; ~> fs:read:/a/b]");
  EXPECT_EQ(tools({{"fs:read:/a"}, {"fs:read:/b"}}, {{"fs:read:/a"}}), "gone t1[-fs:read:/b >]");
  EXPECT_EQ(tools({{}}, {{}, {}}), "new t1[]");
  EXPECT_EQ(tools({{"limit:pids:5"}, {"limit:pids:9"}}, {{"limit:pids:7"}, {"limit:pids:9"}}),
            "t[~limit:pids:5 > limit:pids:7]");
  EXPECT_EQ(tools({{"limit:pids:5"}, {"limit:pids:9"}}, {{}, {"limit:pids:9"}}),
            "t[~limit:pids:5 >]");
  EXPECT_EQ(tools({{"assert:a"}, {"assert:a"}}, {{}, {"assert:a"}}), "t[~assert:a >]");
}

Manifest with_server(Strings server, const std::vector<Strings>& tools) {
  Manifest manifest = of(tools);
  for (Declared& declared : of({std::move(server)}).declared) {
    declared.tool = Declared::whole_server;
    manifest.declared.insert(manifest.declared.begin(), declared);
  }
  return manifest;
}

TEST(Diff, ServerCapabilitiesAreToldOnceAndMovingThemUpIsNoChange) {
  const auto tools = [](const Manifest& before, const Manifest& after) {
    return print_tools(diff_of(before, after));
  };
  const Manifest each = of({{"fs:read:/a"}, {"fs:read:/a"}});
  const Manifest up = with_server({"fs:read:/a"}, {{}, {}});
  EXPECT_TRUE(diff_of(each, up).is_empty());
  EXPECT_TRUE(diff_of(up, each).is_empty());
  EXPECT_EQ(tools(of({{"fs:read:/a"}, {}}), up), "*[~> fs:read:/a]");
  EXPECT_EQ(tools(of({{}, {}}), up), "*[+> fs:read:/a]");
  EXPECT_EQ(tools(up, of({{}, {}})), "*[-fs:read:/a >]");
  EXPECT_EQ(tools(with_server({"fs:create:/a"}, {{"fs:delete:/a"}}), of({{"fs:write:/a"}})), "");
}

TEST(Diff, KnowsWhereItIsDeclared) {
  const Manifest before = of({{"fs:read:/a"}});
  const Manifest after = of({{"fs:read:/b"}, {"fs:read:/b/c"}});
  const ManifestDiff change = diff_of(before, after);
  ASSERT_EQ(change.server.size(), 2U);
  EXPECT_EQ(change.server[0].origins, (Origins{0, 1}));
  EXPECT_EQ(change.server[0].side(), GrantChange::Side::after);
  EXPECT_EQ(change.server[1].origins, Origins{0});
  EXPECT_EQ(change.server[1].side(), GrantChange::Side::before);
  ASSERT_EQ(change.tools.size(), 2U);
  EXPECT_EQ(change.tools[1].changes[0].origins, Origins{1});
}

// Who only reads, or has less, is not why there is more.
TEST(Diff, NamesTheDeclarationsThatBearOnAChange) {
  struct Row {
    std::vector<Strings> before;
    std::vector<Strings> after;
    Strings expected;
  };
  const Row rows[] = {
      {{{"fs:read:/w/**"}, {}}, {{"fs:read:/w/**"}, {"fs:write:/w/**"}}, {"fs:write:/w/**"}},
      {{{"fs:read:/w/**"}, {"fs:write:/w/**"}}, {{"fs:read:/w/**"}, {}}, {"fs:write:/w/**"}},
      {{{"fs:read:/w/a"}, {}}, {{"fs:read:/w/a"}, {"fs:read:/w"}}, {"fs:read:/w"}},
      {{{"fs:create:/w"}, {}}, {{"fs:create:/w"}, {"fs:delete:/w"}}, {"fs:delete:/w"}},
      {{{}, {}}, {{"fs:read:/w"}, {"fs:write:/w"}}, {"fs:read:/w", "fs:write:/w"}},
      {{{"net:connect:a.b.test:443"}, {}},
       {{"net:connect:a.b.test:443"}, {"net:connect:*.b.test:443"}},
       {"net:connect:*.b.test:443"}},
      {{{"env:read:A"}, {}}, {{"env:read:A"}, {"env:inject:A"}}, {"env:inject:A"}},
      {{{"limit:memory:1G"}, {"limit:memory:2G"}},
       {{"limit:memory:1G"}, {"limit:memory:3G"}},
       {"limit:memory:3G"}},
      {{{"limit:memory:1G"}, {"limit:memory:3G"}},
       {{"limit:memory:1G"}, {"limit:memory:2G"}},
       {"limit:memory:3G"}},
  };
  for (const Row& row : rows) {
    const Manifest before = of(row.before);
    const Manifest after = of(row.after);
    const ManifestDiff found = diff_of(before, after);
    ASSERT_EQ(found.server.size(), 1U) << print(found.server);
    const GrantChange& change = found.server.front();
    const Manifest& side = change.side() == GrantChange::Side::after ? after : before;
    Strings named;
    for (const std::uint32_t index : change.origins) {
      named.push_back(core::print(side.declared[index].capability));
    }
    EXPECT_EQ(named, row.expected) << print(found.server);
  }
  // Of one tool that keeps what it had.
  const Manifest after = of({{"fs:read:/w/**", "fs:write:/w/**"}});
  const ManifestDiff found = diff_of(of({{"fs:read:/w/**"}}), after);
  ASSERT_EQ(found.tools.size(), 1U);
  EXPECT_EQ(found.tools.front().changes.front().origins, Origins{1});
}

TEST(Diff, ASealOfTheWholeManifestCounts) {
  Manifest held = of({{"net:connect:a.test:443", "env:inject:A"}});
  Manifest sealed = held;
  sealed.seal = true;
  EXPECT_EQ(print(diff_of(sealed, held).server), "+env:inject:A?to=a.test:443 > env:inject:A");
  EXPECT_FALSE(diff_of(held, sealed).is_wider());
}

TEST(Diff, ASideThatCannotBeMergedIsAnError) {
  const auto bad = of({{"assert:a:x"}, {"assert:a:y"}});
  EXPECT_EQ(diff(of({{}}), bad).error().side, GrantChange::Side::after);
  EXPECT_EQ(diff(bad, of({{}})).error().side, GrantChange::Side::before);
}

// ---- Properties
// ----------------------------------------------------------------------------------

// A small world, so that grants meet.
std::string any_grant() {
  using support::pick;
  switch (*rc::gen::resize(100, rc::gen::inRange(0, 8))) {
    case 0:
    case 1:
    case 2:
      return format("fs:{}:{}", pick({"read", "create", "delete", "write"}),
                    pick({"/w", "/w/**", "/w/a", "/w/a/b", "/w/a/.env", "/w/.env", "/w/*",
                          "/w/*.md", "/w/a/*", "/tmp", "/tmp/x", "/home/u/.ssh", "/home/u/.ssh/k",
                          "/wa", "/home/u/p", "/home/u/.config/gh", "/home/u/.config"}));
    case 3:
    case 4:
      return format("net:connect:{}{}{}",
                    pick({"*", "*.a.test", "a.test", "x.a.test", "*.x.a.test", "y.x.a.test",
                          "8.8.8.8", "10.0.0.1", "localhost"}),
                    pick({"", ":80", ":443"}), pick({"", "", "?sni=any", "?proto=tcp"}));
    case 5: return format("exec:spawn:{}{}", pick({"a", "b"}), pick({"", "?nestedSandbox=true"}));
    case 6: return format("env:{}:{}", pick({"read", "inject"}), pick({"A", "B"}));
    default: return pick({"net:listen:80", "ipc:connect:self", "clock:tzdata"});
  }
}

Strings some_grants() { return *rc::gen::container<Strings>(rc::gen::exec(any_grant)); }

// What a policy allows, without the difference between /w and /w/**.
Strings allowed(const Strings& grants) {
  Strings lines = support::merged_lines(grants);
  for (std::string& line : lines) {
    if (line.starts_with("fs:") && line.ends_with("/**")) line.resize(line.size() - 3);
  }
  return lines;
}

Strings joined(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Whether `after` allows something that `before` does not. Its lines are merged first:
// fs:write:/w/a below fs:read:/w holds /w/a/.env back, so with one grant less a line may come to
// more.
bool is_more(const Strings& before, const Strings& after) {
  return allowed(joined(before, support::merged_lines(after))) != allowed(before);
}

RC_GTEST_PROP(DiffProperty, NothingChangesWhereNothingChanged, ()) {
  const Strings grants = some_grants();
  Strings shuffled = grants;
  for (std::size_t i = 1; i < shuffled.size(); ++i) {
    std::swap(shuffled[i], shuffled[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  RC_ASSERT(diff_of(of({grants}), of({grants})).is_empty());
  RC_ASSERT(diff_of(of({grants}), of({shuffled})).is_empty());
  RC_ASSERT(diff_of(of({grants}), of({support::merged_lines(grants)})).is_empty());
}

RC_GTEST_PROP(DiffProperty, AGrantIsWiderExactlyIfMergingItChangesThePolicy, ()) {
  const Strings before = some_grants();
  const std::string grant = any_grant();
  const bool wider = allowed(joined(before, {grant})) != allowed(before);
  const ManifestDiff added = diff_of(of({before}), of({joined(before, {grant})}));
  // Rules that differ in sni or proto are kept apart by a merge, but one lets more pass.
  const bool refined = grant.contains('?') || std::ranges::any_of(before, [](const auto& text) {
                         return text.contains('?');
                       });
  if (!refined || grant.starts_with("exec")) {
    RC_ASSERT(added.is_wider() == wider);
  } else if (!wider) {
    RC_ASSERT(!added.is_wider());
  }
  RC_ASSERT(diff_of(of({joined(before, {grant})}), of({before})).is_wider() ==
            is_more(joined(before, {grant}), before));
}

RC_GTEST_PROP(DiffProperty, WiderIsWhatAUnionChanges, ()) {
  Strings before = some_grants();
  Strings after = some_grants();
  const auto refined = [](const std::string& text) {
    return text.starts_with("net:") && text.contains('?');
  };
  std::erase_if(before, refined);
  std::erase_if(after, refined);
  RC_ASSERT(diff_of(of({before}), of({after})).is_wider() == is_more(before, after));
}

RC_GTEST_PROP(DiffProperty, WhatWidensOneWayNarrowsTheOther, ()) {
  const Manifest before = of({some_grants()});
  const Manifest after = of({some_grants()});
  const auto subjects = [](const ManifestDiff& diff, Kind kind) {
    Strings out;
    for (const GrantChange& change : diff.server) {
      if (change.kind == kind) out.push_back(core::print(change.subject()));
    }
    return out;
  };
  const ManifestDiff there = diff_of(before, after);
  const ManifestDiff back = diff_of(after, before);
  RC_ASSERT(subjects(there, Kind::widened) == subjects(back, Kind::narrowed));
  RC_ASSERT(subjects(there, Kind::narrowed) == subjects(back, Kind::widened));
}

// ---- Cost
// ----------------------------------------------------------------------------------------

// `n` grants of all kinds on each side, one tool for each four of them, all different.
Manifest large(std::size_t n, std::string_view side) {
  std::vector<Strings> tools;
  for (std::size_t i = 0; i < n; i += 4) {
    tools.push_back({format("fs:read:/w/{}/{}/**", i % 100, i), format("fs:write:/w/{}{}", side, i),
                     format("net:connect:h{}.{}.test:443", i, side),
                     format("net:connect:*.x{}.test:80?paths=/{}{}", i % 10, side, i)});
  }
  return of(tools);
}

TEST(Diff, CostsAboutAsMuchMoreAsThereIsMore) {
  const auto seconds = [](std::size_t n) {
    const Manifest before = large(n, "a");
    const Manifest after = large(n, "b");
    return support::shortest_seconds([&] { EXPECT_TRUE(diff_of(before, after).is_wider()); });
  };
  const double ratio = seconds(1600) / seconds(200);
  EXPECT_LT(ratio, 36) << "eight times as much, with room for a busy machine; 64 is quadratic";
}

// What serverCapabilities and a tool have in two places holds as if it stood in one. What a wider
// line of the same place covers already is not counted again, even where the other place has a
// grant between the two that would hold it back: that tells too much of a change, never too little.
RC_GTEST_PROP(DiffProperty, TwoLayersCoverWhatTheirUnionCovers, ()) {
  const Strings first = some_grants();
  const Strings second = some_grants();
  const Policy a = support::merged(first);
  const Policy b = support::merged(second);
  const Policy both =
      support::merged(joined(support::merged_lines(first), support::merged_lines(second)));
  const Holdings held_a(a, {});
  const Holdings held_b(b, {});
  const Holdings held(both, {});
  const Holdings* two[] = {&held_a, &held_b};
  const Holdings* one[] = {&held};
  const Policy wanted = support::merged(some_grants());
  for_each_grant(wanted, [&](const Capability& grant, const Origins&) {
    RC_ASSERT(covers(two, grant) == covers(one, grant));
  });
}

}  // namespace
}  // namespace capgate::core
