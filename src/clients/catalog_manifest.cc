// The manifest of an entry, without what needs something optional that is not there.
#include "base/assert.h"
#include "base/format.h"
#include "base/ranges.h"
#include "clients/catalog.h"
#include "clients/catalog_rules.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

bool is_there(std::string_view name, const Present& present) {
  for (const core::Binding& binding : present.bindings) {
    if (binding.name == name) return true;
  }
  for (const std::string& variable : present.environment) {
    const std::string_view text = variable;
    if (text.substr(0, text.find('=')) == name) return true;
  }
  return false;
}

// NAME of env:read:NAME and env:inject:NAME?to=...
std::string_view environment_name(std::string_view capability) {
  for (const std::string_view prefix : {"env:read:", "env:inject:"}) {
    if (!capability.starts_with(prefix)) continue;
    const std::string_view rest = capability.substr(prefix.size());
    return rest.substr(0, rest.find('?'));
  }
  return {};
}

class Filter {
 public:
  Filter(const CatalogEntry& entry, const Present& present) : entry_(entry), present_(present) {}

  void copy(Value value, JsonWriter& json) const {
    switch (value.kind()) {
      case Kind::null: json.null(); return;
      case Kind::boolean:
      case Kind::number: json.verbatim(value.text()); return;
      case Kind::string: json.string(value.text()); return;
      case Kind::array: copy_list(value, json); return;
      case Kind::object: copy_object(value, json); return;
    }
  }

 private:
  [[nodiscard]] bool is_missing(std::string_view name) const {
    return contains(entry_.optional, name) && !is_there(name, present_);
  }

  [[nodiscard]] bool is_left_out(std::string_view capability) const {
    if (is_missing(environment_name(capability))) return true;
    for (const std::string_view name : core::variables_in(capability)) {
      if (is_missing(name)) return true;
    }
    return false;
  }

  void copy_list(Value list, JsonWriter& json) const {
    json.begin_array();
    for (const Value item : list.elements()) copy(item, json);
    json.end_array();
  }

  void copy_object(Value object, JsonWriter& json) const {
    json.begin_object();
    for (const text::Member member : object.members()) {
      json.key(member.key.text());
      const bool is_list =
          member.key.text() == "capabilities" || member.key.text() == "serverCapabilities";
      if (is_list && member.value.is(Kind::array)) {
        copy_capabilities(member.value, json);
      } else {
        copy(member.value, json);
      }
    }
    json.end_object();
  }

  void copy_capabilities(Value list, JsonWriter& json) const {
    json.begin_array();
    for (const Value item : list.elements()) {
      if (!item.is(Kind::string) || !is_left_out(item.text())) copy(item, json);
    }
    json.end_array();
  }

  const CatalogEntry& entry_;
  const Present& present_;
};

}  // namespace

std::string manifest_for(const CatalogEntry& entry, const Present& present) {
  if (entry.optional.empty()) return entry.manifest;
  const auto document = text::parse_json(entry.manifest);
  CAPGATE_ASSERT(document.has_value());  // it was part of the entry, which was parsed
  JsonWriter json(JsonWriter::Style::pretty);
  Filter(entry, present).copy(document->root(), json);
  return std::move(json).take() + "\n";
}

}  // namespace capgate::clients
