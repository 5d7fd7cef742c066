#include "egress/handshake_only.h"

#include <algorithm>

namespace capgate::egress {
namespace {

constexpr std::size_t whole_header = 5;  // type, version, length
constexpr std::size_t length_at = 3;

bool is_of_handshake(std::uint8_t type) {
  constexpr std::uint8_t change_cipher_spec = 20;
  constexpr std::uint8_t handshake = 22;  // 21: an alert
  return type >= change_cipher_spec && type <= handshake;
}

}  // namespace

std::string_view HandshakeOnly::pass(std::string_view bytes) {
  if (is_over_) return {};
  for (std::size_t at = 0; at < bytes.size();) {
    if (left_ > 0) {
      const std::size_t size = std::min(left_, bytes.size() - at);
      left_ -= size;
      at += size;
      continue;
    }
    const auto byte = static_cast<std::uint8_t>(bytes[at]);
    if (header_size_ == 0 && !is_of_handshake(byte)) {
      is_over_ = true;
      return bytes.substr(0, at);
    }
    ++at;
    if (header_size_ >= length_at) length_ = length_ << 8 | byte;
    if (++header_size_ < whole_header) continue;
    left_ = length_;
    header_size_ = length_ = 0;
  }
  return bytes;
}

}  // namespace capgate::egress
