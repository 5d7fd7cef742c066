#include "core/seal.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/format.h"
#include "support/generators.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

using support::manifest_json;
using support::read_manifest;
using support::Strings;

Manifest manifest_of(const std::vector<Strings>& tools) {
  auto manifest = read_manifest(manifest_json(tools));
  EXPECT_TRUE(manifest) << manifest.error().front().message;
  return manifest ? *std::move(manifest) : Manifest{};
}

Strings variables(const Manifest& manifest) {
  Strings out;
  for (const Declared& declared : manifest.declared) {
    if (std::holds_alternative<EnvCapability>(declared.capability)) {
      out.push_back(print(declared.capability));
    }
  }
  return out;
}

std::string text_of(const Diagnostics& mistakes) {
  std::string out;
  for (const Diagnostic& mistake : mistakes) {
    out += format("{}: {} ({})\n", code_name(mistake.code), mistake.message, mistake.help);
  }
  return out;
}

// The variables after sealing, or what is wrong.
std::string sealed(const std::vector<Strings>& tools) {
  Manifest manifest = manifest_of(tools);
  const Diagnostics mistakes = seal_variables(manifest);
  return mistakes.empty() ? join(variables(manifest), " ") : text_of(mistakes);
}

TEST(SealVariables, BindsToTheOnlyEndpointOfTheTool) {
  EXPECT_EQ(sealed({{"net:connect:a.com:443", "env:inject:T"}}), "env:inject:T?to=a.com:443");
  EXPECT_EQ(sealed({{"net:connect:a.com:8443", "env:inject:T"}}), "env:inject:T?to=a.com:8443");
  EXPECT_EQ(sealed({{"net:connect:a.com:443", "env:inject:T"}, {"net:connect:b.com:443"}}),
            "env:inject:T?to=a.com:443");
  EXPECT_EQ(sealed({{"net:connect:a.com:443", "net:connect:a.com:443?methods=GET&proto=tls",
                     "env:inject:T"}}),
            "env:inject:T?to=a.com:443")
      << "two rules, one endpoint";
}

TEST(SealVariables, ElseToTheOnlyOneOfTheManifest) {
  EXPECT_EQ(sealed({{"env:inject:T"}, {"net:connect:b.com:443"}}), "env:inject:T?to=b.com:443");
}

TEST(SealVariables, WhatTheServerMayReachComesBeforeOtherTools) {
  auto manifest = read_manifest(
      R"({"name":"n","version":"1","serverCapabilities":["net:connect:a.com:443"],
          "tools":[{"name":"t","capabilities":["env:inject:T"]},
                   {"name":"u","capabilities":["net:connect:b.com:443"]}]})");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(text_of(seal_variables(*manifest)), "");
  EXPECT_EQ(variables(*manifest), Strings{"env:inject:T?to=a.com:443"});
}

TEST(SealVariables, AToolWithRulesOfItsOwnDoesNotBorrow) {
  EXPECT_TRUE(sealed({{"net:connect:*.a.com:443", "env:inject:T"}, {"net:connect:b.com:443"}})
                  .contains("no net:connect names"));
}

TEST(SealVariables, EachVariableByItsOwnTools) {
  EXPECT_EQ(sealed({{"net:connect:a.com:443", "env:inject:A"},
                    {"net:connect:b.com:443", "env:inject:B"}}),
            "env:inject:A?to=a.com:443 env:inject:B?to=b.com:443");
}

TEST(SealVariables, LeavesWhatIsSealedOrOnlyRead) {
  EXPECT_EQ(sealed({{"net:connect:a.com:443", "env:read:LANG",
                     "env:inject:T?to=b.com:443&as=header:x-key"}}),
            "env:read:LANG env:inject:T?as=header:x-key&to=b.com:443");
}

TEST(SealVariables, AnotherDeclarationOfTheVariableDecides) {
  EXPECT_EQ(sealed({{"env:inject:T?to=b.com:443&as=query"}, {"env:inject:T"}}),
            "env:inject:T?as=query&to=b.com:443 env:inject:T?as=query&to=b.com:443");
}

TEST(SealVariables, NamesTheLineWhereSeveralArePossible) {
  EXPECT_EQ(sealed({{"net:connect:b.com:443", "net:connect:a.com:443", "env:inject:T"}}),
            "SEAL_AMBIGUOUS: T cannot be sealed: it could go to a.com:443, b.com:443 "
            "(write env:inject:T?to=a.com:443, or another of them; repeat to= for several)\n");
}

TEST(SealVariables, CountsNoEndpointThatCannotReceiveASecret) {
  for (const std::string_view rule :
       {"a.com:80", "a.com:443?proto=tcp", "a.com:443?proto=http", "a.com:443?sni=any",
        "10.0.0.5:443", "db.com:5432", "a.com", "*.a.com:443", "*:443"}) {
    EXPECT_TRUE(sealed({{format("net:connect:{}", rule), "env:inject:T"}})
                    .starts_with("SEAL_AMBIGUOUS: T cannot be sealed: no net:connect names"))
        << rule;
  }
  EXPECT_TRUE(sealed({{"net:connect:*.a.com:443", "env:inject:T"}})
                  .contains("which net:connect:*.a.com:443 does not"));
}

TEST(SealVariables, RefusesWhatCannotBeSealedAndChangesNothing) {
  Manifest manifest =
      manifest_of({{"net:connect:a.com:443", "env:inject:TOKEN", "env:inject:AWS_SECRET_ACCESS_KEY",
                    "env:inject:LD_PRELOAD?unsafe=true"}});
  const Strings before = variables(manifest);
  const Diagnostics mistakes = seal_variables(manifest);
  ASSERT_EQ(mistakes.size(), 2U);
  EXPECT_EQ(code_name(mistakes[0].code), "CAP_ENV_UNSEALABLE");
  EXPECT_TRUE(mistakes[0].message.contains("signs requests"));
  EXPECT_TRUE(mistakes[1].help.contains("env:read:LD_PRELOAD?unsafe=true"));
  EXPECT_EQ(mistakes[0].where, manifest.declared[2].where);
  EXPECT_EQ(variables(manifest), before);
}

// ---- Checking --------------------------------------------------------------------------------

std::string checked(const Strings& capabilities) {
  return text_of(check_seals(manifest_of({capabilities})));
}

TEST(CheckSeals, AcceptsWhatCanBeTerminated) {
  for (const std::string_view rule : {"a.com:443", "a.com", "*.com:443", "*", "a.com:443?proto=tls",
                                      "a.com:443?sni=strict", "a.com:443?methods=GET"}) {
    EXPECT_EQ(checked({format("net:connect:{}", rule), "env:inject:T?to=a.com:443"}), "") << rule;
  }
  EXPECT_EQ(checked({"net:connect:a.com:443?proto=tcp", "net:connect:*:443",
                     "env:inject:T?to=a.com:443"}),
            "")
      << "one rule is enough";
  EXPECT_EQ(checked({"net:connect:localhost:8443", "env:inject:T?to=localhost:8443"}), "");
  EXPECT_EQ(checked({"net:connect:a.com:80?proto=tls", "env:inject:T?to=a.com:80"}), "");
  EXPECT_EQ(checked({"env:inject:T"}), "");
}

TEST(CheckSeals, NamesTheLineThatIsMissing) {
  for (const Strings& rules :
       {Strings{}, Strings{"net:connect:a.com:8443"}, Strings{"net:connect:*.a.com:443"},
        Strings{"net:connect:b.com:443"}}) {
    Strings capabilities = rules;
    capabilities.emplace_back("env:inject:T?to=a.com:443");
    EXPECT_EQ(checked(capabilities),
              "SEAL_UNUSABLE: T is sealed for a.com:443, which no capability lets the server reach "
              "(add net:connect:a.com:443, or remove this to=)\n");
  }
  EXPECT_TRUE(
      checked({"net:connect:*", "env:inject:T?to=localhost:8443"}).contains("no capability"))
      << "a wildcard reaches no loopback";
}

TEST(CheckSeals, SaysWhyTlsIsNotTerminated) {
  struct Row {
    std::string_view rule;
    std::string_view reason;
  };
  for (const Row& row :
       {Row{"a.com:443?proto=http", "show the value"}, Row{"a.com:443?proto=tcp", "unread"},
        Row{"*.com:443?sni=any", "any host"}}) {
    const std::string text =
        checked({format("net:connect:{}", row.rule), "env:inject:T?to=a.com:443"});
    EXPECT_TRUE(text.starts_with("SEAL_UNUSABLE")) << row.rule;
    EXPECT_TRUE(text.contains(row.reason)) << text;
  }
  EXPECT_TRUE(checked({"net:connect:a.com", "env:inject:T?to=a.com:80"}).contains("proto=tls"));
}

// Slow and obvious: every rule is asked.
RC_GTEST_PROP(CheckSeals, FindsWhatAskingEveryRuleFinds, ()) {
  Manifest manifest;
  const auto rules = *rc::gen::container<std::vector<Endpoint>>(support::endpoint());
  for (const Endpoint& endpoint : rules) {
    manifest.declared.push_back({.capability = support::net_connect(endpoint)});
  }
  Endpoint to = *support::endpoint();
  RC_PRE(to.host.kind == HostPattern::Kind::name);
  if (!to.port) to.port = std::uint16_t{443};
  const bool usable = std::ranges::any_of(manifest.declared, [&](const Declared& declared) {
    const auto& connect = std::get<NetConnect>(declared.capability);
    return matches(connect.endpoint, to) && is_terminable(connect.refinements, *to.port);
  });
  manifest.declared.push_back(
      {.capability =
           EnvCapability{.action = EnvCapability::Action::inject, .name = "T", .to = {to}}});
  RC_ASSERT(check_seals(manifest).empty() == usable);
}

}  // namespace
}  // namespace capgate::core
