// The reverse of base64() in base/digest.h, strict: one text for the same bytes, and no other.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capgate {

[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace capgate
