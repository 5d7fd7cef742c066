#include "cli/wrap_plan.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/sensitive.h"
#include "support/temp_directory.h"

namespace capgate::cli {
namespace {

using Kind = ServerPlan::Kind;

class WrapPlan : public testing::Test {
 protected:
  [[nodiscard]] ClientDocument document(std::string_view client, std::string servers) const {
    const clients::Client* found = clients::find_client(client);
    ClientDocument out{.client = found};
    out.opened.path = "/home/me/file.json";
    out.file = *clients::read_client_file("{\"mcpServers\": {" + servers + "}}", found->shape);
    return out;
  }
  [[nodiscard]] PlanOptions options(bool seals = false) const {
    PlanOptions out{.surroundings = {.home = "/home/me", .directory = "/home/me"},
                    .seals = seals,
                    .self = "/usr/bin/capgate"};
    out.places.config = directory_.path("config");
    out.places.system = "";
    out.places.home = "/home/me";
    out.store.base = directory_.path("data");
    return out;
  }

  const test::TempDirectory directory_;
  const ClientDocuments everything_;
};

TEST_F(WrapPlan, AKnownPackageGetsItsManifestWithItsWords) {
  Planner planner(options());
  const auto plans = planner.plan(
      document("cursor",
               R"("f": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem",
                  "/srv/a"]})"),
      everything_);
  ASSERT_EQ(plans.size(), 1U);
  EXPECT_EQ(plans[0].kind, Kind::wrap) << plans[0].reason;
  EXPECT_EQ(plans[0].profile.manifest, "catalog:filesystem");
  EXPECT_EQ(plans[0].profile.name, "f");
  EXPECT_TRUE(plans[0].writes_profile);
  EXPECT_FALSE(plans[0].is_installed);
  ASSERT_FALSE(plans[0].policy.empty());
  EXPECT_NE(join(plans[0].policy, " ").find("/srv/a/**"), std::string::npos);
}

TEST_F(WrapPlan, WhatIsLeftAloneHasAReason) {
  Planner planner(options());
  const auto plans = planner.plan(
      document("cursor", R"("h": {"url": "https://x"}, "d": {"command": "x", "disabled": true},
                            "w": {"command": "capgate", "args": ["run", "--profile", "p", "--",
                                  "x"]}, "p": {"command": 5})"),
      everything_);
  ASSERT_EQ(plans.size(), 4U);
  EXPECT_EQ(plans[0].kind, Kind::http);
  EXPECT_EQ(plans[1].kind, Kind::disabled);
  EXPECT_EQ(plans[2].kind, Kind::wrapped);
  EXPECT_EQ(plans[3].kind, Kind::problem);
  for (const ServerPlan& plan : plans) EXPECT_FALSE(plan.reason.empty());
  EXPECT_TRUE(changes_of(plans, "/usr/bin/capgate").empty());
}

TEST_F(WrapPlan, ProfilesAreSharedOnlyWhereTheySayTheSame) {
  Planner planner(options());
  const auto name = [&](std::string_view client, const std::string& command) {
    return planner.plan(document(client, R"("s": {"command": ")" + command + "\"}"), everything_)
        .at(0)
        .profile.name;
  };
  EXPECT_EQ(name("cursor", "one"), "s");
  EXPECT_EQ(name("kimi", "one"), "s");
  EXPECT_EQ(name("kiro", "two"), "s-kiro");
  EXPECT_EQ(name("kiro", "three"), "s-kiro-2");
}

TEST_F(WrapPlan, AProfileOfAnEarlierRunIsSharedOnlyWhereItSaysTheSame) {
  const auto plan = [&](std::string_view client, const std::string& text, bool seals) {
    Planner planner(options(seals));
    return planner.plan(document(client, text), everything_).back();
  };
  const std::string server = R"("s": {"command": "one", "env": {"A_TOKEN": "value"}})";
  const ServerPlan first = plan("cursor", server, false);
  directory_.file("config/servers/s.yaml", clients::print_profile(first.profile));
  EXPECT_FALSE(plan("cursor", server, false).writes_profile);
  EXPECT_TRUE(plan("cursor", server, true).replaces_profile);
  EXPECT_EQ(plan("kimi", server, false).profile.name, "s");
  EXPECT_FALSE(plan("kimi", server, false).writes_profile);
  // The other client's server would get its secret from nowhere, or get this one's.
  EXPECT_EQ(plan("kimi", server, true).profile.name, "s-kimi");
  const std::string wrapped =
      R"("w": {"command": "capgate", "args": ["run", "--profile", "s", "--", "one"]}, )";
  EXPECT_EQ(plan("cursor", wrapped + server, true).profile.name, "s-cursor");
  EXPECT_EQ(plan("cursor", wrapped + server, false).profile.name, "s");
}

TEST_F(WrapPlan, APolicyOfAPersonHoldsAndIsNotWritten) {
  directory_.file("config/capgate.yaml",
                  "servers:\n  s: {command: [one], capabilities: [\"fs:read:/srv/**\"]}\n");
  Planner planner(options());
  const auto plans = planner.plan(document("cursor", R"("s": {"command": "one"})"), everything_);
  EXPECT_EQ(plans[0].kind, Kind::wrap) << plans[0].reason;
  EXPECT_EQ(plans[0].policy, std::vector<std::string>{"fs:read:/srv/**"});
  EXPECT_FALSE(plans[0].writes_profile);
  EXPECT_EQ(plans[0].profile_file, directory_.path("config/capgate.yaml"));
}

TEST_F(WrapPlan, TokensAreSealedOnlyOnRequest) {
  const ClientDocument file = document(
      "cursor",
      R"("s": {"command": "x", "env": {"A_TOKEN": "value", "LEVEL": "1", "B_KEY": "${B}"}})");
  Planner plain(options());
  const auto shown = plain.plan(file, everything_);
  EXPECT_EQ(shown[0].plain_secrets, std::vector<std::string>{"A_TOKEN"});
  EXPECT_TRUE(shown[0].sealed.empty());
  EXPECT_TRUE(seals_of(shown).empty());
  Planner sealing(options(true));
  const auto plans = sealing.plan(file, everything_);
  EXPECT_EQ(plans[0].sealed, std::vector<std::string>{"A_TOKEN"});
  EXPECT_EQ(plans[0].profile.unused_secrets, std::vector<std::string>{"A_TOKEN"});
  ASSERT_EQ(seals_of(plans).size(), 1U);
  EXPECT_EQ(seals_of(plans)[0].value, "store:A_TOKEN");
}

TEST_F(WrapPlan, TokensOfAWrappedServerAreSaidToStay) {
  Planner planner(options(true));
  const auto plans = planner.plan(
      document("cursor", R"("w": {"command": "capgate", "args": ["run", "--profile", "p", "--",
                                  "x"], "env": {"A_TOKEN": "v"}},
                            "v": {"command": "capgate", "args": ["run", "--profile", "p", "--",
                                  "x"], "env": {"A_TOKEN": "store:A_TOKEN"}})"),
      everything_);
  EXPECT_NE(plans.at(0).reason.find("unwrap it, then wrap it with --seal"), std::string::npos);
  EXPECT_EQ(plans.at(1).reason, "it is wrapped already, with the profile p");
}

TEST_F(WrapPlan, AVariableThatTheStoreCannotNameStaysAndIsSaid) {
  Planner planner(options(true));
  const auto plan =
      planner
          .plan(document("cursor",
                         R"("s": {"command": "x", "env": {"--a_TOKEN": "v", "B_TOKEN": "v"}})"),
                everything_)
          .at(0);
  EXPECT_EQ(plan.sealed, std::vector<std::string>{"B_TOKEN"});
  ASSERT_EQ(plan.unsealable.size(), 1U);
  EXPECT_NE(plan.unsealable[0].find("--a_TOKEN stays"), std::string::npos);
}

TEST(SecretNames, AreKnownByTheirEnds) {
  for (const char* name : {"GITHUB_TOKEN", "API_KEY", "client_secret", "DB_PASSWORD",
                           "PASSWORD_FILE", "OPENAI_APIKEY", "TOKEN", "GITHUB_PAT"}) {
    EXPECT_TRUE(core::is_secret_name(name)) << name;
  }
  for (const char* name : {"LOG_LEVEL", "MONKEY", "KEYBOARD", "TOKENIZER", "PATH"}) {
    EXPECT_FALSE(core::is_secret_name(name)) << name;
  }
  for (const char* value : {"", "$HOME", "${TOKEN}", "Bearer ${input:x}", "store:X"}) {
    EXPECT_TRUE(is_reference(value)) << value;
  }
  EXPECT_FALSE(is_reference("ghp_x"));
}

}  // namespace
}  // namespace capgate::cli
