#include "cli/load.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/diagnostics_json.h"
#include "cli/exit.h"
#include "core/merge.h"
#include "core/seal.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/json_write.h"
#include "text/yaml.h"

namespace capgate::cli {
namespace {

// More than this is noise for a person; programs get all of them.
constexpr std::size_t most_shown = 100;

Colour stderr_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return Colour::off;
  if (term == nullptr || std::string_view(term) == "dumb") return Colour::off;
  return sys::is_terminal(2) ? Colour::on : Colour::off;
}

// By its name where that says it, else by its first character: a JSON manifest is an object.
bool looks_like_yaml(std::string_view name, std::string_view text) {
  if (name.ends_with(".json")) return false;
  if (name.ends_with(".yaml") || name.ends_with(".yml")) return true;
  const std::string_view start = trim(text.substr(0, 4096));
  return !start.starts_with('{') && !start.starts_with('[') && !start.starts_with('"') &&
         !start.starts_with("\xef\xbb\xbf");
}

Checked<text::Document> parse_text(std::string_view name, const text::SharedText& text) {
  return looks_like_yaml(name, *text) ? text::parse_yaml(text) : text::parse_json(text);
}

std::expected<std::unique_ptr<text::Document>, int> load_document(const std::string& path,
                                                                  const Arguments& arguments,
                                                                  Output& output) {
  auto read = sys::read_file(path, text::largest_document);
  if (!read) {
    output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(read.error().subject),
                         sys::reason(read.error()));
    return std::unexpected(Exit::unreadable);
  }
  return parse_document(path == "-" ? "<stdin>" : path, text::share(*std::move(read)), arguments,
                        output);
}

std::expected<core::Bindings, int> read_bindings(const Arguments& arguments, Output& output) {
  core::Bindings bindings;
  for (const std::string& word : arguments.values("--set")) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool valid =
        equals != std::string::npos && !name.empty() && !is_digit(name.front()) &&
        std::ranges::all_of(name, [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
    if (!valid) {
      return std::unexpected(usage_error(format("--set cannot be {}", quoted(word)),
                                         "write --set NAME=VALUE with an upper-case name", output));
    }
    auto binding = std::ranges::find(bindings, name, &core::Binding::name);
    if (binding == bindings.end()) binding = bindings.insert(bindings.end(), {.name = name});
    binding->values.push_back(word.substr(equals + 1));
  }
  return bindings;
}

// Names that capgate itself reads, whether or not the manifest uses them.
constexpr std::string_view host_variables[] = {"HOME", "XDG_RUNTIME_DIR"};

std::expected<void, int> check_bindings(const core::Bindings& bindings,
                                        const core::Manifest& manifest, Output& output) {
  for (const core::Binding& binding : bindings) {
    const bool is_host = contains(host_variables, std::string_view(binding.name));
    if (!is_host && !contains(manifest.used_variables, binding.name)) {
      return std::unexpected(usage_error(format("--set {} is not used", binding.name),
                                         "no capability holds this variable; check its name",
                                         output));
    }
    if (!is_host) continue;
    const auto path = core::parse_plain_path(binding.values.front());
    if (binding.values.size() > 1 || !path || *path == "/") {
      return std::unexpected(usage_error(format("--set {} takes one absolute path", binding.name),
                                         format("write --set {}=/home/alice", binding.name),
                                         output));
    }
  }
  return {};
}

std::string host_path(const core::Bindings& bindings, std::string_view name) {
  const std::string_view value = core::first_value(bindings, name);
  return value.empty() ? std::string() : core::parse_plain_path(value).value_or("");
}

Diagnostics unknown_tool(const core::Manifest& manifest, std::string_view tool) {
  std::vector<std::string_view> names;
  names.reserve(manifest.tools.size());
  for (const core::Tool& known : manifest.tools) names.emplace_back(known.name);
  const auto best = closest(tool, names);
  return {{.code = Code::tool_unknown,
           .where = Span::nowhere(),
           .message = format("there is no tool {}", quoted(tool)),
           .help = best ? format("did you mean {}?", escape_for_terminal(*best))
                        : "the names are in the manifest's tools"}};
}

std::expected<void, int> load_validators(const Arguments& arguments, Loaded& loaded,
                                         Output& output) {
  const auto path = arguments.value("--validators");
  if (!path) return {};
  const auto document = load_document(std::string(*path), arguments, output);
  if (!document) return std::unexpected(document.error());
  auto validators = core::parse_validators(**document);
  if (!validators) {
    const Source source(std::string(*path), (*document)->source());
    return std::unexpected(report(validators.error(), source, arguments, output));
  }
  loaded.options.validators = *std::move(validators);
  return {};
}

// The words of --allow as a manifest of their own, so that one reader checks all capabilities.
std::string manifest_of(const std::vector<std::string>& allow) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("name").string("command line").key("version").string("0");
  json.key("tools").begin_array().end_array().key("serverCapabilities").begin_array();
  for (const std::string& word : allow) json.string(word);
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

std::expected<Loaded, int> parse_loaded(Loaded loaded, const Arguments& arguments,
                                        const core::Bindings& bindings, Output& output) {
  auto manifest = core::parse_manifest(*loaded.document, bindings);
  if (!manifest) {
    return std::unexpected(report(manifest.error(), loaded.source(), arguments, output));
  }
  loaded.manifest = *std::move(manifest);
  return loaded;
}

std::expected<Loaded, int> load_allowed(const Arguments& arguments, const Wanted& wanted,
                                        const core::Bindings& bindings, Output& output) {
  Loaded loaded{.name = "--allow"};
  auto document = text::parse_json(manifest_of(wanted.allow));
  if (!document) {  // a word that is not UTF-8
    const Source source("--allow", "");
    return std::unexpected(report(document.error(), source, arguments, output));
  }
  loaded.document = std::make_unique<text::Document>(*std::move(document));
  return parse_loaded(std::move(loaded), arguments, bindings, output);
}

std::expected<Loaded, int> load_capabilities(const Arguments& arguments, const Wanted& wanted,
                                             const core::Bindings& bindings, Output& output) {
  if (wanted.document) {
    return parse_loaded({.name = wanted.document_name, .document = wanted.document}, arguments,
                        bindings, output);
  }
  if (wanted.manifest.empty()) return load_allowed(arguments, wanted, bindings, output);
  Loaded loaded{.name = wanted.manifest == "-" ? "<stdin>" : wanted.manifest};
  auto document = load_document(wanted.manifest, arguments, output);
  if (!document) return std::unexpected(document.error());
  loaded.document = *std::move(document);
  auto parsed = parse_loaded(std::move(loaded), arguments, bindings, output);
  if (!parsed || wanted.allow.empty()) return parsed;

  auto allowed = load_allowed(arguments, wanted, bindings, output);
  if (!allowed) return allowed;
  for (core::Declared& declared : allowed->manifest.declared) {
    declared.where = Span::nowhere();  // it stands in no file
    parsed->manifest.declared.push_back(std::move(declared));
  }
  for (std::string& name : allowed->manifest.used_variables) {
    parsed->manifest.used_variables.push_back(std::move(name));
  }
  return parsed;
}

// Seals what is asked for, and checks what is sealed.
std::expected<void, int> seal(const Arguments& arguments, Loaded& loaded, Output& output) {
  Diagnostics mistakes;
  if (loaded.options.seal || loaded.manifest.seal) {
    mistakes = core::seal_variables(loaded.manifest);
  }
  if (mistakes.empty()) mistakes = core::check_seals(loaded.manifest);
  if (mistakes.empty()) return {};
  return std::unexpected(report(mistakes, loaded.source(), arguments, output));
}

}  // namespace

std::expected<std::unique_ptr<text::Document>, int> parse_document(const std::string& name,
                                                                   const text::SharedText& text,
                                                                   const Arguments& arguments,
                                                                   Output& output) {
  auto document = parse_text(name, text);
  if (!document) {
    return std::unexpected(report(document.error(), Source(name, *text), arguments, output));
  }
  return std::make_unique<text::Document>(*std::move(document));
}

std::expected<Loaded, int> load(const Arguments& arguments, Output& output) {
  return load(arguments, {.manifest = arguments.operands.front(), .allow = {}}, output);
}

std::expected<Loaded, int> load(const Arguments& arguments, const Wanted& wanted, Output& output) {
  auto bindings = read_bindings(arguments, output);
  if (!bindings) return std::unexpected(bindings.error());
  if (!wanted.home.empty() && core::first_value(*bindings, "HOME").empty()) {
    bindings->push_back({.name = "HOME", .values = {wanted.home}});
  }
  core::Bindings all = *bindings;
  for (const core::Binding& binding : wanted.variables) {
    if (core::first_value(all, binding.name).empty()) all.push_back(binding);
  }
  auto started = load_capabilities(arguments, wanted, all, output);
  if (!started) return std::unexpected(started.error());
  Loaded loaded = *std::move(started);
  if (auto used = check_bindings(*bindings, loaded.manifest, output); !used) {
    return std::unexpected(used.error());
  }

  std::optional<std::uint32_t> tool;
  if (const auto name = arguments.value("--tool")) {
    tool = loaded.manifest.find_tool(*name);
    if (!tool) {
      return std::unexpected(
          report(unknown_tool(loaded.manifest, *name), loaded.source(), arguments, output));
    }
    loaded.options.tool = *name;
  }
  loaded.options.seal = arguments.has("--seal") || wanted.seal;
  if (auto sealed = seal(arguments, loaded, output); !sealed) {
    return std::unexpected(sealed.error());
  }
  auto policy = core::merge(loaded.manifest, tool);
  if (!policy) return std::unexpected(report(policy.error(), loaded.source(), arguments, output));
  loaded.policy = *std::move(policy);
  if (auto done = load_validators(arguments, loaded, output); !done) {
    return std::unexpected(done.error());
  }
  const Diagnostics unverified =
      core::check_assertions(loaded.policy, loaded.manifest, loaded.options.validators);
  if (!unverified.empty()) {
    return std::unexpected(report(unverified, loaded.source(), arguments, output));
  }
  loaded.options.home = host_path(*bindings, "HOME");
  loaded.options.runtime_dir = host_path(*bindings, "XDG_RUNTIME_DIR");
  return loaded;
}

int report(const Diagnostics& diagnostics, const Source& source, const Arguments& arguments,
           Output& output) {
  const int code =
      std::ranges::any_of(diagnostics, [](const Diagnostic& d) { return is_document_code(d.code); })
          ? Exit::unreadable
          : Exit::compile_error;
  if (arguments.has("--json")) {
    output.out += diagnostics_json(diagnostics, source);
    return code;
  }
  const Colour colour = stderr_colour();
  for (std::size_t i = 0; i < std::min(diagnostics.size(), most_shown); ++i) {
    output.err += render(diagnostics[i], source, colour);
  }
  if (diagnostics.size() > most_shown) {
    output.err +=
        format("... and {} more; --json shows all of them\n", diagnostics.size() - most_shown);
  }
  return code;
}

int usage_error(std::string_view message, std::string_view help, Output& output) {
  output.err += format("capgate: {}\nhelp: {}\n", message, help);
  return Exit::usage;
}

}  // namespace capgate::cli
