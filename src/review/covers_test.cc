#include "review/covers.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/grammar.h"
#include "support/generators.h"
#include "support/manifests.h"

namespace capgate::review {
namespace {

core::Capability parse(std::string_view text) {
  const auto parsed = core::parse_capability(text, {});
  EXPECT_TRUE(parsed) << text;
  return parsed->front();
}

struct Row {
  const char* wide;
  const char* narrow;
  bool expected;
};

constexpr Row rows[] = {
    {"fs:write:/srv/**", "fs:read:/srv/notes", true},
    {"fs:read:/srv/**", "fs:write:/srv/notes", false},
    {"fs:read:/srv", "fs:read:/srv/a/b", true},
    {"fs:read:/srv/a", "fs:read:/srv/ab", false},
    {"fs:read:/srv/**", "fs:read:/srv/*.md", true},
    {"fs:read:/srv/*.md", "fs:read:/srv/*.md", true},
    {"fs:read:/srv/*.md", "fs:read:/srv/a.md", false},
    {"fs:create:/srv/**", "fs:delete:/srv/a", false},
    {"fs:write:/tmp", "fs:read:/tmp/x/**", false},
    {"fs:read:/srv/**", "fs:read:/srv/.env", false},
    {"fs:read:/srv/**", "fs:read:/srv/.git/hooks/x", false},
    {"fs:read:/srv/.git/hooks", "fs:read:/srv/.git/hooks/x", true},
    {"fs:read:/home/u/.config/**", "fs:read:/home/u/.config/gh", false},
    {"net:connect:*.a.com:443", "net:connect:b.a.com:443", true},
    {"net:connect:*.a.com:443", "net:connect:a.com:443", false},
    {"net:connect:*.a.com", "net:connect:b.a.com:443", true},
    {"net:connect:*", "net:connect:a.com:443", true},
    {"net:connect:*", "net:connect:localhost:80", false},
    {"net:connect:*", "net:connect:cgunboundword0x0x0:80", false},  // a variable, see symbolic.h
    {"net:connect:a.com:443", "net:connect:a.com", false},
    {"net:connect:a.com:443", "net:connect:a.com:443?methods=GET", true},
    {"net:connect:a.com:443?methods=GET", "net:connect:a.com:443", false},
    {"net:connect:a.com:443?sni=any", "net:connect:a.com:443", false},
    {"exec:spawn:git", "exec:spawn:git", true},
    {"exec:spawn:git", "exec:spawn:rg", false},
    {"env:read:A", "fs:read:/a", false},
};

TEST(Covers, IsWhatTheMergeWouldFold) {
  for (const Row& row : rows) {
    EXPECT_EQ(covers(parse(row.wide), parse(row.narrow)), row.expected)
        << row.wide << " / " << row.narrow;
  }
}

TEST(Covers, TheIndexFindsTheSame) {
  for (const Row& row : rows) {
    const core::Capability wide = parse(row.wide);
    const core::Capability narrow = parse(row.narrow);
    CoverIndex index;
    index.add(wide, 7);
    EXPECT_EQ(index.find(narrow).has_value(), row.expected) << row.wide << " / " << row.narrow;
    EXPECT_FALSE(index.find(narrow, 7)) << row.wide;
  }
}

RC_GTEST_PROP(Covers, ACoveredLineAddsNothingToAPolicy, ()) {
  const auto wide = support::make_grantable(*support::capability());
  auto second = *support::capability();
  // Hardly any two paths or hosts cover each other by chance.
  if (auto* below = std::get_if<core::FsCapability>(&second);
      below != nullptr && wide && std::holds_alternative<core::FsCapability>(*wide)) {
    const std::string& base = std::get<core::FsCapability>(*wide).path.base;
    below->path.base = *rc::gen::element(base, base == "/" ? "/x" : base + "/x", base + "/.env",
                                         base + "/.git/hooks/x", base + "/.ssh/x");
  }
  const auto narrow = support::make_grantable(second);
  RC_PRE(wide && narrow);
  if (!covers(*wide, *narrow)) return;
  const auto alone = support::try_merge({core::print(*wide)});
  const auto both = support::try_merge({core::print(*wide), core::print(*narrow)});
  RC_PRE(alone && both);
  RC_ASSERT(core::policy_lines(*alone) == core::policy_lines(*both));
}

}  // namespace
}  // namespace capgate::review
