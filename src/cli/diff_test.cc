// capgate diff of two manifests, in every format. tests/e2e/diff_test.py compares git revisions.
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "support/cli_pins.h"
#include "support/diff_cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::joined;
using support::Json;
using support::Ran;
using support::Words;
using Changes = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view old_manifest = R"({"name": "server-github", "version": "1",
  "serverCapabilities": ["limit:memory:512M"], "tools": [
  {"name": "search", "capabilities": ["net:connect:api.github.com:443", "fs:read:${REPO}/**"]},
  {"name": "push", "capabilities": ["exec:spawn:git"]}]})";
constexpr std::string_view new_manifest = R"({"name": "server-github", "version": "2", "tools": [
  {"name": "search", "capabilities": ["net:connect:*.github.com:443", "fs:write:${REPO}/**",
                                      "exec:spawn:git"]},
  {"name": "pull", "capabilities": ["net:connect:api.github.com:443"]}]})";

class DiffCommand : public support::DiffTest {
 protected:
  DiffCommand() {
    // One line, as the comments in tests/cli/diff name it.
    file("old.json", Json::parse(old_manifest));
    file("new.json", Json::parse(new_manifest));
  }
  void one_tool(const std::string& name, const Words& capabilities) const {
    file(name, support::server(capabilities));
  }
  [[nodiscard]] int code(const Words& words) const { return diff(words).code; }
};

TEST_F(DiffCommand, ReportsWhatWidenedNarrowedAndMoved) {
  const auto [code, json] = compare({"old.json", "new.json"});
  EXPECT_EQ(code, Exit::widened);
  EXPECT_EQ(json["schemaVersion"], 1);
  for (const char* key : {"changed", "wider", "moved"}) EXPECT_EQ(json[key], true) << key;
  EXPECT_EQ(json["unboundVariables"], Words{"REPO"});
  ASSERT_EQ(json["servers"].size(), 1U);
  const Json& server = json["servers"][0];
  EXPECT_EQ(changes(server), (Changes{{"widened", "fs:write:${REPO}/**"},
                                      {"widened", "net:connect:*.github.com:443"},
                                      {"widened", "limit:memory:512M"}}));
  std::set<std::string> tools;
  for (const Json& tool : server["tools"].items()) {
    const std::string& name = tool["name"].text();
    tools.insert(name);
    if (name == "pull") {
      EXPECT_EQ(tool["presence"], "added");
      EXPECT_EQ(changes(tool), (Changes{{"moved", "net:connect:api.github.com:443"}}));
    } else if (name == "push") {
      EXPECT_EQ(tool["presence"], "removed");
      EXPECT_EQ(changes(tool), (Changes{{"narrowed", "exec:spawn:git"}}));
    } else if (name == "search") {
      const Changes all = changes(tool);
      EXPECT_NE(
          std::ranges::find(all, std::pair<std::string, std::string>("moved", "exec:spawn:git")),
          all.end());
    }
  }
  // The grants of every tool have no name.
  EXPECT_EQ(tools, (std::set<std::string>{"", "pull", "push", "search"}));
  const Json& places = server["changes"][0]["places"];
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0]["source"], "new.json");
  EXPECT_EQ(places[0]["line"], 1);
  EXPECT_EQ(places[0]["tool"], "search");
}

TEST_F(DiffCommand, AToolThatOnlyReadsIsNotBlamedForAWrite) {
  const std::string head = R"({"name": "s", "version": "1", "tools": [{"name": "search",
    "capabilities": ["fs:read:/workspace/**"]}, {"name": "patch", "capabilities": [)";
  file("before.json", head + "]}]}");
  file("after.json", head + R"("fs:write:/workspace/**"]}]})");
  const Json json = compare({"before.json", "after.json"}).json;
  const Json& places = json["servers"][0]["changes"][0]["places"];
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0]["tool"], "patch");
  EXPECT_FALSE(has(diff({"before.json", "after.json", "--markdown"}).out, "search"));
  EXPECT_TRUE(has(run({"explain", "after.json"}).out,
                  "fs:write:/workspace/**   for patch; search only reads\n"));
  const Json told = run({"explain", "after.json", "--json"}).json();
  EXPECT_EQ(column(told["grants"][0]["origins"], "capability"),
            (Words{"fs:read:/workspace/**", "fs:write:/workspace/**"}));
}

TEST_F(DiffCommand, TextIsForPeople) {
  const Ran done = diff({"old.json", "new.json"});
  EXPECT_EQ(done.code, Exit::widened);
  EXPECT_TRUE(
      done.out.starts_with("This change lets the server \"server-github\" do more\nWidened:\n"))
      << done;
  EXPECT_TRUE(has(done.out, "\n      before: fs:read:${REPO}/**\n"));
  EXPECT_TRUE(has(done.out, "\n  pull (new)\n"));
  EXPECT_FALSE(has(done.out, "\x1b"));
  EXPECT_EQ(done.err, "note: ${REPO} is compared by its name; --set REPO=VALUE binds it\n");
}

TEST_F(DiffCommand, AnotherSpellingOfTheSamePolicyIsNoChange) {
  file("other.yaml",
       "tools:\n- capabilities: [exec:spawn:git]\n  name: push\n- name: search\n  capabilities: "
       "['fs:read:${REPO}/./**', net:connect:API.github.com:443, net:connect:API.github.com:443]\n"
       "name: server-github\nversion: '9'\nserverCapabilities: [limit:memory:524288K]\n");
  const auto [code, json] = compare({"old.json", "other.yaml"});
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(json["changed"], false);
  const Json& server = json["servers"][0];
  EXPECT_EQ(server["changed"], false);
  EXPECT_EQ(server["changes"].size() + server["tools"].size(), 0U);
}

TEST_F(DiffCommand, ExitCodes) {
  Json moved = Json::parse(old_manifest);
  moved["tools"].push_back(Json::parse(R"({"name": "third", "capabilities": ["exec:spawn:git"]})"));
  file("moved.json", moved);
  file("bad.json", "{");
  file("relative.json", support::server({"fs:read:x"}));
  EXPECT_EQ(code({"new.json", "new.json"}), Exit::ok);
  EXPECT_EQ(code({"old.json", "moved.json"}), Exit::ok);
  EXPECT_EQ(code({"old.json", "moved.json", "--strict"}), Exit::widened);
  EXPECT_EQ(code({"old.json"}), Exit::usage);
  EXPECT_EQ(diff({"-", "-"}, {.input = std::string(old_manifest)}).code, Exit::usage);
  EXPECT_EQ(code({"old.json", "new.json", "--json", "--sarif"}), Exit::usage);
  EXPECT_EQ(code({"old.json", "new.json", "--set", "OTHER=/x"}), Exit::usage);
  EXPECT_EQ(code({"old.json", "missing.json"}), Exit::unreadable);
  EXPECT_EQ(code({"old.json", "bad.json"}), Exit::unreadable);
  EXPECT_EQ(code({"old.json", "relative.json"}), Exit::compile_error);
}

TEST_F(DiffCommand, ABoundVariableIsComparedByItsValue) {
  Json plain = Json::parse(old_manifest);
  plain["tools"][0]["capabilities"] = Words{"net:connect:api.github.com:443", "fs:read:/srv/**"};
  file("plain.json", plain);
  EXPECT_EQ(code({"old.json", "plain.json"}), Exit::widened);
  EXPECT_EQ(code({"old.json", "plain.json", "--set", "REPO=/srv"}), Exit::ok);
}

TEST_F(DiffCommand, ReadsStandardInputAndNothing) {
  const Ran same = diff({"-", "new.json", "--json"}, {.input = std::string(new_manifest)});
  EXPECT_EQ(same.code, Exit::ok) << same;
  EXPECT_EQ(same.json()["wider"], false);
  const auto added = compare({"/dev/null", "new.json"});
  EXPECT_EQ(added.code, Exit::widened);
  EXPECT_EQ(added.json["servers"][0]["presence"], "added");
  const auto removed = compare({"new.json", "/dev/null"});
  EXPECT_EQ(removed.code, Exit::ok);
  EXPECT_EQ(removed.json["servers"][0]["presence"], "removed");
  const Words kinds = column(removed.json["servers"][0]["changes"], "kind");
  EXPECT_EQ((std::set<std::string>(kinds.begin(), kinds.end())), std::set<std::string>{"narrowed"});
}

TEST_F(DiffCommand, AnUnstatedLimitIsTheDefault) {
  one_tool("none.json", {});
  for (const auto& [limit, words] :
       {std::pair("memory:64G", "use 64G of memory at most (before: 2G, the default)"),
        std::pair("pids:100000", "(before: 256, the default)"),
        std::pair("disk:100G", "(before: 256M, the default)"),
        std::pair("files:100000", "(before: 1024, the default)")}) {
    one_tool("some.json", {std::string("limit:") + limit});
    const Ran done = diff({"none.json", "some.json"});
    EXPECT_EQ(done.code, Exit::widened) << done;
    EXPECT_TRUE(has(done.out, words));
    EXPECT_EQ(code({"some.json", "none.json"}), Exit::ok) << limit;
  }
  one_tool("some.json", {"limit:memory:1G"});
  EXPECT_EQ(code({"none.json", "some.json"}), Exit::ok);
  EXPECT_EQ(code({"some.json", "none.json"}), Exit::widened);
}

TEST_F(DiffCommand, ARemovedServerMayDoNothingMore) {
  one_tool("some.json", {"limit:memory:1G", "fs:read:/w"});
  const Ran done = diff({"some.json", "/dev/null"});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_FALSE(has(done.out, "Widened"));
}

TEST_F(DiffCommand, AVariableMayBeWhatAWiderGrantExcludes) {
  struct Row {
    std::string wide, line, value;
  };
  for (const Row& row : {Row{"net:connect:*", "net:connect:${X}:443", "169.254.169.254"},
                         Row{"fs:read:/srv/p/**", "fs:read:/srv/p/${X}", ".env"},
                         Row{"fs:read:${X}/**", "fs:read:${X}/gh/**", "/home/me/.config"}}) {
    SCOPED_TRACE(row.line);
    one_tool("wide.json", {row.wide});
    one_tool("both.json", {row.wide, row.line});
    EXPECT_EQ(code({"wide.json", "both.json"}), Exit::widened);
    EXPECT_EQ(code({"wide.json", "both.json", "--set", "X=" + row.value}), Exit::widened);
    EXPECT_EQ(code({"both.json", "wide.json"}), Exit::ok);
    const auto same = compare({"both.json", "both.json"});
    EXPECT_EQ(same.code, Exit::ok);
    EXPECT_EQ(same.json["changed"], false);
  }
}

TEST_F(DiffCommand, ALockHasSeveralServers) {
  const Words policy = {"exec:spawn:git", "fs:read:${REPO}/**", "limit:memory:512M",
                        "net:connect:api.github.com:443"};
  Json github = support::pin("server-github", policy);
  github["serverCapabilities"] = Words{"limit:memory:512M"};
  github["grants"] = Json::parse(R"([{"tool": "push", "capabilities": ["exec:spawn:git"]},
    {"tool": "search", "capabilities": ["fs:read:${REPO}/**", "net:connect:api.github.com:443"]}])");
  file("capgate.lock", support::lock({support::pin("other", {}), github}));
  const auto [code, json] = compare({"capgate.lock", "old.json"});
  EXPECT_EQ(code, Exit::ok);
  EXPECT_EQ(column(json["servers"], "name"), (Words{"other", "server-github"}));
  EXPECT_EQ(json["servers"][1]["changes"].size(), 0U);
  EXPECT_EQ(json["servers"][1]["tools"].size(), 0U);
  EXPECT_EQ(diff({"capgate.lock", "new.json"}).code, Exit::widened);
}

TEST_F(DiffCommand, SarifPointsIntoTheNewFile) {
  const Ran done = diff({"old.json", "new.json", "--sarif"});
  EXPECT_EQ(done.code, Exit::widened) << done;
  const Json log = done.json();
  ASSERT_EQ(log["runs"].size(), 1U);
  bool found = false;
  std::set<std::string> rules;
  for (const Json& result : log["runs"][0]["results"].items()) {
    rules.insert(result["ruleId"].text());
    // SARIF doubles the braces of a message.
    const std::string& text = result["message"]["text"].text();
    if (!text.substr(0, text.find('\n')).ends_with(": fs:write:${{REPO}}/**")) continue;
    found = true;
    EXPECT_EQ(result["ruleId"], "DIFF_WIDENED");
    EXPECT_EQ(result["level"], "error");
    EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "new.json");
  }
  EXPECT_TRUE(found) << done;
  EXPECT_TRUE(rules.contains("DIFF_LIMIT"));
}

TEST_F(DiffCommand, WritesTheCommentOfAPullRequest) {
  const Ran wider = diff({"old.json", "new.json", "--markdown"});
  EXPECT_EQ(wider.code, Exit::widened);
  support::expect_golden("tests/cli/diff/wider.md", wider.out);
  support::expect_golden("tests/cli/diff/less.md",
                         diff({"new.json", "old.json", "--markdown"}).out);
  support::expect_golden("tests/cli/diff/same.md",
                         diff({"new.json", "new.json", "--markdown"}).out);
}

// ---- markup of a hostile manifest ---------------------------------------------------------------

// The comment without its code spans and its escaped characters, as CommonMark finds them.
std::string without_code(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  const auto run_at = [&](std::size_t begin) {
    return std::min(text.find_first_not_of('`', begin), text.size()) - begin;
  };
  while (at < text.size()) {
    const std::size_t run = run_at(at);
    if (text[at] == '\\') {
      at += 2;
      continue;
    }
    if (run == 0) {
      out += text[at++];
      continue;
    }
    std::size_t end = at + run;
    std::size_t length = 0;
    while (length != run) {
      end = text.find(std::string(run, '`'), end + length);
      if (end == std::string_view::npos) {
        ADD_FAILURE() << "a code span without an end: " << text.substr(at);
        return out;
      }
      length = run_at(end);
    }
    EXPECT_FALSE(has(text.substr(at, end - at), "\n"));
    at = end + run;
  }
  return out;
}

TEST_F(DiffCommand, NothingForeignBecomesMarkup) {
  const std::string hostile =
      "x` <img src=y> @octocat #12 | [a](http://evil.test) <!-- --> www.evil.test \u202egnp $z$";
  Json manifest =
      support::server({"assert:a:\"" + hostile + "\"", "fs:read:\"/a`` <b> @me #1 | _x_\""});
  manifest["name"] = hostile;
  manifest["tools"][0]["name"] = hostile;
  file("hostile.json", manifest);
  constexpr std::string_view mark = "<!-- capgate diff -->";
  for (const Words& pair : {Words{"/dev/null", "hostile.json"}, Words{"hostile.json", "/dev/null"},
                            Words{"hostile.json", "old.json"}}) {
    const std::string comment = diff(joined(pair, {"--markdown"})).out;
    EXPECT_NE(comment, "");
    const std::string prose = without_code(support::replaced(comment, mark, ""));
    for (const char* markup : {"<img", "<b>", "<!--", "\u202e", "](", "http://", "www.evil",
                               "@octocat", "@me", "#12", "#1 "}) {
      EXPECT_FALSE(has(prose, markup));
    }
  }
}

}  // namespace
}  // namespace capgate::cli
