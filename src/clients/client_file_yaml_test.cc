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

const Shape goose = {
    .syntax = Syntax::yaml, .paths = {{"extensions"}}, .command = "cmd", .environment = "envs"};
const Shape continued = {.syntax = Syntax::yaml, .paths = {{"mcpServers"}}, .is_list = true};
const Shape at_root = {.syntax = Syntax::yaml, .paths = {{}}};

TEST(ClientYaml, MovesTheCommandBeforeItsArguments) {
  const std::pair<std::string, std::string> cases[] = {
      {"a:\n  command: npx # c\n  args:\n    # d\n    - -y\n",
       "a:\n  command: /usr/bin/capgate # c\n  args:\n    # d\n    - run\n    - --profile\n    - "
       "p0\n"
       "    - --\n    - npx\n    - -y\n"},
      {"a:\n  command: npx\n  args:\n  -   -y",
       "a:\n  command: /usr/bin/capgate\n  args:\n  - run\n  - --profile\n  - p0\n  - --\n  - npx\n"
       "  -   -y"},
      {"a:\n  command: \"npx\"\n  args: [-y]\n",
       "a:\n  command: \"/usr/bin/capgate\"\n  args: [run, --profile, p0, --, \"npx\", -y]\n"},
      {"a:\n  command: npx # c\n",
       "a:\n  command: /usr/bin/capgate\n  args: [run,--profile,p0,--,npx] # c\n"},
      {"a: {command: npx}", "a: {command: /usr/bin/capgate, args: [run,--profile,p0,--,npx]}"},
      {"a: {\"command\":\"npx\",\"args\":[]}",
       "a: {\"command\":\"/usr/bin/capgate\",\"args\":[run, --profile, p0, --, \"npx\"]}"},
      {"- name: a\r\n  args:\r\n  - b\r\n  command: 'c'",
       "- name: a\r\n  args:\r\n  - run\r\n  - --profile\r\n  - p0\r\n  - --\r\n  - 'c'\r\n  - "
       "b\r\n"
       "  command: '/usr/bin/capgate'"},
      {"- command: b\n  name: a",
       "- command: /usr/bin/capgate\n  args: [run,--profile,p0,--,b]\n  name: a"},
      {"a:\n  command:\n    - npx\n    - -y\n",
       "a:\n  command:\n    - /usr/bin/capgate\n    - run\n    - --profile\n    - p0\n    - --\n"
       "    - npx\n    - -y\n"},
  };
  for (const auto& [before, after] : cases) {
    EXPECT_EQ(support::round_trip(before, at_root), after);
  }
}

TEST(ClientYaml, MovesACommandOnlyWhereItMeansTheSame) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"a, b", "the command needs quotes to become an argument"},
      {"a[1]", "the command needs quotes to become an argument"},
      {"|\n    a", "the command is written on several lines"},
      {"a\n    b", "the command is written on several lines"},
      {"\"a\n    b\"", "the command is written on several lines"},
      {"'a, b'", ""},
      {"\"a]\"", ""},
      {"a b", ""},
      {"yes", ""},
  };
  for (const auto& [command, problem] : cases) {
    const std::string text = "a:\n  command: " + command + "\n";
    EXPECT_EQ(read(text, at_root).servers.at(0).problem, problem) << command;
    support::round_trip(text, at_root);
    support::round_trip(text + "  args: []\n", at_root);
  }
  // On a line of its own no sign of a list means anything.
  const std::string lines = "a:\n  command: a, [b]\n  args:\n  - c\n";
  EXPECT_EQ(read(lines, at_root).servers.at(0).problem, "");
  support::round_trip(lines, at_root);
}

TEST(ClientYaml, LeavesUnusualKeysAlone) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"a:\n  ? command\n  : npx\n", "args cannot be added after a key written like this"},
      {"a:\n  command: x\n  ? args\n  : - b\n", "args starts on the line of its key"},
      {"a:\n  command: x\n  args:\n", "args is not a list of strings"},
      {"a:\n  command: x\n  args: [8080]\n", "args is not a list of strings"},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_EQ(read(text, at_root).servers.at(0).problem, problem) << text;
    EXPECT_EQ(support::round_trip(text, at_root), text);
  }
}

TEST(ClientYaml, RefusesAnEditThatWouldSayAnythingElse) {
  // The moved word would take the comment along.
  const ClientFile file = read("a:\n  command: npx\n  args: [# none\n    ]\n", at_root);
  ASSERT_EQ(wrap_changes(file).size(), 1U);
  EXPECT_FALSE(clients::apply(file, wrap_changes(file)));
  EXPECT_TRUE(edits(file, wrap_changes(file)));
}

TEST(ClientYaml, FindsNothingInAFileWithoutServers) {
  for (const std::string text : {"", "\n", "# nothing\n", "---\n", "\xef\xbb\xbf", "a: 1\n",
                                 "extensions:\n", "extensions: {}\n", "- a\n"}) {
    EXPECT_TRUE(read(text, goose).servers.empty()) << text;
    EXPECT_EQ(support::wrapped(text, goose), text);
  }
}

TEST(ClientYaml, RefusesWhatItCannotRead) {
  for (const std::string text : {"a: &x 1\n", "a: *x\n", "a: [\n", "a: 1\na: 2\n", "a:\n\t- b\n",
                                 "a: !!str b\n", "--- a\n--- b\n"}) {
    const auto file = read_client_file(text, goose);
    ASSERT_FALSE(file) << text;
    EXPECT_FALSE(file.error().front().message.empty());
  }
}

TEST(ClientYaml, UnwrapsWhatWasChangedMeanwhile) {
  const std::string text = "a:\n  command: npx\n  args:\n  - -y\n";
  std::string now = support::wrapped(text, at_root);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string edited = now;
    return support::unwrapped(edited.replace(edited.find(from), from.size(), to), at_root);
  };
  EXPECT_EQ(with("  - -y\n", ""), "a:\n  command: npx\n  args:\n   []\n");
  EXPECT_EQ(with("- npx\n", "- npx # mine\n"), "a:\n  command: npx\n  args:\n   # mine\n  - -y\n");
  EXPECT_EQ(with("- -y\n", "- -y\n  - more\n"), "a:\n  command: npx\n  args:\n  - -y\n  - more\n");
}

TEST(ClientYaml, SetsVariablesInTheirQuotes) {
  const std::string text =
      "a:\n  command: b\n  env: {P: ghp_1, D: \"x y\", S: 'it''s', O: \"\\x41\", N: 12}\n";
  const ClientFile file = read(text, at_root);
  const auto& variables = file.servers.at(0).environment;
  ASSERT_EQ(variables.size(), 5U);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    EXPECT_EQ(variables[i].plain, i < 3) << i;
    if (!variables[i].plain) continue;
    const auto set = [&](const ClientFile& to, const std::string& value) {
      return changed(
          to, {{.kind = Change::Kind::set_environment, .name = variables[i].name, .value = value}});
    };
    const ClientFile sealed = read(set(file, "store:T"), at_root);
    EXPECT_EQ(sealed.servers.at(0).environment[i].value, "store:T");
    EXPECT_EQ(set(sealed, variables[i].value), text);
  }
}

TEST(ClientYaml, RoundTripsTheFilesOfClients) {
  const std::string goose_text = support::read_text("tests/clients/goose.yaml");
  const ClientFile file = read(goose_text, goose);
  ASSERT_EQ(file.servers.size(), 8U);
  EXPECT_EQ(wrap_changes(file).size(), 6U);
  EXPECT_EQ(file.servers[0].transport, Transport::unknown);
  EXPECT_EQ(file.servers[7].transport, Transport::http);
  EXPECT_TRUE(file.servers[4].disabled);
  EXPECT_EQ(file.servers[1].environment.size(), 3U);
  support::round_trip_spellings(goose_text, goose);

  const std::string continue_text = support::read_text("tests/clients/continue.yaml");
  const ClientFile list = read(continue_text, continued);
  ASSERT_EQ(list.servers.size(), 5U);
  EXPECT_EQ(wrap_changes(list).size(), 3U);
  EXPECT_EQ(list.servers[1].name, "bare");
  EXPECT_EQ(list.servers[2].directory, "/home/user/project");
  EXPECT_EQ(list.servers[4].problem, "it has no name");
  support::round_trip_spellings(continue_text, continued);
}

TEST(ClientYaml, ManyServersCostAboutAsMuchMoreAsThereAreMore) {
  const auto seconds = [](std::size_t n) {
    std::string text = "extensions:\n";
    for (std::size_t i = 0; i < n; ++i) {
      text += "  s" + std::to_string(i) + ":\n    cmd: npx\n    args:\n      - -y\n      - p\n";
    }
    return support::shortest_seconds([&] { support::round_trip(text, goose); });
  };
  EXPECT_LT(seconds(240) / seconds(30), 36) << "eight times as much; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::clients
