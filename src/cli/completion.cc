// capgate completion: scripts for shells, from the table of commands.
#include "base/format.h"
#include "cli/commands.h"
#include "cli/exit.h"

namespace capgate::cli {
namespace {

constexpr std::string_view shells[] = {"bash", "zsh", "fish"};

std::string option_words(const Command& command) {
  std::string words;
  for (const Option& option : command.options) words += format("{} ", option.name);
  return words + "--help";
}

std::string command_words() {
  std::string words;
  for (const Command& command : commands()) words += format("{} ", command.name);
  return words + "help";
}

std::string joined(std::span<const std::string_view> choices) {
  std::string words;
  for (const std::string_view choice : choices) {
    words += format("{}{}", words.empty() ? "" : " ", choice);
  }
  return words;
}

std::string bash() {
  std::string out =
      "# bash completion for capgate: source it, or install it as\n"
      "# /usr/share/bash-completion/completions/capgate\n"
      "_capgate() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n";
  out += format("    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$cur\")); return\n  fi\n",
                command_words());
  out += "  case \"${COMP_WORDS[1]} $prev\" in\n";
  for (const Command& command : commands()) {
    for (const Option& option : command.options) {
      if (option.choices.empty()) continue;
      out += format("    \"{} {}\") COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n",
                    command.name, option.name, joined(option.choices));
    }
  }
  out += "  esac\n  case \"${COMP_WORDS[1]} $COMP_CWORD $cur\" in\n    *\" -\"*) ;;\n";
  for (const Command& command : commands()) {
    if (command.verbs.empty()) continue;
    out += format("    \"{} 2 \"*) COMPREPLY=($(compgen -W \"{}\" -- \"$cur\")); return ;;\n",
                  command.name, joined(command.verbs));
  }
  out += "  esac\n  case \"${COMP_WORDS[1]}\" in\n";
  for (const Command& command : commands()) {
    out += format("    {}) local words=\"{}\" ;;\n", command.name, option_words(command));
  }
  out +=
      "    *) local words=\"\" ;;\n  esac\n"
      "  case \"$cur\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
      "    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -F _capgate capgate\n";
  return out;
}

// A single quote inside a single-quoted shell word.
std::string shell_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

// _arguments gives brackets and colons a meaning of their own.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : shell_quoted(text)) {
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_option(const Option& option) {
  const std::string_view repeat = option.repeatable ? "*" : "";
  if (option.value.empty()) return format("'{}{}[{}]'", repeat, option.name, zsh_text(option.help));
  const std::string action =
      option.choices.empty() ? std::string("_files") : format("({})", joined(option.choices));
  return format("'{}{}=[{}]:{}:{}'", repeat, option.name, zsh_text(option.help),
                zsh_text(option.value), action);
}

std::string zsh() {
  std::string out =
      "#compdef capgate\n"
      "_capgate() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const Command& command : commands()) {
    out += format("    '{}:{}'\n", command.name, zsh_text(command.summary));
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  local command=$words[2]\n"
      "  (( CURRENT-- )); shift words\n"
      "  case $command in\n";
  for (const Command& command : commands()) {
    out += format("    {}) _arguments", command.name);
    for (const Option& option : command.options) out += format(" {}", zsh_option(option));
    if (!command.verbs.empty()) out += format(" '1:what:({})'", joined(command.verbs));
    out += " '--help[show help]' '*:file:_files' ;;\n";
  }
  out +=
      "  esac\n}\n"
      "if [ \"$funcstack[1]\" = _capgate ]; then _capgate \"$@\"; else compdef _capgate capgate; "
      "fi\n";
  return out;
}

std::string fish() {
  std::string out = "complete -c capgate -n __fish_use_subcommand -f\n";
  for (const Command& command : commands()) {
    out += format("complete -c capgate -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                  shell_quoted(command.summary));
    if (!command.verbs.empty()) {
      out += format(
          "complete -c capgate -n '__fish_seen_subcommand_from {0}; and not "
          "__fish_seen_subcommand_from {1}' -f -a '{1}'\n",
          command.name, joined(command.verbs));
    }
    for (const Option& option : command.options) {
      out += format("complete -c capgate -n '__fish_seen_subcommand_from {}' -l {} -d '{}'",
                    command.name, option.name.substr(2), shell_quoted(option.help));
      if (!option.choices.empty()) out += format(" -x -a '{}'", joined(option.choices));
      if (option.choices.empty() && !option.value.empty()) out += " -r";
      out += '\n';
    }
  }
  return out;
}

int run(const Arguments& arguments, Output& output) {
  const std::string& shell = arguments.operands.front();
  if (shell == "bash") {
    output.out += bash();
  } else if (shell == "zsh") {
    output.out += zsh();
  } else {
    output.out += fish();
  }
  return Exit::ok;
}

}  // namespace

Command completion_command() {
  return {.name = "completion",
          .operands = "bash|zsh|fish",
          .summary = "Print the completion script of a shell.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples =
              "  source <(capgate completion bash)\n"
              "  capgate completion fish > ~/.config/fish/completions/capgate.fish",
          .run = run,
          .verbs = shells};
}

}  // namespace capgate::cli
