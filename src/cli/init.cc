// capgate init: a manifest to start from, with the tools that a server has.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/live.h"
#include "cli/load.h"
#include "cli/new_file.h"
#include "mcp/ask_command.h"
#include "mcp/starter.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using Cause = mcp::AskProblem::Cause;

constexpr Option options[] = {
    {.name = "--output",
     .value = "FILE",
     .help = "a new file instead of stdout: .yaml or .yml with comments, else JSON",
     .alias = "-o"},
    {.name = "--force", .help = "replace FILE if it exists"},
    {.name = "--allow",
     .value = "CAP",
     .help = "what the server needs to start: a variable, a file",
     .repeatable = true},
    {.name = "--profile",
     .value = "NAME",
     .help = "the manifest's name, and HOME is the state directory of this name"},
    {.name = "--timeout", .value = "SECONDS", .help = "for all answers (60; 30 for the first)"},
    json_option,
};

constexpr std::uint64_t longest_timeout = 3600;

struct Wish {
  std::vector<std::string> command;
  NewFile output;
  std::string profile;
  std::vector<std::string> allow;
  std::optional<std::uint64_t> timeout;
  bool json = false;
};

std::expected<Wish, int> read_wish(const Arguments& arguments, Output& output) {
  Wish wish{.command = arguments.operands,
            .output = {},
            .profile = std::string(arguments.value("--profile").value_or("")),
            .allow = arguments.values("--allow"),
            .json = arguments.has("--json")};
  if (const auto text = arguments.value("--timeout")) {
    wish.timeout = parse_decimal(*text);
    if (!wish.timeout || *wish.timeout == 0 || *wish.timeout > longest_timeout) {
      return std::unexpected(usage_error(format("--timeout cannot be {}", quoted(*text)),
                                         "write seconds: --timeout 120", output));
    }
  }
  auto place = read_new_file(arguments, {.example = "server.yaml", .inputs = {}}, output);
  if (!place) return std::unexpected(place.error());
  wish.output = *std::move(place);
  return wish;
}

// ---- the server in its sandbox ------------------------------------------------------------------

// `capgate run` is what keeps a server in: this very program is started with the words of a user.
mcp::AskedCommand command_for(const Wish& wish, int cancel) {
  mcp::AskedCommand out{.program = "/proc/self/exe", .words = {"capgate", "run"}, .cancel = cancel};
  if (wish.timeout) {
    out.limits.whole = out.limits.start = std::chrono::seconds(*wish.timeout);
    out.limits.probe = std::min(out.limits.probe, out.limits.whole / 2);
  }
  // It ends by itself should nobody be left to end it. And with an --allow there is no policy but
  // these words, whatever the profile of that name grants.
  const auto life = std::chrono::ceil<std::chrono::seconds>(out.limits.whole + 4 * out.grace);
  const bool has_limit = std::ranges::any_of(
      wish.allow, [](const std::string& text) { return text.starts_with("limit:time:"); });
  if (!has_limit)
    out.words.insert(out.words.end(), {"--allow", format("limit:time:{}s", life.count())});
  for (const std::string& capability : wish.allow) {
    out.words.insert(out.words.end(), {"--allow", capability});
  }
  if (!wish.profile.empty()) out.words.insert(out.words.end(), {"--profile", wish.profile});
  out.words.emplace_back("--");
  out.words.insert(out.words.end(), wish.command.begin(), wish.command.end());
  return out;
}

// ---- a server that gave no list -----------------------------------------------------------------

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string what_to_do(const Wish& wish, const mcp::CommandProblem& problem) {
  if (is_refused_by_run(problem)) return "";  // it said what to do
  const std::string_view program = base_name(wish.command.front());
  constexpr std::string_view npm[] = {"npx", "npm", "pnpm", "yarn", "bunx"};
  constexpr std::string_view pypi[] = {"uvx", "uv", "pipx"};
  const bool is_npm = std::ranges::find(npm, program) != std::end(npm);
  if (is_npm || std::ranges::find(pypi, program) != std::end(pypi)) {
    return format(
        "{} gets the package from its registry, and there is no network here: install it first "
        "with capgate install {}:PACKAGE",
        program, is_npm ? "npm" : "pypi");
  }
  if (problem.asked.cause == Cause::late) {
    return "if it is only slow: --timeout SECONDS; what it is refused: capgate run --trace - -- "
           "COMMAND";
  }
  return "what it needs to start it gets with --allow, such as --allow env:inject:NAME or --allow "
         "fs:read:PATH; capgate run --trace - -- COMMAND shows what is refused";
}

std::string what_happened(const Wish& wish, const mcp::CommandProblem& problem) {
  const std::string name = quoted(wish.command.front());
  if (is_refused_by_run(problem)) return format("{} cannot be started in its sandbox", name);
  std::string out = format("{} did not list its tools: {}", name, problem.asked.message);
  if (has_ended(problem)) out += format(" (exit status {})", problem.status);
  return out;
}

int report_problem(const Wish& wish, const mcp::CommandProblem& problem, Output& output) {
  const std::string message = what_happened(wish, problem);
  const std::string help = what_to_do(wish, problem);
  const std::vector<std::string> lines = shown_lines(problem.errors);
  if (wish.json) {
    text::JsonWriter json(text::JsonWriter::Style::pretty);
    json.begin_object().key("schemaVersion").number(1).key("error").begin_object();
    json.key("message").string(message).key("help").string(help);
    json.key("stderr").begin_array();
    for (const std::string& line : lines) json.string(line);
    json.end_array().end_object().end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::unreadable;
  }
  output.err += format("capgate: {}\n", message);
  if (!lines.empty()) output.err += "its stderr:\n";
  for (const std::string& line : lines) output.err += format("  | {}\n", line);
  if (!help.empty()) output.err += format("help: {}\n", help);
  return Exit::unreadable;
}

// ---- the manifest -------------------------------------------------------------------------------

// The first of these that a manifest can have as its name or version.
std::string first_proper(std::initializer_list<std::string_view> texts) {
  constexpr std::size_t longest = 128;
  for (const std::string_view text : texts) {
    if (!text.empty() && text.size() <= longest && !find_invalid_utf8(text) &&
        std::ranges::none_of(text, is_control)) {
      return std::string(text);
    }
  }
  return "server";
}

bool is_yaml_name(std::string_view file) {
  return file.empty() || file.ends_with(".yaml") || file.ends_with(".yml");
}

void write_hint(text::JsonWriter& json, std::string_view name, std::optional<bool> value) {
  if (value) json.key(name).boolean(*value);
}

std::string json_report(const Wish& wish, const mcp::Starter& starter) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  const mcp::ServerTools& server = starter.server;
  json.begin_object().key("schemaVersion").number(1);
  json.key("server").begin_object().key("name").string(server.server_name);
  json.key("version").string(server.server_version).key("protocol").string(server.protocol);
  json.key("era").string(server.era == mcp::Era::modern ? "modern" : "legacy").end_object();
  json.key("tools").begin_array();
  for (const mcp::ToolInfo& tool : server.tools) {
    json.begin_object().key("name").string(tool.name).key("title").string(tool.title);
    json.key("description").string(tool.description).key("annotations").begin_object();
    write_hint(json, "readOnlyHint", tool.read_only);
    write_hint(json, "destructiveHint", tool.destructive);
    write_hint(json, "idempotentHint", tool.idempotent);
    write_hint(json, "openWorldHint", tool.open_world);
    json.end_object().key("suggestions").begin_array();
    for (const mcp::Suggestion& suggestion : mcp::suggest(tool)) {
      json.begin_object().key("capability").string(suggestion.capability);
      json.key("reason").string(suggestion.reason).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().key("notes").begin_array();
  for (const std::string& note : server.notes) json.string(note);
  json.end_array();
  if (!wish.output.is_stdout()) json.key("file").string(wish.output.file);
  json.key("manifest");
  mcp::write_starter(starter, json);
  json.end_object();
  return std::move(json).take() + "\n";
}

int write_manifest(const Wish& wish, const mcp::ServerTools& server, Output& output) {
  const mcp::Starter starter{
      .server = server,
      .name = first_proper({wish.profile, server.server_name, base_name(wish.command.back()),
                            base_name(wish.command.front())}),
      .version = first_proper({server.server_version, "0.0.0"}),
      .file = wish.output.is_stdout() ? "FILE" : wish.output.file};
  const std::string text =
      is_yaml_name(wish.output.file) ? mcp::starter_yaml(starter) : mcp::starter_json(starter);
  if (!wish.output.is_stdout()) {
    const auto written = write_new_file(wish.output, text, output);
    if (!written) return written.error();
  }
  for (const std::string& note : server.notes) output.err += format("note: {}\n", note);
  if (wish.json) {
    output.out += json_report(wish, starter);
  } else if (wish.output.is_stdout()) {
    output.out += text;
  } else {
    output.err += format("{}: {} tool{} of {}, each with nothing: add what it needs\n",
                         escape_for_terminal(wish.output.file), server.tools.size(),
                         server.tools.size() == 1 ? "" : "s", escape_for_terminal(starter.name));
  }
  return Exit::ok;
}

int run(const Arguments& arguments, Output& output) {
  const auto wish = read_wish(arguments, output);
  if (!wish) return wish.error();
  const sys::Fd signals = take_ending_signals();
  if (signals.get() < 0) {
    output.err += format("capgate: signalfd: {}\n", std::strerror(errno));
    return Exit::internal;
  }
  const auto answer = mcp::ask_command(command_for(*wish, signals.get()));
  if (answer) return write_manifest(*wish, *answer, output);
  if (answer.error().asked.cause == Cause::cancelled) return exit_after_signal(signals);
  return report_problem(*wish, answer.error(), output);
}

}  // namespace

Command init_command() {
  return {.name = "init",
          .operands = "-- COMMAND ARGS...",
          .summary = "Write a starter manifest from the tools that a server lists.",
          .least_operands = 1,
          .most_operands = SIZE_MAX,
          .options = options,
          .details =
              "The server is started in the sandbox of capgate run, without network and with\n"
              "nothing but --allow, is asked for its tools, and is ended. Each tool is written\n"
              "with no capability; comments say what it may need, guessed from its own words.\n"
              "Exit: 0 ok, 2 usage, 3 the server gave no list.",
          .examples =
              "  capgate init -- node server.js                  to stdout, as YAML\n"
              "  capgate init -o server.yaml -- node server.js   then: capgate check server.yaml\n"
              "  capgate init -o github.json --allow env:inject:GITHUB_TOKEN -- node server.js\n"
              "  capgate init --json -- node server.js           for programs",
          .run = run,
          .operands_end_options = true};
}

}  // namespace capgate::cli
