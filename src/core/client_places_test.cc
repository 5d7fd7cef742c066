#include "core/client_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

#include "core/sensitive.h"

namespace capgate::core {
namespace {

// `wrap` and the sandbox read one table: no client's file is known to one of them alone.
TEST(ClientPlaces, AreAllProtected) {
  const auto names = protected_workspace_paths();
  EXPECT_EQ(std::ranges::adjacent_find(names, std::ranges::greater_equal{}), names.end());
  std::size_t of_variables = 0;
  for (const ClientConfig& client : client_configs()) {
    EXPECT_FALSE(client.places.empty()) << client.client;
    for (const std::string_view place : client.places) {
      if (place.starts_with("./")) {
        EXPECT_NE(std::ranges::find(names, place.substr(2)), names.end()) << place;
      } else if (place.starts_with("~/")) {
        const std::string path = "/home/ann" + std::string(place.substr(1));
        ASSERT_NE(startup_at(path, "/home/ann"), nullptr) << place;
        EXPECT_EQ(startup_at(path, "/home/ann")->kind, SensitiveKind::file) << place;
      } else {
        ++of_variables;  // $CODEX_HOME: known at run time only
      }
    }
  }
  EXPECT_EQ(of_variables, 2U);
  for (const std::string_view known : {".gemini/settings.json", ".codex/config.toml", ".mcp.json",
                                       ".zed/settings.json", ".roo/mcp.json", "opencode.json"}) {
    EXPECT_NE(std::ranges::find(names, known), names.end()) << known;
  }
  EXPECT_TRUE(places_of_client("no-client").empty());
}

TEST(StartupBelow, LeavesOutWhatIsHiddenAmongCredentials) {
  const auto has = [](std::string_view base, std::string_view path) {
    return std::ranges::any_of(startup_below(base, "/home/ann"),
                               [&](const ReadOnlyPath& each) { return each.path == path; });
  };
  EXPECT_TRUE(has("/home/ann/.config", "/home/ann/.config/zed/settings.json"));
  // ~/.config/goose is hidden in a grant of ~/.config, and open in one of its own.
  EXPECT_FALSE(has("/home/ann/.config", "/home/ann/.config/goose/config.yaml"));
  EXPECT_TRUE(has("/home/ann/.config/goose", "/home/ann/.config/goose/config.yaml"));
}

}  // namespace
}  // namespace capgate::core
