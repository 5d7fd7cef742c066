// Each rule: what it finds, where, and what it leaves alone.
#include "review/lint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "core/prepare.h"
#include "support/manifests.h"
#include "text/json.h"

namespace capgate::review {
namespace {

using Strings = std::vector<std::string>;

std::vector<Finding> lint_text(std::string text, std::string_view file = "m.json") {
  const auto document = text::parse_json(std::move(text));
  EXPECT_TRUE(document);
  auto manifest = core::parse_manifest(*document, {{.name = "HOME", .values = {"/home/me"}}});
  EXPECT_TRUE(manifest) << (manifest ? "" : manifest.error().front().message);
  if (!manifest) return {};
  return lint({.manifest = *manifest, .document = *document, .file = file});
}

// serverCapabilities, then one tool for each further list.
std::string manifest_text(const Strings& server, const std::vector<Strings>& tools) {
  const auto list = [](const Strings& lines) {
    std::string out;
    for (const std::string& line : lines) out += format("{}\"{}\"", out.empty() ? "" : ", ", line);
    return "[" + out + "]";
  };
  std::string text = format(
      R"({{"name": "s", "version": "1", "serverCapabilities": {}, "tools": [)", list(server));
  for (std::size_t i = 0; i < tools.size(); ++i) {
    text += format("{}\n  {{\"name\": \"t{}\", \"capabilities\": {}}}", i == 0 ? "" : ",", i,
                   list(tools[i]));
  }
  return text + "]}";
}

// "RULE capability" of each finding with this rule, or of all of them.
Strings found(const std::vector<Finding>& findings, std::string_view rule) {
  Strings out;
  for (const Finding& finding : findings) {
    if (finding.rule == rule) out.push_back(finding.capability);
  }
  std::ranges::sort(out);
  return out;
}

Strings found_in(const Strings& server, std::string_view rule) {
  return found(lint_text(manifest_text(server, {})), rule);
}

std::string annotated(std::string_view annotations, std::string_view capability) {
  return format(
      R"({{"name": "s", "version": "1", "tools": [{{"name": "t", "annotations": {}, "capabilities": ["{}"]}}]}})",
      annotations, capability);
}

Strings rules_of(const std::vector<Finding>& findings) {
  Strings out;
  for (const Finding& finding : findings) {
    if (finding.level != Level::note) out.emplace_back(finding.rule);
  }
  return out;
}

TEST(Lint, ReadOnlyToolsMayNotWrite) {
  struct Row {
    std::string_view annotations;
    std::string_view capability;
    Strings rules;
  };
  const Row rows[] = {
      {R"({"readOnlyHint": true})", "fs:write:/w/**", {"READ_ONLY_WRITES"}},
      {R"({"readOnlyHint": true})", "fs:create:/w/**", {"READ_ONLY_WRITES"}},
      {R"({"readOnlyHint": true})", "fs:delete:/w/**", {"READ_ONLY_WRITES"}},
      {R"({"readOnlyHint": true})", "net:connect:a.com:443?methods=GET,POST", {"READ_ONLY_WRITES"}},
      {R"({"readOnlyHint": true})", "net:connect:a.com:443?methods=GET,HEAD", {}},
      {R"({"readOnlyHint": true})", "fs:read:/w/**", {}},
      {R"({"readOnlyHint": false})", "fs:write:/w/**", {}},
      {R"({"readOnlyHint": "true"})", "fs:write:/w/**", {}},
      {R"({"destructiveHint": false})", "fs:write:/w/**", {"NOT_DESTRUCTIVE_REMOVES"}},
      {R"({"destructiveHint": false})", "fs:delete:/w/**", {"NOT_DESTRUCTIVE_REMOVES"}},
      {R"({"destructiveHint": false})", "fs:create:/w/**", {}},
      {R"({"destructiveHint": true})", "fs:delete:/w/**", {}},
      {R"({"openWorldHint": false})", "net:connect:a.com:443", {"CLOSED_WORLD_NETWORK"}},
      {R"({"openWorldHint": false})", "net:connect:localhost:5432", {}},
      {R"({"openWorldHint": false})", "net:connect:10.0.0.5:5432", {}},
      {R"({"openWorldHint": true})", "net:connect:a.com:443", {}},
      {R"(null)", "fs:write:/w/**", {}},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(rules_of(lint_text(annotated(row.annotations, row.capability))), row.rules)
        << row.annotations << " " << row.capability;
  }
}

TEST(Lint, ClosedWorldIsAnError) {
  const auto findings =
      lint_text(annotated(R"({"openWorldHint": false})", "net:connect:a.com:443"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().level, Level::error);
}

TEST(Lint, WildcardsOverStrangersAreFound) {
  for (const char* line :
       {"net:connect:*.s3.amazonaws.com:443", "net:connect:*.amazonaws.com:443",
        "net:connect:*.s3.eu-west-1.amazonaws.com:443", "net:connect:*.github.io:443",
        "net:connect:*.com:443", "net:connect:*.co.uk:443", "net:connect:*.workers.dev:443"}) {
    EXPECT_EQ(found_in({line}, rule::net_multi_tenant), Strings{line});
  }
  for (const char* line :
       {"net:connect:*.github.com:443", "net:connect:b.s3.amazonaws.com:443",
        "net:connect:*.b.s3.amazonaws.com:443", "net:connect:me.github.io:443"}) {
    EXPECT_EQ(found_in({line}, rule::net_multi_tenant), Strings{}) << line;
  }
}

TEST(Lint, EveryHostAndEveryPortAreFound) {
  EXPECT_EQ(found_in({"net:connect:*"}, rule::net_any), Strings{"net:connect:*"});
  EXPECT_EQ(found_in({"net:connect:a.com:443"}, rule::net_any), Strings{});
  EXPECT_EQ(found_in({"net:connect:a.com"}, rule::net_no_port), Strings{"net:connect:a.com"});
  EXPECT_EQ(found_in({"net:connect:a.com:443", "net:connect:*"}, rule::net_no_port), Strings{});
}

TEST(Lint, AWildcardWithoutItsApexIsNoted) {
  const std::string wild = "net:connect:*.a.com:443";
  EXPECT_EQ(found_in({wild}, rule::net_apex), Strings{wild});
  EXPECT_EQ(found_in({wild, "net:connect:a.com:443"}, rule::net_apex), Strings{});
  EXPECT_EQ(found_in({wild, "net:connect:a.com"}, rule::net_apex), Strings{});
  EXPECT_EQ(found_in({wild, "net:connect:a.com:80"}, rule::net_apex), Strings{wild});
}

TEST(Lint, ServicesThatTakeDataAreFoundOnce) {
  for (const char* line : {"net:connect:webhook.site:443", "net:connect:x.ngrok.io:443",
                           "net:connect:*.ngrok.io:443", "net:connect:pastebin.com:443"}) {
    const auto findings = lint_text(manifest_text({line}, {}));
    EXPECT_EQ(rules_of(findings), Strings{"EXFILTRATION_HOST"}) << line;
  }
  const auto chat = lint_text(manifest_text({"net:connect:api.telegram.org:443"}, {}));
  ASSERT_EQ(found(chat, rule::exfiltration_host).size(), 1U);
  EXPECT_EQ(chat.front().level, Level::note);
  EXPECT_EQ(found_in({"net:connect:notwebhook.site:443"}, rule::exfiltration_host), Strings{});
}

TEST(Lint, FilesBesideEveryHostAreFound) {
  EXPECT_EQ(found_in({"fs:read:/srv/x/**", "net:connect:*"}, rule::files_to_anywhere),
            Strings{"net:connect:*"});
  EXPECT_EQ(found_in({"fs:read:/srv/x/**", "net:connect:a.com:443"}, rule::files_to_anywhere),
            Strings{});
  EXPECT_EQ(found_in({"fs:read:/usr/share/zoneinfo", "net:connect:*"}, rule::files_to_anywhere),
            Strings{});
}

TEST(Lint, SecretsBesideSeveralPartiesAreFound) {
  const std::string token = "env:inject:A_TOKEN";
  const std::string a = "net:connect:api.a.com:443";
  EXPECT_EQ(found_in({token, a, "net:connect:b.com:443"}, rule::secret_many_hosts), Strings{token});
  EXPECT_EQ(found_in({token, "net:connect:*"}, rule::secret_many_hosts), Strings{token});
  EXPECT_EQ(found_in({token, a, "net:connect:www.a.com:443"}, rule::secret_many_hosts), Strings{});
  EXPECT_EQ(found_in({"env:read:A_TOKEN", a, "net:connect:b.com:443"}, rule::secret_many_hosts),
            Strings{"env:read:A_TOKEN"});
  EXPECT_EQ(found_in({"env:read:LOG_LEVEL", a, "net:connect:b.com:443"}, rule::secret_many_hosts),
            Strings{});
  const std::string sealed = "env:inject:A_TOKEN?to=api.a.com:443";
  EXPECT_EQ(found_in({sealed, a, "net:connect:b.com:443"}, rule::secret_many_hosts), Strings{});
  const std::string twice = "env:inject:A_TOKEN?to=api.a.com:443&to=b.com:443";
  EXPECT_EQ(found_in({twice, a, "net:connect:b.com:443"}, rule::secret_many_hosts), Strings{twice});
}

TEST(Lint, ASecretThatCouldBeSealedIsNoted) {
  const std::string token = "env:inject:A_TOKEN";
  EXPECT_EQ(found_in({token, "net:connect:a.com:443"}, rule::secret_not_sealed), Strings{token});
  EXPECT_EQ(found_in({token}, rule::secret_not_sealed), Strings{});
  EXPECT_EQ(found_in({"env:inject:AWS_SECRET_ACCESS_KEY", "net:connect:a.com:443"},
                     rule::secret_not_sealed),
            Strings{});
}

TEST(Lint, LocalDangersAreFound) {
  struct Row {
    std::string_view rule;
    std::string line;
    bool expected;
  };
  const Row rows[] = {
      {rule::credential_path, "fs:read:/home/me/.ssh", true},
      {rule::credential_path, "fs:read:/srv/x/**", false},
      {rule::startup_write, "fs:write:/home/me/.bashrc", true},
      {rule::startup_write, "fs:read:/home/me/.bashrc", false},
      {rule::unsafe, "fs:write:/etc/x/**?unsafe=true", true},
      {rule::unsafe, "env:read:LD_PRELOAD?unsafe=true", true},
      {rule::unsafe, "fs:read:/etc/x/**", false},
      {rule::exec_shell, "exec:spawn:bash", true},
      {rule::exec_shell, "exec:spawn:python3.11", true},
      {rule::exec_shell, "exec:spawn:git", false},
      {rule::ipc_desktop, "ipc:connect:x11", true},
      {rule::ipc_desktop, "ipc:connect:self", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(found_in({row.line}, row.rule).size(), row.expected ? 1U : 0U) << row.line;
  }
}

TEST(Lint, WhatNoToolNeedsIsNoted) {
  const auto in = [](const Strings& server, const std::vector<Strings>& tools) {
    return found(lint_text(manifest_text(server, tools)), rule::unused_server_grant);
  };
  EXPECT_EQ(in({"net:connect:b.com:443"}, {{"net:connect:a.com:443"}}),
            Strings{"net:connect:b.com:443"});
  EXPECT_EQ(in({"net:connect:a.com:443"}, {{"net:connect:a.com:443"}}), Strings{});
  EXPECT_EQ(in({"fs:read:/srv/**"}, {{"fs:write:/srv/x/**"}}), Strings{"fs:read:/srv/**"});
  EXPECT_EQ(in({"fs:write:/srv/**"}, {{"fs:read:/srv/x/**"}}), Strings{});
  EXPECT_EQ(in({"fs:read:/usr/share/x"}, {{"fs:read:/srv/x/**"}}), Strings{});
  EXPECT_EQ(in({"env:inject:A_TOKEN"}, {{"net:connect:a.com:443"}}), Strings{});
}

TEST(Lint, ToolsThatDeclareNothingAreNoted) {
  const auto some = lint_text(manifest_text({}, {{"fs:read:/srv/**"}, {}}));
  ASSERT_EQ(found(some, rule::tool_without_capabilities).size(), 1U);
  EXPECT_EQ(some.front().tool, "t1");
  const auto none = lint_text(manifest_text({"fs:read:/srv/**"}, {{}, {}}));
  EXPECT_EQ(found(none, rule::tools_not_told_apart).size(), 1U);
  EXPECT_EQ(found(none, rule::tool_without_capabilities).size(), 0U);
  EXPECT_TRUE(lint_text(manifest_text({}, {{}, {}})).empty());
}

TEST(Lint, CoveredLinesAreNoted) {
  const auto in = [](const Strings& server, const std::vector<Strings>& tools) {
    return found(lint_text(manifest_text(server, tools)), rule::redundant);
  };
  EXPECT_EQ(in({}, {{"fs:read:/srv/x", "fs:write:/srv/**"}}), Strings{"fs:read:/srv/x"});
  EXPECT_EQ(in({}, {{"fs:read:/srv/x", "fs:read:/srv//x"}}), Strings{"fs:read:/srv/x"});
  EXPECT_EQ(in({}, {{"fs:read:/a", "fs:read:/a", "fs:read:/a"}}), Strings{"fs:read:/a"});
  EXPECT_EQ(in({"net:connect:*.a.com:443"}, {{"net:connect:b.a.com:443"}}),
            Strings{"net:connect:b.a.com:443"});
  EXPECT_EQ(in({}, {{"fs:read:/srv/x"}, {"fs:read:/srv/x"}}), Strings{});
  EXPECT_EQ(in({}, {{"fs:write:/srv/x", "fs:read:/srv/**"}}), Strings{});
}

TEST(Lint, ACapabilityIsReportedOnceWhereItStandsFirst) {
  const auto findings = lint_text(manifest_text({}, {{"net:connect:*"}, {"net:connect:*"}}));
  ASSERT_EQ(rules_of(findings), Strings{"NET_ANY"});
  EXPECT_EQ(findings.front().position.line, 2U);
  EXPECT_NE(findings.front().message.find("2 times"), std::string::npos);
}

TEST(Lint, FingerprintsSurviveReformatting) {
  const auto prints = [](const std::vector<Finding>& findings) {
    std::set<std::string> out;
    for (const Finding& finding : findings) out.insert(fingerprint(finding));
    EXPECT_EQ(out.size(), findings.size()) << "two findings with one fingerprint";
    return out;
  };
  const auto before = lint_text(
      R"({"name": "s", "version": "1", "tools": [{"name": "a", "annotations": {"readOnlyHint": true},
          "capabilities": ["net:connect:*", "fs:write:/w//x", "fs:read:/w"]}, {"name": "b", "capabilities": []}]})");
  const auto after = lint_text(
      R"({"version": "2", "tools": [ {"capabilities": [], "name": "b"},


          {"capabilities": ["fs:read:/w", "fs:write:/w/x", "net:connect:*"],
           "annotations": {"readOnlyHint": true}, "name": "a"}], "name": "s"})");
  EXPECT_GE(before.size(), 4U);
  EXPECT_EQ(prints(before), prints(after));
}

TEST(Lint, ForeignNamesCannotReachTheTerminal) {
  const auto findings = lint_text(
      R"({"name": "s", "version": "1", "tools": [{"name": "a\u202eb", "capabilities": []}, {"name": "c", "capabilities": ["fs:read:/w"]}]})");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(escape_for_terminal(findings[0].message), findings[0].message);
}

TEST(Rules, AreDocumentedAndUnique) {
  std::set<std::string_view> ids;
  for (const Rule& each : lint_rules()) {
    EXPECT_TRUE(ids.insert(each.id).second) << each.id;
    EXPECT_EQ(find_rule(each.id), &each);
    EXPECT_FALSE(each.summary.ends_with('.')) << each.id;
    EXPECT_TRUE(each.detail.ends_with('.')) << each.id;
    EXPECT_FALSE(find_code(each.id)) << each.id << " is a diagnostic";
  }
  EXPECT_EQ(find_rule("NO_SUCH_RULE"), nullptr);
}

TEST(Lint, ALineThatOpensWhatAnotherHoldsBackIsNotRedundant) {
  for (const std::string line : {"fs:read:/w/.env", "fs:read:/w/.git/hooks", "fs:read:/w/.npmrc"}) {
    EXPECT_EQ(found_in({"fs:read:/w/**", line}, rule::redundant), Strings{}) << line;
  }
  EXPECT_EQ(
      found_in({"fs:read:/home/me/.config/**", "fs:read:/home/me/.config/gh"}, rule::redundant),
      Strings{});
  EXPECT_EQ(found_in({"fs:read:/w/**", "fs:read:/w/src"}, rule::redundant),
            Strings{"fs:read:/w/src"});
}

TEST(Lint, NobodyIsToldToSealATokenToAPlaceThatTakesAnything) {
  const auto advice = [](const Strings& server) {
    for (const Finding& finding : lint_text(manifest_text(server, {}))) {
      if (finding.rule == rule::secret_many_hosts) return finding.help;
    }
    return std::string();
  };
  EXPECT_TRUE(
      advice({"env:inject:A_TOKEN", "net:connect:pastebin.com:443", "net:connect:a.com:443"})
          .contains("?to=a.com:443"));
  EXPECT_TRUE(advice({"env:inject:A_TOKEN", "net:connect:pastebin.com:443", "net:connect:*"})
                  .contains("?to=HOST:443"));
}

}  // namespace
}  // namespace capgate::review
