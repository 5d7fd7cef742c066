// capgate export: a manifest's policy in another tool's format.
#include "base/format.h"
#include "base/text.h"
#include "cli/accepted.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/new_file.h"
#include "core/path.h"
#include "lower/exports.h"

namespace capgate::cli {
namespace {

constexpr Option options[] = {
    {.name = "--to",
     .value = "FORMAT",
     .help = "toolhive, srt, vscode or mcpb-meta",
     .choices = lower::exporter_names},
    tool_option,
    set_option,
    seal_option,
    {.name = "--program",
     .value = "PATH",
     .help = "srt: the server's own program, or srt's package, outside of /usr",
     .repeatable = true},
    {.name = "--accept-unenforced",
     .value = "CAP",
     .help = "write the file although it cannot say this capability",
     .repeatable = true},
    validators_option,
    {.name = "--output", .value = "FILE", .help = "a new file instead of stdout", .alias = "-o"},
    {.name = "--force", .help = "replace the --output file if it exists"},
    json_option,
};

constexpr std::string_view lists_formats = "capgate export --help lists them";

// Empty: the options are such as the format takes.
std::string find_mistake(const lower::Exporter& exporter, const Arguments& arguments) {
  const bool holds_command = exporter.holds == lower::Exporter::Holds::command;
  if (arguments.operands.size() > 1 && !holds_command) {
    return format("--to {} holds no command", exporter.name);
  }
  if (arguments.has("--program") && exporter.name != "srt") {
    return format("--to {} takes no --program", exporter.name);
  }
  if (exporter.name == "mcpb-meta" && (arguments.has("--tool") || arguments.has("--seal"))) {
    return "--to mcpb-meta carries the whole manifest: it takes no --tool and no --seal";
  }
  return {};
}

std::expected<void, int> read_options(const Arguments& arguments, lower::Options& out,
                                      Output& output) {
  for (const std::string& path : arguments.values("--program")) {
    auto plain = core::parse_plain_path(path);
    if (!plain || plain->find_first_of("*?[]") != std::string::npos) {
      return std::unexpected(usage_error(format("--program cannot be {}", quoted(path)),
                                         "write an absolute path", output));
    }
    out.programs.push_back(*std::move(plain));
  }
  out.command.assign(arguments.operands.begin() + 1, arguments.operands.end());
  return read_accepted(arguments, out, output);
}

// For people: what the file does not hold to. --json has it among its members.
void say(const lower::Artifact& artifact, Output& output) {
  for (const std::string& capability : artifact.unenforced) {
    output.err += format("unenforced: {}\n", escape_for_terminal(capability));
  }
  for (const std::string& kind : artifact.not_covered) {
    output.err += format("not covered: {}\n", kind);
  }
  for (const std::string& note : artifact.notes) {
    output.err += format("note: {}\n", escape_for_terminal(note));
  }
}

int hand_over(const lower::Artifact& artifact, const lower::Input& input, const NewFile& place,
              const Arguments& arguments, Output& output) {
  lower::FilesAs files = lower::FilesAs::contents;
  if (!place.is_stdout()) {
    const auto written = write_new_file(place, artifact.files.front().contents, output);
    if (!written) return written.error();
    files = lower::FilesAs::hashes;
  }
  if (arguments.has("--json")) {
    output.out += print_json(artifact, input, text::JsonWriter::Style::pretty, files);
    output.out += '\n';
    return Exit::ok;
  }
  if (files == lower::FilesAs::contents) output.out += artifact.files.front().contents;
  say(artifact, output);
  return Exit::ok;
}

int run(const Arguments& arguments, Output& output) {
  const auto name = arguments.value("--to");
  if (!name) return usage_error("export needs --to FORMAT", lists_formats, output);
  const lower::Exporter* exporter = lower::find_exporter(*name);
  if (exporter == nullptr) {
    return usage_error(format("--to cannot be {}", quoted(*name)), lists_formats, output);
  }
  if (const std::string mistake = find_mistake(*exporter, arguments); !mistake.empty()) {
    return usage_error(mistake, "leave it out", output);
  }
  const auto place = read_new_file(
      arguments, {.example = "profile.json", .inputs = {arguments.operands.front()}}, output);
  if (!place) return place.error();
  auto loaded = load(arguments, output);
  if (!loaded) return loaded.error();
  if (auto read = read_options(arguments, loaded->options, output); !read) return read.error();
  const Source source = loaded->source();
  const lower::Input input{loaded->manifest, loaded->policy, loaded->options, &source};
  const auto artifact = export_to(*exporter, input, loaded->document->root());
  if (!artifact) return report(artifact.error(), source, arguments, output);
  return hand_over(*artifact, input, *place, arguments, output);
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .operands = "FILE|- [-- COMMAND...]",
          .summary = "Write a manifest's policy in another tool's format.",
          .least_operands = 1,
          .most_operands = SIZE_MAX,
          .options = options,
          .details =
              "Formats:\n"
              "  mcpb-meta  the _meta object of an MCPB manifest.json or a registry server.json\n"
              "  srt        settings of sandbox-runtime\n"
              "  toolhive   a permission profile of ToolHive\n"
              "  vscode     an mcp.json of VS Code with its sandbox\n"
              "The file goes to stdout, words about it to stderr. A capability that the format\n"
              "cannot say is an error, unless it is accepted by name. Exit: 0 ok, 1 not\n"
              "written, 2 usage, 3 unreadable, 4 compile error.",
          .examples =
              "  capgate export github.json --to mcpb-meta\n"
              "  capgate export github.json --to toolhive -o profile.json\n"
              "  capgate export github.json --to srt \\\n"
              "      --accept-unenforced env:inject:GITHUB_PERSONAL_ACCESS_TOKEN\n"
              "  capgate export github.json --to vscode --json \\\n"
              "      --accept-unenforced env:inject:GITHUB_PERSONAL_ACCESS_TOKEN \\\n"
              "      --accept-unenforced net:connect:api.github.com:443 -- npx server-github",
          .run = run,
          .most_before_dashes = 1};
}

}  // namespace capgate::cli
