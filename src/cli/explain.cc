// capgate explain: a diagnostic code, a rule of check, a capability, a manifest or a capgate.yaml
// in words.
#include <algorithm>

#include "base/codes.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/explain_config.h"
#include "cli/load.h"
#include "core/describe.h"
#include "core/rights.h"
#include "core/scope.h"
#include "review/lint_rules.h"
#include "review/textconv.h"
#include "sys/file.h"
#include "text/json_or_yaml.h"

namespace capgate::cli {
namespace {

using text::JsonWriter;

constexpr Option options[] = {
    {.name = "--textconv", .help = "FILE as plain lines, for git diff; a broken one as it is"},
    tool_option,
    set_option,
    seal_option,
    validators_option,
    json_option,
};

bool looks_like_code(std::string_view word) {
  return (word.contains('_') || review::find_rule(word) != nullptr) &&
         std::ranges::all_of(word, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

bool looks_like_capability(std::string_view word) {
  constexpr std::string_view kinds[] = {
      "fs:", "net:", "exec:", "env:", "ipc:", "clock:", "limit:", "assert:"};
  return std::ranges::any_of(kinds, [&](std::string_view kind) { return word.starts_with(kind); });
}

// Breaks text into lines of at most 80 characters at its spaces.
std::string wrap(std::string_view text) {
  std::string out;
  std::size_t width = 0;
  for (const std::string_view word : split(text, ' ')) {
    if (width > 0 && width + 1 + word.size() > 80) {
      out += '\n';
      width = 0;
    } else if (width > 0) {
      out += ' ';
      ++width;
    }
    out += word;
    width += word.size();
  }
  return out;
}

int explain_rule(const review::Rule& rule, bool as_json, Output& output) {
  const std::string_view level = review::level_name(rule.level);
  if (as_json) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("code").string(rule.id).key("level").string(level);
    json.key("summary").string(rule.summary).key("detail").string(rule.detail).end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  output.out += format("{} ({}): {}\n\n{}\n", rule.id, level, rule.summary, wrap(rule.detail));
  return Exit::ok;
}

int explain_code(std::string_view word, bool as_json, Output& output) {
  if (const review::Rule* rule = review::find_rule(word)) {
    return explain_rule(*rule, as_json, output);
  }
  const auto code = find_code(word);
  if (!code) {
    std::vector<std::string_view> names;
    for (const CodeInfo& info : all_codes()) names.push_back(info.name);
    for (const review::Rule& rule : review::lint_rules()) names.push_back(rule.id);
    const auto best = closest(word, names);
    return usage_error(
        format("there is no code {}", quoted(word)),
        best ? format("did you mean {}?", *best) : "see docs/diagnostics.md and docs/lints.md",
        output);
  }
  const CodeInfo& info = code_info(*code);
  if (as_json) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("code").string(info.name).key("summary").string(info.summary);
    json.key("detail").string(info.detail).key("wrong").string(info.wrong);
    json.key("right").string(info.right).end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  output.out += format("{}: {}\n\n{}\n\n  wrong:  {}\n  right:  {}\n", info.name, info.summary,
                       wrap(info.detail), info.wrong, info.right);
  return Exit::ok;
}

int explain_capability(const std::string& word, const Arguments& arguments, Output& output) {
  const Source source("capability", word);
  const auto parsed = core::parse_capability(word, {});
  if (!parsed) return report({parsed.error()}, source, arguments, output);
  const core::Capability& capability = parsed->front();
  if (auto allowed = core::check_scope(capability, {}); !allowed) {
    allowed.error().where = Span::at(0, word.size());
    return report({allowed.error()}, source, arguments, output);
  }
  if (arguments.has("--json")) {
    JsonWriter json(JsonWriter::Style::pretty);
    json.begin_object().key("capability").string(print(capability));
    json.key("kind").string(kind_name(capability)).key("meaning").string(describe(capability));
    json.key("enforcedBy").string(enforcement(capability)).end_object();
    output.out += std::move(json).take() + "\n";
    return Exit::ok;
  }
  output.out +=
      format("{}\n  lets the server {}\n  enforced by: {}\n",
             escape_for_terminal(print(capability)), describe(capability), enforcement(capability));
  return Exit::ok;
}

// "patch; search only reads": the tools that asked for a grant, each once, in the order of the
// manifest.
std::string owners(const core::Manifest& manifest, const core::Capability& grant,
                   const core::Origins& origins) {
  std::vector<std::string> askers;
  std::vector<std::string> readers;
  const auto add = [](std::vector<std::string>& names, std::string name) {
    if (!contains(names, name)) names.push_back(std::move(name));
  };
  for (const std::uint32_t index : origins) {
    const core::Declared& declared = manifest.declared[index];
    add(core::bears_on(declared.capability, grant) ? askers : readers,
        std::string(manifest.owner(declared)));
  }
  std::erase_if(readers, [&](const std::string& name) { return contains(askers, name); });
  std::string out = join(askers, ", ");
  if (readers.empty()) return out;
  return out + format("; {} only {}", join(readers, ", "), readers.size() == 1 ? "reads" : "read");
}

void explain_as_json(const Loaded& loaded, Output& output) {
  JsonWriter json(JsonWriter::Style::pretty);
  const Source source = loaded.source();
  json.begin_object().key("name").string(loaded.manifest.name);
  json.key("version").string(loaded.manifest.version);
  json.key("manifestHash").string(loaded.manifest.hash);
  json.key("policyHash").string(loaded.policy.hash);
  json.key("grants").begin_array();
  core::for_each_grant(
      loaded.policy, [&](const core::Capability& capability, const core::Origins& origins) {
        json.begin_object().key("capability").string(print(capability));
        json.key("meaning").string(describe(capability)).key("origins").begin_array();
        for (const std::uint32_t index : origins) {
          const core::Declared& declared = loaded.manifest.declared[index];
          const auto [line, column] = source.position(declared.where.begin);
          json.begin_object().key("tool");
          if (declared.tool == core::Declared::whole_server) {
            json.null();
          } else {
            json.string(loaded.manifest.owner(declared));
          }
          json.key("line").number(line).key("column").number(column);
          json.key("capability").string(print(declared.capability)).end_object();
        }
        json.end_array().end_object();
      });
  json.end_array().end_object();
  output.out += std::move(json).take() + "\n";
}

int explain_manifest(const Wanted& wanted, const Arguments& arguments, Output& output) {
  const auto loaded = load(arguments, wanted, output);
  if (!loaded) return loaded.error();
  if (arguments.has("--json")) {
    explain_as_json(*loaded, output);
    return Exit::ok;
  }
  output.out += format("{} {} may\n", escape_for_terminal(loaded->manifest.name),
                       escape_for_terminal(loaded->manifest.version));
  bool any = false;
  core::for_each_grant(
      loaded->policy, [&](const core::Capability& capability, const core::Origins& origins) {
        any = true;
        output.out += format("  - {}\n      {}   for {}\n", describe(capability),
                             escape_for_terminal(print(capability)),
                             escape_for_terminal(owners(loaded->manifest, capability, origins)));
      });
  output.out += any ? "and nothing else.\n" : "  do nothing but compute and talk to its client.\n";
  return Exit::ok;
}

// For git, which shows nothing where this fails: what is no manifest is shown as it is.
int convert(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands.front();
  auto read = sys::read_file(path, text::largest_document);
  if (!read) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(read.error().subject),
                         sys::reason(read.error()));
    return Exit::unreadable;
  }
  const text::SharedText text = text::share(*std::move(read));
  const auto document = text::parse_json_or_yaml(path, text);
  output.out += document ? review::plain_lines(*document) : *text;
  return Exit::ok;
}

// A manifest or a capgate.yaml: what it holds tells which.
int explain_file(const Arguments& arguments, Output& output) {
  const std::string& path = arguments.operands.front();
  auto read = sys::read_file(path, text::largest_document);
  if (!read) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(read.error().subject),
                         sys::reason(read.error()));
    return Exit::unreadable;
  }
  const std::string name = path == "-" ? "<stdin>" : path;
  const text::SharedText text = text::share(*std::move(read));
  auto document = parse_document(name, text, arguments, output);
  if (!document) return document.error();
  if (is_config(**document)) return explain_config(arguments, text, output);
  return explain_manifest({.manifest = {}, .document = *std::move(document), .document_name = name},
                          arguments, output);
}

int run(const Arguments& arguments, Output& output) {
  const std::string& word = arguments.operands.front();
  if (arguments.has("--textconv") && arguments.has("--json")) {
    return usage_error("--textconv and --json exclude each other", "choose one", output);
  }
  if (arguments.has("--textconv")) return convert(arguments, output);
  if (looks_like_code(word)) return explain_code(word, arguments.has("--json"), output);
  if (looks_like_capability(word)) return explain_capability(word, arguments, output);
  return explain_file(arguments, output);
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .operands = "CODE|RULE|CAPABILITY|FILE|-",
          .summary = "Explain a code, a rule, a capability, a manifest or a capgate.yaml in words.",
          .least_operands = 1,
          .most_operands = 1,
          .options = options,
          .details = {},
          .examples =
              "  capgate explain CAP_FS_RELATIVE\n"
              "  capgate explain NET_MULTI_TENANT      a rule of capgate check\n"
              "  capgate explain 'net:connect:*.github.com:443'\n"
              "  capgate explain github.json\n"
              "  capgate explain capgate.yaml          what each server's entry stands for",
          .run = run};
}

}  // namespace capgate::cli
