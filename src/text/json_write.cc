#include "text/json_write.h"

#include <charconv>

#include "text/json_scan.h"

namespace capgate::text {
namespace {

void append_escaped(std::string& out, char c) {
  constexpr std::string_view hex = "0123456789abcdef";
  if (!needs_escape(c)) {
    out += c;
    return;
  }
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default:
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4];
      out += hex[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  // The quotes and the text in one step: almost every string is plain. The size that the function
  // is given must not be used, it is the new capacity in libstdc++ 12.
  const std::size_t begin = out.size() + 1;
  std::size_t plain = 0;
  out.resize_and_overwrite(begin + text.size() + 1, [&](char* data, std::size_t) {
    data[begin - 1] = '"';
    plain = copy_plain(text, data + begin);
    data[begin + plain] = '"';
    return begin + plain + 1;
  });
  if (plain == text.size()) return;

  out.pop_back();
  for (const char c : text.substr(plain)) {
    append_escaped(out, c);
  }
  out += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  before_value();
  append_json_string(out_, name);
  out_ += style_ == Style::pretty ? ": " : ":";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::plain_string(std::string_view text) {
  before_value();
  out_ += '"';
  // In pieces: from 2 KiB on glibc copies with `rep movsb`, which takes a microsecond to get going
  // on some processors, and a filter has three.
  constexpr std::size_t piece = 1024;
  for (; text.size() > piece; text.remove_prefix(piece)) {
    out_ += text.substr(0, piece);
  }
  out_ += text;
  out_ += '"';
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t value) {
  before_value();
  char digits[20];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  out_.append(std::begin(digits), end);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) {
  before_value();
  out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::null() {
  before_value();
  out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  ++depth_;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  if (style_ == Style::pretty && !first_) new_line();
  out_ += bracket;
  first_ = false;
  return *this;
}

void JsonWriter::before_value() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) out_ += ',';
  if (style_ == Style::pretty && depth_ > 0) new_line();
  first_ = false;
}

void JsonWriter::new_line() {
  out_ += '\n';
  out_.append(std::size_t{depth_} * 2, ' ');
}

}  // namespace capgate::text
