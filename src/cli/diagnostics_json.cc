#include "cli/diagnostics_json.h"

#include "text/json_write.h"

namespace capgate::cli {
namespace {

void write_place(text::JsonWriter& json, Span where, const Source& source) {
  if (where == Span::nowhere()) return;
  const auto begin = source.position(where.begin);
  const auto end = source.position(where.end);
  json.key("line").number(begin.line).key("column").number(begin.column);
  json.key("endLine").number(end.line).key("endColumn").number(end.column);
  json.key("offset").number(where.begin).key("length").number(where.end - where.begin);
}

}  // namespace

std::string diagnostics_json(const Diagnostics& diagnostics, const Source& source) {
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("diagnostics").begin_array();
  for (const Diagnostic& diagnostic : diagnostics) {
    json.begin_object();
    json.key("code").string(code_name(diagnostic.code)).key("severity").string("error");
    json.key("file").string(source.name());
    write_place(json, diagnostic.where, source);
    json.key("message").string(diagnostic.message).key("help").string(diagnostic.help);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::cli
