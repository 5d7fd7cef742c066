#include "text/json_or_yaml.h"

#include "base/text.h"
#include "text/json.h"
#include "text/yaml.h"

namespace capgate::text {
namespace {

// A JSON manifest is an object; the other beginnings of JSON get JSON's mistakes.
bool looks_like_yaml(std::string_view name, std::string_view text) {
  if (name.ends_with(".json")) return false;
  if (name.ends_with(".yaml") || name.ends_with(".yml")) return true;
  const std::string_view start = trim(text.substr(0, 4096));
  return !start.starts_with('{') && !start.starts_with('[') && !start.starts_with('"') &&
         !start.starts_with("\xef\xbb\xbf");
}

}  // namespace

Checked<Document> parse_json_or_yaml(std::string_view name, const SharedText& text) {
  return looks_like_yaml(name, *text) ? parse_yaml(text) : parse_json(text);
}

}  // namespace capgate::text
