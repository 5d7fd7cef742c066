// capgate schema: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("schema is not built yet", "see capgate --help", output);
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .operands = "FILE",
          .summary = "Print the JSON Schema of a manifest or of capgate.yaml.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples = {},
          .run = run};
}

}  // namespace capgate::cli
