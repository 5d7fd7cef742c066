#include "sandbox/git_config.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace capgate::sandbox {
namespace {

using Found = std::optional<std::string>;

TEST(GitConfig, WhatGitWritesIsKnown) {
  EXPECT_EQ(foreign_git_setting(""), std::nullopt);
  EXPECT_EQ(
      foreign_git_setting("[core]\n"
                          "\trepositoryformatversion = 0\n\tfilemode = true\n"
                          "\tbare = false\n\tlogallrefupdates = true\n"
                          "[remote \"origin\"]\n\turl = https://example.com/a.git\n"
                          "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
                          "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"),
      std::nullopt);
  EXPECT_EQ(foreign_git_setting("\xef\xbb\xbf# a comment\n; another\r\n[CORE] Bare\n"),
            std::nullopt);
  EXPECT_EQ(foreign_git_setting("[user]\nname = \"a # b\" ; c\nemail = a\\\n b\n"), std::nullopt);
}

TEST(GitConfig, WhatRunsAProgramIsForeign) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[core]\nfsmonitor = ./x", "core.fsmonitor"},
      {"[core]\nFsMonitor = ./x", "core.fsmonitor"},
      {"[core] hooksPath = x", "core.hookspath"},
      {"[core]\nsshCommand = x", "core.sshcommand"},
      {"[core]\npager", "core.pager"},
      {"[core]\nbare = \\\ntrue\neditor = x", "core.editor"},
      {"[credential]\nhelper = !x", "credential.helper"},
      {"[credential \"https://a\"]\nhelper = !x", "credential.*.helper"},
      {"[filter \"a\"]\nclean = x", "filter.*.clean"},
      {"[diff \"a\"]\ncommand = x", "diff.*.command"},
      {"[merge \"a\"]\ndriver = x", "merge.*.driver"},
      {"[include]\npath = x", "include.path"},
      {"[includeIf \"gitdir:/\"]\npath = x", "includeif.*.path"},
      {"[alias]\nst = !x", "alias.st"},
      {"[remote \"o\"]\nuploadpack = x", "remote.*.uploadpack"},
      {"[remote \"o\"]\nvcs = x", "remote.*.vcs"},
      {"[remote \"o\"]\nurl = ext::sh -c x", "remote.*.url"},
      {"[submodule \"o\"]\nupdate = !x", "submodule.*.update"},
      {"[gpg]\nprogram = x", "gpg.program"},
      {"[url \"a\"]\ninsteadOf = b", "url.*.insteadof"},
      {"bare = true", ".bare"},
  };
  for (const auto& [text, setting] : cases) {
    EXPECT_EQ(foreign_git_setting(text), Found(setting)) << text;
  }
}

TEST(GitConfig, WhatCannotBeReadIsForeign) {
  for (const std::string text :
       {"[core", "[core\n]", "[core.x]\nbare = true", "[core \"x]", "[core x]", "[]", "[core]\n= x",
        "[core]\nbare = \"x", "[core]\nbare = \\x", "[core]\nbare true", "[core]\n1a = b"}) {
    EXPECT_TRUE(foreign_git_setting(text)) << text;
  }
  EXPECT_TRUE(foreign_git_setting(std::string("[core]\nbare = \0", 15)));
}

TEST(GitConfig, TheLineIsNamed) {
  EXPECT_EQ(foreign_git_setting("[core]\n\n!"), Found("line 3, which cannot be read"));
}

}  // namespace
}  // namespace capgate::sandbox
