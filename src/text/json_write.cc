#include "text/json_write.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "text/json_scan.h"

namespace capgate::text {
namespace {

// The longest form of one character: \u001f.
constexpr std::size_t longest_escape = 6;

char* put(char* to, std::string_view text) { return std::ranges::copy(text, to).out; }

char* put_escaped(char* to, char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  if (!needs_escape(c)) {
    *to = c;
    return to + 1;
  }
  switch (c) {
    case '"': return put(to, "\\\"");
    case '\\': return put(to, "\\\\");
    case '\b': return put(to, "\\b");
    case '\f': return put(to, "\\f");
    case '\n': return put(to, "\\n");
    case '\r': return put(to, "\\r");
    case '\t': return put(to, "\\t");
    default:
      to = put(to, "\\u00");
      *to++ = hex[static_cast<unsigned char>(c) >> 4];
      *to++ = hex[static_cast<unsigned char>(c) & 15];
      return to;
  }
}

}  // namespace

JsonWriter& JsonWriter::key(std::string_view name) {
  char* to = quote(start_value(name.size() + 4), name);
  *to++ = ':';
  if (style_ == Style::pretty) *to++ = ' ';
  written_up_to(to);
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  written_up_to(quote(start_value(text.size() + 2), text));
  return *this;
}

JsonWriter& JsonWriter::plain_string(std::string_view text) {
  char* to = start_value(text.size() + 2);
  *to++ = '"';
  // In pieces: from 2 KiB on glibc copies with `rep movsb`, which takes a microsecond to get going
  // on some processors, and a filter has three.
  constexpr std::size_t piece = 1024;
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), piece);
    std::memcpy(to, text.data(), size);
    to += size;
    text.remove_prefix(size);
  }
  *to++ = '"';
  written_up_to(to);
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t value) {
  constexpr std::size_t most_digits = 20;
  char* const to = start_value(most_digits);
  written_up_to(std::to_chars(to, to + most_digits, value).ptr);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) { return literal(value ? "true" : "false"); }

JsonWriter& JsonWriter::null() { return literal("null"); }

JsonWriter& JsonWriter::literal(std::string_view text) {
  written_up_to(put(start_value(text.size()), text));
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  literal({&bracket, 1});
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  char* to = room(2 + std::size_t{depth_} * 2);
  if (style_ == Style::pretty && !first_) to = indent(to);
  *to++ = bracket;
  written_up_to(to);
  first_ = false;
  return *this;
}

std::string JsonWriter::take() && {
  buffer_.resize(size_);
  return std::move(buffer_);
}

void JsonWriter::grow(std::size_t bytes) {
  // The size that the function is given must not be used: it is the capacity in libstdc++ 12.
  const std::size_t size = std::max(2 * buffer_.size(), size_ + bytes);
  buffer_.resize_and_overwrite(size, [size](char*, std::size_t) { return size; });
}

char* JsonWriter::start_value(std::size_t bytes) {
  char* to = room(bytes + 2 + std::size_t{depth_} * 2);
  if (after_key_) {
    after_key_ = false;
    return to;
  }
  if (!first_) *to++ = ',';
  if (style_ == Style::pretty && depth_ > 0) to = indent(to);
  first_ = false;
  return to;
}

// Almost every text is plain, and there is room for it; what follows an escape makes its own.
char* JsonWriter::quote(char* to, std::string_view text) {
  *to++ = '"';
  const std::size_t plain = copy_plain(text, to);
  to += plain;
  for (const char c : text.substr(plain)) {
    written_up_to(to);
    to = put_escaped(room(longest_escape + 3), c);
  }
  *to++ = '"';
  return to;
}

char* JsonWriter::indent(char* to) const {
  *to++ = '\n';
  return std::fill_n(to, std::size_t{depth_} * 2, ' ');
}

}  // namespace capgate::text
