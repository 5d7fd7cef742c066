// capgate version.
#include "core/version.h"

#include "base/format.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "core/manifest.h"
#include "lower/targets.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using text::JsonWriter;

constexpr Option options[] = {json_option};

int run_version(const Arguments& arguments, Output& output) {
  if (!arguments.has("--json")) {
    output.out += format("{} (grammar {})\n", core::compiler_id, core::current_grammar);
    return Exit::ok;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("version").string(core::version);
  json.key("grammars").begin_array();
  json.string(core::earlier_grammar).string(core::current_grammar).end_array();
  json.key("targets").begin_array();
  for (const lower::Target& target : lower::targets()) json.string(target.name);
  json.end_array().end_object();
  output.out += std::move(json).take() + "\n";
  return Exit::ok;
}

}  // namespace

Command version_command() {
  return {.name = "version",
          .operands = {},
          .summary = "Print the version.",
          .options = options,
          .details = {},
          .examples = "  capgate version --json",
          .run = run_version};
}

}  // namespace capgate::cli
