#include "cli/diff_sources.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/diff_config.h"
#include "cli/exit.h"
#include "cli/explain_config.h"
#include "cli/git_show.h"
#include "core/holdings.h"
#include "core/merge.h"
#include "sys/file.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::cli {
namespace {

using text::Kind;
using text::Value;

// By the word alone: a file of that name, which a change under review may add, must not come first.
bool names_revision(std::string_view word) {
  return word.contains(':') && !word.starts_with('/') && !word.starts_with("./") &&
         !word.starts_with("../");
}

std::string file_of_object(std::string_view object) {
  std::string_view path = object.substr(object.find(':') + 1);
  if (path.starts_with("./")) path.remove_prefix(2);
  return std::string(path);
}

// "main:", or "main:./" where the path starts here.
std::string revision_of_object(std::string_view object) {
  const std::size_t path = object.find(':') + 1;
  return std::string(object.substr(0, path + (object.substr(path).starts_with("./") ? 2 : 0)));
}

std::vector<std::string> strings_of(std::optional<Value> list) {
  std::vector<std::string> out;
  if (!list || !list->is(Kind::array)) return out;
  for (const Value item : list->elements()) {
    if (item.is(Kind::string)) out.emplace_back(item.text());
  }
  return out;
}

std::string text_of(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

ServerLines lines_of_entry(Value entry) {
  ServerLines out{
      .name = text_of(entry, "server"), .server = strings_of(entry.find("policy")), .tools = {}};
  const auto grants = entry.find("grants");
  if (!grants || !grants->is(Kind::array)) return out;
  for (const Value tool : grants->elements()) {
    if (!tool.is(Kind::object)) continue;
    out.tools.push_back(
        {.name = text_of(tool, "tool"), .capabilities = strings_of(tool.find("capabilities"))});
  }
  return out;
}

// Lines as a manifest, so that one reader checks all capabilities.
std::string manifest_of(const ServerLines& lines) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  const auto write_list = [&](std::string_view key, const std::vector<std::string>& list) {
    json.key(key).begin_array();
    for (const std::string& line : list) json.string(line);
    json.end_array();
  };
  json.begin_object().key("name").string(lines.name).key("version").string("0");
  write_list("serverCapabilities", lines.server);
  json.key("tools").begin_array();
  for (const ServerLines::Tool& tool : lines.tools) {
    json.begin_object().key("name").string(tool.name);
    write_list("capabilities", tool.capabilities);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).take();
}

// A lock states the policy of the whole server. What a tool states covers its part of it; only the
// rest is everybody's.
void keep_rest(core::Manifest& manifest) {
  core::Manifest of_tools = manifest;
  std::erase_if(of_tools.declared, [](const core::Declared& declared) {
    return declared.tool == core::Declared::whole_server;
  });
  const auto policy = core::merge(of_tools);
  if (!policy) return;
  const core::Holdings held(*policy, manifest.home);
  const core::Holdings* layers[] = {&held};
  std::erase_if(manifest.declared, [&](const core::Declared& declared) {
    if (declared.tool != core::Declared::whole_server) return false;
    if (const auto* limit = std::get_if<core::LimitCapability>(&declared.capability)) {
      return core::limit_of(layers, limit->kind) == *limit;
    }
    if (const auto* assertion = std::get_if<core::AssertCapability>(&declared.capability)) {
      return core::assertion_of(layers, assertion->id) != nullptr;
    }
    return core::covers(layers, declared.capability);
  });
}

std::expected<DiffServer, int> server_of_lines(const ServerLines& lines, const ReadSource& source,
                                               const Arguments& arguments, core::Symbols& symbols,
                                               Output& output) {
  const std::string name = format("{}, server {}", source.name, lines.name);
  auto document = parse_document(name, text::share(manifest_of(lines)), arguments, output);
  if (!document) return std::unexpected(document.error());
  auto loaded = load_symbolic(
      arguments, {.manifest = {}, .document = *std::move(document), .document_name = name}, symbols,
      output);
  if (!loaded) return std::unexpected(loaded.error());
  keep_rest(loaded->manifest);
  return DiffServer{
      .name = lines.name, .file = source.file, .loaded = *std::move(loaded), .has_places = false};
}

}  // namespace

std::unexpected<int> cannot_read(std::string_view name, std::string_view why, Output& output) {
  output.err += format("capgate: cannot read {}: {}\n", escape_for_terminal(name), why);
  return std::unexpected(static_cast<int>(Exit::unreadable));
}

std::expected<ReadSource, int> read_source(const std::string& word, Output& output) {
  if (word == "/dev/null") {
    return ReadSource{.name = word, .file = {}, .text = text::share(""), .is_nothing = true};
  }
  if (names_revision(word)) {
    auto text = git_show(word);
    if (text || text.error().is_no_file) {
      std::string unread = text ? std::string() : text.error().words;
      return ReadSource{.name = word,
                        .file = file_of_object(word),
                        .text = text::share(text ? *std::move(text) : std::string()),
                        .revision = revision_of_object(word),
                        .unread = std::move(unread)};
    }
    const auto refused = cannot_read(word, text.error().words, output);
    if (::access(word.c_str(), F_OK) == 0) {
      output.err +=
          format("help: for the file of that name write ./{}\n", escape_for_terminal(word));
    }
    return refused;
  }
  auto read = sys::read_file(word, text::largest_document);
  if (!read) return cannot_read(read.error().subject, sys::reason(read.error()), output);
  const bool is_stdin = word == "-";
  return ReadSource{.name = is_stdin ? "<stdin>" : word,
                    .file = is_stdin ? "" : word,
                    .text = text::share(*std::move(read))};
}

std::optional<std::vector<ServerLines>> lines_of_lock(const text::Document& document) {
  const Value root = document.root();
  if (!root.is(Kind::object) || root.find("tools") || !root.find("schemaVersion")) return {};
  const auto servers = root.find("servers");
  if (!servers || !servers->is(Kind::array)) return {};
  std::vector<ServerLines> out;
  for (const Value entry : servers->elements()) {
    if (!entry.is(Kind::object)) return {};
    out.push_back(lines_of_entry(entry));
  }
  return out;
}

std::expected<std::vector<DiffServer>, int> read_servers(const ReadSource& source,
                                                         const Arguments& arguments,
                                                         core::Symbols& symbols, Output& output) {
  std::vector<DiffServer> out;
  if (source.is_nothing) return out;
  auto document = parse_document(source.name, source.text, arguments, output);
  if (!document) return std::unexpected(document.error());
  if (const auto locked = lines_of_lock(**document)) {
    for (const ServerLines& lines : *locked) {
      auto server = server_of_lines(lines, source, arguments, symbols, output);
      if (!server) return std::unexpected(server.error());
      out.push_back(*std::move(server));
    }
    return out;
  }
  if (is_config(**document)) {
    return config_servers(source, **document, arguments, symbols, output);
  }
  auto loaded = load_symbolic(
      arguments, {.manifest = {}, .document = *std::move(document), .document_name = source.name},
      symbols, output);
  if (!loaded) return std::unexpected(loaded.error());
  const std::string name = loaded->manifest.name;
  out.push_back({.name = name, .file = source.file, .loaded = *std::move(loaded)});
  return out;
}

}  // namespace capgate::cli
