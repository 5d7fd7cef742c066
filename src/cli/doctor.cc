// capgate doctor: can a sandbox be enforced on this machine?
#include "sandbox/doctor.h"

#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "engines/engine.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {json_option};

int run(const Arguments& arguments, Output& output) {
  sandbox::Facts facts = sandbox::probe_host(audit_directory());
  facts.engines = engines::installed();
  output.out += arguments.has("--json") ? sandbox::doctor_json(facts) : sandbox::doctor_text(facts);
  return sandbox::is_enforceable(sandbox::findings(facts)) ? Exit::ok : Exit::unenforceable;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .operands = {},
          .summary = "Try what this machine can enforce, and say how to fix what it cannot.",
          .options = options,
          .details =
              "Everything is really tried, in processes that are thrown away. Nothing is changed:\n"
              "remedies are printed for you to read and run.\n"
              "Exit: 0 a sandbox can be enforced here, 2 usage, 6 it cannot.",
          .examples =
              "  capgate doctor\n"
              "  capgate doctor --json | jq '.findings[] | select(.status != \"ok\")'",
          .run = run};
}

}  // namespace capgate::cli
