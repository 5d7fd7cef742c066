#include "lower/export_meta.h"

#include "lower/common.h"
#include "text/json_write.h"

namespace capgate::lower {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

void copy_text(JsonWriter& json, std::string_view key, Value from) {
  const auto value = from.find(key);
  if (value && value->is(Kind::string)) json.key(key).string(value->text());
}

void copy_capabilities(JsonWriter& json, std::string_view key, Value from) {
  const auto list = from.find(key);
  if (!list || !list->is(Kind::array)) return;
  json.key(key).begin_array();
  for (const Value item : list->elements()) json.string(item.text());
  json.end_array();
}

// As it is spelled, variables too: the values of today's caller are not the author's.
void write_manifest(JsonWriter& json, Value manifest) {
  json.begin_object();
  copy_text(json, "name", manifest);
  copy_text(json, "version", manifest);
  copy_text(json, "description", manifest);
  copy_text(json, "grammar", manifest);
  const auto seal = manifest.find("seal");
  if (seal && seal->text() == "true") json.key("seal").boolean(true);
  copy_capabilities(json, "serverCapabilities", manifest);
  json.key("tools").begin_array();
  for (const Value tool : manifest.find("tools")->elements()) {
    json.begin_object();
    copy_text(json, "name", tool);
    copy_text(json, "description", tool);
    copy_capabilities(json, "capabilities", tool);
    json.end_object();
  }
  json.end_array().end_object();
}

}  // namespace

Checked<Artifact> export_to_meta(const Input& input, Value manifest) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key(meta_key).begin_object().key("schemaVersion").number(1);
  write_manifest(json.key("manifest"), manifest);
  json.end_object().end_object();

  Artifact artifact;
  artifact.files.push_back({.name = "meta.json", .contents = std::move(json).take() + '\n'});
  artifact.notes = policy_notes(input);
  artifact.notes.emplace_back(
      "mcpb-meta: it carries the permissions and enforces nothing: put it into _meta of "
      "manifest.json or server.json");
  Support support("mcpb-meta", input);
  artifact.unenforced = TRY(std::move(support).finish());
  return artifact;
}

}  // namespace capgate::lower
