// capgate report: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("report is not built yet", "see capgate --help", output);
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .operands = "FILE",
          .summary = "Write a page that shows what a server may do.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples = {},
          .run = run};
}

}  // namespace capgate::cli
