#include "sandbox/held_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace capgate::sandbox {
namespace {

using Child = HeldNames::Child;
using Check = HeldNames::Check;
using Treatment = HeldNames::Treatment;

const std::vector<std::string> hidden = {".env"};
const std::vector<std::string> held = {".envrc", ".claude/agents", ".git/hooks", ".git/config",
                                       ".git/commondir"};

class Held : public testing::Test {
 protected:
  // What the last name of a path means, as seen from a directory with this role.
  [[nodiscard]] Child at(HeldNames::Role role, std::vector<std::string> names) const {
    Child child{.role = role};
    for (const std::string& name : names) child = roles.child(child.role, name);
    return child;
  }
  HeldNames roles{hidden, held};
};

TEST_F(Held, NamesOfAProject) {
  EXPECT_EQ(at(HeldNames::project, {".env"}).treatment, Treatment::hide);
  EXPECT_EQ(at(HeldNames::project, {".envrc"}).treatment, Treatment::hold);
  EXPECT_EQ(at(HeldNames::project, {"README"}).treatment, Treatment::none);
  EXPECT_EQ(at(HeldNames::project, {".claude", "agents"}).treatment, Treatment::hold);
  EXPECT_EQ(at(HeldNames::project, {".claude", "notes"}).treatment, Treatment::none);
  EXPECT_EQ(at(HeldNames::project, {".claude", "notes", ".envrc"}).treatment, Treatment::none);
}

TEST_F(Held, ProjectsLieInProjects) {
  EXPECT_EQ(at(HeldNames::project, {"a", "b", ".envrc"}).treatment, Treatment::hold);
  EXPECT_EQ(at(HeldNames::project, {"node_modules", "b", ".envrc"}).treatment, Treatment::none);
}

TEST_F(Held, WhatIsGitsOwn) {
  EXPECT_EQ(at(HeldNames::project, {".git"}).check, Check::not_a_directory);
  EXPECT_EQ(at(HeldNames::project, {".git"}).treatment, Treatment::hold);
  EXPECT_EQ(at(HeldNames::project, {".git", "hooks"}).check, Check::hooks);
  EXPECT_EQ(at(HeldNames::project, {".git", "config"}).check, Check::git_config);
  EXPECT_EQ(at(HeldNames::project, {".git", "commondir"}).check, Check::name);
  EXPECT_EQ(at(HeldNames::project, {".git", "objects", "config"}).treatment, Treatment::none);
  EXPECT_TRUE(roles.is_git(at(HeldNames::project, {".git"}).role));
  EXPECT_FALSE(roles.is_git(HeldNames::project));
}

TEST_F(Held, SubmodulesAndWorkTrees) {
  for (const std::string way : {"modules", "worktrees"}) {
    EXPECT_EQ(at(HeldNames::project, {".git", way, "x", "config"}).check, Check::git_config);
    EXPECT_EQ(at(HeldNames::project, {".git", way, "x", "y", "hooks"}).check, Check::hooks);
    EXPECT_EQ(at(HeldNames::project, {".git", way, "x", "modules", "y", "commondir"}).treatment,
              Treatment::hold);
  }
}

TEST_F(Held, TheWholePathOfAGrantCounts) {
  EXPECT_EQ(roles.role_of("/srv/notes"), HeldNames::project);
  EXPECT_EQ(at(roles.role_of("/srv/notes/.git"), {"hooks"}).treatment, Treatment::hold);
  EXPECT_EQ(at(roles.role_of("/srv/notes/.git/modules"), {"x", "config"}).check, Check::git_config);
  EXPECT_EQ(at(roles.role_of("/srv/notes/.claude"), {"agents"}).treatment, Treatment::hold);
  EXPECT_EQ(at(roles.role_of("/srv/.claude/notes"), {".envrc"}).treatment, Treatment::hold);
  EXPECT_EQ(at(roles.role_of("/srv/node_modules/x"), {".envrc"}).treatment, Treatment::hold);
}

TEST_F(Held, WhatAManifestNamesIsFree) {
  EXPECT_EQ(roles.role_of("/srv/notes/.git/hooks"), HeldNames::none);
  EXPECT_EQ(roles.role_of("/srv/notes/.claude/agents/mine"), HeldNames::none);
}

TEST_F(Held, MoreNamesForOneGrant) {
  const std::vector<std::pair<std::string, Treatment>> more = {{"a/b/token", Treatment::hide},
                                                               {".claude/agents", Treatment::hide}};
  const auto role = roles.with(HeldNames::project, more);
  EXPECT_EQ(at(role, {"a", "b", "token"}).treatment, Treatment::hide);
  EXPECT_EQ(at(role, {"a", "b", ".envrc"}).treatment, Treatment::hold) << "still a project";
  EXPECT_EQ(at(role, {".claude", "agents"}).treatment, Treatment::hide);
  EXPECT_EQ(at(HeldNames::project, {".claude", "agents"}).treatment, Treatment::hold) << "a copy";
  EXPECT_EQ(at(HeldNames::project, {"a", "b", "token"}).treatment, Treatment::none);
  const auto known = roles.known(role);
  EXPECT_NE(std::ranges::find(known, "a"), known.end());
  EXPECT_EQ(std::ranges::find(known, "node_modules"), known.end());
}

TEST(HeldWithoutNames, NothingMatters) {
  const HeldNames names({}, {});
  EXPECT_EQ(names.child(HeldNames::project, ".git").treatment, Treatment::none);
  EXPECT_TRUE(names.known(HeldNames::project).empty());
}

}  // namespace
}  // namespace capgate::sandbox
