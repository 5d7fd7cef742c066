#include "clients/clients.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "support/temp_directory.h"

namespace capgate::clients {
namespace {

namespace fs = std::filesystem;

class Home : public testing::Test {
 protected:
  Home() {
    fs::create_directories(root_ / "home");
    fs::create_directories(root_ / "project");
  }

  void write(const fs::path& path) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "{}";
  }
  [[nodiscard]] fs::path home() const { return root_ / "home"; }
  [[nodiscard]] fs::path project() const { return root_ / "project"; }
  [[nodiscard]] Surroundings surroundings(std::vector<std::string> environment = {}) const {
    return {.home = home().string(),
            .directory = project().string(),
            .environment = std::move(environment)};
  }
  [[nodiscard]] std::vector<std::string> found(const Surroundings& surroundings,
                                               const char* only = nullptr) const {
    std::vector<std::string> out;
    for (const ClientPlace& place :
         find_configurations(surroundings, only == nullptr ? nullptr : find_client(only))) {
      out.push_back(std::string(place.client->id) + " " +
                    place.path.substr(root_.string().size() + 1));
    }
    return out;
  }

  const test::TempDirectory directory_;
  const fs::path root_ = directory_.path();
};

using Found = std::vector<std::string>;

TEST_F(Home, EveryPlaceOfEveryClientIsFound) {
  std::size_t places = 0;
  std::set<std::string> paths;
  const Surroundings here = surroundings(
      {"CLAUDE_CONFIG_DIR=" + (root_ / "cc").string(), "CODEX_HOME=" + (root_ / "cx").string()});
  for (const Client& client : clients()) {
    for (const std::string_view place : client.places) {
      const auto path = expand_place(place, here);
      ASSERT_TRUE(path) << place;
      write(*path);
      paths.insert(*path);
      ++places;
    }
  }
  EXPECT_EQ(paths.size(), places - 1);  // .mcp.json is Claude Code's and VS Code's
  EXPECT_EQ(found(here).size(), paths.size());
}

TEST_F(Home, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(found(surroundings()), Found{});
  fs::create_directories(home() / ".cursor/mcp.json");  // no file
  EXPECT_EQ(found(surroundings()), Found{});
}

TEST_F(Home, OneClientOrAll) {
  write(home() / ".cursor/mcp.json");
  write(project() / ".cursor/mcp.json");
  write(home() / ".codex/config.toml");
  EXPECT_EQ(found(surroundings(), "cursor"),
            (Found{"cursor home/.cursor/mcp.json", "cursor project/.cursor/mcp.json"}));
  EXPECT_EQ(found(surroundings()).size(), 3U);
}

TEST_F(Home, TheConfigurationDirectoryMayBeElsewhere) {
  write(root_ / "xdg/zed/settings.json");
  write(home() / ".config/zed/settings.json");
  EXPECT_EQ(found(surroundings()), Found{"zed home/.config/zed/settings.json"});
  EXPECT_EQ(found(surroundings({"XDG_CONFIG_HOME=" + (root_ / "xdg").string()})),
            Found{"zed xdg/zed/settings.json"});
  EXPECT_EQ(found(surroundings({"XDG_CONFIG_HOME=relative"})),
            Found{"zed home/.config/zed/settings.json"});
}

TEST_F(Home, AFileUnderTwoNamesIsThereOnce) {
  write(home() / ".cursor/mcp.json");
  fs::create_directories(project() / ".cursor");
  fs::create_symlink(home() / ".cursor/mcp.json", project() / ".cursor/mcp.json");
  EXPECT_EQ(found(surroundings()), Found{"cursor home/.cursor/mcp.json"});
  Surroundings same = surroundings();
  same.directory = same.home;
  EXPECT_EQ(found(same), Found{"cursor home/.cursor/mcp.json"});
}

TEST_F(Home, ALinkIsFoundByItsOwnName) {
  write(root_ / "dotfiles/mcp.json");
  fs::create_directories(home() / ".kimi");
  fs::create_symlink(root_ / "dotfiles/mcp.json", home() / ".kimi/mcp.json");
  EXPECT_EQ(found(surroundings()), Found{"kimi home/.kimi/mcp.json"});
}

TEST(Clients, TheTableIsWhole) {
  std::set<std::string_view> ids;
  for (const Client& client : clients()) {
    EXPECT_TRUE(ids.insert(client.id).second) << client.id;
    EXPECT_EQ(find_client(client.id), &client);
    EXPECT_FALSE(client.shape.paths.empty()) << client.id;
    EXPECT_FALSE(client.places.empty()) << client.id;
    for (const std::string_view place : client.places) {
      const bool is_toml = place.ends_with(".toml");
      const bool is_yaml = place.ends_with(".yaml");
      const Syntax syntax = is_toml ? Syntax::toml : is_yaml ? Syntax::yaml : Syntax::json;
      EXPECT_EQ(client.shape.syntax, syntax) << place;
    }
  }
  EXPECT_EQ(ids.size(), 21U);
  EXPECT_EQ(find_client("nobody"), nullptr);
}

using Paths = std::vector<std::vector<std::string>>;

TEST(GuessShape, ByItsPlace) {
  EXPECT_EQ(guess_client("/x/.codex/config.toml")->id, "codex");
  EXPECT_EQ(guess_client("/x/.vibe/config.toml")->id, "vibe");
  EXPECT_EQ(guess_client("/backup/claude_desktop_config.json")->id, "claude-desktop");
  EXPECT_EQ(guess_client(".claude.json")->id, "claude-code");
  EXPECT_EQ(guess_client("/x/.gemini/antigravity/mcp_config.json")->id, "antigravity");
  EXPECT_EQ(guess_client("/x/notvibe/config.toml"), nullptr);
  EXPECT_EQ(guess_client("/x/settings.json"), nullptr);
  EXPECT_EQ(guess_client("config.toml"), nullptr);
  EXPECT_EQ(guess_shape("/x/zed/settings.json", "")->paths, (Paths{{"context_servers"}}));
}

TEST(GuessShape, ByItsKeys) {
  EXPECT_EQ(guess_shape("a.json", R"({"mcpServers": {}})")->paths, (Paths{{"mcpServers"}}));
  EXPECT_EQ(guess_shape("a.json", R"({"servers": {}})")->paths, (Paths{{"servers"}}));
  EXPECT_EQ(guess_shape("a.jsonc", R"({"amp.mcpServers": {}})")->paths,
            (Paths{{"amp.mcpServers"}}));
  EXPECT_EQ(guess_shape("a.json", R"({"projects": {"/p": {"mcpServers": {}}}})")->paths,
            (Paths{{"mcpServers"}, {"projects", "*", "mcpServers"}}));
  EXPECT_TRUE(guess_shape("a.json", R"({"mcp": {}})")->command_is_array);
  EXPECT_FALSE(guess_shape("a.json", R"({"other": {}})"));
  EXPECT_FALSE(guess_shape("a.toml", "[mcp_servers.x]")->is_list);
  EXPECT_TRUE(guess_shape("a.toml", "[[mcp_servers]]\nname = 'x'")->is_list);
  EXPECT_TRUE(guess_shape("a.yaml", "mcpServers:\n  - name: x\n")->is_list);
  EXPECT_FALSE(guess_shape("a.yml", "mcpServers:\n  x:\n    command: y\n")->is_list);
  EXPECT_EQ(guess_shape("a.yaml", "extensions:\n  x: {}\n")->command, "cmd");
  EXPECT_FALSE(guess_shape("a.txt", "hello"));
}

}  // namespace
}  // namespace capgate::clients
