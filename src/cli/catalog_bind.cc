#include "cli/catalog_bind.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using text::JsonWriter;

clients::CommandContext context_of(std::vector<std::string> words) {
  clients::CommandContext context{.arguments = std::move(words)};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    context.environment.emplace_back(*variable);
  }
  if (const char* home = std::getenv("HOME")) context.home = home;
  std::error_code failed;
  context.directory = std::filesystem::current_path(failed).string();
  return context;
}

}  // namespace

int bind_entry(const clients::CatalogEntry& entry, std::vector<std::string> words, bool as_json,
               Output& output) {
  const clients::CommandContext context = context_of(std::move(words));
  const auto bindings = clients::bind_command(entry, context);
  if (!bindings) {
    for (const Diagnostic& diagnostic : bindings.error()) {
      output.err += format("capgate: {}\nhelp: {}\n", diagnostic.message, diagnostic.help);
    }
    return Exit::compile_error;
  }
  if (!as_json) {
    for (const core::Binding& binding : *bindings) {
      for (const std::string& value : binding.values) {
        output.out += format("{}={}\n", binding.name, escape_for_terminal(value));
      }
    }
    return Exit::ok;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("name").string(entry.name);
  json.key("variables").begin_object();
  for (const core::Binding& binding : *bindings) {
    json.key(binding.name).begin_array();
    for (const std::string& value : binding.values) json.string(value);
    json.end_array();
  }
  json.end_object().key("manifest");
  json.verbatim(trim(
      clients::manifest_for(entry, {.bindings = *bindings, .environment = context.environment})));
  output.out += std::move(json.end_object()).take() + "\n";
  return Exit::ok;
}

}  // namespace capgate::cli
