// capgate why: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("why is not built yet", "see capgate --help", output);
}

}  // namespace

Command why_command() {
  return {.name = "why",
          .operands = "FILE",
          .summary = "Say whether a server may do something, and which line decides it.",
          .least_operands = 1,
          .most_operands = 1,
          .options = {},
          .details = {},
          .examples = {},
          .run = run};
}

}  // namespace capgate::cli
