// JSON out. Strings are escaped as RFC 8785 demands, so that hashes and files agree everywhere.
//
//   JsonWriter json(JsonWriter::Style::pretty);
//   json.begin_object().key("name").string("x").key("ports").begin_array().number(443).end_array();
//   json.end_object();
//   std::string text = std::move(json).take();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace capgate::text {

void append_json_string(std::string& out, std::string_view text);

class JsonWriter {
 public:
  enum class Style : unsigned char { compact, pretty };
  explicit JsonWriter(Style style) : style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& string(std::string_view text);
  // For text that is known to need no escape, such as base64: copied as it is.
  JsonWriter& plain_string(std::string_view text);
  JsonWriter& number(std::uint64_t value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void before_value();
  void new_line();

  std::string out_;
  Style style_;
  unsigned depth_ = 0;
  bool first_ = true;  // nothing written yet inside the innermost bracket
  bool after_key_ = false;
};

}  // namespace capgate::text
