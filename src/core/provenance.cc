#include "core/provenance.h"

#include "base/digest.h"
#include "text/json_write.h"

namespace capgate::core {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

void write_strings(JsonWriter& json, std::optional<Value> list) {
  json.begin_array();
  if (list && list->is(Kind::array)) {
    for (const Value item : list->elements()) json.string(item.text());
  }
  json.end_array();
}

}  // namespace

std::string manifest_hash(Value root) {
  // The writer's compact form is RFC 8785's, if the keys come in its order, which is that of names.
  JsonWriter json(JsonWriter::Style::compact);
  json.reserve(root.document().source().size());
  json.begin_object().key("name").string(root.find("name")->text());
  // Only where it changes what the manifest says, so that other manifests keep their hash.
  const auto seal = root.find("seal");
  if (seal && seal->text() == "true") json.key("seal").boolean(true);
  write_strings(json.key("serverCapabilities"), root.find("serverCapabilities"));
  json.key("tools").begin_array();
  for (const Value tool : root.find("tools")->elements()) {
    write_strings(json.begin_object().key("capabilities"), tool.find("capabilities"));
    json.key("name").string(tool.find("name")->text()).end_object();
  }
  json.end_array().key("version").string(root.find("version")->text()).end_object();
  return "sha256:" + sha256_hex(std::move(json).take());
}

}  // namespace capgate::core
