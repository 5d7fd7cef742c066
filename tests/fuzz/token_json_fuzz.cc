// Any bytes as the output of `cmd?json`: read_token reads the value that our JSON reader reads,
// takes whatever has the documented shape, and repeats no byte of the output in an error. Any bytes
// as a time: what parse_time reads is the same time when it is printed by the C library.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/text.h"
#include "secrets/token_json.h"
#include "text/json.h"
#include "text/json_write.h"

namespace {

using namespace capgate;
using secrets::Secret;
using secrets::Token;
using text::Kind;
using text::Value;

constexpr std::int64_t now = 1'794'000'000;
constexpr std::uint64_t most_seconds = std::uint64_t{100} * 366 * 86400;

std::expected<Token, std::string> read(std::string_view text) {
  auto printed = Secret::make(text);
  CAPGATE_ASSERT(printed.has_value());
  return secrets::read_token(*std::move(printed), now);
}

struct Expected {
  std::string value;
  std::int64_t expires = 0;
};

std::optional<std::int64_t> expected_time(Value root) {
  const auto at = root.find("expires");
  const auto in = root.find("expires_in");
  if (at.has_value() == in.has_value()) return std::nullopt;
  if (at) return at->is(Kind::string) ? secrets::parse_time(at->text()) : std::nullopt;
  const auto seconds = in->is(Kind::number) ? parse_decimal(in->text()) : std::nullopt;
  if (!seconds || *seconds > most_seconds) return std::nullopt;
  return now + static_cast<std::int64_t>(*seconds);
}

std::size_t depth_of(Value value) {
  std::size_t deepest = 0;
  if (value.is(Kind::array)) {
    for (const Value item : value.elements()) deepest = std::max(deepest, depth_of(item));
  } else if (value.is(Kind::object)) {
    for (const text::Member member : value.members()) {
      deepest = std::max(deepest, depth_of(member.value));
    }
  }
  return deepest + 1;
}

// What the documented shape says, read by the other JSON reader.
std::optional<Expected> expected_token(Value root) {
  if (!root.is(Kind::object)) return std::nullopt;
  const auto value = root.find("value");
  const auto expires = expected_time(root);
  if (!value || !value->is(Kind::string) || !expires) return std::nullopt;
  return Expected{.value = std::string(value->text()), .expires = *expires};
}

void check_against_json(const std::expected<Token, std::string>& token, const std::string& text) {
  constexpr std::size_t shallow = 17;  // the object itself and 16 levels that read_token skips
  const auto document = text::parse_json(text);
  if (!document) return;  // read_token is less strict about members that it skips
  const auto expected = expected_token(document->root());
  if (token) {
    CAPGATE_ASSERT(expected && token->value.view() == expected->value);
    CAPGATE_ASSERT(token->expires == expected->expires);
  } else {
    CAPGATE_ASSERT(!expected || depth_of(document->root()) > shallow);
  }
}

void check_written_again(const Token& token) {
  if (find_invalid_utf8(token.value.view())) return;
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("value").string(token.value.view()).key("expires_in");
  json.number(std::uint64_t{60}).end_object();
  const auto again = read(std::move(json).take());
  CAPGATE_ASSERT(again && again->value.view() == token.value.view());
  CAPGATE_ASSERT(again->expires == now + 60);
}

void check_time(std::string_view text) {
  const auto seconds = secrets::parse_time(text);
  if (!seconds) return;
  const std::time_t time = *seconds;
  std::tm parts{};
  CAPGATE_ASSERT(::gmtime_r(&time, &parts) != nullptr);
  if (parts.tm_year < -900 || parts.tm_year > 9999 - 1900) return;  // its offset left four digits
  std::array<char, 32> printed{};
  CAPGATE_ASSERT(std::strftime(printed.data(), printed.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) == 20);
  CAPGATE_ASSERT(secrets::parse_time(printed.data()) == seconds);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string refusal = read("").error();
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto token = read(text);
  CAPGATE_ASSERT(token || token.error() == refusal);
  check_against_json(token, text);
  if (token) check_written_again(*token);
  check_time(text);
  return 0;
}
