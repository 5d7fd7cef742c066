#include "cli/load.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/text.h"
#include "cli/diagnostics_json.h"
#include "cli/exit.h"
#include "cli/load_symbolic.h"
#include "core/prepare.h"
#include "core/variables.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/json_or_yaml.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

// More than this is noise for a person; programs get all of them.
constexpr std::size_t most_shown = 100;

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
    if (equals == std::string::npos || !core::is_variable_name(name)) {
      return std::unexpected(usage_error(format("--set cannot be {}", quoted(word)),
                                         "write --set NAME=VALUE with an upper-case name", output));
    }
    auto binding = std::ranges::find(bindings, name, &core::Binding::name);
    if (binding == bindings.end()) binding = bindings.insert(bindings.end(), {.name = name});
    binding->values.push_back(word.substr(equals + 1));
  }
  return bindings;
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

// What the values of variables are, and what stands for those that have none (null: a mistake).
struct Values {
  core::Bindings bindings;
  core::Symbols* symbols = nullptr;
};

std::expected<Loaded, int> parse_loaded(Loaded loaded, const Arguments& arguments,
                                        const Values& values, Output& output) {
  auto manifest = values.symbols != nullptr
                      ? core::parse_manifest(*loaded.document, values.bindings, *values.symbols)
                      : core::parse_manifest(*loaded.document, values.bindings);
  if (!manifest) {
    return std::unexpected(report(manifest.error(), loaded.source(), arguments, output));
  }
  loaded.manifest = *std::move(manifest);
  return loaded;
}

std::expected<Loaded, int> load_allowed(const Arguments& arguments, const Wanted& wanted,
                                        const Values& values, Output& output) {
  Loaded loaded{.name = "--allow"};
  auto document = text::parse_json(manifest_of(wanted.allow));
  if (!document) {  // a word that is not UTF-8
    const Source source("--allow", "");
    return std::unexpected(report(document.error(), source, arguments, output));
  }
  loaded.document = std::make_unique<text::Document>(*std::move(document));
  return parse_loaded(std::move(loaded), arguments, values, output);
}

std::expected<Loaded, int> load_capabilities(const Arguments& arguments, const Wanted& wanted,
                                             const Values& values, Output& output) {
  if (wanted.document) {
    return parse_loaded({.name = wanted.document_name, .document = wanted.document}, arguments,
                        values, output);
  }
  if (wanted.manifest.empty()) return load_allowed(arguments, wanted, values, output);
  Loaded loaded{.name = wanted.manifest == "-" ? "<stdin>" : wanted.manifest};
  auto document = load_document(wanted.manifest, arguments, output);
  if (!document) return std::unexpected(document.error());
  loaded.document = *std::move(document);
  auto parsed = parse_loaded(std::move(loaded), arguments, values, output);
  if (!parsed || wanted.allow.empty()) return parsed;

  auto allowed = load_allowed(arguments, wanted, values, output);
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

}  // namespace

Colour stderr_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_colour != nullptr && *no_colour != '\0') return Colour::off;
  if (term == nullptr || std::string_view(term) == "dumb") return Colour::off;
  return sys::is_terminal(2) ? Colour::on : Colour::off;
}

std::expected<std::unique_ptr<text::Document>, int> parse_document(const std::string& name,
                                                                   const text::SharedText& text,
                                                                   const Arguments& arguments,
                                                                   Output& output) {
  auto document = text::parse_json_or_yaml(name, text);
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
  if (!wanted.runtime_dir.empty() && core::first_value(*bindings, "XDG_RUNTIME_DIR").empty()) {
    bindings->push_back({.name = "XDG_RUNTIME_DIR", .values = {wanted.runtime_dir}});
  }
  core::Bindings all = *bindings;
  for (const core::Binding& binding : wanted.variables) {
    if (core::first_value(all, binding.name).empty()) all.push_back(binding);
  }
  auto started = load_capabilities(arguments, wanted, {.bindings = all}, output);
  if (!started) return std::unexpected(started.error());
  Loaded loaded = *std::move(started);
  if (const auto mistake = core::find_binding_mistake(*bindings, loaded.manifest, "--set ")) {
    return std::unexpected(usage_error(mistake->message, mistake->help, output));
  }

  auto tool = arguments.value("--tool");
  if (!tool && !wanted.tool.empty()) tool = wanted.tool;
  loaded.options.tool = tool.value_or("");
  loaded.options.seal = arguments.has("--seal") || wanted.seal;
  auto policy = core::make_policy(loaded.manifest, {.tool = tool, .seal = loaded.options.seal});
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
  loaded.options.home = core::host_path(*bindings, "HOME");
  loaded.options.runtime_dir = core::host_path(*bindings, "XDG_RUNTIME_DIR");
  return loaded;
}

std::expected<Loaded, int> load_symbolic(const Arguments& arguments, const Wanted& wanted,
                                         core::Symbols& symbols, Output& output) {
  auto bindings = read_bindings(arguments, output);
  if (!bindings) return std::unexpected(bindings.error());
  for (const core::Binding& binding : wanted.variables) {
    if (core::first_value(*bindings, binding.name).empty()) bindings->push_back(binding);
  }
  auto started = load_capabilities(arguments, wanted,
                                   {.bindings = *std::move(bindings), .symbols = &symbols}, output);
  if (!started) return started;
  auto policy = core::make_policy(started->manifest, {.tool = {}, .seal = wanted.seal});
  if (policy) {
    started->policy = *std::move(policy);
    return started;
  }
  for (Diagnostic& mistake : policy.error()) {
    mistake.message = symbols.show(mistake.message);
    mistake.help = symbols.show(mistake.help);
  }
  return std::unexpected(report(policy.error(), started->source(), arguments, output));
}

std::expected<void, int> check_bindings(const Arguments& arguments,
                                        const std::vector<std::string>& used_variables,
                                        Output& output) {
  const auto bindings = read_bindings(arguments, output);
  if (!bindings) return std::unexpected(bindings.error());
  core::Manifest all;
  all.used_variables = used_variables;
  const auto mistake = core::find_binding_mistake(*bindings, all, "--set ");
  if (!mistake) return {};
  return std::unexpected(usage_error(mistake->message, mistake->help, output));
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
