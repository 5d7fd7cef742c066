// capgate import: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("import is not built yet", "see capgate --help", output);
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .operands = "FILE",
          .summary = "Make a manifest of a bundle, a registry entry or another sandbox's settings.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples = {},
          .run = run};
}

}  // namespace capgate::cli
