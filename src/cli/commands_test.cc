// The whole command line: words, exit codes, and which text goes where. tests/e2e/cli_test.py has
// the cases that need a process: broken outputs, terminals, locales, shells, bounded memory.
#include "cli/commands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "support/cli.h"

namespace capgate::cli {
namespace {

using support::column;
using support::has;
using support::joined;
using support::Json;
using support::Ran;
using support::server;
using support::Words;

class CommandLine : public support::CliTest {
 protected:
  CommandLine() {
    file("good.json", good());
    file("bad.json", bad());
  }
  [[nodiscard]] static Json good(bool is_reversed = false) {
    Words capabilities = {"fs:read:/srv/ä",   "fs:read:/srv/z",
                          "fs:read:/srv/h",   "fs:read:/srv/d",
                          "fs:read:/srv/ch",  "fs:read:/srv/c",
                          "fs:read:/srv/aa",  "fs:read:/srv/Z",
                          "env:inject:TOKEN", "net:connect:api.example:443"};
    if (is_reversed) std::ranges::reverse(capabilities);
    return server(capabilities);
  }
  [[nodiscard]] static Json bad() { return server({"fs:read:relative", "gpu:access:all"}); }

  // Exit code 2, nothing on stdout, and these texts on stderr.
  void expect_usage_error(const Words& words, const Words& texts) const {
    SCOPED_TRACE(join(words, " "));
    const Ran done = run(words);
    EXPECT_EQ(done.code, Exit::usage) << done;
    EXPECT_EQ(done.out, "");
    for (const std::string& text : texts) EXPECT_TRUE(has(done.err, text));
  }
  [[nodiscard]] std::string output(const Words& words) const {
    const Ran done = run(words);
    EXPECT_EQ(done.code, Exit::ok) << join(words, " ") << ": " << done;
    EXPECT_NE(done.out, "") << join(words, " ");
    return done.out;
  }
};

// ---- help ---------------------------------------------------------------------------------------

TEST_F(CommandLine, HelpListsEveryCommandWithASentence) {
  EXPECT_GT(commands().size(), 20U);
  const std::string help = output({"--help"});
  for (const Command& command : commands()) {
    const std::string line = "\n  " + std::string(command.name) + " ";
    const std::size_t at = help.find(line);
    ASSERT_NE(at, std::string::npos) << command.name;
    const std::string_view rest = std::string_view(help).substr(at + line.size());
    const std::string_view summary = trim(rest.substr(0, rest.find('\n')));
    EXPECT_TRUE(is_upper(summary.front()) && summary.ends_with('.')) << summary;
  }
  for (const char* word : {"-h", "help"}) {
    const Ran done = run({word});
    EXPECT_EQ(done.code, Exit::ok);
    EXPECT_EQ(done.out, help);
    EXPECT_EQ(done.err, "");
  }
}

TEST_F(CommandLine, EveryCommandHasHelpWithUsageAndExamples) {
  for (const Command& command : commands()) {
    const std::string name(command.name);
    SCOPED_TRACE(name);
    const std::string help = output({name, "--help"});
    EXPECT_TRUE(has(help, "usage: capgate " + name));
    EXPECT_TRUE(has(help, "--help"));
    const std::size_t examples = help.find("examples:");
    ASSERT_NE(examples, std::string::npos);
    EXPECT_TRUE(has(help.substr(examples), "capgate " + name));
    EXPECT_EQ(output({"help", name}), help);
  }
}

TEST_F(CommandLine, TheHelpOfImportListsItsFormats) {
  const std::string help = output({"import", "--help"});
  const Ran unknown = run({"import", "good.json", "--from", "tar"});
  EXPECT_EQ(unknown.code, Exit::usage) << unknown;
  const std::string table = support::read_text("docs/import.md");
  const std::string samples = std::string(support::source_directory()) + "/tests/import/samples";
  int formats = 0;
  for (const auto& entry : std::filesystem::directory_iterator(samples)) {
    ++formats;
    const std::string name = entry.path().filename().string();
    const std::size_t at = help.find("\n  " + name + "  ");
    ASSERT_NE(at, std::string::npos) << name;
    const std::string_view rest = std::string_view(help).substr(at + name.size() + 3);
    EXPECT_TRUE(is_lower(trim(rest).front())) << name;
    EXPECT_TRUE(has(unknown.err, name));
    EXPECT_TRUE(has(table, "| `" + name + "` |"));
  }
  EXPECT_EQ(formats, 10);
}

TEST_F(CommandLine, HelpWinsOverOtherWords) {
  EXPECT_TRUE(has(output({"compile", "missing.json", "--help"}), "usage: capgate compile"));
}

TEST_F(CommandLine, NoCommandShowsHelpAsAnError) {
  expect_usage_error({}, {"usage: capgate COMMAND"});
}

TEST_F(CommandLine, TheVersionIsOneLine) {
  const std::string line = output({"--version"});
  EXPECT_TRUE(line.starts_with("capgate ") && is_digit(line.at(8))) << line;
  EXPECT_TRUE(line.ends_with(" (grammar 0.1)\n")) << line;
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  EXPECT_EQ(std::ranges::count(line.substr(8, line.find(' ', 8) - 8), '.'), 2) << line;
  EXPECT_EQ(output({"version"}), line);
}

// ---- wrong words --------------------------------------------------------------------------------

TEST_F(CommandLine, ACommandStandsAfterTwoDashes) {
  for (const Words& words :
       {Words{"why", "good.json", "n.json", "--path", "/x"},
        Words{"why", "good.json", "n.json", "--path", "/x", "--", "/usr/bin/true"},
        Words{"compile", "good.json", "n.json"},
        Words{"export", "good.json", "n.json", "--to", "vscode"}}) {
    expect_usage_error(words, {"unexpected word \"n.json\"", "a command stands after --"});
  }
  expect_usage_error({"why", "--path", "/x", "--", "good.json"}, {"needs FILE"});
  expect_usage_error({"compile", "--", "good.json"}, {"needs FILE"});
  expect_usage_error({"catalog", "bind", "git", "x", "--", "y"}, {"one NAME or PACKAGE before --"});
}

TEST_F(CommandLine, AnUnknownWordIsRefusedWithTheNearestKnownOne) {
  for (const auto& [words, meant] :
       {std::pair<Words, std::string>({"complie", "good.json"}, "compile"),
        std::pair<Words, std::string>({"compile", "good.json", "--taget", "docker"}, "--target"),
        std::pair<Words, std::string>({"compile", "good.json", "--target", "dokcer"}, "docker"),
        std::pair<Words, std::string>({"compile", "good.json", "--target=dokcer"}, "docker"),
        std::pair<Words, std::string>({"help", "chek"}, "check"),
        std::pair<Words, std::string>({"explain", "CAP_FS_RELATIV"}, "CAP_FS_RELATIVE")}) {
    expect_usage_error(words, {"did you mean " + meant + "?"});
  }
}

TEST_F(CommandLine, WordsThatMatchNothingAreRefused) {
  for (const Words& words :
       {Words{"frobnicate"}, Words{"compile", "good.json", "--frobnicate"},
        Words{"compile", "--foo", "good.json"}, Words{"compile", "good.json", "-x"},
        Words{"compile", "good.json", "--target", "xyzzy"}, Words{"completion", "tcsh"}}) {
    expect_usage_error(words, {"capgate: "});
  }
}

TEST_F(CommandLine, ExtraMissingRepeatedAndExclusiveWordsAreRefused) {
  expect_usage_error({"compile"}, {"compile needs FILE"});
  expect_usage_error({"compile", "good.json", "extra"}, {"\"extra\""});
  expect_usage_error({"version", "extra"}, {"\"extra\""});
  expect_usage_error({"compile", "good.json", "--target"}, {"--target needs a value"});
  expect_usage_error({"compile", "good.json", "--pretty=yes"}, {"--pretty takes no value"});
  expect_usage_error({"compile", "good.json", "--target", "bwrap", "--target", "docker"},
                     {"--target is given twice"});
  expect_usage_error({"explain", "--textconv", "--json", "good.json"},
                     {"--textconv and --json exclude each other"});
}

TEST_F(CommandLine, WrongValuesAreRefusedWithTheirOption) {
  for (const auto& [option, value] :
       {std::pair("--set", "lower=x"), std::pair("--set", "NOEQUALS"),
        std::pair("--set", "UNUSED=/x"), std::pair("--set", "HOME=relative"),
        std::pair("--program", "node"), std::pair("--program", "/"), std::pair("--user", "root"),
        std::pair("--user", "1000"), std::pair("--user", "1:2:3"), std::pair("--user", "-1:0"),
        std::pair("--arch", "mips"), std::pair("--accept-unenforced", "nonsense")}) {
    expect_usage_error({"compile", "good.json", option, value}, {option});
  }
}

TEST_F(CommandLine, BothSpellingsOfAValueMeanTheSame) {
  const std::string artifact = output({"compile", "good.json", "--target=docker"});
  EXPECT_EQ(output({"compile", "--target", "docker", "good.json"}), artifact);
  EXPECT_TRUE(has(artifact, "--cap-drop"));
}

TEST_F(CommandLine, AFileMayBeNamedLikeAnOption) {
  file("--pretty", good());
  EXPECT_TRUE(has(output({"check", "--", "--pretty"}), "--pretty: ok"));
}

// ---- exit codes ---------------------------------------------------------------------------------

TEST_F(CommandLine, AnUnreadableFileIsNamed) {
  for (const std::string& place : {path("missing.json"), directory().path()}) {
    const Ran done = run({"compile", place});
    EXPECT_EQ(done.code, Exit::unreadable) << done;
    EXPECT_EQ(done.out, "");
    EXPECT_TRUE(has(done.err, place));
  }
}

TEST_F(CommandLine, TextThatIsNoDocumentIsUnreadable) {
  using namespace std::string_view_literals;
  for (const auto& [name, text] :
       {std::pair("empty"sv, ""sv), std::pair("words"sv, "{\"name\": "sv),
        std::pair("brace"sv, "{"sv), std::pair("comma"sv, "{\"name\":\"a\",}"sv),
        std::pair("two"sv, "{}{}"sv), std::pair("bom"sv, "\ufeff{}"sv),
        std::pair("tab.yaml"sv, "a:\n\t- b"sv), std::pair("latin"sv, "{\"name\":\"\xe9\"}"sv),
        std::pair("utf16"sv, "\xff\xfe{\0}\0"sv)}) {
    file(name, text);
    const Ran done = run({"check", std::string(name)});
    EXPECT_EQ(done.code, Exit::unreadable) << name << ": " << done;
  }
  file("zeros", std::string(100, '\0'));
  EXPECT_EQ(run({"check", "zeros"}).code, Exit::unreadable);
}

TEST_F(CommandLine, ARefusedManifestShowsEveryMistake) {
  for (const char* command : {"check", "compile", "explain"}) {
    const Ran done = run({command, "bad.json"});
    EXPECT_EQ(done.code, Exit::compile_error) << done;
    EXPECT_EQ(done.out, "");
    for (const char* text : {"CAP_FS_RELATIVE", "CAP_UNKNOWN_KIND", "bad.json:1:"}) {
      EXPECT_TRUE(has(done.err, text));
    }
  }
}

TEST_F(CommandLine, AWrongShapeIsADiagnostic) {
  for (const std::string value : {"\"\"", "0", "false", "{}"}) {
    const Ran done = run(
        {"check", "-"},
        {.input = R"({"name":"a","version":"1","tools":[],"serverCapabilities":)" + value + "}"});
    EXPECT_EQ(done.code, Exit::compile_error) << done;
    EXPECT_TRUE(has(done.err, "MANIFEST_SHAPE"));
  }
}

TEST_F(CommandLine, AnUnenforceableCapabilityIsADiagnostic) {
  file("exec.json", server({"exec:spawn:git"}));
  const Ran done = run({"compile", "exec.json", "--target", "docker"});
  EXPECT_EQ(done.code, Exit::compile_error) << done;
  EXPECT_TRUE(has(done.err, "ADAPTER_UNSUPPORTED"));
}

// ---- data and words -----------------------------------------------------------------------------

TEST_F(CommandLine, StandardInputIsRead) {
  const Ran done = run({"compile", "-"}, {.input = good().dump()});
  EXPECT_EQ(done.code, Exit::ok) << done;
  EXPECT_EQ(done.out, output({"compile", "good.json"}));
  const Ran refused = run({"check", "-"}, {.input = bad().dump()});
  EXPECT_EQ(refused.code, Exit::compile_error);
  EXPECT_TRUE(has(refused.err, "<stdin>:1:"));
}

TEST_F(CommandLine, YamlCompilesToTheSameArtifact) {
  std::string text = "name: server\nversion: 1.0.0\ntools:\n  - name: tool\n    capabilities:\n";
  for (const Json& each : good()["tools"][0]["capabilities"].items()) {
    text += "      - " + each.dump() + "\n";
  }
  file("good.yaml", text);
  EXPECT_EQ(output({"compile", "good.yaml"}), output({"compile", "good.json"}));
}

TEST_F(CommandLine, DiagnosticsAreAlsoJson) {
  const std::string text = bad().dump();
  for (const char* command : {"check", "compile", "explain"}) {
    const Ran done = run({command, "bad.json", "--json"});
    EXPECT_EQ(done.code, Exit::compile_error) << done;
    EXPECT_EQ(done.err, "");
    const Json diagnostics = done.json()["diagnostics"];
    EXPECT_EQ(column(diagnostics, "code"), (Words{"CAP_FS_RELATIVE", "CAP_UNKNOWN_KIND"}));
    const Json& first = diagnostics[0];
    const std::size_t offset = parse_decimal(first["offset"].text()).value();
    EXPECT_EQ(text.substr(offset, parse_decimal(first["length"].text()).value()), "relative");
    EXPECT_EQ(first["file"], "bad.json");
    EXPECT_EQ(first["line"], 1);
    EXPECT_EQ(first["column"].text(), std::to_string(offset + 1));
    EXPECT_NE(first["message"].text(), "");
    EXPECT_NE(first["help"].text(), "");
  }
}

TEST_F(CommandLine, SuccessIsAlsoJson) {
  for (const Words& words :
       {Words{"check", "good.json"}, Words{"explain", "good.json"}, Words{"version"},
        Words{"targets"}, Words{"explain", "CAP_FS_RELATIVE"},
        Words{"explain", "net:connect:*.example:443"}}) {
    const Ran done = run(joined(words, {"--json"}));
    EXPECT_EQ(done.code, Exit::ok) << done;
    EXPECT_GT(done.json().size(), 0U);
    EXPECT_EQ(done.err, "");
  }
}

TEST_F(CommandLine, ControlCharactersOfTheInputNeverReachTheTerminal) {
  Json manifest = server({"fs:read:/a\x1b[31m", "gpu:\u202e\x07:x"});
  manifest["tools"][0]["name"] = "\x1b]0;title\x07";
  const std::string name = "escape\x1b[2J.json";
  file(name, manifest);
  const Ran done = run({"check", name});
  EXPECT_EQ(done.code, Exit::compile_error);
  EXPECT_TRUE(has(done.err, "CAP_FS_PATH"));
  EXPECT_TRUE(std::ranges::none_of(done.err, [](char c) { return (is_control(c) && c != '\n'); }))
      << done;
  EXPECT_FALSE(has(done.err, "\u202e"));
}

TEST_F(CommandLine, TheOrderOfCapabilitiesDoesNotChangeThePolicy) {
  file("reverse.json", good(true));
  Json first = Json::parse(output({"compile", "good.json"}));
  Json second = Json::parse(output({"compile", "reverse.json"}));
  const Json one = first.take("provenance");
  const Json other = second.take("provenance");
  EXPECT_EQ(one["policyHash"], other["policyHash"]);
  EXPECT_NE(one["manifestHash"], other["manifestHash"]);
  EXPECT_EQ(first, second);
}

TEST_F(CommandLine, FilesAreSortedByTheirBytes) {
  const Json artifact = Json::parse(output({"compile", "good.json"}));
  Words granted;
  for (const Json& word : artifact["argv"].items()) {
    if (word.text().starts_with("/srv/")) granted.push_back(word.text());
  }
  EXPECT_EQ(granted.size(), 16U);  // where it is, and where it is seen
  EXPECT_TRUE(std::ranges::is_sorted(granted));
}

}  // namespace
}  // namespace capgate::cli
