// capgate report: a page, a picture or data that shows what a server may do.
#include "review/report.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/new_file.h"
#include "core/diff.h"
#include "lower/targets.h"
#include "review/report_page.h"
#include "review/report_picture.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {
    {.name = "--output", .value = "FILE", .help = "a new file instead of stdout", .alias = "-o"},
    {.name = "--force", .help = "replace FILE if it exists"},
    {.name = "--svg", .help = "the picture alone, as SVG"},
    {.name = "--against", .value = "OLD", .help = "mark what is wider than in this manifest"},
    {.name = "--target",
     .value = "NAME",
     .help = "mark what this target does not enforce (plan: capgate run)",
     .choices = lower::target_names},
    tool_option,
    set_option,
    seal_option,
    validators_option,
    json_option,
};

// Of a manifest that is compared with: the values of variables are the same, and it need not use
// them all, nor have the tool or verify what the new one promises.
std::expected<Loaded, int> load_old(const std::string& path, const Arguments& arguments,
                                    const Loaded& now, Output& output) {
  Arguments old{.operands = {path}, .options = {}};
  Wanted wanted{.manifest = path};
  for (const auto& [name, value] : arguments.options) {
    if (name == "--json") old.options.emplace_back(name, value);
    if (name != "--set") continue;
    const std::size_t equals = value.find('=');
    const std::string variable = value.substr(0, equals);
    auto binding = std::ranges::find(wanted.variables, variable, &core::Binding::name);
    if (binding == wanted.variables.end()) {
      binding = wanted.variables.insert(wanted.variables.end(), {.name = variable});
    }
    binding->values.push_back(value.substr(equals + 1));
  }
  wanted.seal = now.options.seal;
  return load(old, wanted, output);
}

// The manifest as if it had no other tools: their declarations grant nothing here.
core::Manifest only_tool(core::Manifest manifest, std::string_view tool) {
  if (tool.empty()) return manifest;
  std::erase_if(manifest.declared, [&](const core::Declared& declared) {
    return declared.tool != core::Declared::whole_server && manifest.owner(declared) != tool;
  });
  return manifest;
}

struct Against {
  std::string name;
  core::ManifestDiff change;
};

// Empty optional: not compared.
std::expected<std::optional<Against>, int> compare(const Arguments& arguments, const Loaded& now,
                                                   Output& output) {
  const auto path = arguments.value("--against");
  if (!path) return std::nullopt;
  if (*path == "-" && arguments.operands.front() == "-") {
    return std::unexpected(
        usage_error("stdin cannot be both manifests", "name a file for one of them", output));
  }
  const auto old = load_old(std::string(*path), arguments, now, output);
  if (!old) return std::unexpected(old.error());
  const std::string& tool = now.options.tool;
  auto change = core::diff(only_tool(old->manifest, tool), only_tool(now.manifest, tool));
  if (!change) {
    const bool is_old = change.error().side == core::GrantChange::Side::before;
    return std::unexpected(
        report(change.error().mistakes, is_old ? old->source() : now.source(), arguments, output));
  }
  // Indices of what only_tool left out mean something else in the whole manifest.
  if (!tool.empty()) {
    std::erase_if(change->tools, [&](const core::ToolChange& one) { return one.tool != tool; });
    for (core::GrantChange& one : change->server) one.origins.clear();
    for (core::ToolChange& one : change->tools) {
      for (core::GrantChange& grant : one.changes) grant.origins.clear();
    }
  }
  return Against{.name = old->name, .change = *std::move(change)};
}

std::string print(const review::Report& made, const Arguments& arguments) {
  if (arguments.has("--json")) return review::report_json(made);
  return arguments.has("--svg") ? review::report_svg(made) : review::report_page(made);
}

int run(const Arguments& arguments, Output& output) {
  if (arguments.has("--svg") && arguments.has("--json")) {
    return usage_error("--svg and --json exclude each other", "choose one", output);
  }
  NewFileUse use{.example = "report.html", .inputs = {arguments.operands.front()}};
  if (const auto old = arguments.value("--against")) use.inputs.emplace_back(*old);
  const auto place = read_new_file(arguments, use, output);
  if (!place) return place.error();
  const auto loaded = load(arguments, output);
  if (!loaded) return loaded.error();
  const auto against = compare(arguments, *loaded, output);
  if (!against) return against.error();

  const Source source = loaded->source();
  review::ReportInput input{
      .manifest = loaded->manifest,
      .policy = loaded->policy,
      .options = loaded->options,
      .source = source,
      .target = *lower::find_target(arguments.value("--target").value_or("plan"))};
  if (*against) {
    input.change = &(*against)->change;
    input.against = (*against)->name;
  }
  const std::string text = print(make_report(input), arguments);
  if (place->is_stdout()) {
    output.out += text;
    return Exit::ok;
  }
  const auto written = write_new_file(*place, text, output);
  return written ? static_cast<int>(Exit::ok) : written.error();
}

}  // namespace

Command report_command() {
  return {
      .name = "report",
      .operands = "FILE|-",
      .summary = "Write a page that shows what a server may do.",
      .least_operands = 1,
      .most_operands = 1,
      .options = options,
      .details =
          "One HTML file for a browser or a printer: the server in its box, what each tool asks\n"
          "for, every line in words, and what the box does not stop. It loads nothing and runs\n"
          "nothing. Red is wider than OLD, amber is not enforced by the target.\n"
          "Exit: 0 ok, 1 not written, 2 usage, 3 unreadable, 4 compile error.",
      .examples =
          "  capgate report github.json -o report.html\n"
          "  capgate report github.json --against old.json -o report.html\n"
          "  capgate report github.json --target docker -o report.html\n"
          "  capgate report github.json --svg -o box.svg    the picture alone\n"
          "  capgate report github.json --json              for programs",
      .run = run};
}

}  // namespace capgate::cli
