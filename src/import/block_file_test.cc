#include <gtest/gtest.h>

#include "import/gatekit.h"
#include "import/rampart.h"
#include "support/imports.h"

namespace capgate::imports {
namespace {

using support::has_loss;
using support::outcome;
using support::read_yaml;

TEST(Gatekit, UpstreamsAreChosenByName) {
  const std::string text =
      "proxy: {upstreams: [{name: a, command: [x], sandbox: {enabled: true, paths: [~/n], network: "
      "true}}, {name: b, command: y z}]}";
  EXPECT_TRUE(outcome(read_yaml(read_gatekit, text), text).contains("there are 2 of them"));
  const auto a = read_yaml(read_gatekit, text, "a");
  EXPECT_EQ(outcome(a, text), "fs:write:/home/me/n net:connect:*");
  const auto b = read_yaml(read_gatekit, text, "b");
  EXPECT_EQ(outcome(b, text), "");
  EXPECT_TRUE(has_loss(b, Loss::Kind::assumed, "sandbox"));
  ASSERT_TRUE(b);
  EXPECT_EQ(b->command, (std::vector<std::string>{"y", "z"}));
  EXPECT_FALSE(read_yaml(read_gatekit, text, "c"));
}

TEST(Gatekit, TheNetworkIsOpenThereUnlessItIsClosed) {
  const std::string text = "proxy: {upstream: {command: x, sandbox: {enabled: true, paths: []}}}";
  const auto read = read_yaml(read_gatekit, text);
  EXPECT_EQ(outcome(read, text), "");
  EXPECT_TRUE(has_loss(read, Loss::Kind::assumed, "sandbox.network"));
}

TEST(Gatekit, WhatItCannotMeanIsAMistake) {
  const support::ImportCase cases[] = {
      {"[]", "IMPORT_SHAPE '': proxy is missing"},
      {"proxy: {}", "IMPORT_SHAPE '{}': upstreams is missing"},
      {"proxy: {upstreams: [1]}", "IMPORT_SHAPE '1': an upstream is a mapping"},
      {"proxy: {upstreams: []}", "IMPORT_SHAPE '': there is no server"},
      {"proxy: {upstream: {url: 'https://x', transport: http}}", "IMPORT_REFUSED"},
      {"proxy: {upstream: {comand: x}}", "IMPORT_SHAPE 'comand'"},
      {"proxy: {upstream: {sandbox: {paths: ['/']}}}", "CAP_SCOPE_REFUSED '/'"},
      {"proxy: {upstream: {sandbox: {paths: [~/.ssh]}}}", "CONFIG_SANDBOX '~/.ssh'"},
      {"proxy: {upstream: {sandbox: {gpu: true}}}", "CONFIG_UNKNOWN_KEY 'gpu'"},
      {"proxy: {upstream: {command: x}, upstreams: [{name: a, command: y}]}",
       "IMPORT_SHAPE '{command: x}': it stands beside upstreams"},
      {"proxy: {upstreams: [{name: a, command: y}, {name: a, command: z}]}",
       "IMPORT_SHAPE 'a': there are two upstreams \"a\""},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_TRUE(outcome(read_yaml(read_gatekit, text), text).starts_with(expected))
        << text << "\n"
        << outcome(read_yaml(read_gatekit, text), text);
  }
}

TEST(Rampart, OneServerOrSeveral) {
  const std::string one =
      "mcp: {server: npx x, sandbox: {network: ['a.example.com:443'], exec: [git]}}";
  EXPECT_EQ(outcome(read_yaml(read_rampart, one), one),
            "exec:spawn:git net:connect:a.example.com:443");
  const std::string several =
      "mcp: {servers: {a: {command: [x], sandbox: {read: [/srv/a]}}, b: {command: [y], sandbox: "
      "{exec: true}}}}";
  EXPECT_EQ(outcome(read_yaml(read_rampart, several, "a"), several), "fs:read:/srv/a");
  EXPECT_TRUE(outcome(read_yaml(read_rampart, several, "b"), several)
                  .starts_with("CONFIG_SANDBOX 'true': exec: true does not say"));
  EXPECT_FALSE(read_yaml(read_rampart, several));
  EXPECT_FALSE(read_yaml(read_rampart, "mcp: {}, x: 1"));
  const std::string both =
      "mcp: {servers: {a: {command: [x], sandbox: {read: [/srv/a]}}}, sandbox: {read: [/srv/b]}}";
  EXPECT_EQ(outcome(read_yaml(read_rampart, both), both),
            "IMPORT_SHAPE '{read: [/srv/b]}': it stands beside servers, and may hold for each of "
            "them");
}

TEST(GatekitAndRampart, AValueOfTheFileIsNoSecretOfTheCaller) {
  const std::string env =
      "env: {A_TOKEN: x, LEVEL: 3, B_TOKEN: '${B_TOKEN}', C_TOKEN: '$C_TOKEN', D_TOKEN: '${E}'}";
  for (const auto& [read, text] :
       {std::pair<support::Read, std::string>(
            read_gatekit, format("proxy: {{upstream: {{command: x, {}}}}}", env)),
        {read_rampart, format("mcp: {{servers: {{a: {{command: [x], {}}}}}}}", env)}}) {
    const auto got = read_yaml(read, text);
    EXPECT_EQ(outcome(got, text), "env:read:B_TOKEN env:read:C_TOKEN env:read:LEVEL");
    EXPECT_TRUE(has_loss(got, Loss::Kind::dropped, "env"));
    EXPECT_TRUE(has_loss(got, Loss::Kind::assumed, "env"));
  }
}

}  // namespace
}  // namespace capgate::imports
