// ${NAME} in capabilities: what a value may be, and that it stays inside the field it stands in.
#include "core/variables.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/grammar.h"
#include "support/generators.h"

namespace capgate::core {
namespace {

using Strings = std::vector<std::string>;

Bindings bind(std::string name, Strings values) {
  return {{.name = std::move(name), .values = std::move(values)}};
}

Strings printed(std::string_view text, const Bindings& bindings) {
  const auto parsed = parse_capability(text, bindings);
  if (!parsed) return {std::string(code_name(parsed.error().code))};
  Strings out;
  for (const Capability& capability : *parsed) out.push_back(print(capability));
  return out;
}

TEST(Variables, AreReplacedInScopes) {
  EXPECT_EQ(printed("fs:read:${R}/**", bind("R", {"/srv"})), Strings{"fs:read:/srv/**"});
  EXPECT_EQ(printed("fs:read:/a/${R}/b", bind("R", {"x y"})), Strings{"fs:read:/a/x y/b"});
  EXPECT_EQ(printed("fs:read:\"${R}\"", bind("R", {"/srv"})), Strings{"fs:read:/srv"});
  EXPECT_EQ(printed("fs:read:${R}/${R}", bind("R", {"/r"})), Strings{"fs:read:/r/r"});
  EXPECT_EQ(printed("net:connect:${H}:443", bind("H", {"API.a.com"})),
            Strings{"net:connect:api.a.com:443"});
  EXPECT_EQ(printed("net:connect:a:${P}", bind("P", {"443"})), Strings{"net:connect:a:443"});
  EXPECT_EQ(printed("env:inject:T?to=${H}:443", bind("H", {"a.com"})),
            Strings{"env:inject:T?to=a.com:443"});
  EXPECT_EQ(printed("limit:memory:${M}", bind("M", {"1G"})), Strings{"limit:memory:1G"});
}

TEST(Variables, GiveOneCapabilityForEachValue) {
  EXPECT_EQ(printed("fs:read:${R}/**", bind("R", {"/a", "/b"})),
            (Strings{"fs:read:/a/**", "fs:read:/b/**"}));
  const Bindings two = {{.name = "A", .values = {"x", "y"}}, {.name = "B", .values = {"1", "2"}}};
  EXPECT_EQ(printed("fs:read:/${A}/${B}/${A}", two),
            (Strings{"fs:read:/x/1/x", "fs:read:/y/1/y", "fs:read:/x/2/x", "fs:read:/y/2/y"}));
}

TEST(Variables, HaveABoundOnCombinations) {
  const Bindings many = {{.name = "A", .values = Strings(16, "x")},
                         {.name = "B", .values = Strings(16, "y")},
                         {.name = "C", .values = Strings(2, "z")}};
  EXPECT_EQ(printed("fs:read:/${A}/${B}", many).size(), 256U);
  EXPECT_EQ(printed("fs:read:/${A}/${B}/${C}", many), Strings{"CAP_VARIABLE"});
}

TEST(Variables, NeverVanish) {
  EXPECT_EQ(printed("fs:read:${R}", {}), Strings{"CAP_VARIABLE"});
  EXPECT_EQ(printed("fs:read:${R}", bind("S", {"/a"})), Strings{"CAP_VARIABLE"});
  // A binding without a value must not turn a capability into nothing.
  EXPECT_EQ(printed("fs:read:${R}", bind("R", {})), Strings{"CAP_VARIABLE"});
}

TEST(Variables, AreRefusedWithTheirPlace) {
  struct Row {
    std::string_view text;
    Span where;
  };
  constexpr Row table[] = {
      {"fs:read:${ROOT}/**", {8, 15}}, {"fs:read:/a/${}", {11, 14}},
      {"fs:read:/a/${x}", {11, 15}},   {"fs:read:/a/${1}", {11, 15}},
      {"fs:read:/a/${A", {11, 14}},    {"fs:read:/a/${A B}", {11, 17}},
      {"fs:read:/a/${", {11, 13}},     {"fs:read:/a/$HOME", {11, 16}},
      {"fs:read:/a$/$HOME", {12, 17}}, {"env:inject:T?to=${H}:443", {16, 20}},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.text);
    const auto parsed = parse_capability(row.text, {});
    ASSERT_FALSE(parsed);
    EXPECT_EQ(code_name(parsed.error().code), "CAP_VARIABLE");
    EXPECT_EQ(parsed.error().where.begin, row.where.begin);
    EXPECT_EQ(parsed.error().where.end, row.where.end);
  }
}

TEST(Variables, StandInScopesAndValuesOnly) {
  const Bindings all = {{.name = "K", .values = {"fs"}},
                        {.name = "A", .values = {"write"}},
                        {.name = "U", .values = {"unsafe"}}};
  EXPECT_EQ(printed("${K}:read:/x", all), Strings{"CAP_UNKNOWN_KIND"});
  EXPECT_EQ(printed("fs:${A}:/x", all), Strings{"CAP_ACTION_UNKNOWN"});
  EXPECT_EQ(printed("fs:read:/x?${U}=true", all), Strings{"CAP_REFINEMENT"});
  EXPECT_EQ(printed("clock:${K}", all), Strings{"CAP_CLOCK_SOURCE"});
}

// What a hostile or careless --set could try.
TEST(Variables, ValuesCannotAddAnythingToTheCapability) {
  struct Row {
    std::string_view text;
    std::string value;
    std::string_view result;
  };
  const Row table[] = {
      {"fs:read:${X}", "/a?unsafe=true", "fs:read:\"/a?unsafe=true\""},
      {"fs:read:${X}", "/a:443", "fs:read:\"/a:443\""},
      {"fs:read:${X}", "/a\"b", "fs:read:\"/a\\\"b\""},
      {"fs:read:${X}", "\"/a\"", "CAP_FS_RELATIVE"},
      {"fs:read:${X}", "/a\n", "CAP_VARIABLE"},
      {"fs:read:${X}", std::string("/a\0b", 4), "CAP_VARIABLE"},
      {"fs:read:${X}", "/a/*", "CAP_VARIABLE"},
      {"fs:read:/a/${X}", "**", "CAP_VARIABLE"},
      {"fs:read:${X}", "", "CAP_VARIABLE"},
      {"fs:read:/a/${X}", "../etc", "CAP_FS_PATH"},
      {"fs:read:/a/${X}", "..", "CAP_FS_PATH"},
      {"fs:read:/a.${X}", ".", "fs:read:/a.."},
      {"fs:read:/a/.${X}", ".", "CAP_FS_PATH"},
      {"fs:read:${X}", "relative", "CAP_FS_RELATIVE"},
      {"fs:read:${X}", "/a ", "CAP_FS_PATH"},
      {"fs:read:${X}", "/${Y}", "CAP_FS_GLOB"},
      {"fs:read:${X}", "/$HOME", "CAP_VARIABLE"},
      {"fs:read:${X}", "/a,/b", "fs:read:/a,/b"},
      {"net:connect:${X}:443", "x:443", "CAP_NET_HOST"},
      {"net:connect:${X}", "x:443", "CAP_NET_HOST"},
      {"net:connect:${X}", "x?sni=any", "CAP_NET_HOST"},
      {"net:connect:${X}", "*", "CAP_VARIABLE"},
      {"net:connect:${X}:443", "a b", "CAP_NET_HOST"},
      {"net:connect:a:${X}", "443?sni=any", "CAP_NET_PORT"},
      {"net:connect:a:443?sni=${X}", "any&proto=tcp", "CAP_REFINEMENT"},
      {"exec:spawn:${X}", "git?nestedSandbox=true", "CAP_EXEC_NAME"},
      {"exec:spawn:${X}", "/bin/sh", "CAP_EXEC_PATH"},
      {"env:read:${X}", "A?unsafe=true", "CAP_ENV_NAME"},
      {"env:inject:T?to=${X}", "a.com:443&unsafe=true", "CAP_NET_PORT"},
      {"ipc:connect:\"unix:${X}\"", "/", "CAP_IPC_ENDPOINT"},
      {"limit:pids:${X}", "5:6", "CAP_LIMIT_VALUE"},
  };
  for (const Row& row : table) {
    EXPECT_EQ(printed(row.text, bind("X", {row.value})), Strings{std::string(row.result)})
        << row.text << " with " << row.value;
  }
}

TEST(Variables, OneUnusableValueRefusesAll) {
  EXPECT_EQ(printed("fs:read:${X}", bind("X", {"/a", "/b*"})), Strings{"CAP_VARIABLE"});
  EXPECT_EQ(printed("fs:read:${X}", bind("X", {"/a", "b"})), Strings{"CAP_FS_RELATIVE"});
}

TEST(Variables, AreListedByName) {
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(variables_in("fs:read:${A}/${B}"), (Names{"A", "B"}));
  EXPECT_EQ(variables_in("fs:read:/a"), Names{});
  EXPECT_EQ(variables_in("assert:x:${A}"), Names{});
  EXPECT_EQ(first_value(bind("A", {"1", "2"}), "A"), "1");
  EXPECT_EQ(first_value(bind("A", {"1"}), "B"), "");
  EXPECT_EQ(first_value(bind("A", {}), "A"), "");
}

// Whatever the value, the result has the kind, action and refinements that the string has.
RC_GTEST_PROP(Variables, AValueOnlyEverChangesThePath, ()) {
  const std::string value = *support::text_over("/ab.:?&=\"\\$*{} ,");
  const auto parsed = parse_capability("fs:read:/r/${X}", bind("X", {value}));
  if (!parsed) {
    RC_ASSERT(parsed.error().where.end <= 15U);
    return;
  }
  RC_ASSERT(parsed->size() == 1U);
  const auto& fs = std::get<FsCapability>(parsed->front());
  RC_ASSERT(fs.actions == FsActions{FsAction::read});
  RC_ASSERT(!fs.unsafe);
  RC_ASSERT(fs.path.shape == PathPattern::Shape::node);
  RC_ASSERT(is_at_or_below(fs.path.base, "/r"));
}

}  // namespace
}  // namespace capgate::core
