#include "review/schema_value.h"

#include <algorithm>

#include "base/format.h"
#include "text/json_write.h"

namespace capgate::review {
namespace {

using List = SchemaValue::List;
using Object = SchemaValue::Object;

constexpr std::string_view new_place = "#/$defs/";
constexpr std::string_view old_place = "#/definitions/";

SchemaValue to_draft_07(const SchemaValue& schema);

// The names of these members are not keywords.
bool is_map(std::string_view keyword) {
  return keyword == "properties" || keyword == "$defs" || keyword == "patternProperties";
}

bool is_data(std::string_view keyword) {
  return keyword == "enum" || keyword == "const" || keyword == "examples" ||
         keyword == "defaultSnippets" || keyword == "default";
}

SchemaValue map_to_draft_07(const SchemaValue& map) {
  Object out;
  for (const SchemaMember& member : std::get<Object>(map.value)) {
    out.push_back({member.key, to_draft_07(member.value)});
  }
  return out;
}

std::string keyword_of_draft_07(std::string_view keyword, bool has_tuple) {
  if (keyword == "$defs") return "definitions";
  if (keyword == "prefixItems") return "items";
  if (keyword == "items" && has_tuple) return "additionalItems";
  return std::string(keyword);
}

SchemaValue keywords_to_draft_07(const Object& schema) {
  const bool has_tuple =
      std::ranges::find(schema, "prefixItems", &SchemaMember::key) != schema.end();
  Object out;
  for (const SchemaMember& member : schema) {
    const std::string_view keyword = member.key;
    SchemaValue value = member.value;
    if (const auto* text = std::get_if<std::string>(&member.value.value);
        keyword == "$ref" && text != nullptr && text->starts_with(new_place)) {
      value = format("{}{}", old_place, text->substr(new_place.size()));
    } else if (is_map(keyword)) {
      value = map_to_draft_07(member.value);
    } else if (!is_data(keyword)) {
      value = to_draft_07(member.value);
    }
    out.push_back({keyword_of_draft_07(keyword, has_tuple), std::move(value)});
  }
  return out;
}

// Draft 07 has other names for a few things, and ignores what stands beside a $ref.
SchemaValue to_draft_07(const SchemaValue& schema) {
  if (const auto* items = std::get_if<List>(&schema.value)) {
    List out;
    for (const SchemaValue& item : *items) out.push_back(to_draft_07(item));
    return out;
  }
  const auto* members = std::get_if<Object>(&schema.value);
  if (members == nullptr) return schema;
  const auto reference = std::ranges::find(*members, "$ref", &SchemaMember::key);
  if (reference == members->end() || members->size() == 1) return keywords_to_draft_07(*members);
  Object beside;
  for (const SchemaMember& member : *members) {
    if (member.key != "$ref") beside.push_back(member);
  }
  beside.push_back({"allOf", List{Object{*reference}}});
  return keywords_to_draft_07(beside);
}

void write(text::JsonWriter& json, const SchemaValue& schema) {
  if (const auto* truth = std::get_if<bool>(&schema.value)) {
    json.boolean(*truth);
  } else if (const auto* number = std::get_if<std::uint64_t>(&schema.value)) {
    json.number(*number);
  } else if (const auto* text = std::get_if<std::string>(&schema.value)) {
    json.string(*text);
  } else if (const auto* items = std::get_if<List>(&schema.value)) {
    json.begin_array();
    for (const SchemaValue& item : *items) write(json, item);
    json.end_array();
  } else {
    json.begin_object();
    for (const SchemaMember& member : std::get<Object>(schema.value)) {
      json.key(member.key);
      write(json, member.value);
    }
    json.end_object();
  }
}

}  // namespace

SchemaValue::SchemaValue(const char* text) : value(std::string(text)) {}
SchemaValue::SchemaValue(std::string_view text) : value(std::string(text)) {}
SchemaValue::SchemaValue(std::string text) : value(std::move(text)) {}
SchemaValue::SchemaValue(bool truth) : value(truth) {}
SchemaValue::SchemaValue(int number) : value(static_cast<std::uint64_t>(number)) {}
SchemaValue::SchemaValue(List list) : value(std::move(list)) {}
SchemaValue::SchemaValue(Object object) : value(std::move(object)) {}

SchemaValue object(std::initializer_list<SchemaMember> members) { return Object(members); }

SchemaValue list(std::initializer_list<SchemaValue> items) { return List(items); }

SchemaValue refer(std::string_view definition) {
  return object({{"$ref", format("{}{}", new_place, definition)}});
}

SchemaValue refuse(std::string_view pattern, std::string_view message) {
  return object(
      {{"if", object({{"type", "string"}, {"pattern", pattern}})},
       {"then", object({{"type", "string"}, {"pattern", "^$"}, {"errorMessage", message}})}});
}

std::string print(const SchemaValue& schema, Draft draft) {
  Object out = {{"$schema", draft == Draft::draft_07
                                ? "http://json-schema.org/draft-07/schema#"
                                : "https://json-schema.org/draft/2020-12/schema"}};
  const SchemaValue body = draft == Draft::draft_07 ? to_draft_07(schema) : schema;
  for (const SchemaMember& member : std::get<Object>(body.value)) out.push_back(member);
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  write(json, out);
  return std::move(json).take() + "\n";
}

}  // namespace capgate::review
