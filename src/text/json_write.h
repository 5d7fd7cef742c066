// JSON out. Strings are escaped as RFC 8785 demands, so that hashes and files agree everywhere.
//
//   JsonWriter json(JsonWriter::Style::pretty);
//   json.begin_object().key("name").string("x").key("ports").begin_array().number(443).end_array();
//   json.end_object();
//   std::string text = std::move(json).take();
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace capgate::text {

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
  // JSON that is written already, such as a number in its own spelling.
  JsonWriter& verbatim(std::string_view json) { return literal(json); }
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  void reserve(std::size_t bytes) { (void)room(bytes); }
  [[nodiscard]] std::string take() &&;

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& literal(std::string_view text);

  // Where to write the next bytes: there is room for so many.
  [[nodiscard]] char* room(std::size_t bytes) {
    if (buffer_.size() - size_ < bytes) grow(bytes);
    return buffer_.data() + size_;
  }
  void grow(std::size_t bytes);
  // The same after the comma and the indentation that come before a value.
  [[nodiscard]] char* start_value(std::size_t bytes);
  [[nodiscard]] char* quote(char* to, std::string_view text);
  [[nodiscard]] char* indent(char* to) const;
  void written_up_to(const char* end) { size_ = static_cast<std::size_t>(end - buffer_.data()); }

  std::string buffer_;  // its size is the room that there is; `size_` bytes of it are written
  std::size_t size_ = 0;
  Style style_;
  unsigned depth_ = 0;
  bool first_ = true;  // nothing written yet inside the innermost bracket
  bool after_key_ = false;
};

}  // namespace capgate::text
