// capgate diff --if-policy: no output where no side is a policy, and no silence where a policy has
// mistakes.
#include <gtest/gtest.h>

#include "support/diff_cli.h"

namespace capgate::cli {
namespace {

using support::joined;
using support::Json;
using support::Ran;
using support::Words;

class DiffIfPolicy : public support::DiffTest {
 protected:
  [[nodiscard]] Ran diff_if_policy(const Words& words) const {
    return diff(joined({"--if-policy"}, words));
  }
  void expect_silence(const Words& words) const {
    const Ran done = diff_if_policy(words);
    EXPECT_EQ(done.code, Exit::ok) << words[0] << " " << words[1] << ": " << done;
    EXPECT_EQ(done.out + done.err, "");
  }
};

TEST_F(DiffIfPolicy, OtherFilesAreIgnored) {
  using namespace std::string_view_literals;
  for (const auto& [name, text] :
       {std::pair("a.json"sv, "{"sv), std::pair("a.yaml"sv, "a: [\n"sv),
        std::pair("a.txt"sv, "words: and more\n"sv), std::pair("a"sv, "\0\1"sv),
        std::pair("package.json"sv, R"({"name": "x", "tools": [{"name": "y"}]})"sv),
        std::pair("list.json"sv, "[1]"sv),
        std::pair("built.json"sv, R"({"provenance": {"builder": "x"}})"sv),
        std::pair("mcp.json"sv, R"({"servers": {"a": {"command": "npx", "args": ["x"]}}})"sv),
        std::pair("openapi.yaml"sv, "servers:\n- url: https://api.test\n"sv),
        std::pair("empty"sv, ""sv)}) {
    file(name, text);
    const std::string word(name);
    expect_silence({word, word});
    expect_silence({"/dev/null", word});
    expect_silence({word, "/dev/null"});
  }
  EXPECT_EQ(diff_if_policy({"none.json", "a.json"}).code, Exit::unreadable);
}

TEST_F(DiffIfPolicy, APolicyCountsOnEitherSide) {
  file("other.json", "{");
  EXPECT_EQ(diff_if_policy({"notes.json", "other.json"}).code, Exit::unreadable);
  EXPECT_EQ(diff_if_policy({"other.json", "notes.json"}).code, Exit::unreadable);
  EXPECT_EQ(diff_if_policy({"/dev/null", "notes.json"}).code, Exit::widened);
}

TEST_F(DiffIfPolicy, AMistakeDoesNotMakeItAnotherFile) {
  struct Row {
    std::string name, text;
    int code;
  };
  for (const Row& row :
       {Row{"a", R"({"tools": [1, {"capabilities": 7}]})", Exit::compile_error},
        Row{"b", "serverCapabilities: [fs:raed:/x]", Exit::compile_error},
        // Its name says JSON; under another name it would be a manifest.
        Row{"c.json", "serverCapabilities: [fs:read:/x]", Exit::unreadable},
        Row{"d", R"({"servers": [{"server": "a", "policy": ["fs:raed:/x"]}, 7]})",
            Exit::compile_error},
        Row{"e", "servers: {a: {command: [x], odd: 1}}", Exit::compile_error},
        Row{"f", "servers: {a: {manifest: none.json}}", Exit::unreadable},
        Row{"g/capgate.yaml", "[", Exit::unreadable}, Row{"g/capgate.lock", "[", Exit::unreadable},
        Row{"x.capgate.json", "[", Exit::unreadable},
        Row{"h", R"({"serverCapabilities": ["net:connect:a.test:${PORT}"]})",
            Exit::compile_error}}) {
    file(row.name, row.text);
    const Ran done = diff_if_policy({"/dev/null", row.name});
    EXPECT_EQ(done.code, row.code) << row.name << ": " << done;
    EXPECT_NE(done.err, "") << row.name;
  }
}

TEST_F(DiffIfPolicy, ARemovedArtifactGrantsNothing) {
  Json artifact = compile();
  file("a.json", artifact);
  expect_silence({"a.json", "/dev/null"});
  EXPECT_EQ(diff_if_policy({"/dev/null", "a.json"}).code, Exit::unreadable);
  artifact["argv"].insert(0, {"--bind", "/home", "/home"});
  file("b.json", artifact);
  EXPECT_EQ(diff_if_policy({"a.json", "b.json"}).code, Exit::widened);
}

TEST_F(DiffIfPolicy, AnUnusedBindingIsNoMistake) {
  file("port.json", support::server({"net:connect:a.test:${PORT}"}));
  const Words words = {"port.json", "port.json", "--set", "PORT=443", "--set", "UNUSED=1"};
  EXPECT_EQ(diff(words).code, Exit::usage);
  EXPECT_EQ(diff_if_policy(words).code, Exit::ok);
}

}  // namespace
}  // namespace capgate::cli
