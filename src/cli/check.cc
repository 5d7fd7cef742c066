// capgate check: is the manifest right, and is there something in it to look at twice?
#include <algorithm>
#include <initializer_list>

#include "base/format.h"
#include "base/ranges.h"
#include "cli/check_lints.h"
#include "cli/check_live.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/load.h"
#include "cli/pins.h"
#include "cli/profile.h"

namespace capgate::cli {
namespace {

constexpr std::string_view severities[] = {"note", "warning", "error"};

constexpr Option options[] = {
    tool_option,
    set_option,
    seal_option,
    validators_option,
    {.name = "--severity",
     .value = "LEVEL",
     .help = "note, warning or error: the least that is shown and counts (default warning)",
     .choices = severities},
    {.name = "--ignore",
     .value = "FILE",
     .help = "findings to ignore; without it .capgate-ignore.yaml of the working directory"},
    {.name = "--no-ignore", .help = "no ignore file, not even that one"},
    live_option,
    locked_option,
    config_option,
    live_allow_option,
    timeout_option,
    json_option,
    {.name = "--sarif", .help = "for code scanning: SARIF 2.1.0 on stdout"}};

// An option that would be ignored is a mistake; the name of the first, or empty.
std::string_view first_given(const Arguments& arguments,
                             std::initializer_list<std::string_view> names) {
  const auto* found =
      std::ranges::find_if(names, [&](std::string_view name) { return arguments.has(name); });
  return found == names.end() ? "" : *found;
}

std::expected<void, int> check_mode(const Arguments& arguments, Output& output) {
  const auto refuse = [&](std::string_view name, std::string_view why, std::string_view help) {
    return std::unexpected(usage_error(format("{} {}", name, why), help, output));
  };
  if (arguments.has("--live")) {
    const auto odd = first_given(arguments, {"--sarif", "--severity", "--ignore", "--no-ignore",
                                             "--tool", "--seal", "--validators"});
    if (odd.empty()) return {};
    return refuse(odd, "is for the findings of a file, which --live does not look for",
                  "leave one of the two out");
  }
  const auto odd = first_given(arguments, {"--config", "--allow", "--timeout"});
  if (!odd.empty()) {
    return refuse(odd, "is for a server that is started, which is --live",
                  "write capgate check --live NAME|FILE -- COMMAND, or leave it out");
  }
  if (!arguments.has(locked_option.name)) return {};
  const auto other = first_given(arguments, {"--tool", "--seal"});
  if (!other.empty()) {
    return refuse(other, "makes another policy than the one that a lock has",
                  "leave it out, or --locked");
  }
  if (contains(arguments.operands, std::string("-"))) {
    return refuse("--locked", "needs the name of a file", "save the manifest in one");
  }
  return {};
}

void check_locks(CheckReport& report, const Arguments& arguments, Output& output) {
  if (!arguments.has(locked_option.name)) return;
  Arguments in_words = arguments;  // stdout is the report's
  std::erase_if(in_words.options, [](const auto& option) { return option.first == "--json"; });
  for (CheckedFile& file : report.files) {
    if (!file.loaded) continue;
    file.lock_code = check_lock(file.name, in_words, output);
    if (file.lock_code == Exit::unreadable) return;  // the lock itself
  }
}

int run(const Arguments& arguments, Output& output) {
  if (auto checked = check_mode(arguments, output); !checked) return checked.error();
  if (arguments.has("--live")) return check_live(arguments, output);
  if (arguments.has("--json") && arguments.has("--sarif")) {
    return usage_error("--json and --sarif exclude each other", "choose one of them", output);
  }
  if (arguments.has("--ignore") && arguments.has("--no-ignore")) {
    return usage_error("--ignore and --no-ignore exclude each other", "choose one of them", output);
  }
  auto report = check_files(arguments, output);
  if (!report) return report.error();
  check_locks(*report, arguments, output);
  if (arguments.has("--json")) {
    print_json(*report, output);
  } else if (arguments.has("--sarif")) {
    print_sarif(*report, output);
  } else {
    print_text(*report, output);
  }
  return exit_code(*report);
}

}  // namespace

Command check_command() {
  return {
      .name = "check",
      .operands = "FILE|-... | --live NAME|FILE [-- COMMAND...]",
      .summary = "Check manifests: every mistake, and what deserves a second look.",
      .least_operands = 1,
      .most_operands = 100'000,
      .options = options,
      .details =
          "`capgate explain RULE` says why a finding matters. docs/check.md\n"
          "--live starts the server without network, secrets or anything to write, and compares\n"
          "the tools that it lists with what you approved (or --locked) and with its manifest.\n"
          "--locked without it starts nothing: manifest and policy must be as in the lock.\n"
          "Exit: 0 ok, 2 usage, 3 unreadable or no list of tools, 4 mistakes, 5 findings, or "
          "other\n"
          "tools than the manifest's, 8 not what was approved.",
      .examples =
          "  capgate check github.json\n"
          "  capgate check git.yaml --set REPO=/srv/repo --json\n"
          "  capgate check servers/*.json --sarif > capgate.sarif\n"
          "  capgate check fetch.json --severity note       also what is merely noted\n"
          "  capgate check m.json --locked capgate.lock     nothing is started\n"
          "  capgate check --live github                    an entry of capgate.yaml\n"
          "  capgate check --live m.json --locked capgate.lock -- node server.js",
      .run = run};
}

}  // namespace capgate::cli
