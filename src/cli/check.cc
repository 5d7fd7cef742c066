// capgate check: is the manifest right?
#include "base/format.h"
#include "base/text.h"
#include "cli/check_live.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/load.h"
#include "cli/pins.h"
#include "cli/profile.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {tool_option,    set_option,    seal_option,   validators_option,
                              live_option,    locked_option, config_option, live_allow_option,
                              timeout_option, json_option};

std::string count(std::size_t n, std::string_view one) {
  if (n == 1) return format("1 {}", one);
  if (one.ends_with('y')) return format("{} {}ies", n, one.substr(0, one.size() - 1));
  return format("{} {}s", n, one);
}

int run(const Arguments& arguments, Output& output) {
  if (arguments.has("--live")) return check_live(arguments, output);
  if (arguments.operands.size() > 1) {
    return usage_error(format("unexpected word {}", quoted(arguments.operands[1])),
                       "a command is for --live", output);
  }
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
  return {
      .name = "check",
      .operands = "FILE|- | --live NAME|FILE [-- COMMAND...]",
      .summary = "Check a manifest and report every mistake in it.",
      .least_operands = 1,
      .most_operands = SIZE_MAX,
      .options = options,
      .details =
          "--live starts the server without network, secrets or anything to write, and compares\n"
          "the tools that it lists with what you approved (or --locked) and with its manifest.\n"
          "Exit: 0 ok, 2 usage, 3 unreadable or no list of tools, 4 mistakes, 5 other tools than\n"
          "the manifest's, 8 other ones than approved.",
      .examples =
          "  capgate check github.json\n"
          "  capgate check git.yaml --set REPO=/srv/repo --json\n"
          "  capgate check --live github                    an entry of capgate.yaml\n"
          "  capgate check --live m.json --locked capgate.lock -- node server.js",
      .run = run};
}

}  // namespace capgate::cli
