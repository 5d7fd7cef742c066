#include "sandbox/secrets.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "sandbox/orders_write.h"
#include "secrets/placeholder.h"

namespace capgate::sandbox {
namespace {

using Names = std::vector<std::string>;

constexpr const char* token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

lower::PlanSeal seal(const std::string& name) {
  return {.env = {.action = core::EnvCapability::Action::inject, .name = name}, .position = {}};
}

Launcher launcher_with(Names environment) {
  return {.caller = {}, .environment = std::move(environment)};
}

std::vector<secrets::Binding> bound_to(const std::string& text) {
  return {*secrets::parse_binding(text)};
}

TEST(ResolveSecrets, AnInjectedOneIsTheLaunchersVariable) {
  const lower::Plan plan{.env_inject = {"TOKEN"}};
  Launcher launcher = launcher_with({"PATH=/usr/bin", std::string("TOKEN=") + token});
  const auto out = resolve_secrets(plan, {}, launcher);
  ASSERT_TRUE(out) << out.error().message;
  ASSERT_EQ(out->injected.size(), 1U);
  EXPECT_EQ(out->injected[0].name, "TOKEN");
  EXPECT_EQ(out->injected[0].value.view(), token);
  EXPECT_TRUE(out->sealed.empty());
  EXPECT_EQ(launcher.environment, Names{"PATH=/usr/bin"});
}

TEST(ResolveSecrets, ThisProcessForgetsIt) {
  ASSERT_EQ(::setenv("CAPGATE_TEST_TOKEN", token, 1), 0);
  const lower::Plan plan{.env_inject = {"CAPGATE_TEST_TOKEN"}};
  Launcher launcher = launcher_with({std::string("CAPGATE_TEST_TOKEN=") + token});
  ASSERT_TRUE(resolve_secrets(plan, {}, launcher));
  EXPECT_STREQ(::getenv("CAPGATE_TEST_TOKEN"), "");
  ASSERT_EQ(::unsetenv("CAPGATE_TEST_TOKEN"), 0);
}

TEST(ResolveSecrets, AVariableThatIsReadTooStays) {
  const lower::Plan plan{.env_read = {"TOKEN"}, .env_inject = {"OTHER"}};
  Launcher launcher = launcher_with({"TOKEN=value"});
  const auto out = resolve_secrets(plan, {.bindings = bound_to("OTHER=env:TOKEN")}, launcher);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->injected[0].value.view(), "value");
  EXPECT_EQ(launcher.environment, Names{"TOKEN=value"});
}

TEST(ResolveSecrets, ASealedOneHasAPlaceholder) {
  const lower::Plan plan{.seals = {seal("TOKEN"), seal("OTHER")}};
  Launcher launcher = launcher_with({std::string("TOKEN=") + token, std::string("OTHER=") + token});
  const auto out = resolve_secrets(plan, {}, launcher);
  ASSERT_TRUE(out) << out.error().message;
  ASSERT_EQ(out->sealed.size(), 2U);
  const SealedSecret& sealed = out->sealed[0];
  EXPECT_EQ(sealed.value.view(), token);
  EXPECT_EQ(sealed.placeholder.size(), sealed.value.view().size());
  EXPECT_TRUE(sealed.placeholder.starts_with("ghp_"));
  EXPECT_NE(sealed.placeholder, token);
  EXPECT_NE(sealed.placeholder, out->sealed[1].placeholder);
  EXPECT_TRUE(out->injected.empty() && out->renewed.empty());
}

TEST(ResolveSecrets, ASealedOneThatExpiresIsRenewed) {
  const lower::Plan plan{.env_inject = {"HELD"}, .seals = {seal("TOKEN")}};
  Launcher launcher = launcher_with({"PATH=/usr/bin:/bin"});
  auto bindings = bound_to("TOKEN=cmd?ttl=600:echo value-of-token");
  bindings.push_back(*secrets::parse_binding("HELD=cmd?ttl=600:echo value"));
  const auto out = resolve_secrets(plan, {.bindings = bindings}, launcher);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_GT(out->sealed[0].expires, 0);
  ASSERT_EQ(out->renewed.size(), 1U);
  EXPECT_EQ(out->renewed[0].name, "TOKEN");
  ASSERT_EQ(out->notes.size(), 1U);
  EXPECT_TRUE(out->notes[0].starts_with("HELD expires and cannot be renewed"));
}

TEST(ResolveSecrets, WhatSignsIsNotSealedButInjected) {
  const std::string key = "TOKEN=-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
  Launcher launcher = launcher_with({key});
  const auto sealed = resolve_secrets({.seals = {seal("TOKEN")}}, {}, launcher);
  ASSERT_FALSE(sealed);
  EXPECT_TRUE(sealed.error().message.contains("signs requests")) << sealed.error().message;
  EXPECT_FALSE((sealed.error().message + sealed.error().help).contains("MIIE"));
  EXPECT_TRUE(resolve_secrets({.env_inject = {"TOKEN"}}, {}, launcher));
}

TEST(ResolveSecrets, WhatIsMissingIsRefused) {
  Launcher launcher = launcher_with({});
  const auto out = resolve_secrets({.seals = {seal("TOKEN")}}, {}, launcher);
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().message, "the variable TOKEN is not set");
  EXPECT_TRUE(out.error().help.starts_with("set TOKEN"));
}

TEST(ResolveSecrets, ADryRunStartsNothing) {
  const lower::Plan plan{.env_inject = {"TOKEN"}, .seals = {seal("OTHER")}};
  auto bindings = bound_to("TOKEN=cmd:false");
  bindings.push_back(*secrets::parse_binding("OTHER=file:/nonexistent"));
  Launcher launcher = launcher_with({});
  const auto out = resolve_secrets(plan, {.bindings = bindings, .dry_run = true}, launcher);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_TRUE(out->injected[0].value.is_empty());
}

TEST(NameSecrets, TheBoundPlanHasNamesAndPlaceholdersOnly) {
  Secrets secrets;
  secrets.injected.push_back({.name = "HELD", .value = *secrets::Secret::make("held-value")});
  secrets.sealed.push_back({.name = "SEALED",
                            .placeholder = "placeholder-of-it",
                            .value = *secrets::Secret::make("sealed-value")});
  Bound bound;
  bound.environment = {"HOME=/home/user", "SEALED=read-from-the-caller"};
  name_secrets(bound, secrets);
  EXPECT_EQ(bound.environment, (Names{"HOME=/home/user", "SEALED=placeholder-of-it"}));
  EXPECT_EQ(bound.injected, Names{"HELD"});
  const std::string block = write_orders(bound, {.injected = secrets.injected});
  EXPECT_TRUE(block.contains(std::string_view("HELD=held-value\0", 16)));
  EXPECT_TRUE(block.contains("SEALED=placeholder-of-it"));
  EXPECT_FALSE(block.contains("sealed-value"));
}

}  // namespace
}  // namespace capgate::sandbox
