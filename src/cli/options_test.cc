#include "cli/options.h"

#include <gtest/gtest.h>

#include "cli/commands.h"

namespace capgate::cli {
namespace {

constexpr std::string_view colours[] = {"red", "green"};
constexpr Option options[] = {
    {.name = "--colour", .value = "NAME", .help = "a colour", .choices = colours},
    {.name = "--set", .value = "K=V", .help = "bind", .repeatable = true},
    {.name = "--json", .help = "json"},
};

Command paint() {
  return {.name = "paint",
          .operands = "FILE",
          .summary = "Paint.",
          .least_operands = 1,
          .most_operands = 1,
          .options = options,
          .details = {},
          .examples = {},
          .run = nullptr};
}

std::expected<Arguments, UsageError> parse(const std::vector<std::string>& words) {
  return parse_arguments(paint(), words);
}

TEST(Options, BothSpellingsOfAValueAreTheSame) {
  EXPECT_EQ(parse({"f", "--colour", "red"})->value("--colour"), "red");
  EXPECT_EQ(parse({"f", "--colour=red"})->value("--colour"), "red");
}

TEST(Options, RepeatableOptionsKeepTheirOrder) {
  EXPECT_EQ(parse({"--set", "A=1", "f", "--set=A=2"})->values("--set"),
            (std::vector<std::string>{"A=1", "A=2"}));
}

TEST(Options, EverythingAfterTwoDashesIsAnOperand) {
  EXPECT_EQ(parse({"--", "--json"})->operands, std::vector<std::string>{"--json"});
  EXPECT_EQ(parse({"-"})->operands, std::vector<std::string>{"-"});
}

TEST(Options, ACommandStandsAfterTwoDashes) {
  Command run = paint();
  run.operands = "FILE [-- COMMAND]";
  run.most_operands = SIZE_MAX;
  run.most_before_dashes = 1;
  const auto read = [&](const std::vector<std::string>& words) {
    return parse_arguments(run, words);
  };
  EXPECT_EQ(read({"f", "--json", "--", "a", "--", "b"})->operands,
            (std::vector<std::string>{"f", "a", "--", "b"}));
  EXPECT_EQ(read({"f", "--", "a"})->dashes, 1);
  EXPECT_EQ(read({"f"})->dashes, std::nullopt);
  EXPECT_EQ(read({"f"})->words_before_dashes(), 1);
  EXPECT_EQ(read({"f", "g"}).error().message, "unexpected word \"g\"");
  EXPECT_TRUE(read({"f", "g"}).error().help.contains("after --"));
  EXPECT_EQ(read({"f", "g", "--", "a"}).error().message, "unexpected word \"g\"");
  EXPECT_EQ(read({"--", "a"}).error().message, "paint needs FILE [-- COMMAND]");
}

TEST(Options, D26UnknownAndExtraWordsAreUsageErrors) {
  EXPECT_EQ(parse({"f", "--jsn"}).error().help, "did you mean --json?");
  EXPECT_EQ(parse({"f", "g"}).error().message, "unexpected word \"g\"");
  EXPECT_EQ(parse({}).error().message, "paint needs FILE");
  EXPECT_EQ(parse({"f", "--colour"}).error().message, "--colour needs a value");
  EXPECT_EQ(parse({"f", "--json=1"}).error().message, "--json takes no value");
  EXPECT_EQ(parse({"f", "--json", "--json"}).error().message, "--json is given twice");
  EXPECT_EQ(parse({"f", "--colour=gren"}).error().help, "did you mean green?");
  EXPECT_EQ(parse({"f", "--colour=x"}).error().help, "known are: red, green");
  EXPECT_FALSE(parse({"f", "-x"}));
}

TEST(Options, EveryCommandHasHelpWithAnExample) {
  for (const Command& command : commands()) {
    const std::string help = command_help(command);
    EXPECT_NE(help.find("usage: capgate "), std::string::npos) << command.name;
    EXPECT_NE(help.find("examples:"), std::string::npos) << command.name;
    for (const Option& option : command.options) {
      EXPECT_NE(help.find(option.name), std::string::npos) << option.name;
      EXPECT_FALSE(option.help.empty()) << option.name;
    }
  }
}

int run(const std::vector<std::string>& words, Output& output) { return run_cli(words, output); }

TEST(Cli, WithoutACommandItIsAUsageErrorThatShowsTheCommands) {
  Output output;
  EXPECT_EQ(run({}, output), 2);
  EXPECT_NE(output.err.find("commands:"), std::string::npos);
  EXPECT_EQ(output.out, "");
}

TEST(Cli, SuggestsTheCommandThatWasMeant) {
  Output output;
  EXPECT_EQ(run({"complie"}, output), 2);
  EXPECT_NE(output.err.find("did you mean compile?"), std::string::npos);
}

TEST(Cli, ExplainsEveryCodeCapabilityAndRefusesUnknownOnes) {
  Output output;
  EXPECT_EQ(run({"explain", "CAP_FS_RELATIVE"}, output), 0);
  EXPECT_EQ(run({"explain", "net:connect:*.github.com:443"}, output), 0);
  EXPECT_EQ(run({"explain", "CAP_FS_RELATIV"}, output), 2);
  EXPECT_NE(output.err.find("did you mean CAP_FS_RELATIVE?"), std::string::npos);
  EXPECT_EQ(run({"explain", "fs:read:x"}, output), 4);
}

}  // namespace
}  // namespace capgate::cli
