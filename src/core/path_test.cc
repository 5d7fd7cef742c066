#include "core/path.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "support/generators.h"

namespace capgate::core {
namespace {

using Shape = PathPattern::Shape;

struct Canonical {
  std::string_view text;
  Shape shape;
  std::string_view base;
  std::string_view glob;
};

TEST(Path, HasOneCanonicalForm) {
  constexpr Canonical table[] = {
      {"/", Shape::node, "/", ""},
      {"//", Shape::node, "/", ""},
      {"/.", Shape::node, "/", ""},
      {"/a", Shape::node, "/a", ""},
      {"/a/", Shape::node, "/a", ""},
      {"/a//b/./c/.", Shape::node, "/a/b/c", ""},
      {"//etc", Shape::node, "/etc", ""},
      {"/a/**", Shape::tree, "/a", ""},
      {"/a/./**", Shape::tree, "/a", ""},
      {"/a//**/", Shape::tree, "/a", ""},
      {"/**", Shape::tree, "/", ""},
      {"/a/*", Shape::entries, "/a", "*"},
      {"/*", Shape::entries, "/", "*"},
      {"/a/*.md", Shape::entries, "/a", "*.md"},
      {"/a/a*b*c", Shape::entries, "/a", "a*b*c"},
      {"/...", Shape::node, "/...", ""},
      {"/.a/..b/c..", Shape::node, "/.a/..b/c..", ""},
      {"/a b/ c", Shape::node, "/a b/ c", ""},
      {"/a /**", Shape::tree, "/a ", ""},
      {"/a$/b$1", Shape::node, "/a$/b$1", ""},
      {"/a\xff", Shape::node, "/a\xff", ""},
  };
  for (const Canonical& row : table) {
    SCOPED_TRACE(row.text);
    const auto path = parse_path(row.text);
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(path->shape, row.shape);
    EXPECT_EQ(path->base, row.base);
    EXPECT_EQ(path->glob, row.glob);
    EXPECT_EQ(*parse_path(print(*path)), *path);
  }
}

struct Refused {
  std::string text;
  Code code;
  Span where;
};

void expect_refused(const Refused& row) {
  SCOPED_TRACE(row.text.substr(0, 60));
  const auto path = parse_path(row.text);
  ASSERT_FALSE(path) << print(*path);
  EXPECT_EQ(code_name(path.error().code), code_name(row.code)) << path.error().message;
  EXPECT_EQ(path.error().where.begin, row.where.begin);
  EXPECT_EQ(path.error().where.end, row.where.end);
}

TEST(Path, D3RefusesDotDotWherever) {
  expect_refused({"/..", Code::cap_fs_path, {1, 3}});
  expect_refused({"/a/../etc", Code::cap_fs_path, {3, 5}});
  expect_refused({"/a/..", Code::cap_fs_path, {3, 5}});
  expect_refused({"/a/.././b", Code::cap_fs_path, {3, 5}});
  expect_refused({"/a/../**", Code::cap_fs_path, {3, 5}});
}

TEST(Path, D6RefusesGlobsThatNoKernelEnforces) {
  expect_refused({"/T/**/*.ts", Code::cap_fs_glob, {3, 5}});
  expect_refused({"/a/b*/**", Code::cap_fs_glob, {3, 5}});
  expect_refused({"/a/*/b", Code::cap_fs_glob, {3, 4}});
  expect_refused({"/**/**", Code::cap_fs_glob, {1, 3}});
  expect_refused({"/a/**.ts", Code::cap_fs_glob, {3, 8}});
  expect_refused({"/a/b**", Code::cap_fs_glob, {3, 6}});
  expect_refused({"/a/***", Code::cap_fs_glob, {3, 6}});
  expect_refused({"/a/{b,c}", Code::cap_fs_glob, {3, 4}});
  expect_refused({"/a/[bc]", Code::cap_fs_glob, {3, 4}});
  expect_refused({"/a/b]", Code::cap_fs_glob, {4, 5}});
}

TEST(Path, D8RefusesControlCharactersAndEdgeWhiteSpace) {
  expect_refused({std::string("/a\0b", 4), Code::cap_fs_path, {2, 3}});
  expect_refused({"/a\n", Code::cap_fs_path, {2, 3}});
  expect_refused({"/a\tb", Code::cap_fs_path, {2, 3}});
  expect_refused({"/a\x7f", Code::cap_fs_path, {2, 3}});
  expect_refused({"/a ", Code::cap_fs_path, {2, 3}});
  expect_refused({" /a", Code::cap_fs_relative, {0, 3}});
  // The same path once its last slash is gone.
  expect_refused({"/a /", Code::cap_fs_path, {2, 3}});
  expect_refused({"/b/a /./", Code::cap_fs_path, {4, 5}});
  expect_refused({"/a/* /", Code::cap_fs_path, {4, 5}});
}

TEST(Path, RefusesWhatIsNotAbsoluteOrTooLong) {
  expect_refused({"", Code::cap_fs_relative, {0, 0}});
  expect_refused({"a/b", Code::cap_fs_relative, {0, 3}});
  expect_refused({"~/x", Code::cap_fs_relative, {0, 3}});
  expect_refused({"/$HOME/x", Code::cap_variable, {1, 8}});
  expect_refused({"/a$/$_x", Code::cap_variable, {4, 7}});
  const std::string name(255, 'n');
  EXPECT_TRUE(parse_path("/" + name));
  expect_refused({"/a/" + name + "n", Code::cap_fs_path, {3, 259}});
  std::string deep;
  while (deep.size() + 16 <= 4095) deep += "/123456789012345";
  deep += "/" + std::string(4095 - deep.size() - 1, 'x');
  EXPECT_TRUE(parse_path(deep));
  expect_refused({deep + "x", Code::cap_fs_path, {0, 4096}});
}

TEST(Path, PlainPathsHaveNoGlob) {
  EXPECT_EQ(*parse_plain_path("/a//b/"), "/a/b");
  EXPECT_FALSE(parse_plain_path("/a/*"));
  EXPECT_FALSE(parse_plain_path("/a/**"));
  EXPECT_FALSE(parse_plain_path("a"));
}

TEST(Path, BelowComparesComponents) {
  EXPECT_TRUE(is_at_or_below("/a", "/a"));
  EXPECT_TRUE(is_at_or_below("/a/b", "/a"));
  EXPECT_TRUE(is_at_or_below("/a", "/"));
  EXPECT_TRUE(is_at_or_below("/", "/"));
  EXPECT_FALSE(is_at_or_below("/ab", "/a"));
  EXPECT_FALSE(is_at_or_below("/", "/a"));
  EXPECT_FALSE(is_at_or_below("/a", "/a/b"));
}

// ---- Properties ------------------------------------------------------------------------------

// Canonical paths over few characters, among them some that sort before and after '/'.
rc::Gen<std::string> small_path() {
  return rc::gen::exec([] {
    std::string path;
    const int depth = *rc::gen::inRange(0, 4);
    for (int i = 0; i < depth; ++i) {
      path += "/" + support::pick({"a", "b", "ab", "a-", "a.", "a0", "\xc3\xa9", "-"});
    }
    return path.empty() ? std::string("/") : path;
  });
}

bool is_before(std::string_view a, std::string_view b) { return compare_as_tree(a, b) < 0; }

RC_GTEST_PROP(Path, TreeOrderIsAStrictOrderOfPaths, ()) {
  const auto a = *small_path();
  const auto b = *small_path();
  const auto c = *small_path();
  RC_ASSERT((is_before(a, b) || is_before(b, a)) == (a != b));
  RC_ASSERT(!(is_before(a, b) && is_before(b, a)));
  if (is_before(a, b) && is_before(b, c)) RC_ASSERT(is_before(a, c));
}

RC_GTEST_PROP(Path, TreeOrderKeepsEverythingBelowADirectoryTogether, ()) {
  auto paths = *rc::gen::container<std::vector<std::string>>(small_path());
  std::ranges::sort(paths, is_before);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    bool inside = true;
    for (std::size_t j = i; j < paths.size(); ++j) {
      const bool below = is_at_or_below(paths[j], paths[i]);
      RC_ASSERT(inside || !below);
      inside = below;
    }
    for (std::size_t j = 0; j < i; ++j) {
      RC_ASSERT(paths[j] == paths[i] || !is_at_or_below(paths[j], paths[i]));
    }
  }
}

bool slow_glob(std::string_view name, std::string_view glob) {
  if (glob.empty()) return name.empty();
  if (glob.front() != '*') {
    return !name.empty() && name.front() == glob.front() &&
           slow_glob(name.substr(1), glob.substr(1));
  }
  for (std::size_t skip = 0; skip <= name.size(); ++skip) {
    if (slow_glob(name.substr(skip), glob.substr(1))) return true;
  }
  return false;
}

RC_GTEST_PROP(Glob, MatchesLikeTheSlowMatcher, ()) {
  const auto name = *rc::gen::resize(8, support::text_over("ab."));
  const auto glob = *rc::gen::resize(8, support::text_over("ab.**"));
  RC_CLASSIFY(slow_glob(name, glob), "match");
  RC_ASSERT(matches_glob(name, glob) == slow_glob(name, glob));
}

// Equal beginnings of every length, and a difference at every place after them.
TEST(CompareAsTree, TheFirstDifferenceDecidesWhereverItIs) {
  for (std::size_t same = 1; same < 20; ++same) {
    const std::string base = "/" + std::string(same, 'x');
    EXPECT_TRUE(is_before(base + "a", base + "b"));
    EXPECT_TRUE(is_before(base + "a-long-end", base + "b"));
    EXPECT_TRUE(is_before(base + "/z", base + "-a"));
    EXPECT_TRUE(is_before(base + "a", base + "\xff"));
    EXPECT_TRUE(is_before(base, base + "/"));
    EXPECT_FALSE(is_before(base + "b", base + "a-long-end"));
    EXPECT_FALSE(is_before(base + "-a", base + "/z"));
    EXPECT_FALSE(is_before(base, base));
  }
}

TEST(Glob, MatchesNames) {
  EXPECT_TRUE(matches_glob("a.md", "*.md"));
  EXPECT_TRUE(matches_glob(".md", "*.md"));
  EXPECT_TRUE(matches_glob("a.md.md", "*.md"));
  EXPECT_TRUE(matches_glob("", "*"));
  EXPECT_TRUE(matches_glob("abc", "a*b*c"));
  EXPECT_FALSE(matches_glob("a.mdx", "*.md"));
  EXPECT_FALSE(matches_glob("",
                            ""
                            "a"));
  EXPECT_FALSE(matches_glob("abd", "a*b*c"));
}

TEST(Glob, IsNotExponential) {
  const std::string name(5000, 'a');
  std::string glob;
  for (int i = 0; i < 100; ++i) glob += "a*";
  EXPECT_FALSE(matches_glob(name, glob + "b"));
}

RC_GTEST_PROP(Path, PrintsAndParsesBack, ()) {
  const PathPattern path = support::path_pattern();
  const auto again = parse_path(print(path));
  if (!again) RC_FAIL(print(path) + ": " + again.error().message);
  RC_ASSERT(*again == path);
}

TEST(MatchesEntry, NoStarStandsForTheDotOfAHiddenFile) {
  EXPECT_TRUE(matches_entry("a.md", "*.md"));
  EXPECT_TRUE(matches_entry("x", "*x"));
  EXPECT_TRUE(matches_entry(".env", ".*"));
  EXPECT_TRUE(matches_entry("a.", "*."));
  EXPECT_FALSE(matches_entry(".env", "*"));
  EXPECT_FALSE(matches_entry(".md", "*.md"));
  EXPECT_FALSE(matches_entry("a", "b*"));
}

}  // namespace
}  // namespace capgate::core
