#include <gtest/gtest.h>

#include "clients/client_file.h"
#include "support/client_round_trip.h"
#include "support/files.h"
#include "support/timing.h"

namespace capgate::clients {
namespace {

using support::changed;
using support::read;
using support::wrap_changes;

const Shape codex = {.syntax = Syntax::toml, .paths = {{"mcp_servers"}}};
const Shape at_root = {.syntax = Syntax::toml, .paths = {{}}};

TEST(ClientToml, MovesTheCommandBeforeItsArguments) {
  const std::pair<std::string, std::string> cases[] = {
      {"[a]\ncommand = \"npx\"\nargs = [\"-y\"] # c\n",
       "[a]\ncommand = \"/usr/bin/capgate\"\nargs = [\"run\", \"--profile\", \"p0\", \"--\", "
       "\"npx\", \"-y\"] # c\n"},
      {"[a]\nargs = [\n  '-y', # c\n]\ncommand = 'npx'",
       "[a]\nargs = [\n  \"run\", \"--profile\", \"p0\", \"--\", 'npx',\n  '-y', # c\n]\n"
       "command = '/usr/bin/capgate'"},
      {"[a]\n\tcommand=\"npx\" # c\r\n",
       "[a]\n\tcommand=\"/usr/bin/capgate\"\r\n\targs = [\"run\",\"--profile\",\"p0\",\"--\","
       "\"npx\"] # c\r\n"},
      {"[a]\ncommand = \"npx\"",
       "[a]\ncommand = \"/usr/bin/capgate\"\nargs = [\"run\",\"--profile\",\"p0\",\"--\",\"npx\"]"},
      {"a = {command = \"npx\"}",
       "a = {command = \"/usr/bin/capgate\", args = "
       "[\"run\",\"--profile\",\"p0\",\"--\",\"npx\"]}"},
      {"a . command = \"npx\"",
       "a . command = \"/usr/bin/capgate\"\na . args = "
       "[\"run\",\"--profile\",\"p0\",\"--\",\"npx\"]"},
      {"a.command = \"\"\"npx\"\"\"\na.args = [# c\n]",
       "a.command = \"/usr/bin/capgate\"\na.args = [\"run\", \"--profile\", \"p0\", \"--\", "
       "\"\"\"npx\"\"\"# c\n]"},
      {"[[a]]\nname = 'x'\ncommand = ['npx']", "[[a]]\nname = 'x'\ncommand = ['npx']"},
  };
  for (const auto& [before, after] : cases) {
    EXPECT_EQ(support::round_trip(before, at_root), after);
  }
}

TEST(ClientToml, LeavesUnusualSpellingsAlone) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"[a]\n\"command\" = \"npx\"\n", "args cannot be added after a key written like this"},
      {"[a]\ncommand = '''\nnpx'''\n", "the command is written on several lines"},
      {"[a]\ncommand = 1\n", "command is not a string"},
      {"[a]\ncommand = 'x'\nargs = [1]\n", "args is not a list of strings"},
      {"a = 1\n", "it is not a mapping of keys to values"},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_EQ(read(text, at_root).servers.at(0).problem, problem) << text;
    EXPECT_EQ(support::round_trip(text, at_root), text);
  }
}

TEST(ClientToml, FindsNothingInAFileWithoutServers) {
  for (const std::string text : {"", "\n", "# nothing\n", "\xef\xbb\xbf", "a = 1\n",
                                 "[mcp_servers]\n", "mcp_servers = 1\n", "mcp_servers = []"}) {
    EXPECT_TRUE(read(text, codex).servers.empty()) << text;
    EXPECT_EQ(support::wrapped(text, codex), text);
  }
}

TEST(ClientToml, RefusesWhatItCannotRead) {
  const auto twice = read_client_file("[mcp_servers.a]\n[mcp_servers.a]\n", codex);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().front().code, Code::doc_duplicate_key);
  const auto broken = read_client_file("\xef\xbb\xbf[mcp_servers.a\n", codex);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().front().where, Span::at(17, 18));
}

TEST(ClientToml, SetsVariablesInTheirQuotes) {
  const std::string text = support::read_text("tests/clients/codex.toml");
  const ClientFile file = read(text, codex);
  const auto& variables = file.servers.at(0).environment;
  ASSERT_EQ(variables.size(), 3U);
  EXPECT_FALSE(variables[2].plain);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(variables[i].plain);
    const auto set = [&](const ClientFile& to, const std::string& value) {
      return changed(
          to, {{.kind = Change::Kind::set_environment, .name = variables[i].name, .value = value}});
    };
    const ClientFile sealed = read(set(file, "store:T"), codex);
    EXPECT_EQ(sealed.servers.at(0).environment[i].value, "store:T");
    EXPECT_EQ(set(sealed, variables[i].value), text);
  }
}

TEST(ClientToml, RoundTripsTheFilesOfClients) {
  const std::tuple<std::string, std::size_t, std::size_t> files[] = {
      {"codex", 5, 4}, {"codex_dotted", 5, 4}, {"vibe", 3, 2}};
  for (const auto& [name, servers, wrapped] : files) {
    const std::string text = support::read_text("tests/clients/" + name + ".toml");
    const ClientFile file = read(text, codex);
    EXPECT_EQ(file.servers.size(), servers) << name;
    EXPECT_EQ(wrap_changes(file).size(), wrapped) << name;
    support::round_trip_spellings(text, codex);
  }
}

TEST(ClientToml, ReadsWhatClientsWrite) {
  const ClientFile file = read(support::read_text("tests/clients/codex.toml"), codex);
  EXPECT_EQ(file.servers[1].name, "with space");
  EXPECT_EQ(file.servers[1].command,
            (std::vector<std::string>{"node", "server.js", "--root=C:\\here"}));
  EXPECT_EQ(file.servers[1].directory, "/home/user");
  EXPECT_TRUE(file.servers[2].disabled);
  EXPECT_EQ(file.servers[4].transport, Transport::http);
  const ClientFile vibe = read(support::read_text("tests/clients/vibe.toml"), codex);
  EXPECT_EQ(vibe.servers[0].name, "fetch");
  EXPECT_EQ(vibe.servers[1].transport, Transport::http);
  EXPECT_EQ(vibe.servers[2].environment.at(0).value, "x");
}

TEST(ClientToml, ManyServersCostAboutAsMuchMoreAsThereAreMore) {
  const auto seconds = [](std::size_t n) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) {
      text += "[mcp_servers.s" + std::to_string(i) + "]\ncommand = \"npx\"\nargs = [\"-y\"]\n";
    }
    return support::shortest_seconds([&] { support::round_trip(text, codex); });
  };
  EXPECT_LT(seconds(400) / seconds(50), 36) << "eight times as much; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::clients
