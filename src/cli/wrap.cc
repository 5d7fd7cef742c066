// capgate wrap: the servers of existing clients, confined.
#include <fcntl.h>
#include <unistd.h>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/wrap_write.h"
#include "sandbox/host_path.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {
    {.name = "--dry-run", .help = "show what would be written, and write nothing"},
    {.name = "--yes", .help = "write without asking", .alias = "-y"},
    {.name = "--seal", .help = "move tokens of the file into the encrypted store"},
    {.name = "--no-install", .help = "leave packages for capgate install"},
    json_option,
};

// Clients have search paths of their own, so the whole path is written.
std::expected<PlanOptions, int> read_options(const Arguments& arguments, Output& output) {
  PlanOptions out{.surroundings = surroundings(),
                  .seals = arguments.has("--seal"),
                  .installs = !arguments.has("--no-install")};
  out.self = sandbox::read_link(AT_FDCWD, "/proc/self/exe");
  if (out.self.empty() || ::access(out.self.c_str(), X_OK) != 0) {
    output.err += "capgate: this program has no path any more that a client could start\n";
    return std::unexpected(Exit::internal);
  }
  out.places.config = config_base();
  out.places.home = out.surroundings.home;
  out.store.base = data_base();
  return out;
}

void say_done(const FileWork& work, Output& output) {
  const std::string path = escape_for_terminal(work.document.opened.path);
  output.err +=
      format("capgate: wrote {}; the file as it was: {}\n", path, escape_for_terminal(work.backup));
  output.err += format("capgate: to undo: capgate unwrap {}\n",
                       work.document.client == nullptr ? path : work.document.id());
  std::string last;
  for (const ServerPlan& plan : work.plans) {
    if (plan.kind != ServerPlan::Kind::wrap) continue;
    output.err += format("capgate: policy of {}: {}\n",
                         escape_for_terminal(work.document.file.servers[plan.server].name),
                         escape_for_terminal(plan.profile_file));
    if (plan.package && !plan.is_installed) {
      last += format("capgate: next: capgate install '{}'\n", clients::print(*plan.package));
    }
  }
  output.err += last + "capgate: restart the client, so that it reads the file again\n";
}

int run(const Arguments& arguments, Output& output) {
  const auto plan_options = read_options(arguments, output);
  if (!plan_options) return plan_options.error();
  Planner planner(*plan_options);
  WrapWriter writer(*plan_options);
  const WorkSteps steps{
      .command = "wrap",
      .nothing = "nothing to wrap",
      .plan = [&](const ClientDocument& document,
                  const ClientDocuments& all) { return planner.plan(document, all); },
      .changes = [&](const FileWork& work) { return changes_of(work.plans, plan_options->self); },
      .write =
          [&](FileWork& work, Output& said) {
            const int code = writer.write(work, said);
            if (work.is_written) say_done(work, said);
            return code;
          }};
  return work_through(arguments, steps, output);
}

}  // namespace

Command wrap_command() {
  return {.name = "wrap",
          .operands = "[CLIENT|FILE] [SERVER...]",
          .summary = "Confine the servers of an MCP client: rewrites its configuration.",
          .most_operands = 100'000,
          .options = options,
          .details =
              "Each server that the client starts as a command is started as\n"
              "  capgate run --profile NAME -- the original command\n"
              "with the policy in $XDG_CONFIG_HOME/capgate/servers/NAME.yaml. Servers of the\n"
              "catalog get its manifest, others an empty policy. Everything is shown before one\n"
              "question for each file; without a terminal nothing is written unless --yes. The\n"
              "rest of the file keeps every byte, a backup is made, and capgate unwrap gives the\n"
              "very same file back. Without CLIENT all that are found are wrapped.\n"
              "Clients: claude-desktop, claude-code, vscode, cursor, windsurf, zed, codex,\n"
              "gemini, goose, continue, opencode, copilot, vibe, cline, roo, lmstudio, kiro, amp,\n"
              "kimi, factory, antigravity.\n"
              "Exit: 0 ok, 1 a package cannot be installed, 2 usage, 3 a file cannot be read or\n"
              "written, 8 a file was changed meanwhile.",
          .examples =
              "  capgate wrap --dry-run                 what would be done, for every client\n"
              "  capgate wrap claude-desktop\n"
              "  capgate wrap cursor github --yes --seal\n"
              "  capgate wrap ./mcp.json --json --dry-run | jq '.files[].servers[]'",
          .run = run};
}

}  // namespace capgate::cli
