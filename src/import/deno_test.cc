#include "import/deno.h"

#include <gtest/gtest.h>

#include "import/shell_words.h"
#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::has_loss;
using support::outcome;
using support::read_json;

Checked<Imported> read(std::string_view text) {
  return read_deno_command(text, support::import_place());
}

TEST(Deno, FlagsAreReadAsTheySay) {
  const support::ImportCase cases[] = {
      {"deno run main.ts", ""},
      {"deno run --allow-net=a.example.com:443,b.example.com main.ts",
       "net:connect:a.example.com:443 net:connect:b.example.com"},
      {"deno run --allow-net main.ts", "net:connect:*"},
      {"deno run -N=*.example.com main.ts", "net:connect:*.example.com"},
      {"deno run --allow-net=0.0.0.0:8000 main.ts", ""},
      {"deno run --allow-read=/srv/a,data -W=/srv/w main.ts",
       "fs:read:${WORKING_DIRECTORY}/data fs:read:/srv/a fs:write:/srv/w"},
      {"deno run --allow-read=proj --deny-read=/opt main.ts",
       "IMPORT_REFUSED '--deny-read=/opt': "
       "read denies a part of \"proj\", which read allows, perhaps: a relative path starts where "
       "Deno is started"},
      {"deno run --allow-read=proj --deny-read=other main.ts", "fs:read:${WORKING_DIRECTORY}/proj"},
      {"deno run '--allow-read=/srv/my data' main.ts", "fs:read:/srv/my data"},
      {"deno run --allow-env=A,B --deny-env=B main.ts", "env:read:A"},
      {"deno run --allow-env main.ts", ""},
      {"deno run --allow-run=git main.ts", "exec:spawn:git"},
      {"deno run --allow-sys --allow-ffi=/srv/lib.so main.ts", "fs:read:/srv/lib.so"},
      {"deno run --allow-read=/srv/a --deny-read main.ts", ""},
      {"deno run --allow-write=/srv/a --deny-read main.ts", ""},
      {"deno run --allow-read=/srv/a --deny-read=/srv/b main.ts", "fs:read:/srv/a"},
      {"deno run --allow-read=/srv/a --deny-read=/srv main.ts", ""},
      {"deno run --allow-run=curl,git --deny-run=/usr/bin/curl main.ts", "exec:spawn:git"},
      {"deno run --allow-run=curl --deny-run=curl main.ts", ""},
      {"deno run --allow-run=git --deny-run=/opt/git/sh main.ts", "exec:spawn:git"},
      {"deno run --allow-ffi=/opt/a.so,/opt/b.so --deny-ffi=/opt/b.so main.ts",
       "fs:read:/opt/a.so"},
      {"deno run --allow-ffi=/opt/lib/a.so --deny-ffi=/opt/lib main.ts", ""},
      {"deno run --allow-ffi=/opt/lib --deny-ffi=/opt/other main.ts", "fs:read:/opt/lib"},
      {"deno run --allow-read=/srv --deny-ffi=/srv/a.so main.ts", "fs:read:/srv"},
      {"deno run --no-prompt -q --unstable-kv --config deno.json -I=jsr.io:443 main.ts",
       "net:connect:jsr.io:443"},
      // What follows the program is the program's.
      {"deno run main.ts --allow-all --allow-read=/", ""},
      {"deno run -- main.ts -A", ""},
      {"A=b /usr/bin/deno run \\\n  -E=X main.ts # comment -A", "env:read:X"},
      {"#!/usr/bin/env -S deno run -R=/srv/a\nconst x = `$(rm)`;", "fs:read:/srv/a"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(outcome(read(text), text), expected) << text;
    EXPECT_TRUE(is_deno_command(text)) << text;
  }
}

TEST(Deno, WhatNoManifestCanSayIsRefused) {
  const support::ImportCase cases[] = {
      {"deno run -A main.ts", "IMPORT_REFUSED '-A': all rights are no manifest"},
      {"deno run --allow-all main.ts", "IMPORT_REFUSED '--allow-all'"},
      {"deno run -RA main.ts", "IMPORT_REFUSED"},
      {"deno run --allow-read main.ts", "IMPORT_REFUSED '--allow-read': every file may be read"},
      {"deno run -W main.ts", "IMPORT_REFUSED '-W': every file may be written"},
      {"deno run --allow-run main.ts", "IMPORT_REFUSED '--allow-run': every program"},
      {"deno run --allow-run=/bin/sh main.ts", "CAP_EXEC_PATH '--allow-run=/bin/sh'"},
      {"deno run --allow-read=/ main.ts", "CAP_SCOPE_REFUSED '--allow-read=/'"},
      {"deno run --allow-read=/srv --deny-read=/srv/k main.ts",
       "IMPORT_REFUSED '--deny-read=/srv/k'"},
      {"deno run --allow-ffi=/opt/lib --deny-ffi=/opt/lib/evil main.ts",
       "IMPORT_REFUSED '--deny-ffi=/opt/lib/evil'"},
      {"deno run --allow-ffi=lib --deny-ffi=./lib/evil main.ts", "IMPORT_REFUSED"},
      {"deno run --allow-read=/srv/proj --deny-read=secrets main.ts",
       "IMPORT_REFUSED '--deny-read=secrets'"},
      {"deno run --allow-net --deny-net=a.example.com main.ts",
       "IMPORT_REFUSED '--deny-net=a.example.com'"},
      {"deno run --allow-net=*.example.com --deny-net=a.example.com main.ts", "IMPORT_REFUSED"},
      {"deno run --allow-write=/srv/a --deny-read=/srv/a/k main.ts", "IMPORT_REFUSED"},
      {"deno run --allow-read=~/x main.ts", "IMPORT_SHAPE '--allow-read=~/x'"},
      {"deno run --allow-read=a,,b main.ts", "IMPORT_SHAPE '--allow-read=a,,b'"},
      {"deno run --allow-gpu main.ts", "IMPORT_SHAPE '--allow-gpu': the flag"},
      {"deno run --frobnicate main.ts", "IMPORT_SHAPE '--frobnicate': the flag"},
      {"deno run -Z main.ts", "IMPORT_SHAPE '-Z'"},
      {"deno run -P=web main.ts", "IMPORT_SHAPE '-P=web': the set of permissions"},
      {"deno run --allow-read=$HOME main.ts", "IMPORT_SHAPE '$': a shell would act upon"},
      {"deno run main.ts | sh", "IMPORT_SHAPE '|'"},
      {"deno run 'main.ts", "IMPORT_SHAPE ''main.ts': a quote is not closed"},
      {"node main.js", "IMPORT_SHAPE '': there is no deno in it"},
      {"", "IMPORT_SHAPE '': there is no deno in it"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(outcome(read(text), text).starts_with(expected)) << text << "\n"
                                                                 << outcome(read(text), text);
  }
}

TEST(Deno, LossesAreTold) {
  EXPECT_TRUE(has_loss(read("deno run -E x.ts"), Loss::Kind::assumed, "env"));
  EXPECT_TRUE(has_loss(read("deno run -N x.ts"), Loss::Kind::assumed, "net"));
  EXPECT_TRUE(has_loss(read("deno run -W=/srv/a x.ts"), Loss::Kind::assumed, "write"));
  EXPECT_FALSE(has_loss(read("deno run -W=/srv/a -R=/srv/a x.ts"), Loss::Kind::assumed, "write"));
  EXPECT_TRUE(has_loss(read("deno run -W=/srv/ab -R=/srv/a x.ts"), Loss::Kind::assumed, "write"));
  EXPECT_TRUE(has_loss(read("deno run --deny-net -N x.ts"), Loss::Kind::assumed, "net"));
  EXPECT_TRUE(
      has_loss(read("deno run --allow-run=a --deny-run=/b/a x.ts"), Loss::Kind::assumed, "run"));
  EXPECT_TRUE(has_loss(read("deno run --allow-ffi=/a.so --deny-ffi=/a.so x.ts"),
                       Loss::Kind::assumed, "ffi"));
  EXPECT_TRUE(has_loss(read("deno run -E=A --deny-env=A x.ts"), Loss::Kind::assumed, "env"));
}

TEST(Deno, ALongListHasAnEnd) {
  std::string text = "deno run --deny-env=A --allow-env=B";
  for (int i = 1; i < 1024; ++i) text += ",B";
  EXPECT_EQ(outcome(read(text + " x.ts"), text), "env:read:B");
  EXPECT_TRUE(outcome(read(text + ",B x.ts"), text + ",B x.ts").starts_with("IMPORT_REFUSED"));
}

TEST(Deno, SetsOfPermissions) {
  const std::string text = R"({"permissions": {
      "default": {"read": ["./a"], "net": {"allow": true}},
      "strict": {"read": {"allow": ["/srv/b"], "deny": ["/srv/c"], "ignore": ["/srv/d"]}},
      "all": {"all": true}, "bad": {"reed": true}, "odd": {"read": 1}}})";
  EXPECT_EQ(outcome(read_json(read_deno, text), text), "fs:read:/srv/project/a net:connect:*");
  EXPECT_EQ(outcome(read_json(read_deno, text, "strict"), text), "fs:read:/srv/b");
  EXPECT_EQ(outcome(read_json(read_deno, text, "all"), text),
            "IMPORT_REFUSED 'true': all rights are no manifest");
  EXPECT_TRUE(
      outcome(read_json(read_deno, text, "bad"), text).starts_with("IMPORT_SHAPE '\"reed\"'"));
  EXPECT_TRUE(outcome(read_json(read_deno, text, "odd"), text).starts_with("IMPORT_SHAPE '1'"));
  EXPECT_FALSE(read_json(read_deno, text, "none"));
  EXPECT_FALSE(read_json(read_deno, "{}"));
}

TEST(ShellWords, AreCutAsAShellDoes) {
  const auto words = cut_words(R"(a 'b c' "d \" \x" e\ f ''g"")");
  ASSERT_TRUE(words);
  std::vector<std::string> texts;
  for (const Word& word : *words) texts.push_back(word.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "b c", "d \" \\x", "e f", "g"}));
  for (const std::string_view bad :
       {"$A", "\"$A\"", "`x`", "a;b", "a>b", "(a)", "'", "\"", "a\\"}) {
    EXPECT_FALSE(cut_words(bad)) << bad;
  }
  EXPECT_TRUE(cut_words("'$A' \\$A \"\\$A\""));
}

}  // namespace
}  // namespace capgate::imports
