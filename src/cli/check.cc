// capgate check: is the manifest right, and is there something in it to look at twice?
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

int run(const Arguments& arguments, Output& output) {
  if (arguments.has("--live")) return check_live(arguments, output);
  if (arguments.has("--json") && arguments.has("--sarif")) {
    return usage_error("--json and --sarif exclude each other", "choose one of them", output);
  }
  if (arguments.has("--ignore") && arguments.has("--no-ignore")) {
    return usage_error("--ignore and --no-ignore exclude each other", "choose one of them", output);
  }
  const auto report = check_files(arguments, output);
  if (!report) return report.error();
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
          "Exit: 0 ok, 2 usage, 3 unreadable or no list of tools, 4 mistakes, 5 findings, or "
          "other\n"
          "tools than the manifest's, 8 other ones than approved.",
      .examples =
          "  capgate check github.json\n"
          "  capgate check git.yaml --set REPO=/srv/repo --json\n"
          "  capgate check servers/*.json --sarif > capgate.sarif\n"
          "  capgate check fetch.json --severity note       also what is merely noted\n"
          "  capgate check --live github                    an entry of capgate.yaml\n"
          "  capgate check --live m.json --locked capgate.lock -- node server.js",
      .run = run};
}

}  // namespace capgate::cli
