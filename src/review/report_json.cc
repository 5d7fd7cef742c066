// A report as data: `capgate report --json`.
#include "review/report.h"
#include "text/json_write.h"

namespace capgate::review {
namespace {

using text::JsonWriter;

void string_or_null(JsonWriter& json, std::string_view name, std::string_view text) {
  json.key(name);
  if (text.empty()) {
    json.null();
  } else {
    json.string(text);
  }
}

void strings(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.string(text);
  json.end_array();
}

void write_line(JsonWriter& json, const Line& line) {
  json.begin_object().key("door").string(door_name(line.door));
  json.key("capability").string(line.capability).key("meaning").string(line.meaning);
  json.key("held").string(held_name(line.held)).key("by").string(line.by);
  json.key("widened").boolean(line.is_wider);
  string_or_null(json, "before", line.before);
  json.key("origins").begin_array();
  for (const Origin& origin : line.origins) {
    json.begin_object();
    string_or_null(json, "tool", origin.tool);
    json.key("place").string(origin.place);
    json.key("capability").string(origin.capability).end_object();
  }
  json.end_array().end_object();
}

void write_tool(JsonWriter& json, const ToolRow& tool) {
  json.begin_object();
  string_or_null(json, "name", tool.name);
  json.key("place").string(tool.place).key("new").boolean(tool.is_new);
  json.key("capabilities").begin_array();
  for (const ToolLine& line : tool.lines) {
    json.begin_object().key("capability").string(line.capability);
    json.key("meaning").string(line.meaning).key("widened").boolean(line.is_wider).end_object();
  }
  json.end_array().end_object();
}

void write_change(JsonWriter& json, const Change& change) {
  json.begin_object().key("kind").string(change_name(change.kind));
  string_or_null(json, "tool", change.tool);
  json.key("capability").string(change.capability).key("meaning").string(change.meaning);
  string_or_null(json, "before", change.before);
  json.key("gone").boolean(change.is_gone).end_object();
}

void write_head(JsonWriter& json, const Report& report) {
  json.key("schemaVersion").number(1);
  json.key("server").begin_object().key("name").string(report.name);
  json.key("version").string(report.version).end_object();
  json.key("file").string(report.file).key("manifestHash").string(report.manifest_hash);
  json.key("policyHash").string(report.policy_hash).key("target").string(report.target);
  string_or_null(json, "tool", report.tool);
  string_or_null(json, "against", report.against);
  json.key("sealed").boolean(report.is_sealed);
  json.key("verdict").string(plain(report.verdict));
  json.key("counts").begin_object().key("lines").number(report.lines.size());
  json.key("widened").number(report.wider_lines());
  json.key("notEnforced").number(report.open_lines()).end_object();
}

}  // namespace

std::string report_json(const Report& report) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write_head(json, report);
  json.key("lines").begin_array();
  for (const Line& line : report.lines) write_line(json, line);
  json.end_array().key("tools").begin_array();
  for (const ToolRow& tool : report.tools) write_tool(json, tool);
  json.end_array().key("limits").begin_array();
  for (const Limit& limit : report.limits) {
    json.begin_object().key("name").string(limit.name).key("value").string(limit.value);
    json.key("default").boolean(limit.is_default).end_object();
  }
  json.end_array().key("changes").begin_array();
  for (const Change& change : report.changes) write_change(json, change);
  json.end_array();
  strings(json, "removedTools", report.removed_tools);
  strings(json, "notes", report.notes);
  strings(json, "problems", report.problems);
  strings(json, "notStopped", report.not_stopped);
  json.end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::review
