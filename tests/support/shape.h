// A parsed document, or why it was refused, as one line of text for tables in tests.
//
//   shape(parse_json(R"({"a": [1, "x"]})"))  -> {"a":[1,"x"]}
//   shape(parse_json("[1,]"))                -> DOC_SYNTAX 2-3
#pragma once

#include <string>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "text/document.h"

namespace capgate::text {

inline std::string shape(Value value) {
  std::string out;
  const auto separate = [&] { out += out.size() > 1 ? "," : ""; };
  switch (value.kind()) {
    case Kind::null: return "null";
    case Kind::boolean: return std::string(value.text());
    case Kind::number: return std::string(value.text());
    case Kind::string: return format("\"{}\"", escape_for_terminal(value.text()));
    case Kind::array:
      out = "[";
      for (const Value element : value.elements()) {
        separate();
        out += shape(element);
      }
      return out + "]";
    case Kind::object:
      out = "{";
      for (const Member member : value.members()) {
        separate();
        out += shape(member.key) + ":" + shape(member.value);
      }
      return out + "}";
  }
  return out;
}

inline std::string shape(const Checked<Document>& result) {
  if (result) return shape(result->root());
  std::string out;
  for (const Diagnostic& mistake : result.error()) {
    out += out.empty() ? "" : ", ";
    out += format("{} {}-{}", code_name(mistake.code), mistake.where.begin, mistake.where.end);
  }
  return out;
}

}  // namespace capgate::text
