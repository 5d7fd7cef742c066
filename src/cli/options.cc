#include "cli/options.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"

namespace capgate::cli {
namespace {

std::unexpected<UsageError> fail(std::string message, std::string help) {
  return std::unexpected(UsageError{.message = std::move(message), .help = std::move(help)});
}

std::string shown(const Command& command, std::string_view word) {
  return command.may_hold_secrets ? "of this name" : quoted(word);
}

std::unexpected<UsageError> unknown_option(const Command& command, std::string_view word) {
  std::vector<std::string_view> names{"--help"};
  for (const Option& option : command.options) names.push_back(option.name);
  const auto best = closest(word, names);
  return fail(
      format("{} has no option {}", command.name, shown(command, word)),
      best ? format("did you mean {}?", *best) : format("see capgate {} --help", command.name));
}

std::expected<void, UsageError> check_choice(const Option& option, std::string_view value) {
  if (option.choices.empty() || contains(option.choices, value)) return {};
  const auto best = closest(value, option.choices);
  std::string known;
  for (const std::string_view choice : option.choices) {
    known += format("{}{}", known.empty() ? "" : ", ", choice);
  }
  return fail(format("{} cannot be {}", option.name, quoted(value)),
              best ? format("did you mean {}?", *best) : format("known are: {}", known));
}

std::string usage_line(const Command& command) {
  const std::string_view space = command.operands.empty() ? "" : " ";
  return command.operands_end_options
             ? format("capgate {} [OPTIONS]{}{}", command.name, space, command.operands)
             : format("capgate {}{}{} [OPTIONS]", command.name, space, command.operands);
}

class Reader {
 public:
  Reader(const Command& command, std::span<const std::string> words)
      : command_(command), words_(words) {}

  std::expected<Arguments, UsageError> read() {
    bool options_end = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (!options_end && word == "--") {
        options_end = true;
        arguments_.dashes = arguments_.operands.size();
      } else if (!options_end && word.size() > 1 && word.starts_with('-')) {
        if (auto done = read_option(word); !done) return std::unexpected(std::move(done).error());
      } else {
        arguments_.operands.push_back(word);
        options_end |= command_.operands_end_options;
      }
    }
    if (auto done = check_operands(); !done) return std::unexpected(std::move(done).error());
    return std::move(arguments_);
  }

 private:
  std::expected<void, UsageError> read_option(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const auto option = std::ranges::find_if(command_.options, [&](const Option& known) {
      return known.name == name || (!known.alias.empty() && known.alias == name);
    });
    if (option == command_.options.end()) return unknown_option(command_, name);
    if (!option->repeatable && arguments_.has(option->name)) {
      return fail(format("{} is given twice", name), "keep one of them");
    }
    std::string value;
    if (option->value.empty()) {
      if (equals != std::string_view::npos) {
        return fail(format("{} takes no value", name), format("write {} alone", name));
      }
    } else if (equals != std::string_view::npos) {
      value = word.substr(equals + 1);
    } else if (at_ < words_.size()) {
      value = words_[at_++];
    } else {
      return fail(format("{} needs a value", name), format("write {} {}", name, option->value));
    }
    if (auto valid = check_choice(*option, value); !option->value.empty() && !valid) return valid;
    arguments_.options.emplace_back(option->name, std::move(value));
    return {};
  }

  std::expected<void, UsageError> check_operands() {
    const bool takes_command = command_.most_before_dashes.has_value();
    const std::size_t count =
        takes_command ? arguments_.words_before_dashes() : arguments_.operands.size();
    const std::size_t most = command_.most_before_dashes.value_or(command_.most_operands);
    if (count < command_.least_operands) {
      return fail(format("{} needs {}", command_.name, command_.operands),
                  format("usage: {}", usage_line(command_)));
    }
    if (count > most) {
      return fail(format("unexpected word {}", quoted(arguments_.operands[most])),
                  format("{}usage: {}", takes_command ? "a command stands after --; " : "",
                         usage_line(command_)));
    }
    return check_verb();
  }

  std::expected<void, UsageError> check_verb() {
    if (command_.verbs.empty() || arguments_.operands.empty()) return {};
    const std::string& word = arguments_.operands.front();
    if (contains(command_.verbs, std::string_view(word))) return {};
    const auto best = closest(word, command_.verbs);
    return fail(
        format("{} has no {}", command_.name,
               command_.may_hold_secrets ? "such word" : quoted(word)),
        best ? format("did you mean {}?", *best) : format("usage: {}", usage_line(command_)));
  }

  const Command& command_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  Arguments arguments_;
};

}  // namespace

bool Arguments::has(std::string_view name) const { return value(name).has_value(); }

std::optional<std::string_view> Arguments::value(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [option, text] : options) {
    if (option == name) found = text;
  }
  return found;
}

std::vector<std::string> Arguments::values(std::string_view name) const {
  std::vector<std::string> found;
  for (const auto& [option, text] : options) {
    if (option == name) found.push_back(text);
  }
  return found;
}

std::expected<Arguments, UsageError> parse_arguments(const Command& command,
                                                     std::span<const std::string> words) {
  return Reader(command, words).read();
}

std::string command_help(const Command& command) {
  std::string out = format("{}\n\nusage: {}\n", command.summary, usage_line(command));
  if (!command.details.empty()) out += format("\n{}\n", command.details);
  out += "\noptions:\n";
  for (const Option& option : command.options) {
    const std::string left = format("{}{}{}{}{}", option.alias, option.alias.empty() ? "" : ", ",
                                    option.name, option.value.empty() ? "" : " ", option.value);
    out += format("  {:<28}{}{}\n", left, option.help, option.repeatable ? " (repeatable)" : "");
  }
  out += format("  {:<28}show this help\n", "--help");
  if (!command.examples.empty()) out += format("\nexamples:\n{}\n", command.examples);
  return out;
}

}  // namespace capgate::cli
