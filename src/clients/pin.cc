#include "clients/pin.h"

#include <algorithm>
#include <utility>

#include "base/digest.h"
#include "text/json.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

void write_object(Value value, JsonWriter& json) {
  std::vector<text::Member> members;
  for (const text::Member member : value.members()) members.push_back(member);
  std::ranges::sort(members, {}, [](const text::Member& member) { return member.key.text(); });
  json.begin_object();
  for (const text::Member& member : members) {
    json.key(member.key.text());
    write_canonical(member.value, json);
  }
  json.end_object();
}

void write_strings(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

}  // namespace

// As deep as a document may nest, which has a limit.
void write_canonical(Value value, JsonWriter& json) {  // NOLINT(misc-no-recursion)
  switch (value.kind()) {
    case Kind::null: json.null(); return;
    case Kind::boolean: json.boolean(value.text() == "true"); return;
    case Kind::number: json.verbatim(value.text()); return;
    case Kind::string: json.string(value.text()); return;
    case Kind::array:
      json.begin_array();
      for (const Value element : value.elements()) write_canonical(element, json);
      json.end_array();
      return;
    case Kind::object: write_object(value, json); return;
  }
}

std::optional<std::string> canonical_json(std::string_view text) {
  const auto document = text::parse_json(std::string(text));
  if (!document) return {};
  JsonWriter json(JsonWriter::Style::compact);
  write_canonical(document->root(), json);
  return std::move(json).take();
}

std::string tool_hash(const PinnedTool& tool) {
  JsonWriter json(JsonWriter::Style::compact);
  json.begin_object();
  if (!tool.annotations.empty()) json.key("annotations").verbatim(tool.annotations);
  json.key("description").string(tool.description);
  if (!tool.input_schema.empty()) json.key("inputSchema").verbatim(tool.input_schema);
  json.key("name").string(tool.name);
  if (!tool.other.empty()) json.key("other").verbatim(tool.other);
  if (!tool.output_schema.empty()) json.key("outputSchema").verbatim(tool.output_schema);
  json.key("title").string(tool.title).end_object();
  return "sha256:" + sha256_hex(std::move(json).take());
}

std::string policy_hash(const std::vector<std::string>& policy) {
  JsonWriter json(JsonWriter::Style::compact);
  write_strings(json, policy);
  return "sha256:" + sha256_hex(std::move(json).take());
}

std::string without_home(std::string_view line, std::string_view home) {
  std::string out(line);
  if (home.size() < 2 || !home.starts_with('/')) return out;
  const std::size_t at = line.find(home);
  if (at == std::string_view::npos || at == 0 || line[at - 1] != ':') return out;
  const std::string_view rest = line.substr(at + home.size());
  if (!rest.empty() && rest.front() != '/' && rest.front() != '?') return out;
  return out.replace(at, home.size(), "${HOME}");
}

std::string manifest_of(const Pin& pin) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("name").string(pin.server).key("version").string("0");
  json.key("tools").begin_array();
  for (const PinnedGrants& grants : pin.grants) {
    json.begin_object().key("name").string(grants.tool);
    write_strings(json.key("capabilities"), grants.capabilities);
    json.end_object();
  }
  json.end_array();
  write_strings(json.key("serverCapabilities"), pin.shared);
  json.end_object();
  return std::move(json).take() + "\n";
}

const Pin* find_pin(const std::vector<Pin>& pins, std::string_view server) {
  const auto found = std::ranges::find(pins, server, &Pin::server);
  return found == pins.end() ? nullptr : &*found;
}

}  // namespace capgate::clients
