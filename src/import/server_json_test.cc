#include "import/server_json.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::imports {
namespace {

// The samples (tests/import) show what is read; here is what is refused, and what is easily wrong.

Checked<Imported> import(const std::string& json, const std::string& server = "") {
  const auto document = text::parse_json(json);
  if (!document) return std::unexpected(document.error());
  return read_server_json(*document, {.file = "", .directory = "", .home = "", .server = server});
}

std::string mistakes(const std::string& json, const std::string& server = "") {
  const auto imported = import(json, server);
  if (imported) return "read";
  std::string out;
  for (const Diagnostic& mistake : imported.error()) {
    EXPECT_LE(mistake.where.end, json.size());
    EXPECT_FALSE(mistake.help.empty()) << mistake.message;
    out += format("{} {}\n", code_name(mistake.code), mistake.message);
  }
  return out;
}

std::string entry(std::string_view packages, std::string_view more = "") {
  return format(R"({{"name": "a.b/c", "version": "1", "packages": [{}]{}}})", packages, more);
}

std::string package(std::string_view more = "", std::string_view type = "npm") {
  return format(
      R"({{"registryType": "{}", "identifier": "p-{}", "transport": {{"type": "stdio"}}{}}})", type,
      type, more);
}

std::string schema(std::string_view date) {
  return entry(package(),
               format(R"(, "$schema": "https://x.example/schemas/{}/server.schema.json")", date));
}

std::string toolhive(std::string_view image, std::string_view permissions) {
  return entry(package("", "oci"),
               format(R"(, "_meta": {{"io.modelcontextprotocol.registry/publisher-provided":
                  {{"io.github.stacklok": {{"{}": {{"permissions": {}}}}}}}}})",
                      image, permissions));
}

TEST(ServerJson, PermissionsOfToolHiveAreRead) {
  const auto imported = import(toolhive(
      "p-oci", R"({"read": ["/srv/a"], "network": {"outbound": {"allow_host": ["x.example"]}}})"));
  ASSERT_TRUE(imported);
  EXPECT_EQ(join(imported->capabilities, " "), "fs:read:/srv/a net:connect:x.example");
  EXPECT_EQ(imported->name, "a.b/c");
  const auto other = import(toolhive("another", R"({"read": ["/srv/a"]})"));
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->capabilities.empty());
  EXPECT_TRUE(std::ranges::any_of(other->losses, [](const Loss& loss) {
    return loss.message == "it has no permissions for this package";
  }));
  EXPECT_EQ(mistakes(toolhive("p-oci", R"({"privileged": true})")),
            "IMPORT_REFUSED a privileged container has every right on the host\n");
}

TEST(ServerJson, OtherSchemasAreRefusedByName) {
  for (const char* date : {"2025-09-16", "2025-09-29", "2025-10-11", "2025-10-17", "2025-12-11"}) {
    EXPECT_EQ(mistakes(schema(date)), "read") << date;
  }
  EXPECT_EQ(mistakes(schema("2025-07-09")),
            "IMPORT_VERSION the schema \"2025-07-09\" is not known\n");
  EXPECT_EQ(mistakes(schema("draft")), "IMPORT_VERSION the schema \"draft\" is not known\n");
  EXPECT_EQ(mistakes(entry(package(), R"(, "$schema": "https://x.example/other.json")")),
            "IMPORT_VERSION this is no schema of the registry\n");
  EXPECT_EQ(mistakes(entry(package(), R"(, "$schema": 7)")),
            "IMPORT_VERSION this is no schema of the registry\n");
  const auto imported = import(entry(package()));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->losses.front().subject, "$schema");
}

TEST(ServerJson, OneOfSeveralPackagesIsNamed) {
  const std::string two = entry(package() + "," + package("", "pypi"));
  EXPECT_EQ(mistakes(two), "IMPORT_SHAPE the entry has several packages\n");
  EXPECT_EQ(mistakes(two, "cargo"), "IMPORT_SHAPE no package is \"cargo\"\n");
  EXPECT_EQ(import(two, "pypi")->command, (std::vector<std::string>{"uvx", "p-pypi"}));
  EXPECT_EQ(import(two, "p-npm")->command, (std::vector<std::string>{"npx", "-y", "p-npm"}));
}

TEST(ServerJson, EveryMistakeIsTold) {
  EXPECT_EQ(mistakes("[]"), "IMPORT_SHAPE server.json is an object\n");
  EXPECT_EQ(mistakes(R"({"name": "a/b", "version": "1", "remotes": [{}]})"),
            "IMPORT_SHAPE this server is remote: there is nothing here to put into a sandbox\n");
  EXPECT_EQ(
      mistakes(R"({"name": "ab", "version": "1"})"),
      "IMPORT_SHAPE the entry has no packages\nIMPORT_SHAPE \"ab\" is no name of the registry\n");
  EXPECT_EQ(mistakes(entry(package("", "floppy"))),
            "IMPORT_SHAPE a package of type \"floppy\" is not known\n");
  EXPECT_EQ(mistakes(entry(package(R"(, "packageArguments": ["x"])"))),
            "IMPORT_SHAPE an argument is an object\n");
  EXPECT_EQ(mistakes(entry(package(R"(, "packageArguments": [{"type": "odd"}])"))),
            "IMPORT_SHAPE an argument is named or positional\n");
  EXPECT_EQ(
      mistakes(entry(package(R"(, "environmentVariables": [{"isSecret": "yes", "name": "A"}])"))),
      "IMPORT_SHAPE isSecret is true or false\n");
  EXPECT_EQ(mistakes(entry(R"({"registryType": "npm", "identifier": "p"})")),
            "IMPORT_SHAPE transport is missing\n");
}

TEST(ServerJson, VariablesOfAValueCountAsWellAsTheValue) {
  const auto imported = import(entry(package(
      R"(, "environmentVariables": [{"name": "URL", "value": "db://{password}@h/{file}",)"
      R"( "variables": {"password": {"isSecret": true}, "file": {"format": "filepath"}}}])")));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->capabilities,
            (std::vector<std::string>{"env:inject:URL", "fs:read:${FILE}"}));
  EXPECT_EQ(imported->variables, std::vector<std::string>{"FILE"});
}

// A manifest holds no values: with the name alone the server would get the caller's own.
TEST(ServerJson, AValueOfTheEntryIsNoSecretOfTheCaller) {
  const auto imported = import(entry(package(
      R"(, "environmentVariables": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "unused"},)"
      R"( {"name": "B_TOKEN", "value": "${X}"}, {"name": "C_TOKEN", "value": "{unknown}"},)"
      R"( {"name": "F_TOKEN", "value": ""}, {"name": "G_TOKEN", "value": "x", "isSecret": true},)"
      R"( {"name": "D_TOKEN", "value": "{x}", "variables": {"x": {}}}, {"name": "E_TOKEN"},)"
      R"( {"name": "LEVEL", "value": "debug"}])")));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->capabilities,
            (std::vector<std::string>{"env:read:D_TOKEN", "env:read:E_TOKEN", "env:read:LEVEL"}));
  const auto tells = [&](Loss::Kind kind, std::string_view subject) {
    return std::ranges::any_of(imported->losses, [&](const Loss& loss) {
      return loss.kind == kind && loss.subject == subject;
    });
  };
  EXPECT_TRUE(tells(Loss::Kind::dropped, "environmentVariables.AWS_SECRET_ACCESS_KEY"));
  EXPECT_TRUE(tells(Loss::Kind::assumed, "environmentVariables.LEVEL"));
}

TEST(ServerJson, PortsOfATransportAreListenedOn) {
  const auto listens = [](std::string_view url) {
    const auto imported = import(entry(format(
        R"({{"registryType": "npm", "identifier": "p", "transport": {{"type": "sse", "url": "{}"}}}})",
        url)));
    return imported ? join(imported->capabilities, " ") : "refused";
  };
  EXPECT_EQ(listens("http://localhost:8080/mcp"), "net:listen:8080");
  EXPECT_EQ(listens("http://localhost/mcp"), "");
  EXPECT_EQ(listens("http://localhost:{port}/mcp"), "");
  EXPECT_EQ(listens("http://localhost:0/"), "");
  EXPECT_EQ(listens("http://localhost:70000/"), "");
}

TEST(ServerJson, IsRecognised) {
  const auto fits = [](const std::string& json) { return is_server_json(*text::parse_json(json)); };
  EXPECT_TRUE(fits(schema("2025-12-11")));
  EXPECT_TRUE(fits(schema("2099-01-01")));  // and refused by name when it is read
  EXPECT_TRUE(fits(entry(package())));
  EXPECT_TRUE(fits(R"({"server": {"name": "a/b", "remotes": []}})"));
  EXPECT_FALSE(fits(R"({"name": "ab", "packages": []})"));
  EXPECT_FALSE(fits("[]"));
  EXPECT_FALSE(fits("{}"));
}

}  // namespace
}  // namespace capgate::imports
