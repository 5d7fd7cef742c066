#include "clients/config.h"

#include <gtest/gtest.h>

#include "base/codes.h"
#include "base/format.h"
#include "base/render.h"
#include "base/text.h"
#include "clients/entry_manifest.h"
#include "core/manifest.h"
#include "text/yaml.h"

namespace capgate::clients {
namespace {

const ConfigPlace place{.directory = "/srv/project", .home = "/home/me"};

Checked<Config> parse(const std::string& yaml) {
  const auto document = text::parse_yaml(yaml);
  if (!document) return std::unexpected(document.error());
  return parse_config(*document, place);
}

// Every mistake of an entry as "CODE: message", one a line.
std::string mistakes(const std::string& yaml) {
  const auto config = parse(yaml);
  if (config) return "accepted";
  std::string out;
  for (const Diagnostic& mistake : config.error()) {
    EXPECT_FALSE(mistake.help.empty()) << mistake.message;
    EXPECT_TRUE(mistake.where == Span::nowhere() || mistake.where.end <= yaml.size());
    out += format("{}: {}\n", code_name(mistake.code), mistake.message);
  }
  return out;
}

std::string entry_mistakes(const std::string& entry) {
  return mistakes(format("servers: {{x: {}}}", entry));
}

ServerConfig only(const std::string& yaml) {
  auto config = parse(yaml);
  EXPECT_TRUE(config) << mistakes(yaml);
  return config && config->servers.size() == 1 ? std::move(config->servers.front())
                                               : ServerConfig{};
}

TEST(Config, ReadsEverythingOfAnEntry) {
  const ServerConfig server = only(
      "servers:\n"
      "  notes:\n"
      "    description: what it is for\n"
      "    command: [notes-server, --root, \"\"]\n"
      "    capabilities: [\"fs:write:${DIR}/**\", 'env:inject:TOKEN']\n"
      "    variables: {DIR: [/srv/a, /srv/b], ONE: x}\n"
      "    secrets: {TOKEN: \"cmd:pass show notes\"}\n"
      "    seal: true\n");
  EXPECT_EQ(server.name, "notes");
  EXPECT_EQ(server.command, (std::vector<std::string>{"notes-server", "--root", ""}));
  EXPECT_TRUE(server.enabled);
  EXPECT_TRUE(server.seal);
  EXPECT_EQ(server.capabilities,
            (std::vector<std::string>{"fs:write:${DIR}/**", "env:inject:TOKEN"}));
  EXPECT_EQ(server.secrets, (std::vector<std::string>{"TOKEN=cmd:pass show notes"}));
  ASSERT_EQ(server.variables.size(), 2U);
  EXPECT_EQ(server.variables[0].values, (std::vector<std::string>{"/srv/a", "/srv/b"}));
  EXPECT_EQ(server.variables[1].values, (std::vector<std::string>{"x"}));
}

TEST(Config, ABooleanIsOneHoweverItIsSpelt) {
  const ServerConfig on = only("servers: {x: {seal: TRUE}}");
  EXPECT_TRUE(on.seal);
  const ServerConfig off = only("servers: {x: {seal: False}}");
  EXPECT_FALSE(off.seal);
}

TEST(Config, AnEntryMayBeEmpty) {
  const ServerConfig server = only("servers: {x: {}}");
  EXPECT_TRUE(server.command.empty() && server.capabilities.empty() && server.manifest.empty());
  EXPECT_TRUE(server.enabled);
  EXPECT_FALSE(server.seal);
  EXPECT_TRUE(parse("servers: {}")->servers.empty());
}

TEST(Config, AManifestIsFoundFromTheFile) {
  EXPECT_EQ(only("servers: {x: {manifest: github.json}}").manifest, "/srv/project/github.json");
  EXPECT_EQ(only("servers: {x: {manifest: ~/github.json}}").manifest, "/home/me/github.json");
  EXPECT_EQ(only("servers: {x: {manifest: /opt/x.json}}").manifest, "/opt/x.json");
  EXPECT_EQ(only("servers: {x: {manifest: 'catalog:github'}}").manifest, "catalog:github");
}

TEST(Config, ASandboxBlockBecomesCapabilities) {
  const ServerConfig server =
      only("servers: {x: {sandbox: {enabled: false, paths: [data, ~/n], network: true}}}");
  EXPECT_FALSE(server.enabled);
  EXPECT_EQ(server.capabilities,
            (std::vector<std::string>{"fs:write:/srv/project/data", "fs:write:/home/me/n",
                                      "net:connect:*"}));
  EXPECT_EQ(server.capability_spans.size(), 3U);
  EXPECT_EQ(server.notes.size(), 1U);
}

TEST(Config, FindsServersByName) {
  const auto config = parse("servers: {a: {command: [x]}, b: {command: [y]}}");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("b")->command.front(), "y");
  EXPECT_EQ(config->find("c"), nullptr);
}

TEST(Config, TheRootIsAMappingOfServers) {
  EXPECT_EQ(mistakes("[]"), "CONFIG_SHAPE: a config is a mapping\n");
  EXPECT_EQ(mistakes("{}"), "CONFIG_SHAPE: servers is missing\n");
  EXPECT_EQ(mistakes("servers: []"), "CONFIG_SHAPE: servers is a mapping\n");
  EXPECT_EQ(mistakes("servers: {x: []}"), "CONFIG_SHAPE: an entry of servers is a mapping\n");
  EXPECT_EQ(mistakes("{servers: {}, server: {}}"),
            "CONFIG_UNKNOWN_KEY: a config has no \"server\"\n");
  EXPECT_EQ(mistakes("{servers: {}, $schema: x}"), "accepted");
}

TEST(Config, UnknownKeysAreMistakes) {
  const auto config = parse("servers: {x: {comand: [a], tools: []}}");
  ASSERT_FALSE(config);
  ASSERT_EQ(config.error().size(), 2U);
  EXPECT_EQ(config.error()[0].help, "did you mean command?");
  EXPECT_TRUE(config.error()[1].help.starts_with("known are: command, url, "));
  for (const Diagnostic& mistake : config.error()) {
    EXPECT_EQ(code_name(mistake.code), "CONFIG_UNKNOWN_KEY");
  }
}

TEST(Config, NamesArePlainWords) {
  for (const char* name : {"a", "A.b-c_9", "..."}) {
    EXPECT_EQ(mistakes(format("servers: {{{}: {{}}}}", name)), "accepted") << name;
  }
  for (const char* name : {"''", "'.'", "'..'", "a/b", "a b", "'\\u00e4'", "ä"}) {
    EXPECT_TRUE(mistakes(format("servers: {{{}: {{}}}}", name)).contains("no name of a server"))
        << name;
  }
  EXPECT_TRUE(is_server_name(std::string(64, 'a')));
  EXPECT_FALSE(is_server_name(std::string(65, 'a')));
}

TEST(Config, ShapesThatAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"{command: npx server}", "command is a list of words"},
      {"{command: []}", "command is a list of words"},
      {"{command: [node, 1]}", "a word of a command is a text"},
      {"{command: ['', x]}", "a command starts with its program"},
      {"{manifest: 1}", "manifest is a path or catalog:NAME"},
      {"{manifest: ''}", "manifest is a path or catalog:NAME"},
      {"{capabilities: 'fs:read:/a'}", "capabilities are a list of texts"},
      {"{capabilities: [1]}", "a capability is a text"},
      {"{variables: []}", "variables is a mapping"},
      {"{variables: {root: /a}}", "\"root\" is no name of a variable"},
      {"{variables: {HOME: /a}}", "HOME is the caller's own"},
      {"{variables: {XDG_RUNTIME_DIR: /a}}", "XDG_RUNTIME_DIR is the caller's own"},
      {"{variables: {A: 1}}", "a value of A is a text"},
      {"{variables: {A: [x, 1]}}", "a value of A is a text"},
      {"{secrets: []}", "secrets is a mapping"},
      {"{seal: yes}", "seal is true or false"},
      {"{description: []}", "description is a text"},
      {"{url: 1}", "url is a text"},
      {"{sandbox: {exec: true}}", "exec: true does not say which programs"},
  };
  for (const auto& [entry, says] : cases) {
    EXPECT_TRUE(entry_mistakes(entry).contains(says)) << entry << ": " << entry_mistakes(entry);
  }
}

TEST(Config, OnePolicyIsEnough) {
  EXPECT_EQ(entry_mistakes("{manifest: a.json, capabilities: []}"),
            "CONFIG_SHAPE: manifest and capabilities are one too many\n");
  EXPECT_EQ(entry_mistakes("{sandbox: {}, capabilities: []}"),
            "CONFIG_SHAPE: sandbox and capabilities are one too many\n");
}

TEST(Config, AnHttpServerIsNotConfinedHere) {
  EXPECT_EQ(only("servers: {x: {url: 'https://mcp.example'}}").url, "https://mcp.example");
  for (const char* key : {"sandbox: {}", "capabilities: []", "manifest: a.json", "command: [x]",
                          "secrets: {}", "seal: true"}) {
    const std::string out = entry_mistakes(format("{{url: 'https://mcp.example', {}}}", key));
    EXPECT_TRUE(out.contains("on an HTTP server")) << key << ": " << out;
  }
}

// What stands for a secret may be the secret.
TEST(Config, NoMistakeShowsAValue) {
  const std::string value = "ghp_0123456789";
  for (const std::string& yaml :
       {"servers: {x: {secrets: {TOKEN: " + value + "}, comand: [a]}}",
        "servers:\n  x:\n    secrets: {TOKEN: \"nothing:" + value + "\"}\n",
        "servers:\n  x:\n    secrets:\n      TOKEN: [" + value + "]\n",
        "servers:\n  x:\n    secrets:\n      token: \"" + value + "\"\n"}) {
    const auto config = parse(yaml);
    ASSERT_FALSE(config) << yaml;
    const Source source("capgate.yaml", yaml);
    for (const Diagnostic& mistake : config.error()) {
      const std::string shown = render(mistake, source, Colour::off);
      EXPECT_FALSE(shown.contains("ghp_")) << shown;
      EXPECT_TRUE(shown.contains("line ")) << shown;
    }
  }
}

TEST(Config, TheExamplesOfTheCodesAreTrue) {
  for (const char* name : {"CONFIG_SHAPE", "CONFIG_UNKNOWN_KEY", "CONFIG_SANDBOX"}) {
    const auto code = find_code(name);
    ASSERT_TRUE(code) << name;
    const CodeInfo& info = code_info(*code);
    EXPECT_TRUE(mistakes(std::string(info.wrong)).starts_with(name)) << info.wrong;
    EXPECT_EQ(mistakes(std::string(info.right)), "accepted") << info.right;
  }
}

// ---- as a manifest ------------------------------------------------------------------------------

TEST(EntryManifest, ItsPlacesAreThoseOfTheFile) {
  const text::SharedText text = text::share(
      "servers:\n"
      "  x:\n"
      "    capabilities:\n"
      "      - fs:read:/srv/**\n"
      "      - \"net:connect:a.example:443\"\n");
  const auto document = text::parse_yaml(text);
  const auto config = parse_config(*document, place);
  ASSERT_TRUE(config);
  const text::Document made = entry_manifest(config->servers.front(), text);
  const auto manifest = core::parse_manifest(made, {});
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->name, "x");
  ASSERT_EQ(manifest->declared.size(), 2U);
  const auto source_of = [&](const core::Declared& declared) {
    return text->substr(declared.where.begin, declared.where.end - declared.where.begin);
  };
  EXPECT_EQ(source_of(manifest->declared[0]), "fs:read:/srv/**");
  EXPECT_EQ(source_of(manifest->declared[1]), "net:connect:a.example:443");
}

TEST(EntryManifest, MistakesStandWhereTheyAreWritten) {
  const std::pair<const char*, const char*> cases[] = {
      {"servers: {x: {capabilities: ['fs:read:relative']}}", "relative"},
      {"servers: {x: {capabilities: ['fs:raed:/a']}}", "raed"},
      // Escapes are not followed: the whole text.
      {"servers: {x: {capabilities: [\"fs:read:\\x72elative\"]}}", "\"fs:read:\\x72elative\""},
  };
  for (const auto& [yaml, where] : cases) {
    const text::SharedText text = text::share(yaml);
    const auto document = text::parse_yaml(text);
    const auto config = parse_config(*document, place);
    ASSERT_TRUE(config) << yaml;
    const text::Document made = entry_manifest(config->servers.front(), text);
    const auto manifest = core::parse_manifest(made, {});
    ASSERT_FALSE(manifest) << yaml;
    const Span span = manifest.error().front().where;
    EXPECT_EQ(text->substr(span.begin, span.end - span.begin), where);
  }
}

}  // namespace
}  // namespace capgate::clients
