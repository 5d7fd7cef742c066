// capgate why: may the server do this, by which line, and what would change it?
#include "sandbox/why.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "core/rights.h"
#include "lower/common.h"
#include "lower/to_plan.h"
#include "sandbox/host_path.h"
#include "sandbox/landlock.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using sandbox::Access;
using sandbox::Answer;
using text::JsonWriter;

constexpr Option options[] = {
    {.name = "--path", .value = "PATH", .help = "may the server read this path?"},
    {.name = "--write", .help = "with --path: may it write there?"},
    {.name = "--host", .value = "HOST:PORT", .help = "may it connect there?"},
    {.name = "--exec", .value = "PROGRAM", .help = "may it start this program? a name or a path"},
    {.name = "--env", .value = "NAME", .help = "does it get this variable?"},
    tool_option,
    set_option,
    seal_option,
    validators_option,
    json_option,
};

constexpr std::string_view question_kinds[] = {"--path", "--host", "--exec", "--env"};

struct Question {
  std::string_view option;
  std::string subject;
  std::string words;  // "read /srv/data"
  Access access = Access::read;
};

std::expected<std::string, int> current_directory(Output& output) {
  std::array<char, 4096> buffer{};
  if (::getcwd(buffer.data(), buffer.size()) != nullptr) return buffer.data();
  output.err += format("capgate: there is no current directory: {}\nhelp: change to one\n",
                       std::generic_category().message(errno));
  return std::unexpected(Exit::unenforceable);
}

// Without "." and double slashes. What ".." leads to, after a link, only the kernel can say.
std::expected<std::string, int> plain_path(std::string_view path, Output& output) {
  std::string whole(path);
  if (!path.starts_with('/')) {
    const auto directory = current_directory(output);
    if (!directory) return std::unexpected(directory.error());
    whole = format("{}/{}", *directory, path);
  }
  std::string out;
  for (const std::string_view part : EachPart(whole, '/')) {
    if (part == "..") {
      const std::string plain = sandbox::real_path(whole);  // as it is where nothing is there
      return std::unexpected(usage_error(
          format("--path {} has a ..", quoted(path)),
          plain == whole ? "write the path without it" : format("write --path {}", quoted(plain)),
          output));
    }
    if (!part.empty() && part != ".") out += format("/{}", part);
  }
  return out.empty() ? "/" : out;
}

std::expected<Question, int> read_question(const Arguments& arguments, Output& output) {
  Question out;
  for (const std::string_view kind : question_kinds) {
    const auto values = arguments.values(kind);
    if (values.empty()) continue;
    if (values.front().empty()) {
      return std::unexpected(
          usage_error(format("{} is empty", kind), "write what is asked about", output));
    }
    if (!out.option.empty()) {
      return std::unexpected(usage_error("why answers one question at a time",
                                         "write one of --path, --host, --exec and --env", output));
    }
    out.option = kind;
    out.subject = values.front();
  }
  if (out.option.empty()) {
    return std::unexpected(usage_error("why needs a question",
                                       "write one of --path, --host, --exec and --env", output));
  }
  if (arguments.has("--write") && out.option != "--path") {
    return std::unexpected(
        usage_error("--write belongs to --path", "write --path PATH --write", output));
  }
  out.access = arguments.has("--write") ? Access::write : Access::read;
  if (out.option == "--path") {
    auto path = plain_path(out.subject, output);
    if (!path) return std::unexpected(path.error());
    out.subject = *std::move(path);
  }
  constexpr std::string_view verbs[] = {"read", "connect to", "start", "get the variable"};
  const auto index = std::ranges::find(question_kinds, out.option) - std::begin(question_kinds);
  out.words = format("{} {}", out.access == Access::write ? "write" : verbs[index],
                     escape_for_terminal(out.subject));
  return out;
}

std::vector<std::string> environment() {
  std::vector<std::string> out;
  for (char** each = ::environ; *each != nullptr; ++each) out.emplace_back(*each);
  return out;
}

sandbox::Launcher launcher_for(const Loaded& loaded, std::string directory) {
  const std::string path = variable("PATH");
  return {.caller = {.path = path.empty() ? std::string(lower::sandbox_path) : path,
                     .directory = std::move(directory),
                     .home = loaded.options.home},
          .environment = environment(),
          .uid = ::getuid(),
          .landlock_abi = sandbox::probe_landlock_abi(),
          .makes_missing_files = false};
}

std::expected<core::Endpoint, int> read_endpoint(const std::string& text, Output& output) {
  const auto endpoint = core::parse_endpoint(text);
  using Kind = core::HostPattern::Kind;
  const bool is_one = endpoint && endpoint->port && endpoint->host.kind != Kind::any &&
                      endpoint->host.kind != Kind::subdomains;
  if (is_one) return *endpoint;
  return std::unexpected(
      usage_error(format("--host cannot be {}{}", quoted(text),
                         endpoint ? "" : format(": {}", endpoint.error().message)),
                  "write one host and one port: --host api.github.com:443", output));
}

std::expected<Answer, int> ask(const sandbox::Asked& asked, const Question& question,
                               Output& output) {
  if (question.option == "--exec") return sandbox::why_exec(asked, question.subject);
  if (question.option == "--env") return sandbox::why_variable(asked, question.subject);
  if (question.option == "--host") {
    const auto endpoint = read_endpoint(question.subject, output);
    if (!endpoint) return std::unexpected(endpoint.error());
    return sandbox::why_host(asked, *endpoint);
  }
  auto answer = sandbox::why_path(asked, {.path = question.subject, .access = question.access});
  if (answer) return *std::move(answer);
  output.err += format("capgate: {}\nhelp: {}\n", answer.error().message, answer.error().help);
  return std::unexpected(Exit::unenforceable);
}

// ---- the answer ----

struct Line {
  std::string position;  // "github.json:12:7"
  std::string text;      // as it is declared
  std::string owner;     // the tool, or serverCapabilities
  Source::Position at;
};

// A line that grants reading does not explain why writing is allowed.
bool bears_on(const core::Capability& capability, const Question& question, const Answer& answer) {
  const auto* fs = std::get_if<core::FsCapability>(&capability);
  if (fs == nullptr || !answer.allowed || question.access == Access::read) return true;
  return core::bears_on(fs->actions, {core::FileRights::modify});
}

std::vector<Line> lines_of(const Question& question, const Answer& answer, const Loaded& loaded) {
  std::vector<Line> out;
  if (!answer.grant || answer.origins == nullptr) return out;
  const Source source = loaded.source();
  for (const std::uint32_t index : *answer.origins) {
    const core::Declared& declared = loaded.manifest.declared[index];
    if (!bears_on(declared.capability, question, answer)) continue;
    const Source::Position at = source.position(declared.where.begin);
    out.push_back({.position = format("{}:{}:{}", loaded.name, at.line, at.column),
                   .text = print(declared.capability),
                   .owner = std::string(loaded.manifest.owner(declared)),
                   .at = at});
  }
  return out;
}

std::string print_text(const Question& question, const Answer& answer, const Loaded& loaded) {
  std::string out = format("{}: {}\n  {}\n", answer.allowed ? "allowed" : "denied", question.words,
                           answer.reason);
  const std::vector<Line> lines = lines_of(question, answer, loaded);
  for (const Line& line : lines) {
    out += format("  {} {}   {}, {}\n",
                  answer.allowed ? "by" : "closest:", escape_for_terminal(line.text),
                  escape_for_terminal(line.position), escape_for_terminal(line.owner));
  }
  if (!answer.remedy.empty()) {
    out += format("  to allow it: {}\n", escape_for_terminal(answer.remedy));
  } else if (answer.allowed && !lines.empty()) {
    out += format("  to deny it: remove {}\n", lines.size() == 1 ? "that line" : "these lines");
  }
  for (const std::string& note : answer.notes) out += format("  note: {}\n", note);
  return out;
}

std::string print_json(const Question& question, const Answer& answer, const Loaded& loaded) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("allowed").boolean(answer.allowed);
  json.key("question").begin_object().key("kind").string(question.option.substr(2));
  json.key("subject").string(question.subject);
  if (question.option == "--path") {
    json.key("access").string(question.access == Access::read ? "read" : "write");
  }
  json.end_object().key("reason").string(answer.reason);
  json.key("capability");
  answer.grant ? json.string(print(*answer.grant)) : json.null();
  json.key("lines").begin_array();
  for (const Line& line : lines_of(question, answer, loaded)) {
    json.begin_object().key("file").string(loaded.name).key("line").number(line.at.line);
    json.key("column").number(line.at.column).key("owner").string(line.owner);
    json.key("capability").string(line.text).end_object();
  }
  json.end_array().key("remedy");
  answer.remedy.empty() ? json.null() : json.string(answer.remedy);
  json.key("notes").begin_array();
  for (const std::string& note : answer.notes) json.string(note);
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

int run(const Arguments& arguments, Output& output) {
  const auto question = read_question(arguments, output);
  if (!question) return question.error();
  const auto loaded =
      load(arguments, {.manifest = arguments.operands.front(), .home = home_directory()}, output);
  if (!loaded) return loaded.error();
  const Source source = loaded->source();
  const lower::Input input{loaded->manifest, loaded->policy, loaded->options, &source};
  const auto artifact = lower::lower_to_plan(input);
  if (!artifact) return report(artifact.error(), source, arguments, output);
  auto directory = current_directory(output);
  if (!directory) return directory.error();
  const sandbox::Launcher launcher = launcher_for(*loaded, *std::move(directory));
  const sandbox::Asked asked{.plan = *artifact->plan,
                             .policy = loaded->policy,
                             .launcher = launcher,
                             .command = {arguments.operands.begin() + 1, arguments.operands.end()}};
  const auto answer = ask(asked, *question, output);
  if (!answer) return answer.error();
  output.out += arguments.has("--json") ? print_json(*question, *answer, *loaded)
                                        : print_text(*question, *answer, *loaded);
  return answer->allowed ? Exit::ok : Exit::denied;
}

}  // namespace

Command why_command() {
  return {
      .name = "why",
      .operands = "FILE|- [-- COMMAND ARGS...]",
      .summary = "Say whether a server may do something, and which line decides it.",
      .least_operands = 1,
      .most_operands = SIZE_MAX,
      .options = options,
      .details =
          "The answer is that of what enforces it: the plan of `capgate run` is bound to this\n"
          "machine and looked at as the kernel would, and the broker's own decision is asked.\n"
          "Nothing is started. A path is the host's: the private /tmp in its place is another.\n"
          "A grant that this machine does not have is answered for by the plan. With the\n"
          "server's COMMAND its own program and its files count too.\n"
          "Exit: 0 allowed, 7 denied, 2 usage, 3 unreadable, 4 mistakes, 6 no answer here.",
      .examples =
          "  capgate why github.json --path /workspace/.env\n"
          "  capgate why github.json --path /workspace/src --write --tool search_code\n"
          "  capgate why github.json --host api.github.com:443 --json\n"
          "  capgate why github.json --exec git\n"
          "  capgate why github.json --env GITHUB_TOKEN",
      .run = run,
      .most_before_dashes = 1};
}

}  // namespace capgate::cli
