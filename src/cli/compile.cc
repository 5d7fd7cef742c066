// capgate compile: a manifest becomes an artifact.
#include "base/format.h"
#include "base/text.h"
#include "cli/accepted.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "lower/choices.h"
#include "lower/targets.h"

namespace capgate::cli {
namespace {

constexpr std::string_view archs[] = {"x86_64", "aarch64"};
constexpr std::string_view target_names[] = {"bwrap", "docker", "plan"};

constexpr Option options[] = {
    {.name = "--target",
     .value = "NAME",
     .help = "bwrap (default), docker or plan",
     .choices = target_names},
    tool_option,
    set_option,
    seal_option,
    {.name = "--program",
     .value = "PATH",
     .help = "bwrap: the server's own program; others are hidden",
     .repeatable = true},
    {.name = "--accept-unenforced",
     .value = "CAP",
     .help = "lower although the target cannot enforce this capability",
     .repeatable = true},
    validators_option,
    {.name = "--arch",
     .value = "NAME",
     .help = "x86_64 (default) or aarch64: for the system call filter",
     .choices = archs},
    {.name = "--user", .value = "UID:GID", .help = "docker: the user inside (1000:1000)"},
    {.name = "--writable-root", .help = "docker: leave the image's root writable"},
    {.name = "--pretty", .help = "indent the JSON"},
    {.name = "--explain", .help = "print each line with the capability that caused it"},
    json_option,
};

std::expected<void, int> read_options(const Arguments& arguments, lower::Options& out,
                                      Output& output) {
  if (arguments.value("--arch") == "aarch64") out.arch = lower::Arch::aarch64;
  out.writable_root = arguments.has("--writable-root");
  if (const auto user = arguments.value("--user")) {
    if (!lower::is_user(*user)) {
      return std::unexpected(usage_error(format("--user cannot be {}", quoted(*user)),
                                         "write two numbers: --user 1000:1000", output));
    }
    out.user = *user;
  }
  for (const std::string& program : arguments.values("--program")) {
    auto path = lower::program_path(program);
    if (!path) {
      return std::unexpected(usage_error(format("--program cannot be {}", quoted(program)),
                                         "write an absolute path: --program /usr/bin/node",
                                         output));
    }
    out.programs.push_back(*std::move(path));
  }
  return read_accepted(arguments, out, output);
}

int run(const Arguments& arguments, Output& output) {
  auto loaded = load(arguments, output);
  if (!loaded) return loaded.error();
  if (auto read = read_options(arguments, loaded->options, output); !read) return read.error();

  const lower::Target* target =
      lower::find_target(arguments.value("--target").value_or(lower::targets().front().name));
  const Source source = loaded->source();
  const lower::Input input{loaded->manifest, loaded->policy, loaded->options, &source};
  const auto artifact = target->lower(input);
  if (!artifact) return report(artifact.error(), source, arguments, output);
  if (arguments.has("--explain")) {
    output.out += print_explanation(*artifact, input, source);
    return Exit::ok;
  }
  using Style = text::JsonWriter::Style;
  output.out +=
      print_json(*artifact, input, arguments.has("--pretty") ? Style::pretty : Style::compact);
  output.out += '\n';
  return Exit::ok;
}

}  // namespace

Command compile_command() {
  return {.name = "compile",
          .operands = "FILE|-",
          .summary = "Compile a manifest (JSON or YAML) into the policy of a sandbox.",
          .least_operands = 1,
          .most_operands = 1,
          .options = options,
          .details =
              "The artifact is one JSON document on stdout. Used exactly as printed it is closed;\n"
              "what the target cannot enforce is an error. Exit: 0 ok, 2 usage, 3 unreadable,\n"
              "4 compile error.",
          .examples =
              "  capgate compile github.json --pretty\n"
              "  capgate compile github.json --target docker --user 1000:1000\n"
              "  capgate compile git.json --program /usr/bin/node --set REPO=/srv/repo\n"
              "  capgate compile github.json --explain\n"
              "  cat github.yaml | capgate compile - --tool search_code",
          .run = run};
}

}  // namespace capgate::cli
