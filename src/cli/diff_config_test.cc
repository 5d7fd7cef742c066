// capgate diff of two capgate.yaml. tests/e2e/diff_config_test.py compares those of git revisions.
#include "cli/diff_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/diff_cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::Json;
using support::Part;
using support::Ran;
using support::replaced;
using support::Words;
using Changes = std::vector<std::pair<std::string, std::string>>;

const std::string config = R"(servers:
  github:
    command: [npx, -y, server-github]
    manifest: github.json
    secrets: {TOKEN: "cmd:pass show github"}
  notes:
    command: [notes-server]
    capabilities: ["fs:read:${DIR}/**"]
    variables: {DIR: /srv/notes}
  old:
    command: [old-server]
    sandbox: {network: ["api.example.com:443"], read: [~/data, docs], write: [], exec: false}
)";
constexpr std::string_view github = R"({"name": "server-github", "version": "1", "tools": [
  {"name": "search", "capabilities": ["net:connect:api.github.com:443", "env:inject:TOKEN"]}]})";

class DiffConfig : public support::DiffTest {
 protected:
  DiffConfig() {
    file("old/capgate.yaml", config);
    file("old/github.json", github);
  }

  [[nodiscard]] Compared changed(const std::string& text,
                                 std::string_view manifest = github) const {
    file("new/capgate.yaml", text);
    file("new/github.json", manifest);
    return compare({"old/capgate.yaml", "new/capgate.yaml"});
  }
  [[nodiscard]] static const Json& server(const Json& json, std::string_view name) {
    for (const Json& each : json["servers"].items()) {
      if (each["name"].text() == name) return each;
    }
    return json["servers"][name];  // fails
  }
  // One server each, in the flow style of YAML. Each expected part is kind and name.
  void expect_wider(const std::string& old, const std::string& now, const Changes& expected) const {
    SCOPED_TRACE(old + " -> " + now);
    file("a.yaml", "servers: {" + old + "}\n");
    file("b.yaml", "servers: {" + now + "}\n");
    const auto [code, json] = compare({"a.yaml", "b.yaml"});
    EXPECT_EQ(code, Exit::widened);
    EXPECT_EQ(json["wider"], true);
    Changes parts;
    for (const Json& each : json["servers"].items()) {
      for (const Json& part : each["parts"].items()) {
        parts.emplace_back(part["kind"].text(), part["part"].text());
      }
    }
    for (const auto& part : expected) {
      EXPECT_NE(std::ranges::find(parts, part), parts.end()) << part.second << json.dump();
    }
  }
};

TEST_F(DiffConfig, TheSameInAnotherDirectoryIsNoChange) {
  const auto [code, json] = changed(config);
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(json["changed"], false);
  EXPECT_EQ(column(json["servers"], "name"), (Words{"github", "notes", "old"}));
}

TEST_F(DiffConfig, EntriesStandForTheirPolicies) {
  Json wide = Json::parse(github);
  wide["serverCapabilities"] = Words{"net:connect:evil.example:443"};
  const auto [code, json] = changed(
      replaced(replaced(config, "DIR: /srv/notes", "DIR: /srv"), "write: []", "write: [~/data]"),
      wide.dump());
  EXPECT_EQ(code, Exit::widened);
  const Json& first = server(json, "github");
  EXPECT_EQ(changes(first), (Changes{{"widened", "net:connect:evil.example:443"}}));
  EXPECT_EQ(first["changes"][0]["places"][0]["source"], "new/github.json");
  EXPECT_EQ(changes(server(json, "notes")), (Changes{{"widened", "fs:read:/srv/**"}}));
  const Json& last = server(json, "old");
  EXPECT_EQ(changes(last), (Changes{{"widened", "fs:write:${HOME}/data"}}));
  EXPECT_EQ(last["changes"][0]["places"][0]["source"], "new/capgate.yaml");
  EXPECT_EQ(last["changes"][0]["places"][0]["line"], 12);
}

TEST_F(DiffConfig, ASandboxBlockStandsForItsCapabilities) {
  const auto [code, json] = changed(config.substr(0, config.find("    sandbox:")) +
                                    "    capabilities: [\"net:connect:api.example.com:443\", "
                                    "\"fs:read:${HOME}/data\", \"fs:read:${CONFIG_DIR}/docs\"]\n");
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(json["changed"], false) << json.dump();
}

TEST_F(DiffConfig, SealingAndTheCatalog) {
  const auto [code, json] =
      changed(replaced(config, "    secrets:", "    seal: true\n    secrets:"));
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(server(json, "github")["changed"], true);
  EXPECT_EQ(server(json, "github")["wider"], false);
  const Json catalog = run({"catalog", "list", "--json"}).json();
  const std::string text = "servers:\n  git:\n    command: [a]\n    manifest: catalog:";
  file("one.yaml", text + catalog["entries"][0]["name"].text() + "\n");
  EXPECT_EQ(compare({"one.yaml", "one.yaml"}).json["changed"], false);
  file("none.yaml", text + "no-such-entry\n");
  EXPECT_EQ(diff({"one.yaml", "none.yaml"}).code, Exit::unreadable);
}

TEST_F(DiffConfig, AnotherCommandOrSourceDiffers) {
  const auto [code, json] = changed(replaced(replaced(config, "[notes-server]", "[evil, 'a b']"),
                                             "cmd:pass show github", "env:OTHER"));
  EXPECT_EQ(code, Exit::widened);
  EXPECT_EQ(json["changed"], true);
  EXPECT_EQ(json["wider"], true);
  ASSERT_EQ(server(json, "notes")["parts"].size(), 1U);
  const Json& command = server(json, "notes")["parts"][0];
  EXPECT_EQ(command["kind"], "differs");
  EXPECT_EQ(command["part"], "command");
  EXPECT_EQ(command["before"], "notes-server");
  EXPECT_EQ(command["after"], "evil \"a b\"");
  ASSERT_EQ(server(json, "github")["parts"].size(), 1U);
  const Json& secret = server(json, "github")["parts"][0];
  EXPECT_EQ(secret["kind"], "differs");
  EXPECT_EQ(secret["part"], "secrets");
  EXPECT_EQ(secret["after"], "TOKEN=env:OTHER");
  const Words words = {"old/capgate.yaml", "new/capgate.yaml"};
  EXPECT_TRUE(has(diff(words).out, "\n  ~ command: notes-server -> evil \"a b\"\n"));
  EXPECT_TRUE(has(diff(support::joined(words, {"--markdown"})).out,
                  "`command: notes-server -> evil \"a b\"`"));
  const Json sarif = diff(support::joined(words, {"--sarif"})).json();
  EXPECT_EQ(sarif["runs"][0]["results"].size(), 2U);
}

TEST_F(DiffConfig, AProviderThatRunsOrReadsOutsideIsWider) {
  const auto with_source = [](const std::string& source) {
    return "gh: {command: [gh], capabilities: [\"env:inject:TOKEN\"], secrets: {TOKEN: \"" +
           source + "\"}}";
  };
  for (const auto& [old, now] :
       {std::pair("env:TOKEN", "cmd:evil"), std::pair("cmd:pass show a", "cmd:pass show b"),
        std::pair("env:TOKEN", "file:/a"), std::pair("file:/a", "file:/b"),
        std::pair("cmd:a", "cmd?ttl=60:a"), std::pair("cmd:a", "file:/a")}) {
    expect_wider(with_source(old), with_source(now), {{"widened", "secrets"}});
  }
  expect_wider("gh: {command: [gh]}", "gh: {command: [gh], secrets: {TOKEN: \"cmd:evil\"}}",
               {{"widened", "secrets"}});
  expect_wider("gh: {command: [gh]}", "gh: {command: [gh], secrets: {TOKEN: \"env:A\"}}",
               {{"differs", "secrets"}});
}

TEST_F(DiffConfig, TheEndOfAConfinementIsWider) {
  expect_wider("gh: {command: [gh], sandbox: {network: false}}",
               "gh: {command: [gh], sandbox: {enabled: false, network: false}}",
               {{"widened", "enabled"}});
  const auto remote = [](const std::string& url) { return "gh: {url: \"" + url + "\"}"; };
  expect_wider("gh: {command: [gh]}", remote("https://evil.test/mcp"), {{"widened", "url"}});
  for (const char* url :
       {"https://b.test/mcp", "https://a.test/mcp?key=other", "https://u@a.test/mcp"}) {
    expect_wider(remote("https://a.test/mcp"), remote(url), {{"widened", "url"}});
  }
  expect_wider(remote("https://a.test/mcp?key=hidden1"), remote("https://a.test/mcp?key=hidden2"),
               {{"widened", "url"}});
  EXPECT_FALSE(has(diff({"a.yaml", "b.yaml"}).out, "hidden"));
  EXPECT_EQ(diff({"a.yaml", "a.yaml"}).code, Exit::ok);
}

TEST_F(DiffConfig, ANewServerWithoutPermissions) {
  const std::string old = "a: {command: [x]}";
  expect_wider(old, old + ", b: {command: [y], secrets: {TOKEN: \"cmd:evil\"}}",
               {{"widened", "secrets"}, {"told", "command"}});
  expect_wider(old, old + ", b: {url: \"https://evil.test/\"}", {{"widened", "url"}});
  file("b.yaml", "servers: {a: {command: [x]}, b: {command: [y]}}\n");
  EXPECT_EQ(diff({"a.yaml", "b.yaml"}).code, Exit::ok);
  EXPECT_EQ(diff({"b.yaml", "a.yaml"}).code, Exit::ok);
}

TEST_F(DiffConfig, TheEndOfAnAccessOutsideIsTold) {
  file("a.yaml",
       "servers: {gh: {command: [gh], secrets: {TOKEN: \"cmd:a\"}, "
       "sandbox: {enabled: false, network: false}}}\n");
  file("b.yaml", "servers: {gh: {command: [gh], sandbox: {network: false}}}\n");
  const auto [code, json] = compare({"a.yaml", "b.yaml"});
  EXPECT_EQ(code, Exit::ok);
  const std::vector<Part> all = parts(json);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].kind + " " + all[0].part, "told secrets");
  EXPECT_EQ(all[1].kind + " " + all[1].part, "told enabled");
}

TEST_F(DiffConfig, AServerIsAddedOrRemoved) {
  const auto [code, json] = changed(replaced(config, "  notes:", "  memos:"));
  EXPECT_EQ(code, Exit::widened);
  EXPECT_EQ(server(json, "memos")["presence"], "added");
  EXPECT_EQ(server(json, "notes")["presence"], "removed");
  EXPECT_EQ(server(json, "memos")["parts"][0]["after"], "notes-server");
  file("a.yaml", "servers: {a: {command: [x], capabilities: []}}\n");
  file("b.yaml", "servers: {b: {command: [x], capabilities: []}}\n");
  EXPECT_EQ(column(compare({"a.yaml", "b.yaml"}).json["servers"], "presence"),
            (Words{"removed", "added"}));
}

TEST_F(DiffConfig, AnAddressIsShownWithoutItsSecrets) {
  const Json json =
      changed("servers: {web: {url: \"https://user:secret@mcp.test/x?key=secret\"}}\n").json;
  EXPECT_EQ(server(json, "web")["parts"][0]["after"], "https://***@mcp.test/x");
  EXPECT_FALSE(has(json.dump(), "secret@"));
}

TEST_F(DiffConfig, MistakesAndMissingFilesAreErrors) {
  file("bad.yaml", "servers: {a: {manifest: none.json}}\n");
  const Ran done = diff({"old/capgate.yaml", "bad.yaml"});
  EXPECT_EQ(done.code, Exit::unreadable) << done;
  EXPECT_TRUE(has(done.err, "bad.yaml: a: cannot read none.json"));
  file("stand.yaml", "servers: {a: {capabilities: [\"fs:read:/cgunboundroot0x0x0/**\"]}}\n");
  EXPECT_EQ(diff({"old/capgate.yaml", "stand.yaml"}).code, Exit::compile_error);
  file("odd.yaml", "servers: {a: {odd: 1}}\n");
  EXPECT_EQ(diff({"old/capgate.yaml", "odd.yaml"}).code, Exit::compile_error);
}

}  // namespace
}  // namespace capgate::cli
