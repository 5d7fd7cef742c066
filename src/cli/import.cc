// capgate import: a manifest of somebody else's format, and what was lost on the way.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "cli/new_file.h"
#include "import/deno.h"
#include "import/formats.h"
#include "sys/fd.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/json_or_yaml.h"
#include "text/json_write.h"
#include "unpack/bundle.h"

namespace capgate::cli {
namespace {

using imports::Format;
using imports::Imported;
using imports::Loss;

constexpr std::string_view bundle_format = "mcpb";

std::span<const std::string_view> format_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Format& format : imports::formats()) out.push_back(format.name);
    return out;
  }();
  return names;
}

std::span<const Option> options() {
  static const std::array table = {
      Option{.name = "--from",
             .value = "FORMAT",
             .help = "what FILE is, where it does not show",
             .choices = format_names()},
      Option{.name = "--server",
             .value = "NAME",
             .help = "which one, where FILE holds several servers or packages"},
      Option{.name = "--output",
             .value = "FILE",
             .help = "a new file for the manifest instead of stdout",
             .alias = "-o"},
      Option{.name = "--force", .help = "replace the --output file if it exists"},
      json_option,
  };
  return table;
}

struct Wish {
  std::string file;
  NewFile output;
  const Format* format = nullptr;
};

std::expected<Wish, int> read_wish(const Arguments& arguments, Output& output) {
  const std::string& file = arguments.operands.front();
  auto place = read_new_file(arguments, {.example = "server.json", .inputs = {file}}, output);
  if (!place) return std::unexpected(place.error());
  Wish wish{.file = file, .output = *std::move(place)};
  if (const auto name = arguments.value("--from")) wish.format = imports::find_format(*name);
  return wish;
}

// ---- the text -----------------------------------------------------------------------------------

struct Text {
  std::string name;  // for diagnostics
  text::SharedText text;
  bool is_bundle = false;
  bool is_signed = false;
};

int cannot_read(std::string_view name, std::string_view why, Output& output) {
  output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(name), why);
  return Exit::unreadable;
}

bool is_zip(std::string_view start) {
  return start.starts_with("PK\3\4") || start.starts_with("PK\5\6");
}

std::expected<Text, int> read_from_bundle(const Wish& wish, const sys::Fd& file,
                                          const Arguments& arguments, Output& output) {
  const auto reader = unpack::find_reader();
  if (!reader) {
    output.err += format("capgate: {}\nhelp: {}\n", reader.error().message, reader.error().help);
    return std::unexpected(Exit::unenforceable);
  }
  auto found = unpack::read_bundle({.bundle = file, .program = *reader});
  if (found) {
    return Text{.name = format("{}/manifest.json", wish.file),
                .text = text::share(std::move(found->manifest)),
                .is_bundle = true,
                .is_signed = found->is_signed};
  }
  if (found.error().cause == unpack::BundleProblem::Cause::machine) {
    output.err += format("capgate: {}\nhelp: unpack the bundle, and import its manifest.json\n",
                         found.error().message);
    return std::unexpected(Exit::unenforceable);
  }
  const Diagnostics refused = {{.code = Code::import_bundle,
                                .where = Span::nowhere(),
                                .message = format("the bundle {}", found.error().message),
                                .help = "take a bundle that its publisher packed anew; "
                                        "capgate explain IMPORT_BUNDLE says what is refused"}};
  return std::unexpected(report(refused, Source(wish.file, ""), arguments, output));
}

std::expected<Text, int> read_text(const Wish& wish, const Arguments& arguments, Output& output) {
  const bool is_stdin = wish.file == "-";
  const sys::Fd file(is_stdin ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                              : ::open(wish.file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) {
    return std::unexpected(cannot_read(wish.file, std::strerror(errno), output));
  }
  struct stat info{};
  const bool is_file = ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  std::array<char, 4> start{};
  const ssize_t got = is_file ? ::pread(file.get(), start.data(), start.size(), 0) : 0;
  const bool is_named = wish.file.ends_with(".mcpb") || wish.file.ends_with(".dxt");
  if (is_file && (is_named || (got == 4 && is_zip({start.data(), start.size()})))) {
    return read_from_bundle(wish, file, arguments, output);
  }
  auto text = sys::read_file(wish.file, text::largest_document);
  if (!text) return std::unexpected(cannot_read(wish.file, sys::reason(text.error()), output));
  if (is_zip(*text)) {
    return std::unexpected(
        cannot_read(is_stdin ? "standard input" : wish.file,
                    "a bundle is read from a file: its directory stands at its end", output));
  }
  return Text{.name = is_stdin ? "<stdin>" : wish.file, .text = text::share(*std::move(text))};
}

// ---- what it says -------------------------------------------------------------------------------

// Settings of editors have comments; nothing else that is read here may.
bool may_have_comments(const Format& format) {
  return format.name == "vscode" || format.name == "srt";
}

// Where relative paths of a file start.
std::string directory_of(const std::string& file) {
  const std::size_t slash = file == "-" ? std::string::npos : file.find_last_of('/');
  std::string named = slash == std::string::npos ? "" : file.substr(0, slash);
  if (file.starts_with('/')) return named;
  std::array<char, PATH_MAX> here{};
  if (::getcwd(here.data(), here.size()) == nullptr) return "";
  return named.empty() ? std::string(here.data()) : format("{}/{}", here.data(), named);
}

// "#!/usr/bin/env -S deno run ...", and then a program, which is no document.
bool is_script(const Wish& wish, const Text& text) {
  if (text.is_bundle || (wish.format != nullptr && wish.format->name != "deno")) return false;
  return text.text->starts_with("#!") && imports::is_deno_command(*text.text);
}

std::expected<Imported, int> read_format(const Wish& wish, const Text& text,
                                         const Arguments& arguments, Output& output) {
  const Source source(text.name, *text.text);
  const imports::ImportPlace place{.file = wish.file,
                                   .directory = directory_of(wish.file),
                                   .home = home_directory(),
                                   .server = std::string(arguments.value("--server").value_or(""))};
  if (is_script(wish, text)) {
    auto imported = imports::read_deno_command(*text.text, place);
    if (!imported) return std::unexpected(report(imported.error(), source, arguments, output));
    return *std::move(imported);
  }
  auto document = text::parse_json_or_yaml(text.name, text.text);
  const bool is_strict = document.has_value();
  Diagnostics mistakes = is_strict ? Diagnostics() : document.error();
  if (!is_strict) document = text::parse_jsonc(text.text);
  if (!document) return std::unexpected(report(mistakes, source, arguments, output));
  const Format* format = text.is_bundle ? imports::find_format(bundle_format) : wish.format;
  if (format == nullptr) {
    const auto detected = imports::detect_format(*document);
    if (!detected && is_strict) mistakes = {detected.error()};
    if (detected) format = *detected;
  }
  if (format == nullptr || (!is_strict && !may_have_comments(*format))) {
    return std::unexpected(report(mistakes, source, arguments, output));
  }
  auto imported = format->read(*document, place);
  if (!imported) return std::unexpected(report(imported.error(), source, arguments, output));
  if (text.is_signed) {
    imported->losses.push_back(
        {.kind = Loss::Kind::dropped,
         .subject = "signature",
         .message = "the bundle has a signature, which nobody checked here"});
  }
  return *std::move(imported);
}

// ---- what comes of it ---------------------------------------------------------------------------

std::string json_report(const Wish& wish, const Imported& imported) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1);
  json.key("format").string(imported.format);
  if (!wish.output.is_stdout()) json.key("file").string(wish.output.file);
  json.key("manifest");
  imports::write_manifest(imported, json);
  json.key("losses").begin_array();
  for (const Loss& loss : imported.losses) {
    json.begin_object().key("kind").string(imports::kind_name(loss.kind));
    json.key("subject").string(escape_for_terminal(loss.subject));
    json.key("message").string(escape_for_terminal(loss.message)).end_object();
  }
  json.end_array().key("command").begin_array();
  for (const std::string& word : imported.command) json.string(word);
  json.end_array().key("variables").begin_array();
  for (const std::string& name : imported.variables) json.string(name);
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

std::string heading(Loss::Kind kind) {
  switch (kind) {
    case Loss::Kind::unsaid: return "not said by the source, so not in the manifest";
    case Loss::Kind::assumed: return "assumed";
    case Loss::Kind::dropped: return "said by the source, but not in the manifest";
  }
  return "";
}

std::string words_report(const Wish& wish, const Imported& imported) {
  std::string out =
      format("capgate: {} read as {}: {} {}\n", escape_for_terminal(wish.file), imported.format,
             escape_for_terminal(imported.name), escape_for_terminal(imported.version));
  for (const Loss::Kind kind : {Loss::Kind::dropped, Loss::Kind::assumed, Loss::Kind::unsaid}) {
    if (std::ranges::find(imported.losses, kind, &Loss::kind) == imported.losses.end()) continue;
    out += format("{}:\n", heading(kind));
    for (const Loss& loss : imported.losses) {
      if (loss.kind != kind) continue;
      out += format("  {}: {}\n", escape_for_terminal(loss.subject),
                    escape_for_terminal(loss.message));
    }
  }
  if (!imported.variables.empty()) {
    out += format("bind with --set NAME=VALUE: {}\n", join(imported.variables, ", "));
  }
  if (!imported.command.empty()) {
    out +=
        format("the source starts it with: {}\n", escape_for_terminal(join(imported.command, " ")));
  }
  return out;
}

int run(const Arguments& arguments, Output& output) {
  const auto wish = read_wish(arguments, output);
  if (!wish) return wish.error();
  const auto text = read_text(*wish, arguments, output);
  if (!text) return text.error();
  if (text->is_bundle && wish->format != nullptr && wish->format->name != bundle_format) {
    return usage_error(format("{} is a bundle, not {}", quoted(wish->file), wish->format->name),
                       "leave --from out, or write --from mcpb", output);
  }
  const auto imported = read_format(*wish, *text, arguments, output);
  if (!imported) return imported.error();
  // Where the file has one server and nothing to choose from, it must at least be that one.
  const auto server = arguments.value("--server");
  if (server && !imported->is_chosen && imported->name != *server) {
    return usage_error(format("a file of the format {} holds one server, and this one is not {}",
                              imported->format, quoted(*server)),
                       "leave --server out", output);
  }
  const std::string manifest = imports::print_manifest(*imported);
  if (!wish->output.is_stdout()) {
    const auto written = write_new_file(wish->output, manifest, output);
    if (!written) return written.error();
  }
  if (arguments.has("--json")) {
    output.out += json_report(*wish, *imported);
    return Exit::ok;
  }
  if (wish->output.is_stdout()) output.out += manifest;
  output.err += words_report(*wish, *imported);
  return Exit::ok;
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .operands = "FILE|-",
          .summary = "Make a manifest of a bundle, a registry entry or another sandbox's settings.",
          .least_operands = 1,
          .most_operands = 1,
          .options = options(),
          .details =
              "Formats:\n"
              "  mcpb            a bundle (.mcpb, .dxt), or its manifest.json\n"
              "  server-json     an entry of the MCP registry\n"
              "  toolhive        a permission profile of ToolHive\n"
              "  docker-catalog  a catalog of the Docker MCP gateway, or an entry of one\n"
              "  vscode          mcp.json or settings of VS Code with a sandbox\n"
              "  srt             settings of sandbox-runtime\n"
              "  gatekit         a configuration of Gatekit\n"
              "  rampart         a configuration of Rampart\n"
              "  wassette        a policy of Wassette\n"
              "  deno            deno.json with permissions, or a command with its flags\n"
              "What FILE is shows by itself, if exactly one format fits it. The manifest goes to\n"
              "stdout, and stderr says what the source cannot say, what was assumed and what was\n"
              "left out: read it. A bundle (.mcpb, .dxt) is read by a process that can do nothing\n"
              "else; nothing of it is unpacked but manifest.json.\n"
              "Exit: 0 ok, 1 not written, 2 usage, 3 unreadable, 4 refused, 6 the bundle's reader\n"
              "cannot be confined here.",
          .examples =
              "  capgate import notes.mcpb -o notes.json      then: capgate check notes.json\n"
              "  capgate import server.json --server npm      one of its packages\n"
              "  capgate import --json manifest.json          for programs",
          .run = run};
}

}  // namespace capgate::cli
