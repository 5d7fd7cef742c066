// What toml++ and our reader make of a TOML text, as one line each. Numbers, dates and times are
// "n": ours keeps their spelling, and takes some that no calendar has.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/format.h"
#include "text/document.h"
#include <toml++/toml.h>

namespace capgate::support {

[[nodiscard]] inline std::string described_text(std::string_view text) {
  return format("{}:{}", text.size(), text);
}

[[nodiscard]] inline std::string described_table(const std::map<std::string, std::string>& table) {
  std::string out = "{";
  for (const auto& [key, value] : table) {
    out += described_text(key) + value;
  }
  return out + "}";
}

[[nodiscard]] inline std::string described(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    std::map<std::string, std::string> members;
    for (const auto& [key, value] : *table) {
      members[std::string(key.str())] = described(value);
    }
    return described_table(members);
  }
  if (const auto* array = node.as_array()) {
    std::string out = "[";
    for (const auto& element : *array) {
      out += described(element);
    }
    return out + "]";
  }
  if (const auto* string = node.as_string()) return described_text(string->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return "n";
}

[[nodiscard]] inline std::string described(text::Value value) {
  switch (value.kind()) {
    case text::Kind::string: return described_text(value.text());
    case text::Kind::boolean: return std::string(value.text());
    case text::Kind::null:
    case text::Kind::number: return "n";
    case text::Kind::array: {
      std::string out = "[";
      for (const text::Value element : value.elements()) {
        out += described(element);
      }
      return out + "]";
    }
    case text::Kind::object: {
      std::map<std::string, std::string> members;
      for (const auto [key, member] : value.members()) {
        members[std::string(key.text())] = described(member);
      }
      return described_table(members);
    }
  }
  return {};
}

// Nothing where toml++ refuses the text.
[[nodiscard]] inline std::optional<std::string> described_by_oracle(std::string_view text) {
  const toml::parse_result result = toml::parse(text);
  if (!result) return {};
  return described(result.table());
}

}  // namespace capgate::support
