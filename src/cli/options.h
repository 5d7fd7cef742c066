// One table describes every command: its words, its options, its help. Parsing, help, "did you
// mean" and shell completions all come from it, so they cannot disagree.
//
//   constexpr Option options[] = {{.name = "--target", .value = "NAME", .help = "..."}};
//   const auto arguments = parse_arguments(command, {"m.json", "--target=docker"});
//   arguments->value("--target")  -> "docker"
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capgate::cli {

struct Option {
  std::string_view name;   // with its dashes
  std::string_view value;  // what the value is called in the help; empty: a flag
  std::string_view help;
  bool repeatable = false;
  std::span<const std::string_view> choices = {};  // the only values, if not empty
  std::string_view alias = {};                     // a short form, with its dash
};

struct Arguments {
  std::vector<std::string> operands;
  std::vector<std::pair<std::string_view, std::string>> options;  // in the order given
  std::optional<std::size_t> dashes = {};  // how many operands stood before "--", if it was there

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] std::optional<std::string_view> value(std::string_view name) const;  // the last
  [[nodiscard]] std::vector<std::string> values(std::string_view name) const;
  [[nodiscard]] std::size_t words_before_dashes() const { return dashes.value_or(operands.size()); }
};

struct Output {
  std::string out;  // data, for standard output
  std::string err;  // words, for standard error
};

struct Command {
  std::string_view name;
  std::string_view operands;  // as in the usage line: "FILE|-"
  std::string_view summary;
  std::size_t least_operands = 0;
  std::size_t most_operands = 0;
  std::span<const Option> options;
  std::string_view details;   // what to know beyond the options
  std::string_view examples;  // one a line: command, two spaces, what it does
  int (*run)(const Arguments& arguments, Output& output);
  bool operands_end_options = false;  // the first operand is a command with words of its own
  int (*on_usage_error)(Output& output) = nullptr;  // its own way to end; null: exit code 2
  std::span<const std::string_view> verbs = {};     // the only first operands, if not empty
  bool may_hold_secrets = false;  // a value may stand where it must not: errors repeat no word
  // Of one that takes a command: how many words may stand before "--". What stands behind it is
  // the command and nothing else; least_operands must stand before.
  std::optional<std::size_t> most_before_dashes = {};
};

struct UsageError {
  std::string message;
  std::string help;
};

[[nodiscard]] std::expected<Arguments, UsageError> parse_arguments(
    const Command& command, std::span<const std::string> words);

[[nodiscard]] std::string command_help(const Command& command);

}  // namespace capgate::cli
