#include <algorithm>

#include "review/diff_print.h"
#include "text/json_write.h"

namespace capgate::review {
namespace {

using text::JsonWriter;

void write_text_or_null(JsonWriter& json, std::string_view text) {
  if (text.empty()) {
    json.null();
  } else {
    json.string(text);
  }
}

void write_changes(JsonWriter& json, const std::vector<ShownChange>& changes) {
  json.key("changes").begin_array();
  for (const ShownChange& change : changes) {
    json.begin_object().key("kind").string(kind_name(change.kind));
    json.key("capability").string(change.capability).key("words").string(change.sentence);
    write_text_or_null(json.key("before"), change.before);
    write_text_or_null(json.key("after"), change.after);
    const bool is_after = change.side == core::GrantChange::Side::after;
    json.key("side").string(is_after ? "after" : "before").key("places").begin_array();
    for (const ShownPlace& place : change.places) {
      json.begin_object();
      if (!place.name.empty()) {
        json.key("source").string(place.name).key("line").number(place.position.line);
        json.key("column").number(place.position.column);
      }
      write_text_or_null(json.key("tool"), place.tool);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

std::string_view presence_name(core::ToolChange::Presence presence) {
  using enum core::ToolChange::Presence;
  switch (presence) {
    case both: return "both";
    case added: return "added";
    case removed: return "removed";
    case every: return "every";
  }
  return {};
}

void write_parts(JsonWriter& json, const std::vector<ShownPart>& parts) {
  json.key("parts").begin_array();
  for (const ShownPart& part : parts) {
    json.begin_object().key("kind").string(kind_name(part.kind)).key("part").string(part.part);
    write_text_or_null(json.key("before"), part.before);
    write_text_or_null(json.key("after"), part.after);
    write_text_or_null(json.key("capability"), part.capability);
    write_text_or_null(json.key("place"), part.place);
    write_text_or_null(json.key("why"), part.why);
    json.end_object();
  }
  json.end_array();
}

void write_server(JsonWriter& json, const ShownServer& server) {
  json.begin_object().key("name").string(server.name);
  json.key("presence").string(server.is_new ? "added" : server.is_gone ? "removed" : "both");
  json.key("changed").boolean(server.is_changed());
  json.key("wider").boolean(may_widen(server.verdict));
  write_changes(json, server.changes);
  json.key("tools").begin_array();
  for (const ShownTool& tool : server.tools) {
    json.begin_object();
    write_text_or_null(json.key("name"), tool.name);
    json.key("presence").string(presence_name(tool.presence));
    write_changes(json, tool.changes);
    json.end_object();
  }
  json.end_array();
  write_parts(json, server.parts);
  json.end_object();
}

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& list) {
  json.key(key).begin_array();
  for (const std::string& text : list) json.string(text);
  json.end_array();
}

}  // namespace

std::string diff_json(std::span<const ShownServer> servers, const DiffFacts& facts) {
  const bool changed = std::ranges::any_of(servers, &ShownServer::is_changed);
  const bool wider = std::ranges::any_of(servers, may_widen, &ShownServer::verdict);
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("changed").boolean(changed);
  json.key("wider").boolean(wider);
  json.key("moved").boolean(std::ranges::any_of(servers, [](const ShownServer& server) {
    return std::ranges::any_of(server.tools, [](const ShownTool& tool) {
      return std::ranges::find(tool.changes, core::GrantChange::Kind::moved, &ShownChange::kind) !=
             tool.changes.end();
    });
  }));
  json.key("servers").begin_array();
  for (const ShownServer& server : servers) write_server(json, server);
  json.end_array();
  write_strings(json, "unboundVariables", facts.unbound);
  write_strings(json, "notes", facts.notes);
  return std::move(json.end_object()).take() + "\n";
}

}  // namespace capgate::review
