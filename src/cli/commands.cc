#include "cli/commands.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

std::string program_help() {
  std::string out =
      "capgate: declare what an MCP server needs, review it as text, run it with nothing else.\n"
      "\n"
      "usage: capgate COMMAND [OPTIONS]\n"
      "\n"
      "commands:\n";
  for (const Command& command : commands()) {
    out += format("  {:<12}{}\n", command.name, command.summary);
  }
  out +=
      "\n"
      "examples:\n"
      "  capgate run -m github.json -- node server.js\n"
      "  capgate explain github.json            what the server may do, in words\n"
      "  capgate compile github.json --pretty   the policy for bubblewrap\n"
      "  capgate compile --help                 every option of a command\n";
  return out;
}

const Command* find_command(std::string_view name) {
  const auto all = commands();
  const auto command = std::ranges::find(all, name, &Command::name);
  return command == all.end() ? nullptr : &*command;
}

int unknown_command(std::string_view word, Output& output) {
  std::vector<std::string_view> names{"help"};
  for (const Command& command : commands()) names.push_back(command.name);
  const auto best = closest(word, names);
  return usage_error(format("there is no command {}", quoted(word)),
                     best ? format("did you mean {}?", *best) : "see capgate --help", output);
}

int show_help(std::span<const std::string> words, Output& output) {
  if (words.empty()) {
    output.out += program_help();
    return Exit::ok;
  }
  const Command* command = find_command(words.front());
  if (command == nullptr) return unknown_command(words.front(), output);
  if (words.size() > 1) {
    return usage_error(format("unexpected word {}", quoted(words[1])), "write capgate help COMMAND",
                       output);
  }
  output.out += command_help(*command);
  return Exit::ok;
}

bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

}  // namespace

std::span<const Command> commands() {
  static const std::array all = {
      run_command(),     wrap_command(),    unwrap_command(),    install_command(),
      catalog_command(), approve_command(), init_command(),      compile_command(),
      check_command(),   explain_command(), why_command(),       diff_command(),
      report_command(),  import_command(),  export_command(),    schema_command(),
      doctor_command(),  audit_command(),   secret_command(),    egress_command(),
      targets_command(), version_command(), completion_command()};
  return all;
}

int run_cli(std::span<const std::string> words, Output& output) {
  if (words.empty()) {
    output.err += program_help();
    return Exit::usage;
  }
  const std::string& name = words.front();
  const std::span<const std::string> rest = words.subspan(1);
  if (name == "help" || name == "--help" || name == "-h") return show_help(rest, output);
  const Command* command = find_command(name == "--version" ? "version" : name);
  if (command == nullptr) return unknown_command(name, output);
  if (asks_for_help(rest)) {
    output.out += command_help(*command);
    return Exit::ok;
  }
  const auto arguments = parse_arguments(*command, rest);
  if (!arguments) {
    const int code = usage_error(arguments.error().message, arguments.error().help, output);
    return command->on_usage_error == nullptr ? code : command->on_usage_error(output);
  }
  return command->run(*arguments, output);
}

}  // namespace capgate::cli
