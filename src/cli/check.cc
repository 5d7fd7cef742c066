// capgate check: is the manifest right?
#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {tool_option, set_option, seal_option, validators_option, json_option};

std::string count(std::size_t n, std::string_view one) {
  if (n == 1) return format("1 {}", one);
  if (one.ends_with('y')) return format("{} {}ies", n, one.substr(0, one.size() - 1));
  return format("{} {}s", n, one);
}

int run(const Arguments& arguments, Output& output) {
  const auto loaded = load(arguments, output);
  if (!loaded) return loaded.error();
  const std::size_t grants = core::policy_lines(loaded->policy).size();
  if (arguments.has("--json")) {
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("diagnostics").begin_array().end_array();
    json.key("name").string(loaded->manifest.name).key("version").string(loaded->manifest.version);
    json.key("tools").number(loaded->manifest.tools.size());
    json.key("declared").number(loaded->manifest.declared.size()).key("grants").number(grants);
    json.key("manifestHash").string(loaded->manifest.hash);
    json.key("policyHash").string(loaded->policy.hash).end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  output.out +=
      format("{}: ok: {}, {} declared, {} after merging\n", escape_for_terminal(loaded->name),
             count(loaded->manifest.tools.size(), "tool"),
             count(loaded->manifest.declared.size(), "capability"), count(grants, "grant"));
  for (const std::string& note : loaded->manifest.notes) output.err += format("note: {}\n", note);
  return Exit::ok;
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .operands = "FILE|-",
          .summary = "Check a manifest and report every mistake in it.",
          .least_operands = 1,
          .most_operands = 1,
          .options = options,
          .details = "Exit: 0 ok, 2 usage, 3 unreadable, 4 mistakes.",
          .examples =
              "  capgate check github.json\n"
              "  capgate check git.yaml --set REPO=/srv/repo --json",
          .run = run};
}

}  // namespace capgate::cli
