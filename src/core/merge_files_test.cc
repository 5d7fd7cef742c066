// The fs part of a merge against a slow, obvious oracle over a small universe of paths.
#include "core/merge_files.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/ranges.h"
#include "core/sensitive.h"
#include "support/generators.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

using support::merged;
using support::merged_lines;
using support::Strings;
using Shape = PathPattern::Shape;

// ---- Known cases -----------------------------------------------------------------------------

TEST(Merge, D1OneGrantDoesNotWidenAnother) {
  EXPECT_EQ(merged_lines({"fs:read:/T/**", "fs:write:/T/data/sub"}),
            (Strings{"fs:read:/T/**", "fs:write:/T/data/sub"}));
  EXPECT_EQ(merged_lines({"fs:write:/a/b", "fs:read:/a/**"}),
            (Strings{"fs:read:/a/**", "fs:write:/a/b"}));
  EXPECT_EQ(merged_lines({"fs:read:/a/*", "fs:write:/a/b/c"}),
            (Strings{"fs:read:/a/*", "fs:write:/a/b/c"}));
}

TEST(Merge, D3WorksOnCanonicalPaths) {
  EXPECT_EQ(merged_lines({"fs:read:/a//b/", "fs:write:/a/./b"}), Strings{"fs:write:/a/b"});
  EXPECT_FALSE(support::try_merge({"fs:read:/a/**", "fs:write:/a/../etc/**"}));
}

TEST(Merge, D7OneFormForADirectory) {
  EXPECT_EQ(merged_lines({"fs:read:/a", "fs:read:/a/", "fs:read:/a/**"}), Strings{"fs:read:/a/**"});
  EXPECT_EQ(merged_lines({"fs:read:/a", "fs:read:/a/b"}), Strings{"fs:read:/a"});
  EXPECT_EQ(merged_lines({"fs:read:/a/", "fs:write:/a"}), Strings{"fs:write:/a"});
}

TEST(Merge, NeighboursWithACommonPrefixStayApart) {
  EXPECT_EQ(merged_lines({"fs:read:/ab", "fs:write:/a", "fs:read:/a-b"}),
            (Strings{"fs:write:/a", "fs:read:/a-b", "fs:read:/ab"}));
}

TEST(Merge, UnitesTheRightsAtOnePath) {
  EXPECT_EQ(merged_lines({"fs:create:/a", "fs:delete:/a"}), Strings{"fs:write:/a"});
  EXPECT_EQ(merged_lines({"fs:create,delete:/a"}), Strings{"fs:write:/a"});
  EXPECT_EQ(merged_lines({"fs:read,create:/a"}), Strings{"fs:create:/a"});
  EXPECT_EQ(merged_lines({"fs:read,delete:/a"}), Strings{"fs:delete:/a"});
  // At /a/b both hold, so the child says all that holds there.
  EXPECT_EQ(merged_lines({"fs:create:/a", "fs:delete:/a/b"}),
            (Strings{"fs:create:/a", "fs:write:/a/b"}));
  EXPECT_EQ(merged_lines({"fs:create:/a", "fs:delete:/a/b", "fs:write:/a/b/c"}),
            (Strings{"fs:create:/a", "fs:write:/a/b"}));
}

TEST(Merge, ThePrivateTmpSaysNothingAboutTheHost) {
  EXPECT_EQ(merged_lines({"fs:write:/tmp/**", "fs:read:/tmp/x"}),
            (Strings{"fs:write:/tmp/**", "fs:read:/tmp/x"}));
  EXPECT_EQ(merged_lines({"fs:write:/tmp", "fs:write:/tmp/x", "fs:read:/tmp/x/y"}),
            (Strings{"fs:write:/tmp", "fs:write:/tmp/x"}));
}

TEST(Merge, EntriesFoldIntoTheirDirectoryAndIntoAllEntries) {
  EXPECT_EQ(merged_lines({"fs:read:/d/*.md", "fs:read:/d"}), Strings{"fs:read:/d"});
  EXPECT_EQ(merged_lines({"fs:read:/d/*.md", "fs:read:/d/*"}), Strings{"fs:read:/d/*"});
  EXPECT_EQ(merged_lines({"fs:read:/d/#*", "fs:read:/d/*"}), Strings{"fs:read:/d/*"});
  EXPECT_EQ(merged_lines({"fs:write:/d/*.md", "fs:read:/d/*"}),
            (Strings{"fs:read:/d/*", "fs:write:/d/*.md"}));
  // A named entry must exist, or is made: the directory's entries at start do not stand for it.
  EXPECT_EQ(merged_lines({"fs:read:/d/*", "fs:read:/d/a"}),
            (Strings{"fs:read:/d/*", "fs:read:/d/a"}));
  EXPECT_EQ(merged_lines({"fs:read:/c/*", "fs:read:/d/a*"}),
            (Strings{"fs:read:/c/*", "fs:read:/d/a*"}));
}

// Inside the parent alone it would stay hidden, so that a parent does not stand for it.
TEST(Merge, ANamedCredentialStaysNamed) {
  EXPECT_EQ(merged_lines({"fs:read:/home/a/.config", "fs:read:/home/a/.config/gcloud"}),
            (Strings{"fs:read:/home/a/.config", "fs:read:/home/a/.config/gcloud"}));
  EXPECT_EQ(merged_lines({"fs:read:/home/a/.config/gcloud", "fs:read:/home/a/.config/gcloud/x"}),
            Strings{"fs:read:/home/a/.config/gcloud"});
  EXPECT_EQ(merged_lines({"fs:read:/home/a/.config", "fs:read:/home/a/.config/editor"}),
            Strings{"fs:read:/home/a/.config"});
}

TEST(Merge, UnsafeStandsExactlyWhereItIsNeeded) {
  EXPECT_EQ(merged_lines({"fs:read:/usr/share", "fs:write:/usr/share?unsafe=true"}),
            Strings{"fs:write:/usr/share?unsafe=true"});
  EXPECT_EQ(merged_lines({"fs:read:/usr/share", "fs:write:/usr/share/x?unsafe=true"}),
            (Strings{"fs:read:/usr/share", "fs:write:/usr/share/x?unsafe=true"}));
}

TEST(Merge, D27SortsByBytes) {
  EXPECT_EQ(merged_lines({"fs:read:/z", "fs:read:/aa", "fs:read:/ch", "fs:read:/d", "fs:read:/B",
                          "fs:read:/\xc3\xa5"}),
            (Strings{"fs:read:/B", "fs:read:/aa", "fs:read:/ch", "fs:read:/d", "fs:read:/z",
                     "fs:read:/\xc3\xa5"}));
}

// ---- The oracle ------------------------------------------------------------------------------

constexpr unsigned may_read = 1;
constexpr unsigned may_modify = 2;
constexpr unsigned may_remove = 4;

unsigned slow_rights(FsActions actions) {
  unsigned rights = may_read;
  if (actions.has(FsAction::create)) rights |= may_modify;
  if (actions.has(FsAction::remove)) rights |= may_remove;
  if (actions.has(FsAction::write)) rights |= may_modify | may_remove;
  return rights;
}

bool is_below(std::string_view path, std::string_view base) {
  return path.starts_with(base) && path.substr(base.size()).starts_with('/');
}

// Whether the capability speaks about a concrete path.
bool slow_holds(const FsCapability& fs, std::string_view path) {
  const std::string& base = fs.path.base;
  if (fs.path.shape != Shape::entries) {
    return path == base || (base != "/tmp" && is_below(path, base));
  }
  if (!is_below(path, base)) return false;
  const std::string_view rest = path.substr(base.size() + 1);
  return matches_glob(rest.substr(0, rest.find('/')), fs.path.glob);
}

Strings make_universe() {
  Strings paths = {"/tmp", "/usr"};
  Strings level = {"", "/tmp", "/usr"};
  for (int depth = 0; depth < 4; ++depth) {
    Strings next;
    for (const std::string& parent : level) {
      for (const char* name : {"a", "b", "a-"}) next.push_back(parent + "/" + name);
    }
    paths.insert(paths.end(), next.begin(), next.end());
    level = std::move(next);
  }
  return paths;
}

const Strings& universe() {
  static const Strings paths = make_universe();
  return paths;
}

template <typename Capabilities>
std::map<std::string, unsigned> rights_table(const Capabilities& capabilities) {
  std::map<std::string, unsigned> table;
  for (const std::string& path : universe()) {
    unsigned rights = 0;
    for (const FsCapability& fs : capabilities) {
      if (slow_holds(fs, path)) rights |= slow_rights(fs.actions);
    }
    if (rights != 0) table[path] = rights;
  }
  return table;
}

FsCapability small_grant() {
  FsCapability fs{.actions = support::fs_actions()};
  const int depth = *rc::gen::element(1, 1, 2, 2, 3);
  fs.path.base = support::pick({"", "", "", "/tmp", "/usr"});
  for (int i = 0; i < depth; ++i) fs.path.base += "/" + support::pick({"a", "a", "b", "a-"});
  if (*rc::gen::element(0, 0, 0, 0, 0, 1) == 1) fs.path.base = "/tmp";
  fs.path.shape = *rc::gen::element(Shape::node, Shape::tree, Shape::entries);
  if (fs.path.base == "/tmp" && fs.path.shape == Shape::entries) fs.path.shape = Shape::tree;
  if (fs.path.shape == Shape::entries) fs.path.glob = support::pick({"*", "*", "a*", "!*", "*-"});
  fs.unsafe = slow_rights(fs.actions) != may_read && is_at_or_below(fs.path.base, "/usr");
  return fs;
}

std::vector<FsCapability> small_grants() {
  std::vector<FsCapability> grants;
  const int count = *rc::gen::element(1, 2, 3, 4, 6, 10);
  for (int i = 0; i < count; ++i) grants.push_back(small_grant());
  return grants;
}

Strings print_all(const std::vector<FsCapability>& grants) {
  Strings lines;
  for (const FsCapability& grant : grants) lines.push_back(print(Capability(grant)));
  return lines;
}

std::vector<FsCapability> files_of(const Policy& policy) {
  std::vector<FsCapability> files;
  for (const auto& grant : policy.files) files.push_back(grant.capability);
  return files;
}

RC_GTEST_PROP(MergeFiles, GrantsExactlyTheUnion, ()) {
  for (int i = 0; i < 10; ++i) {
    const auto grants = small_grants();
    const Strings lines = print_all(grants);
    RC_LOG() << rc::toString(lines) << " -> " << rc::toString(merged_lines(lines)) << "\n";
    RC_ASSERT(rights_table(files_of(merged(lines))) == rights_table(grants));
  }
}

// A mount takes its rights from its own line, so the line must say all that its parents grant
// there.
RC_GTEST_PROP(MergeFiles, AGrantSaysAllThatHoldsAtItsPath, ()) {
  std::vector<FsCapability> grants = small_grants();
  std::erase_if(grants, [](const auto& grant) { return grant.path.shape == Shape::entries; });
  auto table = rights_table(grants);
  for (const FsCapability& file : files_of(merged(print_all(grants)))) {
    RC_ASSERT(slow_rights(file.actions) == table[file.path.base]);
  }
}

bool covers(const FsCapability& wide, const FsCapability& narrow) {
  if ((slow_rights(wide.actions) | slow_rights(narrow.actions)) != slow_rights(wide.actions)) {
    return false;
  }
  const bool same_base = wide.path.base == narrow.path.base;
  if (wide.path.shape == Shape::entries) {
    return narrow.path.shape == Shape::entries && same_base &&
           (wide.path.glob == "*" || wide.path.glob == narrow.path.glob);
  }
  if (wide.path.base == "/tmp") return same_base && narrow.path.shape != Shape::entries;
  return is_at_or_below(narrow.path.base, wide.path.base);
}

RC_GTEST_PROP(MergeFiles, KeepsNothingThatAnotherGrantCovers, ()) {
  const auto files = files_of(merged(print_all(small_grants())));
  for (const FsCapability& wide : files) {
    for (const FsCapability& narrow : files) {
      RC_ASSERT(&wide == &narrow || !covers(wide, narrow));
    }
  }
}

RC_GTEST_PROP(MergeFiles, KeepsTheDirectoryThatMustBeOne, ()) {
  const auto grants = small_grants();
  const auto files = files_of(merged(print_all(grants)));
  for (const FsCapability& file : files) {
    const bool demanded = std::ranges::any_of(grants, [&](const FsCapability& grant) {
      return grant.path.base == file.path.base && grant.path.shape == Shape::tree;
    });
    if (file.path.shape != Shape::entries) RC_ASSERT((file.path.shape == Shape::tree) == demanded);
  }
}

RC_GTEST_PROP(MergeFiles, EveryDeclarationIsTheOriginOfAGrantThatHoldsIt, ()) {
  const auto grants = small_grants();
  const Policy policy = merged(print_all(grants));
  std::set<std::uint32_t> seen;
  for (const auto& grant : policy.files) {
    RC_ASSERT(!grant.origins.empty());
    RC_ASSERT(std::ranges::is_sorted(grant.origins));
    for (const std::uint32_t origin : grant.origins) {
      RC_ASSERT(origin < grants.size());
      RC_ASSERT(is_at_or_below(grants[origin].path.base, grant.capability.path.base));
      seen.insert(origin);
    }
  }
  RC_ASSERT(seen.size() == grants.size());
}

RC_GTEST_PROP(MergeFiles, DoesNotDependOnTheOrder, ()) {
  const Strings lines = print_all(small_grants());
  RC_ASSERT(merged_lines(lines) == merged_lines(support::shuffled(lines)));
}

RC_GTEST_PROP(MergeFiles, IsIdempotent, ()) {
  const Strings once = merged_lines(print_all(small_grants()));
  RC_ASSERT(merged_lines(once) == once);
}

RC_GTEST_PROP(MergeFiles, HasOneActionForEachGrant, ()) {
  for (const FsCapability& file : files_of(merged(print_all(small_grants())))) {
    using enum FsAction;
    const FsActions one[] = {{read}, {create}, {remove}, {write}};
    RC_ASSERT(contains(one, file.actions));
  }
}

}  // namespace
}  // namespace capgate::core
