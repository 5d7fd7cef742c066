#include "core/provenance.h"

#include "base/digest.h"
#include "text/json_write.h"

namespace capgate::core {
namespace {

using text::append_json_string;
using text::Kind;
using text::Value;

void append_strings(std::string& out, std::optional<Value> list) {
  out += '[';
  if (list && list->is(Kind::array)) {
    bool first = true;
    for (const Value item : list->elements()) {
      if (!first) out += ',';
      first = false;
      append_json_string(out, item.text());
    }
  }
  out += ']';
}

}  // namespace

std::string manifest_hash(Value root) {
  // Keys in the order of RFC 8785: name, serverCapabilities, tools, version.
  std::string canonical;
  canonical.reserve(root.document().source().size());
  canonical += "{\"name\":";
  append_json_string(canonical, root.find("name")->text());
  canonical += ",\"serverCapabilities\":";
  append_strings(canonical, root.find("serverCapabilities"));
  canonical += ",\"tools\":[";
  bool first = true;
  for (const Value tool : root.find("tools")->elements()) {
    if (!first) canonical += ',';
    first = false;
    canonical += "{\"capabilities\":";
    append_strings(canonical, tool.find("capabilities"));
    canonical += ",\"name\":";
    append_json_string(canonical, tool.find("name")->text());
    canonical += '}';
  }
  canonical += "],\"version\":";
  append_json_string(canonical, root.find("version")->text());
  canonical += '}';
  return "sha256:" + sha256_hex(canonical);
}

}  // namespace capgate::core
