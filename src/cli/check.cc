// capgate check: is the manifest right, and is there something in it to look at twice?
#include "cli/check_lints.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

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
    json_option,
    {.name = "--sarif", .help = "for code scanning: SARIF 2.1.0 on stdout"}};

int run(const Arguments& arguments, Output& output) {
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
  return {.name = "check",
          .operands = "FILE|-...",
          .summary = "Check manifests: every mistake, and what deserves a second look.",
          .least_operands = 1,
          .most_operands = 100'000,
          .options = options,
          .details =
              "Exit: 0 ok, 2 usage, 3 unreadable, 4 mistakes, 5 findings.\n"
              "`capgate explain RULE` says why a finding matters. docs/check.md",
          .examples =
              "  capgate check github.json\n"
              "  capgate check git.yaml --set REPO=/srv/repo --json\n"
              "  capgate check servers/*.json --sarif > capgate.sarif\n"
              "  capgate check fetch.json --severity note      also what is merely noted",
          .run = run};
}

}  // namespace capgate::cli
