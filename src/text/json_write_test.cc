#include "text/json_write.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace capgate::text {
namespace {

// One byte after the other, as RFC 8785 says it.
std::string escaped_slowly(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  constexpr std::string_view special = "\b\t\n\f\r\"\\";
  constexpr std::string_view letters = "btnfr\"\\";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t at = special.find(c); at != std::string_view::npos) {
      out += '\\';
      out += letters[at];
    } else if (byte < 0x20) {
      out += "\\u00";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string written(std::string_view text) {
  JsonWriter json(JsonWriter::Style::compact);
  json.string(text);
  return std::move(json).take();
}

RC_GTEST_PROP(JsonString, IsEscapedLikeTheSlowWay, (const std::string& text)) {
  RC_ASSERT(written(text) == escaped_slowly(text));
}

// Eight bytes are looked at together: each byte at each place of texts around that size.
TEST(JsonString, EscapesEveryByteAtEveryPlace) {
  for (std::size_t size = 1; size <= 20; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text(size, 'x');
        text[place] = static_cast<char>(byte);
        ASSERT_EQ(written(text), escaped_slowly(text)) << "size " << size << ", byte " << byte;
      }
    }
  }
}

// What was written must not depend on when the buffer had to grow.
TEST(JsonWriter, WritesTheSameWhileItsBufferGrows) {
  JsonWriter json(JsonWriter::Style::compact);
  std::string expected = "[";
  json.begin_array();
  for (std::size_t size = 0; size < 300; ++size) {
    const std::string text(size, 'y');
    json.string(text).plain_string(text + text);
    expected += (size == 0 ? "" : ",") + escaped_slowly(text) + "," + escaped_slowly(text + text);
  }
  const std::string large(5000, 'z');
  json.plain_string(large).end_array();
  EXPECT_EQ(std::move(json).take(), expected + ",\"" + large + "\"]");
}

}  // namespace
}  // namespace capgate::text
