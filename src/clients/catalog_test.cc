#include "clients/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"

namespace capgate::clients {
namespace {

// An entry whose rules and capabilities a test says.
CatalogEntry entry_with(std::string_view rules, std::string_view capabilities) {
  auto entry = parse_entry(format(
      R"({{"name": "x", "packages": ["npm:x"], {}, "manifest":
          {{"name": "x", "version": "1", "tools": [{{"name": "t", "capabilities": [{}]}}]}}}})",
      rules, capabilities));
  if (entry) return *std::move(entry);
  ADD_FAILURE() << entry.error().front().message;
  return {};
}

// "A=1 A=2 B=3", or the first message with its help.
std::string bound(const CatalogEntry& entry, std::vector<std::string> arguments,
                  std::vector<std::string> environment = {}) {
  const auto bindings = bind_command(entry, {.arguments = std::move(arguments),
                                             .environment = std::move(environment),
                                             .home = "/home/a",
                                             .directory = "/here"});
  if (!bindings) {
    return format("{}; {}", bindings.error().front().message, bindings.error().front().help);
  }
  std::string out;
  for (const core::Binding& binding : *bindings) {
    for (const std::string& value : binding.values) {
      out += format("{}{}={}", out.empty() ? "" : " ", binding.name, value);
    }
  }
  return out;
}

TEST(BindCommand, ArgumentsBecomeAbsolutePaths) {
  const auto entry = entry_with(R"("arguments": {"rest": "ROOTS"})", R"("fs:read:${ROOTS}/**")");
  EXPECT_EQ(bound(entry, {"/a/", "b/../c", "~/d", "~", "/a"}),
            "ROOTS=/a ROOTS=/here/c ROOTS=/home/a/d ROOTS=/home/a");
  EXPECT_EQ(bound(entry, {}), "ROOTS of x is not known; it comes from the arguments");
  EXPECT_EQ(
      bound(entry, {"${workspaceFolder}/src"}),
      "\"${workspaceFolder}/src\" is a variable of the client, whose value is not known here; "
      "write the path or the address itself");
  EXPECT_EQ(bound(entry, {"--odd", "/a"}),
            "the catalog does not know the option \"--odd\" of x; bind the variables of this "
            "server by hand");
  EXPECT_EQ(bound(entry, {"--", "-x"}), "ROOTS=/here/-x");
}

TEST(BindCommand, PlacesAndOptionsAreToldApart) {
  const auto entry = entry_with(
      R"("arguments": {"0": {"directory": "DIR"}, "rest": "MORE", "--root": "ROOT",
                       "--port": null, "--verbose": true})",
      R"("fs:read:${DIR}/**", "fs:read:${MORE}", "fs:read:${ROOT}")");
  EXPECT_EQ(bound(entry, {"--port", "80", "a/b.db", "--verbose", "c", "--root=/r"}),
            "DIR=/here/a MORE=/here/c ROOT=/r");
  EXPECT_EQ(bound(entry, {"a", "--root", "/r", "c"}), "DIR=/here ROOT=/r MORE=/here/c");
}

TEST(BindCommand, AnAddressBindsHostAndPort) {
  const auto entry = entry_with(R"("environment": {"URL": {"url": "DB"}})",
                                R"("net:connect:${DB_HOST}:${DB_PORT}")");
  const auto with = [&](std::string url) { return bound(entry, {}, {"URL=" + url}); };
  EXPECT_EQ(with("postgres://me:p%40ss@DB.example.com/x"), "DB_HOST=db.example.com DB_PORT=5432");
  EXPECT_EQ(with("https://h:8443?x=@y"), "DB_HOST=h DB_PORT=8443");
  EXPECT_EQ(with("redis://[2001:db8::1]:7000"), "DB_HOST=[2001:db8::1] DB_PORT=7000");
  EXPECT_EQ(with("redis://[::1]"), "DB_HOST=localhost DB_PORT=6379");
  EXPECT_EQ(with("redis://127.0.0.1,localhost"), "DB_HOST=localhost DB_PORT=6379");
  EXPECT_EQ(with("mongodb://a,b:27017/x"), "DB_HOST=a DB_HOST=b DB_PORT=27017");
  const std::string refused = "URL of x is not an address; write SCHEME://HOST:PORT/...";
  for (const char* url : {"a", "odd://h", "mongodb://a:1,b:2", "http://*", "http://a:0", "http://",
                          "postgres:///x", "http://a b/", "store:URL"}) {
    EXPECT_EQ(with(url), refused) << url;
  }
  EXPECT_EQ(bound(entry, {}), "DB_HOST of x is not known; it comes from the variable URL");
}

TEST(BindCommand, AWordGoesBeforeAVariableAndThatBeforeADefault) {
  const auto entry = entry_with(R"("arguments": {"0": "FILE"}, "environment": {"FILE_PATH": "FILE"},
                    "defaults": {"FILE": "${HOME}/f"})",
                                R"("fs:write:${FILE}")");
  EXPECT_EQ(bound(entry, {"/a"}, {"FILE_PATH=/b"}), "FILE=/a");
  EXPECT_EQ(bound(entry, {}, {"FILE_PATH=/b"}), "FILE=/b");
  EXPECT_EQ(bound(entry, {}, {"FILE_PATH="}), "FILE=/home/a/f");
  EXPECT_EQ(where_bound(entry, "FILE"), "argument 1 or the variable FILE_PATH");
}

TEST(ManifestFor, LeavesOutWhatNeedsSomethingOptionalThatIsNotThere) {
  const auto entry =
      entry_with(R"("optional": ["KEY", "FILE"], "arguments": {"--file": "FILE"})",
                 R"("env:inject:KEY?to=a.example:443", "env:read:KEYS", "fs:read:${FILE}")");
  EXPECT_EQ(bound(entry, {}), "");
  const auto has = [&](const Present& present, std::string_view text) {
    return manifest_for(entry, present).contains(text);
  };
  EXPECT_FALSE(has({}, "env:inject:KEY"));
  EXPECT_FALSE(has({}, "${FILE}"));
  EXPECT_TRUE(has({}, "env:read:KEYS"));
  EXPECT_TRUE(has({.environment = {"KEY=1"}}, "env:inject:KEY?to=a.example:443"));
  EXPECT_TRUE(has({.bindings = {{.name = "FILE", .values = {"/f"}}}}, "fs:read:${FILE}"));
}

TEST(ManifestFor, TellsAVariableOfTheEnvironmentFromOneOfItsOwn) {
  const auto entry = entry_with(R"("optional": ["HOST"], "environment": {"HOST": {"text": "HOST"}},
                                   "defaults": {"HOST": "a.example"})",
                                R"("env:read:HOST", "net:connect:${HOST}:443")");
  const Present present{.bindings = {{.name = "HOST", .values = {"a.example"}}}};
  EXPECT_FALSE(manifest_for(entry, present).contains("env:read:HOST"));
  EXPECT_TRUE(manifest_for(entry, present).contains("${HOST}"));
}

TEST(ParseEntry, RefusesWhatItDoesNotKnow) {
  const std::string_view good =
      R"({"name": "x", "packages": ["npm:x"], "arguments": {"0": "A"}, "manifest": {"name": "x",
      "version": "1", "tools": [{"name": "t", "capabilities": ["fs:read:${A}"]}]}})";
  EXPECT_TRUE(parse_entry(std::string(good)));
  const std::pair<std::string_view, std::string_view> changes[] = {
      {R"("name": "x", "p)", R"("name": "X", "p)"},
      {R"("npm:x")", R"("x")"},
      {R"("npm:x")", R"("npm:x@1", "npm:x@2")"},
      {R"(["npm:x"])", R"([])"},
      {R"("arguments")", R"("argument")"},
      {R"({"0": "A"})", R"({"0": "B"})"},
      {R"({"0": "A"})", R"({"first": "A"})"},
      {R"({"0": "A"})", R"({"0": null})"},
      {R"({"0": "A"})", R"({"0": {"uri": "A"}})"},
      {R"({"0": "A"})", R"({"0": {"url": "A"}})"},
      {R"({"0": "A"})", R"({"0": "A", "--b": false})"},
      {R"({"0": "A"})", R"({"0": "A"}, "defaults": {"C": "/c"})"},
      {R"("arguments": {"0": "A"},)", ""},
  };
  for (const auto& [from, to] : changes) {
    std::string text(good);
    ASSERT_TRUE(text.contains(from)) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(parse_entry(text)) << text;
  }
}

TEST(Catalog, EntriesAreFoundByNameAndByPackageInTheRange) {
  ASSERT_FALSE(catalog().empty());
  EXPECT_TRUE(std::ranges::is_sorted(catalog(), {}, &CatalogEntry::name));
  const CatalogEntry* entry = find_entry("filesystem");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(find_entry("filesystems"), nullptr);
  const auto package = *parse_package("npm:@modelcontextprotocol/server-filesystem@^9");
  EXPECT_EQ(find_entry(package, ""), entry);
  EXPECT_EQ(find_entry(package, "2026.8.31"), entry);
  EXPECT_EQ(find_entry(package, "0.0.1"), nullptr);
  EXPECT_EQ(find_entry(*parse_package("pypi:server-filesystem"), ""), nullptr);
}

}  // namespace
}  // namespace capgate::clients
