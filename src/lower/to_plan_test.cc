#include "lower/to_plan.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

const PlanMount* find_mount(const Lowered& lowered, std::string_view target) {
  const auto& mounts = lowered.artifact().plan->mounts;
  const auto it = std::ranges::find(mounts, target, &PlanMount::target);
  return it == mounts.end() ? nullptr : &*it;
}

std::vector<std::string_view> rights(const Lowered& lowered, std::string_view path) {
  for (const LandlockRule& rule : lowered.artifact().plan->landlock) {
    if (rule.path == path) return rule.rights;
  }
  return {};
}

bool holds(const std::vector<std::string_view>& list, std::string_view item) {
  return std::ranges::find(list, item) != list.end();
}

TEST(Plan, EachActionHasItsOwnLandlockRights) {
  const Lowered plan("plan", {"fs:read:/r", "fs:create:/c", "fs:delete:/d", "fs:write:/w"});
  EXPECT_EQ(rights(plan, "/r"), (std::vector<std::string_view>{"read_file", "read_dir"}));
  EXPECT_TRUE(holds(rights(plan, "/c"), "make_reg"));
  EXPECT_FALSE(holds(rights(plan, "/c"), "remove_file"));
  EXPECT_TRUE(holds(rights(plan, "/d"), "remove_file"));
  EXPECT_FALSE(holds(rights(plan, "/d"), "write_file"));
  EXPECT_TRUE(holds(rights(plan, "/w"), "refer"));
}

TEST(Plan, DevicesCanBeMadeNowhereAndSocketsOnlyInPrivatePlaces) {
  const Lowered plan("plan", {"fs:write:/w/**"});
  for (const LandlockRule& rule : plan.artifact().plan->landlock) {
    EXPECT_FALSE(holds(rule.rights, "make_char") || holds(rule.rights, "make_block")) << rule.path;
    const bool is_private =
        rule.path == "/tmp" || rule.path == "/dev/shm" || rule.path == "${HOME}";
    EXPECT_EQ(holds(rule.rights, "make_sock"), is_private) << rule.path;
  }
}

TEST(Plan, ParentsAreMountedBeforeTheirChildren) {
  const Lowered plan("plan", {"fs:write:/t/out/**", "fs:read:/t/**"});
  EXPECT_LT(find_mount(plan, "/t"), find_mount(plan, "/t/out"));
  EXPECT_EQ(find_mount(plan, "/t")->detail, "read");
  EXPECT_EQ(find_mount(plan, "/t/out")->detail, "write");
}

TEST(Plan, WhatOnlyTheHostKnowsIsAHole) {
  const Lowered plan(
      "plan", {"exec:spawn:git", "fs:read:/n/*.md", "ipc:connect:x11", "ipc:connect:dbus:session"});
  Strings names;
  for (const PlanHole& hole : plan.artifact().plan->holes) names.push_back(hole.name);
  EXPECT_EQ(names, (Strings{"HOME", "IDS", "PROGRAM", "EXEC:git", "GLOB:/n/*.md", "XDG_RUNTIME_DIR",
                            "DISPLAY"}));
}

TEST(Plan, MasksCredentialsAndNamesProtectedFilesOfWritableGrants) {
  const Lowered plan("plan", {"fs:write:/home/u/.config/**"});
  ASSERT_NE(find_mount(plan, "/home/u/.config/gh"), nullptr);
  EXPECT_EQ(find_mount(plan, "/home/u/.config/gh")->kind, PlanMount::Kind::mask);
  EXPECT_FALSE(plan.artifact().plan->protected_names.empty());
  EXPECT_TRUE(Lowered("plan", {"fs:read:/w"}).artifact().plan->protected_names.empty());
}

// The base of a pattern is a directory that it does not grant.
TEST(Plan, APatternInAHiddenDirectoryDoesNotOpenIt) {
  const std::string outer = "fs:read:/home/u/.config/**";
  const auto has_mask = [&](const std::string& inner) {
    const Lowered plan("plan", {outer, inner});
    return std::ranges::any_of(plan.artifact().plan->mounts, [](const PlanMount& mount) {
      return mount.kind == PlanMount::Kind::mask && mount.target == "/home/u/.config/gh";
    });
  };
  EXPECT_TRUE(has_mask("fs:read:/home/u/.config/gh/*.md"));
  EXPECT_FALSE(has_mask("fs:read:/home/u/.config/gh/**"));
}

TEST(Plan, ListenersFollowTheDeclaredPorts) {
  const Lowered plan("plan", {"net:connect:a.example:443", "net:connect:b.example:443",
                              "net:connect:c.example:80", "net:listen:9000"});
  const PlanNetwork& network = plan.artifact().plan->network;
  EXPECT_EQ(network.listeners, (std::vector<std::uint16_t>{80, 443}));
  EXPECT_EQ(network.published, (std::vector<std::uint16_t>{9000}));
  EXPECT_TRUE(network.dns);
  EXPECT_FALSE(network.every_port);
  EXPECT_TRUE(Lowered("plan", {"net:connect:*"}).artifact().plan->network.every_port);
  EXPECT_FALSE(Lowered("plan", {}).artifact().plan->network.dns);
}

using Ports = std::vector<std::uint16_t>;
using Capture = PlanNetwork::Capture;

PlanNetwork network(const Strings& capabilities) {
  const Lowered plan("plan", capabilities);
  EXPECT_EQ(plan.verdict(), "ok");
  return plan.ok() ? plan.artifact().plan->network : PlanNetwork{};
}

TEST(Plan, CapturesByListenersUnlessAPortIsOpenOrTheServersOwn) {
  EXPECT_EQ(network({}).capture, Capture::none);
  EXPECT_EQ(network({"net:listen:9000"}).capture, Capture::none);
  EXPECT_EQ(network({"net:connect:a.example:443", "net:listen:9000"}).capture, Capture::listeners);
  EXPECT_EQ(network({"net:connect:a.example:443"}).redirect_port, 0);
  EXPECT_EQ(network({"net:connect:a.example"}).capture, Capture::redirect);
  EXPECT_EQ(network({"net:connect:a.example:9000", "net:listen:9000"}).capture, Capture::redirect);
}

TEST(Plan, TheRedirectHasAPortOfItsOwn) {
  EXPECT_EQ(network({"net:connect:*"}).redirect_port, 61000);
  EXPECT_EQ(network({"net:connect:*", "net:listen:61000"}).redirect_port, 61001);
  EXPECT_EQ(
      network({"net:connect:*", "net:listen:61001", "net:connect:10.0.0.5:61000"}).redirect_port,
      61002);
}

TEST(Plan, NamesThePortsThatLeadToTheHostsLoopback) {
  const Strings capabilities{"net:connect:localhost:5432", "net:connect:127.0.0.1:6379",
                             "net:connect:[::1]:5432",     "net:connect:app.localhost:3000",
                             "net:connect:10.0.0.5:80",    "net:connect:a.example:443"};
  EXPECT_EQ(network(capabilities).localhost, (Ports{3000, 5432, 6379}));
  EXPECT_EQ(network(capabilities).capture, Capture::listeners);
}

TEST(Plan, CarriesTheRulesOfTheBroker) {
  const PlanNetwork plan = network({"net:connect:b.example:443", "net:connect:a.example:443"});
  ASSERT_EQ(plan.rules.size(), 2U);
  EXPECT_EQ(print(core::Capability(plan.rules[0].connect)), "net:connect:a.example:443");
  EXPECT_FALSE(plan.public_only);
  EXPECT_TRUE(network({"net:connect:*", "assert:fetch.block_rfc1918"}).public_only);
}

TEST(Plan, NamesOfAPrivateNetworkHaveANote) {
  const Lowered lowered("plan",
                        {"net:connect:a.example:443", "net:connect:a.example?private=true"});
  const PlanNetwork& plan = lowered.artifact().plan->network;
  ASSERT_EQ(plan.rules.size(), 1U);
  EXPECT_TRUE(plan.rules[0].connect.refinements.private_network);
  EXPECT_EQ(lowered.artifact().notes,
            Strings{"net: net:connect:a.example?private=true names hosts in your network; whoever "
                    "serves the name's zone chooses which"});
  EXPECT_TRUE(lowered.json().contains(R"("blockPrivate":true,"private":true)"));
}

// The refusal's only message.
std::string refusal(const Strings& capabilities) {
  const Lowered plan("plan", capabilities);
  EXPECT_EQ(plan.verdict(), "ADAPTER_UNSUPPORTED") << capabilities.front();
  return plan.ok() ? "" : plan.mistakes().front().message;
}

TEST(Plan, RefusesPortsThatAreTaken) {
  EXPECT_TRUE(refusal({"net:connect:a.example:53"}).contains("DNS"));
  EXPECT_TRUE(refusal({"net:listen:53"}).contains("DNS"));
  EXPECT_TRUE(refusal({"net:connect:localhost"}).contains("named"));
  for (const std::string_view host : {"localhost", "127.0.0.1", "[::1]"}) {
    EXPECT_TRUE(refusal({format("net:connect:{}:8080", host), "net:listen:8080"})
                    .contains("net:listen:8080"));
  }
  const Lowered accepted("plan", {"net:connect:a.example:53"},
                         {.accepted = {"net:connect:a.example:53"}});
  EXPECT_EQ(accepted.verdict(), "ADAPTER_UNSUPPORTED ACCEPT_UNUSED") << "nothing to accept";
}

TEST(Plan, MethodsAndPathsNeedPlainHttp) {
  EXPECT_EQ(network({"net:connect:a.example:80?methods=GET&proto=http"}).rules.size(), 1U);
  EXPECT_EQ(network({"net:connect:a.example:80?paths=/v1/**&proto=http"}).rules.size(), 1U);
  for (const std::string_view rest : {"methods=GET", "paths=/a", "methods=GET&proto=tls"}) {
    EXPECT_TRUE(refusal({format("net:connect:a.example:80?{}", rest)}).contains("inside TLS"));
  }
  const std::string rule = "net:connect:a.example:443?methods=GET";
  const Lowered accepted("plan", {rule}, {.accepted = {rule}});
  ASSERT_EQ(accepted.verdict(), "ok");
  EXPECT_EQ(accepted.artifact().unenforced, Strings{rule});
}

TEST(Plan, StatedLimitsAreRequiredAndDefaultsAreNot) {
  const Lowered plan("plan", {"limit:memory:1G"});
  for (const PlanLimit& limit : plan.artifact().plan->limits) {
    EXPECT_EQ(limit.is_default, limit.name != "memory") << limit.name;
  }
}

TEST(Plan, SealedValuesAreNotInjected) {
  const Lowered lowered("plan", {"net:connect:h.example:443", "env:read:A", "env:inject:B",
                                 "env:inject:A?to=h.example:443&as=header:X-Key"});
  const Plan& plan = *lowered.artifact().plan;
  ASSERT_EQ(plan.seals.size(), 1U);
  EXPECT_EQ(print(core::Capability(plan.seals[0].env)),
            "env:inject:A?as=header:x-key&to=h.example:443");
  EXPECT_EQ(plan.env_inject, Strings{"B"});
  EXPECT_TRUE(plan.env_read.empty());
  EXPECT_EQ(lowered.artifact().env_injections, Strings{"B"});
  EXPECT_TRUE(lowered.json().contains(R"("seals":[{"capability":"env:inject:A?)"));
}

TEST(Plan, ANoteSaysWhoTerminatesTls) {
  const Lowered lowered("plan", {"net:connect:h.example:443", "env:inject:A?to=h.example:443"});
  EXPECT_EQ(lowered.artifact().notes,
            Strings{"env: A is sealed: the server holds a placeholder; TLS to h.example:443 is "
                    "terminated by the broker, which reads the requests and puts the value into "
                    "the header authorization"});
  const Lowered held("plan", {"net:connect:h.example:443", "env:inject:A"});
  EXPECT_TRUE(held.artifact().notes.empty());
  EXPECT_FALSE(held.json().contains("seals"));
}

TEST(Plan, RequestRulesHoldWhereASecretIsSealed) {
  const std::string seal = "env:inject:A?to=a.example:443&to=a.example:8443";
  for (const std::string_view rule :
       {"a.example:443?methods=GET", "a.example:443?paths=/v1/**&proto=tls",
        "a.example:443?methods=GET&sni=strict", "a.example:8443?methods=GET"}) {
    EXPECT_EQ(network({format("net:connect:{}", rule), seal}).rules.size(), 1U) << rule;
  }
  for (const std::string_view rule : {"b.example:443?methods=GET", "*.example:443?methods=GET",
                                      "a.example:444?methods=GET", "a.example?methods=GET"}) {
    EXPECT_TRUE(refusal({format("net:connect:{}", rule), seal}).contains("this very host and port"))
        << rule;
  }
  for (const std::string_view rest : {"proto=tcp", "sni=any"}) {
    EXPECT_TRUE(refusal({format("net:connect:a.example:443?methods=GET&{}", rest), seal})
                    .contains("where TLS is terminated"))
        << rest;
  }
}

TEST(WholeTargets, SaySoThatTheyWouldHandTheValueOver) {
  for (const std::string_view target : {"bwrap", "docker"}) {
    const Lowered lowered(target, {"env:inject:A?to=a.example:443"});
    ASSERT_EQ(lowered.verdict(), "ADAPTER_UNSUPPORTED");
    EXPECT_TRUE(lowered.mistakes().front().message.contains("would hold it")) << target;
    EXPECT_TRUE(lowered.mistakes().front().help.contains("capgate run")) << target;
  }
}

}  // namespace
}  // namespace capgate::lower
