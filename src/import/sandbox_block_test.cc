#include "import/sandbox_block.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "text/yaml.h"

namespace capgate::imports {
namespace {

// What a block stands for, one capability a line; or each mistake as "CODE at TEXT: message".
std::string read(const std::string& yaml,
                 const BlockPlace& place = {.directory = "/srv/project", .home = "/home/me"}) {
  const auto document = text::parse_yaml(yaml);
  if (!document) return "not YAML";
  const auto block = read_sandbox_block(document->root(), place);
  std::string out;
  if (!block) {
    for (const Diagnostic& mistake : block.error()) {
      EXPECT_LE(mistake.where.end, yaml.size());
      EXPECT_FALSE(mistake.help.empty()) << mistake.message;
      out += format("{} at {}: {}\n", code_name(mistake.code),
                    yaml.substr(mistake.where.begin, mistake.where.end - mistake.where.begin),
                    mistake.message);
    }
    return out;
  }
  EXPECT_EQ(block->capabilities.size(), block->spans.size());
  if (!block->enabled) out += "disabled\n";
  for (std::size_t i = 0; i < block->capabilities.size(); ++i) {
    const Span where = block->spans[i];
    out += format("{} from {}\n", block->capabilities[i],
                  yaml.substr(where.begin, where.end - where.begin));
  }
  for (const std::string& note : block->notes) out += format("note: {}\n", note);
  return out;
}

TEST(SandboxBlock, SwitchesAndPaths) {
  EXPECT_EQ(read("{enabled: true, paths: [~/notes, data, /opt/x/, ./a//b], network: false}"),
            "fs:write:/home/me/notes from ~/notes\n"
            "fs:write:/srv/project/data from data\n"
            "fs:write:/opt/x/** from /opt/x/\n"
            "fs:write:/srv/project/a/b from ./a//b\n");
}

TEST(SandboxBlock, AbsentIsNothing) {
  EXPECT_EQ(read("{}"), "");
  EXPECT_EQ(read("{enabled: true}"), "");
  EXPECT_EQ(read("{paths: []}"), "");
  EXPECT_EQ(read("{network: [], read: [], write: [], exec: false}"), "");
}

TEST(SandboxBlock, FalseIsDisabled) {
  EXPECT_EQ(read("{enabled: false, paths: [/srv/a]}"), "disabled\nfs:write:/srv/a from /srv/a\n");
  EXPECT_EQ(read("{enabled: false, read: [/srv/a]}"), "disabled\nfs:read:/srv/a from /srv/a\n");
}

TEST(SandboxBlock, TheWholeNetworkIsNoted) {
  const std::string out = read("{network: true}");
  EXPECT_TRUE(out.starts_with("net:connect:* from true\nnote: ")) << out;
  EXPECT_TRUE(out.contains("private addresses stay blocked")) << out;
}

TEST(SandboxBlock, Lists) {
  EXPECT_EQ(read("network: [api.github.com:443, '*.example.com:443', '[2001:db8::1]:5432']\n"
                 "read: [~/x, 'with space']\n"
                 "write: [out]\n"
                 "exec: [git, node]\n"),
            "fs:read:/home/me/x from ~/x\n"
            "fs:read:/srv/project/with space from with space\n"
            "fs:write:/srv/project/out from out\n"
            "net:connect:api.github.com:443 from api.github.com:443\n"
            "net:connect:*.example.com:443 from *.example.com:443\n"
            "net:connect:[2001:db8::1]:5432 from [2001:db8::1]:5432\n"
            "exec:spawn:git from git\n"
            "exec:spawn:node from node\n");
}

// The first words of what is said; everything else of the block is refused with it.
struct Refused {
  std::string yaml;
  std::string at;
  std::string says;
};

TEST(SandboxBlock, WhatItCannotMeanIsAMistake) {
  const Refused cases[] = {
      {"[]", "[]", "a sandbox block is a mapping"},
      {"{exec: true}", "true", "exec: true does not say which programs"},
      {"{exec: git}", "git", "exec is a list"},
      {"{enabled: 1}", "1", "enabled is true or false"},
      {"{read: /srv}", "/srv", "read is a list"},
      {"read:\n", "", "read is a list"},
      {"{read: [1]}", "1", "read is a list of texts"},
      {"{read: ['']}", "''", "read is a list of texts"},
      {"{network: all}", "all", "network is a list"},
      {"{network: [api.github.com]}", "api.github.com", "\"api.github.com\" is not HOST:PORT"},
      {"{network: ['a.example:443?methods=GET']}", "a.example:443?methods=GET",
       "\"a.example:443?methods=GET\" is not HOST:PORT"},
      {"{network: ['https://a.example:443']}", "", ""},
      {"{network: ['${HOST}:443']}", "${HOST}:443", "a sandbox block has no variables"},
      {"{exec: [/bin/sh]}", "/bin/sh", "a program is named, not given by path"},
      {"{exec: ['git?nestedSandbox=true']}", "git?nestedSandbox=true",
       "\"git?nestedSandbox=true\" is not a program's name"},
      {"{paths: [~/a/*]}", "~/a/*", "a path of a sandbox block has no globs"},
      {"{paths: ['/a/?']}", "/a/?", "a path of a sandbox block has no globs"},
      {"{paths: ['/a/[b]']}", "/a/[b]", "a path of a sandbox block has no globs"},
      {"{paths: ['${HOME}/a']}", "${HOME}/a", "a path of a sandbox block has no globs"},
      {"{paths: [~other/a]}", "~other/a", "only ~ alone is the home directory"},
      {"{paths: [../a]}", "../a", ""},
      {"{paths: ['~']}", "~", "/home/me cannot be granted"},
      {"{paths: [~]}", "~", "paths is a list of texts"},  // YAML's null
      {"{paths: [/]}", "/", "/ cannot be granted"},
      {"{write: [/etc/x]}", "/etc/x", "writing below /etc"},
  };
  for (const Refused& refused : cases) {
    const std::string out = read(refused.yaml);
    EXPECT_TRUE(out.contains(format(" at {}", refused.at))) << refused.yaml << ": " << out;
    EXPECT_TRUE(out.contains(refused.says)) << refused.yaml << ": " << out;
  }
}

TEST(SandboxBlock, KeysOfBothFormsAreAMistake) {
  for (const char* yaml :
       {"{paths: [/a], read: [/b]}", "{network: true, read: [/b]}", "{network: false, exec: false}",
        "{paths: [/a], network: ['a.example:443']}", "{paths: [], write: []}"}) {
    EXPECT_TRUE(read(yaml).contains("either paths and a network switch, or lists")) << yaml;
  }
}

TEST(SandboxBlock, UnknownKeysAreMistakesWithASuggestion) {
  EXPECT_EQ(read("{pathes: [/a]}"),
            "MANIFEST_UNKNOWN_KEY at pathes: a sandbox block has no \"pathes\"\n");
  EXPECT_EQ(read("{colour: red}"),
            "MANIFEST_UNKNOWN_KEY at colour: a sandbox block has no \"colour\"\n");
}

// A capability may name them, for everyone to see; shorthand may not.
TEST(SandboxBlock, PlacesOfCredentialsAreNeverOpened) {
  for (const char* path :
       {"~/.ssh", "~/.ssh/id_ed25519", "~/.aws", "~/.config/gh", "~/.config/capgate",
        "~/.local/state/capgate/approved", "/home/other/.ssh", "/root/.aws", ".env"}) {
    for (const char* key : {"paths", "read", "write"}) {
      const std::string out = read(format("{{{}: [{}]}}", key, path));
      EXPECT_TRUE(out.contains("which a sandbox block cannot open")) << out;
    }
  }
  EXPECT_TRUE(read("{write: [~/.bashrc]}").contains("which a sandbox block cannot open"));
  EXPECT_EQ(read("{read: [~/.bashrc]}"), "fs:read:/home/me/.bashrc from ~/.bashrc\n");
}

TEST(SandboxBlock, EveryMistakeIsTold) {
  const std::string out = read("{read: [~/.ssh, /ok, /a/*], network: [nowhere], exec: true}");
  EXPECT_EQ(std::ranges::count(out, '\n'), 4) << out;
}

TEST(SandboxBlock, AHomeThatIsNotKnownIsAMistake) {
  EXPECT_TRUE(read("{read: [~/a]}", {.directory = "/srv", .home = ""})
                  .contains("the home directory is not known"));
}

}  // namespace
}  // namespace capgate::imports
