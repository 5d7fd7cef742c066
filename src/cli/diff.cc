// capgate diff: to come.
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

int run(const Arguments&, Output& output) {
  return usage_error("diff is not built yet", "see capgate --help", output);
}

}  // namespace

Command diff_command() {
  return {
      .name = "diff",
      .operands = "FILE",
      .summary = "Say what a change of a manifest lets a server do that it could not do before.",
      .least_operands = 1,
      .most_operands = 1,
      .options = {},
      .details = {},
      .examples = {},
      .run = run};
}

}  // namespace capgate::cli
