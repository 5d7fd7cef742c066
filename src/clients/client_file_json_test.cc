#include <gtest/gtest.h>

#include "base/text.h"
#include "clients/client_file.h"
#include "support/client_round_trip.h"
#include "support/files.h"
#include "support/timing.h"

namespace capgate::clients {
namespace {

using support::changed;
using support::read;
using support::wrap_changes;
using support::wrapper;

const Shape plain = {.paths = {{"mcpServers"}}};

std::string round_trip(const std::string& text, const Shape& shape = plain) {
  return support::round_trip(text, shape);
}

std::string one(const std::string& members) {
  return "{\"mcpServers\": {\"a\": {" + members + "}}}";
}

std::string members_of(std::string text) {
  text.erase(0, one("").find("}}}"));
  text.erase(text.size() - 3);
  return text;
}

TEST(ClientJson, MovesTheCommandBeforeItsArguments) {
  const std::pair<std::string, std::string> cases[] = {
      {R"("command": "npx", "args": ["-y", "p"])",
       R"("command": "/usr/bin/capgate", "args": ["run", "--profile", "p0", "--", "npx", "-y", "p"])"},
      {R"("args": [ "-y"], "command": "npx")",
       R"("args": [ "run", "--profile", "p0", "--", "npx", "-y"], "command": "/usr/bin/capgate")"},
      {"\"command\": \"npx\", \"args\": [\n\t\"-y\"\n]",
       "\"command\": \"/usr/bin/capgate\", \"args\": [\n\t\"run\", \"--profile\", \"p0\", \"--\", "
       "\"npx\",\n\t\"-y\"\n]"},
      {R"("command": "n\u0070x","args":[])",
       R"("command": "/usr/bin/capgate","args":["run", "--profile", "p0", "--", "n\u0070x"])"},
      {R"("command": "npx" /* c */, "env": {})",
       R"("command": "/usr/bin/capgate", "args":["run","--profile","p0","--","npx"] /* c */, "env": {})"},
      {R"("command": "npx", "args": [ // none
])",
       R"("command": "/usr/bin/capgate", "args": ["run", "--profile", "p0", "--", "npx" // none
])"},
      {R"("command": ["npx", "-y"])",
       R"("command": ["/usr/bin/capgate", "run", "--profile", "p0", "--", "npx", "-y"])"},
  };
  for (const auto& [before, after] : cases) {
    EXPECT_EQ(members_of(round_trip(one(before))), after);
  }
}

TEST(ClientJson, KeepsEveryByteAroundAChange) {
  const std::string cases[] = {
      "\xef\xbb\xbf{\"mcpServers\":{\"a\":{\"command\":\"x\"}}}",
      "{\r\n\t\"mcpServers\" : {\r\n\"a\" : {\r\n\"command\" : \"x\",\r\n\"args\" : "
      "[\r\n\"1\"\r\n, "
      "\"2\"\r\n,\r\n]\r\n}}}\r\n",
      one("\"command\": \"a b\""),
      one("\"command\": \"npx\", \"args\": [ /* 1 */ \"a\" /* 2 */ , // 3\n \"b\" ]"),
      one("\"command\": \"npx\", \"args\": [  ]"),
      one("\"command\": \"\\ud83d\", \"args\": [\"\\ude00\"]"),
      one("\"command\": \"x\", \"args\": [\"run\", \"--profile\", \"p\", \"--\", \"y\"]"),
  };
  for (const std::string& text : cases) {
    EXPECT_NE(round_trip(text), text);
  }
}

TEST(ClientJson, FindsNothingInAFileWithoutServers) {
  for (const std::string text :
       {"", " \r\n", "// nothing\n", "\xef\xbb\xbf", "{}", "[]", "null", "1", "{\"mcpServers\": 1}",
        "{\"mcpServers\": {}}", "{\"mcpServers\": null}", "{\"other\": {\"a\": {}}}"}) {
    EXPECT_TRUE(read(text, plain).servers.empty()) << text;
    EXPECT_EQ(support::wrapped(text, plain), text);
  }
}

TEST(ClientJson, SaysWhyAnEntryCannotBeWrapped) {
  const std::pair<std::string, std::string_view> cases[] = {
      {"1", "it is not a mapping of keys to values"},
      {"[]", "it is not a mapping of keys to values"},
      {"{}", "it has no command"},
      {R"({"command": 1})", "command is not a string"},
      {R"({"command": ""})", "command is empty"},
      {R"({"command": []})", "command is empty"},
      {R"({"command": ["a", 1]})", "command is not a list of strings"},
      {R"({"command": "a", "args": "b"})", "args is not a list of strings"},
      {R"({"command": "a", "args": null})", "args is not a list of strings"},
      {R"({"command": "a", "args": ["b", 2]})", "args is not a list of strings"},
      {R"({"command": "capgate", "args": ["run", "--profile", "x", "--"]})",
       "it runs the command of its profile"},
  };
  for (const auto& [entry, problem] : cases) {
    const std::string text =
        "{\"mcpServers\": {\"bad\": " + entry + ", \"a\": {\"command\": \"b\"}}}";
    const ClientFile file = read(text, plain);
    ASSERT_EQ(file.servers.size(), 2U);
    EXPECT_EQ(file.servers[0].problem, problem);
    EXPECT_EQ(file.servers[1].problem, "");
    round_trip(text);
    if (!file.servers[0].profile.empty()) continue;
    EXPECT_FALSE(apply(file, {{.server = 0, .prefix = wrapper("p")}}));
  }
}

TEST(ClientJson, RefusesWhatItCannotRead) {
  const std::pair<std::string, Code> cases[] = {
      {"{", Code::doc_syntax},
      {"{\"mcpServers\": {\"a\": }}", Code::doc_syntax},
      {"{} /* open", Code::doc_syntax},
      {"{\"a\": 1 \"b\": 2}", Code::doc_syntax},
      {"{\"a\": [,]}", Code::doc_syntax},
      {"{'a': 1}", Code::doc_syntax},
      {"{\"a\": 1, \"\\u0061\": 2}", Code::doc_duplicate_key},
      {one("\"command\": \"a\", \"command\": \"b\""), Code::doc_duplicate_key},
      {"\xff", Code::doc_encoding},
      {std::string(200, '['), Code::doc_depth},
  };
  for (const auto& [text, code] : cases) {
    const auto file = read_client_file(text, plain);
    ASSERT_FALSE(file) << text;
    EXPECT_EQ(file.error().front().code, code) << text;
  }
}

TEST(ClientJson, CountsPlacesFromTheStartOfTheFile) {
  const std::string text = "\xef\xbb\xbf" + one(R"("command": "a", "env": {"T": "secret"})");
  const ServerEntry server = read(text, plain).servers.at(0);
  const Span value = server.environment.at(0).where;
  EXPECT_EQ(text.substr(value.begin, value.end - value.begin), "\"secret\"");
  EXPECT_EQ(text[server.where.begin], '{');
  const auto broken = read_client_file("\xef\xbb\xbf]", plain);
  EXPECT_EQ(broken.error().front().where, Span::at(3, 4));
}

TEST(ClientJson, ReadsAWrapperOfAnyPathAndWithOptions) {
  const std::pair<std::string, std::string_view> cases[] = {
      {R"("command": "capgate", "args": ["run", "--profile", "x", "--", "npx", "-y"])", "x"},
      {R"("command": "/a b/capgate", "args": ["run", "--profile=x", "--trace", "-", "--", "npx", "-y"])",
       "x"},
      {R"("command": ["capgate", "run", "-v", "--profile", "x", "--", "npx", "-y"])", "x"},
      {R"("command": "capgated", "args": ["run", "--profile", "x", "--", "npx", "-y"])", ""},
      {R"("command": "capgate", "args": ["check", "--profile", "x", "--", "npx", "-y"])", ""},
      {R"("command": "capgate", "args": ["run", "--", "npx", "--profile", "x"])", ""},
      {R"("command": "capgate", "args": ["run", "--profile", "--", "npx"])", ""},
  };
  for (const auto& [members, profile] : cases) {
    const ServerEntry server = read(one(members), plain).servers.at(0);
    EXPECT_EQ(server.profile, profile) << members;
    if (!profile.empty()) {
      EXPECT_EQ(server.command, (std::vector<std::string>{"npx", "-y"}));
    }
  }
  EXPECT_EQ(members_of(support::unwrapped(one(cases[1].first), plain)),
            R"("command": "npx", "args": ["-y"])");
}

TEST(ClientJson, BringsAWrapperUpToDate) {
  const ClientFile file =
      read(one(R"("command": "/old/capgate", "args": ["run", "--profile=x", "-v", "--", "npx"])"),
           plain);
  EXPECT_EQ(
      members_of(changed(file, {{.server = 0, .prefix = wrapper("new")}})),
      R"("command": "/usr/bin/capgate", "args": ["run", "--profile=new", "-v", "--", "npx"])");
  EXPECT_FALSE(apply(file, {{.server = 0, .prefix = {"capgate", "run", "--"}}}));
}

TEST(ClientJson, UnwrapsWhatWasChangedMeanwhile) {
  const std::string before = R"("command": "npx")";
  const std::string wrapper_only = members_of(support::wrapped(one(before), plain));
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = one(wrapper_only);
    return members_of(support::unwrapped(text.replace(text.find(from), from.size(), to), plain));
  };
  EXPECT_EQ(with("\"command\"", "/* new */ \"command\""), "/* new */ \"command\": \"npx\"");
  EXPECT_EQ(with("\"npx\"]", "\"npx\", \"-y\"]"), "\"command\": \"npx\", \"args\":[\"-y\"]");
  EXPECT_EQ(with("\"npx\"]", "\"npx\", // mine\n\"-y\"]"),
            "\"command\": \"npx\", \"args\":[ // mine\n\"-y\"]");
  EXPECT_EQ(with("\"npx\"]", "\"npx\",\n]"), "\"command\": \"npx\", \"args\":[\n]");
  EXPECT_EQ(with("\"run\"", "\n  \"run\""), "\"command\": \"npx\", \"args\":[\n  ]");
}

TEST(ClientJson, SetsVariables) {
  const std::string text =
      one(R"("command": "a", "env": {"T": "x\ty", "U": "\u0061", "N": 1, "L": [], "O": null})");
  const ClientFile file = read(text, plain);
  const auto& variables = file.servers.at(0).environment;
  ASSERT_EQ(variables.size(), 3U);
  EXPECT_TRUE(variables[0].plain);
  EXPECT_FALSE(variables[1].plain);
  EXPECT_FALSE(variables[2].plain);
  EXPECT_EQ(variables[0].value, "x\ty");
  EXPECT_EQ(variables[2].value, "1");
  const auto set = [](const ClientFile& to, std::string value) {
    return changed(to, {{.kind = Change::Kind::set_environment, .name = "T", .value = value}});
  };
  const std::string sealed = set(file, "store:T");
  EXPECT_NE(sealed.find("\"T\": \"store:T\", "), sealed.npos);
  EXPECT_EQ(set(read(sealed, plain), "x\ty"), text);
  EXPECT_FALSE(apply(file, {{.kind = Change::Kind::set_environment, .name = "X"}}));
}

TEST(ClientJson, MakesAllChangesAtOnce) {
  const std::string text = one(R"("command": "a", "args": ["b"], "env": {"T": "v"})");
  const ClientFile file = read(text, plain);
  std::vector<Change> changes = wrap_changes(file);
  changes.push_back({.kind = Change::Kind::set_environment, .name = "T", .value = "w"});
  EXPECT_EQ(read(changed(file, changes), plain).servers.at(0).environment.at(0).value, "w");
  const auto parts = edits(file, changes);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->size(), 3U);
  EXPECT_EQ(*apply_edits(text, *parts), changed(file, changes));
  changes.push_back(changes.front());
  EXPECT_FALSE(clients::apply(file, changes));
  EXPECT_FALSE(apply(file, {{.server = 1, .prefix = wrapper("p")}}));
}

struct Known {
  std::string file;
  Shape shape;
  std::size_t servers;
  std::size_t wrapped;
};

TEST(ClientJson, RoundTripsTheFilesOfClients) {
  const Known files[] = {
      {"claude_desktop", plain, 4, 4},
      {"claude_code", {.paths = {{"mcpServers"}, {"projects", "*", "mcpServers"}}}, 3, 2},
      {"vscode", {.paths = {{"servers"}}}, 4, 3},
      {"zed", {.paths = {{"context_servers"}}}, 4, 3},
      {"opencode",
       {.paths = {{"mcp"}}, .environment = "environment", .command_is_array = true},
       4,
       2},
  };
  for (const auto& [name, shape, servers, wrapped] : files) {
    const std::string text = support::read_text("tests/clients/" + name + ".json");
    const ClientFile file = read(text, shape);
    EXPECT_EQ(file.servers.size(), servers) << name;
    EXPECT_EQ(wrap_changes(file).size(), wrapped) << name;
    support::round_trip_spellings(text, shape);
  }
}

TEST(ClientJson, ReadsWhatClientsWrite) {
  const ClientFile code = read(support::read_text("tests/clients/claude_code.json"),
                               {.paths = {{"mcpServers"}, {"projects", "*", "mcpServers"}}});
  EXPECT_EQ(code.servers[0].section, "");
  EXPECT_EQ(code.servers[1].section, "/home/user/one");
  EXPECT_EQ(code.servers[1].name, "memory");
  EXPECT_EQ(code.servers[2].transport, Transport::http);
  const ClientFile zed =
      read(support::read_text("tests/clients/zed.json"), {.paths = {{"context_servers"}}});
  EXPECT_EQ(zed.servers[0].command, (std::vector<std::string>{"npx", "-y", "some-server"}));
  EXPECT_EQ(zed.servers[0].environment.at(0).name, "KEY");
  EXPECT_TRUE(zed.servers[2].disabled);
  EXPECT_EQ(zed.servers[3].transport, Transport::unknown);
  const ClientFile vscode =
      read(support::read_text("tests/clients/vscode.json"), {.paths = {{"servers"}}});
  EXPECT_EQ(vscode.servers[1].directory, "${workspaceFolder}");
  const ClientFile amp = read(R"({"amp.mcpServers": {"a": {"command": "b", "disabled": true}}})",
                              {.paths = {{"amp.mcpServers"}}});
  EXPECT_TRUE(amp.servers.at(0).disabled);
  for (const std::string key : {"url", "serverUrl", "httpUrl"}) {
    EXPECT_EQ(read(one("\"" + key + "\": \"https://x\""), plain).servers.at(0).transport,
              Transport::http);
  }
  for (const std::string type : {"http", "sse", "streamable-http", "streamableHttp"}) {
    const ServerEntry server =
        read(one(R"("command": "x", "type": ")" + type + "\""), plain).servers.at(0);
    EXPECT_EQ(server.transport, Transport::http);
    EXPECT_EQ(server.problem, "");
  }
}

TEST(ClientJson, ManyServersCostAboutAsMuchMoreAsThereAreMore) {
  const auto seconds = [](std::size_t n) {
    std::string text = "{\"mcpServers\": {";
    for (std::size_t i = 0; i < n; ++i) {
      text += (i > 0 ? ",\n\"s" : "\n\"s") + std::to_string(i) +
              R"(": {"command": "npx", "args": ["-y", "package"], "env": {"A": "b"}})";
    }
    text += "}}";
    return support::shortest_seconds([&] { round_trip(text); });
  };
  EXPECT_LT(seconds(400) / seconds(50), 36) << "eight times as much; 64 is quadratic";
}

}  // namespace
}  // namespace capgate::clients
