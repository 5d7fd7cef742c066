#include "cli/explain_config.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/entry.h"
#include "cli/exit.h"
#include "core/describe.h"
#include "text/yaml.h"

namespace capgate::cli {
namespace {

using clients::FoundServer;
using text::JsonWriter;

// Where a declaration stands: in the config itself, or in the manifest that it names.
struct Declaration {
  const core::Declared& declared;
  std::size_t line;
  std::size_t column;
};

template <typename Use>
void each_declaration(const Loaded& loaded, Use use) {
  const Source source = loaded.source();
  for (const core::Declared& declared : loaded.manifest.declared) {
    const auto [line, column] = source.position(declared.where.begin);
    use(Declaration{declared, line, column});
  }
}

std::vector<std::string> notes_of(const FoundServer& entry, const Loaded& loaded) {
  std::vector<std::string> out = entry.server.notes;
  out.insert(out.end(), loaded.manifest.notes.begin(), loaded.manifest.notes.end());
  if (!entry.server.enabled) out.emplace_back("enabled: false: run refuses it, and wrap skips it");
  return out;
}

void write_json(JsonWriter& json, const FoundServer& entry, const Loaded& loaded) {
  json.begin_object().key("name").string(entry.server.name);
  json.key("enabled").boolean(entry.server.enabled).key("command").begin_array();
  for (const std::string& word : entry.server.command) json.string(word);
  json.end_array().key("capabilities").begin_array();
  each_declaration(loaded, [&](const Declaration& each) {
    json.begin_object().key("capability").string(print(each.declared.capability));
    json.key("meaning").string(describe(each.declared.capability));
    json.key("file").string(loaded.name).key("line").number(each.line);
    json.key("column").number(each.column).end_object();
  });
  json.end_array().key("secrets").begin_array();
  for (const std::string& secret : entry.server.secrets) json.string(secret);
  json.end_array().key("notes").begin_array();
  for (const std::string& note : notes_of(entry, loaded)) json.string(note);
  json.end_array().key("policyHash").string(loaded.policy.hash).end_object();
}

std::string words(const FoundServer& entry, const Loaded& loaded) {
  std::string out = format("{} may\n", entry.server.name);
  each_declaration(loaded, [&](const Declaration& each) {
    out += format("  - {}\n      {}   {}:{}\n", describe(each.declared.capability),
                  escape_for_terminal(print(each.declared.capability)),
                  escape_for_terminal(loaded.name), each.line);
  });
  out += loaded.manifest.declared.empty() ? "  do nothing but compute and talk to its client.\n"
                                          : "and nothing else.\n";
  for (const std::string& secret : entry.server.secrets) {
    out += format("secret: {}\n", escape_for_terminal(secret));
  }
  for (const std::string& note : notes_of(entry, loaded)) out += format("note: {}\n", note);
  return out;
}

std::string http_words(const FoundServer& entry) {
  return format("{} is an HTTP server ({}): it does not run here, and nothing here confines it.\n",
                entry.server.name, escape_for_terminal(entry.server.url));
}

}  // namespace

bool is_config(const text::Document& document) {
  const text::Value root = document.root();
  return root.is(text::Kind::object) && root.find("servers") && !root.find("tools");
}

int explain_config(const Arguments& arguments, const text::SharedText& text, Output& output) {
  const std::string file =
      arguments.operands.front() == "-" ? "<stdin>" : arguments.operands.front();
  auto config = clients::read_config_text(file, text, config_places(arguments));
  if (!config) return report(config.error(), arguments, output);
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("servers").begin_array();
  int code = Exit::ok;
  std::string said;
  for (const FoundServer& entry : *config) {
    if (!said.empty()) said += '\n';
    if (!entry.server.url.empty()) {
      said += http_words(entry);
      json.begin_object().key("name").string(entry.server.name);
      json.key("url").string(entry.server.url).end_object();
      continue;
    }
    const auto loaded = load_entry(arguments, entry, entry.server.command, output);
    if (!loaded) {
      code = std::max(code, loaded.error());
      continue;
    }
    write_json(json, entry, loaded->loaded);
    said += words(entry, loaded->loaded);
  }
  json.end_array().end_object();
  // Diagnostics as JSON are a document of their own.
  if (code != Exit::ok && arguments.has("--json")) return code;
  output.out += arguments.has("--json") ? std::move(json).take() + "\n" : said;
  return code;
}

}  // namespace capgate::cli
