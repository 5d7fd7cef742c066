#include "cli/wrap_diff.h"

#include <gtest/gtest.h>

namespace capgate::cli {
namespace {

using clients::Change;
using clients::ClientFile;

ClientFile read(std::string text) {
  auto file = clients::read_client_file(
      std::move(text), {.syntax = clients::Syntax::json, .paths = {{"mcpServers"}}});
  EXPECT_TRUE(file);
  return *std::move(file);
}

Change wrap(std::size_t server) {
  return {.kind = Change::Kind::wrap,
          .server = server,
          .prefix = {"/usr/bin/capgate", "run", "--profile", "x", "--"}};
}

std::string diff(const ClientFile& file, const std::vector<Change>& changes,
                 Colour colour = Colour::off) {
  return show_diff(file, *clients::edits(file, changes), "mcp.json", colour);
}

constexpr std::string_view two_servers = R"({
  "mcpServers": {
    "a": {
      "command": "npx",
      "args": ["-y", "pkg"],
      "env": {"TOKEN": "very-secret"}
    },
    "far": {"url": "https://x", "headers": {"Authorization": "also-secret"}},
    "b": {"command": "b-server", "args": [], "env": {"TOKEN": "very-secret"}}
  }
}
)";

TEST(WrapDiff, ShowsTheLinesThatChangeWithTheirNumbers) {
  const ClientFile file = read(std::string(two_servers));
  EXPECT_EQ(diff(file, {wrap(0)}),
            R"(--- mcp.json
+++ mcp.json
@@ -4,2 +4,2 @@ a
-      "command": "npx",
-      "args": ["-y", "pkg"],
+      "command": "/usr/bin/capgate",
+      "args": ["run", "--profile", "x", "--", "npx", "-y", "pkg"],
)");
}

TEST(WrapDiff, NoChangeIsNoDiff) { EXPECT_EQ(diff(read(std::string(two_servers)), {}), ""); }

TEST(WrapDiff, ValuesOnTheSameLineAreHidden) {
  const ClientFile file = read(std::string(two_servers));
  const std::string shown = diff(file, {wrap(2)});
  EXPECT_NE(shown.find("-    \"b\": {\"command\": \"b-server\""), std::string::npos) << shown;
  EXPECT_NE(shown.find("{\"TOKEN\": ***}"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("secret"), std::string::npos) << shown;
}

TEST(WrapDiff, AValueThatMovesToTheStoreIsHiddenAndItsReferenceShown) {
  const ClientFile file = read(std::string(two_servers));
  const std::string shown = diff(file, {{.kind = Change::Kind::set_environment,
                                         .server = 0,
                                         .name = "TOKEN",
                                         .value = "store:TOKEN"}});
  EXPECT_NE(shown.find("-      \"env\": {\"TOKEN\": ***}"), std::string::npos) << shown;
  EXPECT_NE(shown.find("+      \"env\": {\"TOKEN\": \"store:TOKEN\"}"), std::string::npos) << shown;
}

TEST(WrapDiff, AFileOfOneLineShowsOnlyWhatChangesAndHidesHeaders) {
  const std::string padding(2000, 'p');
  const ClientFile file = read(
      "{\"x\": \"" + padding +
      "\", \"mcpServers\": {\"far\": {\"url\": \"u\", \"headers\": "
      "{\"A\": \"also-secret\"}}, \"a\": {\"command\": \"npx\", \"args\": [\"pkg\"]}}, \"y\": \"" +
      padding + "\"}");
  const std::string shown = diff(file, {wrap(1)});
  EXPECT_LT(shown.size(), 1000U) << shown;
  EXPECT_NE(shown.find("-..."), std::string::npos) << shown;
  EXPECT_NE(shown.find("\"npx\""), std::string::npos) << shown;
  EXPECT_EQ(shown.find("secret"), std::string::npos) << shown;
}

TEST(WrapDiff, LinesThatAreAddedCountForThoseThatFollow) {
  const ClientFile file = read(R"({"mcpServers": {
    "a": {
      "command": "a"
    },
    "b": {
      "command": "b",
      "args": []
    }
}})");
  const std::string shown = diff(file, {wrap(0), wrap(1)});
  EXPECT_NE(shown.find("@@ -3,1 +3,"), std::string::npos) << shown;
  EXPECT_NE(shown.find("@@ -6,"), std::string::npos) << shown;
}

TEST(WrapDiff, ColoursAreForTerminals) {
  const ClientFile file = read(std::string(two_servers));
  EXPECT_EQ(diff(file, {wrap(0)}).find('\x1b'), std::string::npos);
  const std::string shown = diff(file, {wrap(0)}, Colour::on);
  EXPECT_NE(shown.find("\x1b[31m-      \"command\": \"npx\",\x1b[0m\n"), std::string::npos);
  EXPECT_NE(shown.find("\x1b[32m+"), std::string::npos);
}

TEST(WrapDiff, NothingOfTheFileControlsTheTerminal) {
  const ClientFile file =
      read("{\"mcpServers\": {\"a\": {\"command\": \"x\", /* \x1b[2J */ \"args\": [\"y\"]}}}\r\n");
  const std::string shown = diff(file, {wrap(0)});
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_EQ(shown.find('\r'), std::string::npos);
  EXPECT_NE(shown.find("\\x1b[2J"), std::string::npos) << shown;
}

}  // namespace
}  // namespace capgate::cli
