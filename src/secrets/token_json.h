// What `cmd?json` prints: {"value": "...", "expires": "2026-11-15T12:00:00Z"} or with
// "expires_in": 3600. Read where it lies, in locked memory: the value is copied nowhere else.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "secrets/secret.h"

namespace capgate::secrets {

struct Token {
  Secret value;
  std::int64_t expires = 0;  // Unix seconds
};

// `now` is what expires_in counts from. The error names what is missing, without any text of it.
[[nodiscard]] std::expected<Token, std::string> read_token(Secret printed, std::int64_t now);

// RFC 3339, with any offset; a fraction of a second is dropped.
[[nodiscard]] std::optional<std::int64_t> parse_time(std::string_view text);

}  // namespace capgate::secrets
