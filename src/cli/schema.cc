// capgate schema: JSON Schemas for editors.
#include "review/schema.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

constexpr std::string_view drafts[] = {"2020-12", "07"};
constexpr std::string_view subjects[] = {"manifest", "config"};
constexpr Option options[] = {{.name = "--draft",
                               .value = "DRAFT",
                               .help = "the draft of JSON Schema, 2020-12 if not given",
                               .choices = drafts}};

int run(const Arguments& arguments, Output& output) {
  const bool is_config = !arguments.operands.empty() && arguments.operands.front() == "config";
  const bool is_old = arguments.value("--draft").value_or(drafts[0]) == "07";
  output.out +=
      review::print_schema(is_config ? review::Subject::config : review::Subject::manifest,
                           is_old ? review::Draft::draft_07 : review::Draft::draft_2020_12);
  return Exit::ok;
}

}  // namespace

Command schema_command() {
  return {
      .name = "schema",
      .operands = "[manifest|config]",
      .summary = "Print the JSON Schema of a manifest or of capgate.yaml.",
      .most_operands = 1,
      .options = options,
      .details =
          "Editors complete and flag capability strings with it; docs/editors.md says how. The\n"
          "schema never flags what capgate accepts; capgate check says more than a schema can.",
      .examples =
          "  capgate schema > manifest.schema.json\n"
          "  capgate schema config > capgate-yaml.schema.json\n"
          "  capgate schema --draft 07    for tools that know draft-07 only",
      .run = run,
      .verbs = subjects};
}

}  // namespace capgate::cli
