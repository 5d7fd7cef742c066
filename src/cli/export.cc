// capgate export: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("export is not built yet", "see capgate --help", output);
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .operands = "FILE",
          .summary = "Write a manifest's policy in another tool's format.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples = {},
          .run = run};
}

}  // namespace capgate::cli
