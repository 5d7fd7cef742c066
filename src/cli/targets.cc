// capgate targets: what each target of compile keeps, kind by kind.
#include "lower/targets.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using lower::Target;
using text::JsonWriter;

constexpr Option options[] = {json_option};

std::string_view extent_name(const Target& target) {
  return target.extent == Target::Extent::whole ? "whole" : "partial";
}

void write_json(JsonWriter& json, const Target& target) {
  json.begin_object().key("name").string(target.name).key("summary").string(target.summary);
  json.key("extent").string(extent_name(target)).key("covers").begin_object();
  const auto covers = columns_of(*target.coverage);
  for (std::size_t i = 0; i < covers.size(); ++i) {
    json.key(lower::coverage_columns[i]).begin_object();
    json.key("level").string(level_name(covers[i].level)).key("how").string(covers[i].how);
    json.end_object();
  }
  json.end_object().end_object();
}

std::string matrix() {
  std::string out = format("{:<12}", "target");
  for (const std::string_view column : lower::coverage_columns) out += format("  {:<8}", column);
  out = std::string(trim(out)) + "\n";
  for (const Target& target : lower::targets()) {
    std::string line = format("{:<12}", target.name);
    const auto covers = columns_of(*target.coverage);
    for (std::size_t i = 0; i < covers.size(); ++i) {
      const std::size_t width = std::max<std::size_t>(8, lower::coverage_columns[i].size());
      line += format("  {:<{}}", level_name(covers[i].level), width);
    }
    out += std::string(trim(line)) + "\n";
  }
  return out;
}

std::string details(const Target& target) {
  std::string out = format("{}: {} ({})\n", target.name, target.summary, extent_name(target));
  const auto covers = columns_of(*target.coverage);
  for (std::size_t i = 0; i < covers.size(); ++i) {
    std::string line = format("  {:<12}{:<10}{}", lower::coverage_columns[i],
                              level_name(covers[i].level), covers[i].how);
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

int run(const Arguments& arguments, Output& output) {
  const Target* chosen = nullptr;
  if (!arguments.operands.empty()) {
    chosen = lower::find_target(arguments.operands.front());
    if (chosen == nullptr) {
      return usage_error(format("there is no target {}", quoted(arguments.operands.front())),
                         "capgate targets lists them", output);
    }
  }
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_array();
    for (const Target& target : lower::targets()) {
      if (chosen == nullptr || chosen == &target) write_json(json, target);
    }
    json.end_array();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  output.out += chosen == nullptr ? matrix() : details(*chosen);
  return Exit::ok;
}

}  // namespace

Command targets_command() {
  return {
      .name = "targets",
      .operands = "[TARGET]",
      .summary = "List the targets of compile with what each of them keeps.",
      .most_operands = 1,
      .options = options,
      .details =
          "A whole target refuses what it does not keep; a partial one, which is a part of some\n"
          "sandbox, lists it in notCovered. \"partly\" refuses the rest of that kind; with a\n"
          "TARGET each line says how.",
      .examples =
          "  capgate targets\n"
          "  capgate targets docker\n"
          "  capgate targets --json",
      .run = run};
}

}  // namespace capgate::cli
