#include "egress/socks.h"

#include <algorithm>

#include "base/format.h"
#include "core/ipv6.h"

namespace capgate::egress {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint8_t version = 5;
constexpr std::uint8_t connect_command = 1;
constexpr std::uint8_t ipv4_type = 1;
constexpr std::uint8_t name_type = 3;
constexpr std::uint8_t ipv6_type = 4;
constexpr std::size_t request_head = 4;  // version, command, reserved, type of address

bool is_known_type(std::uint8_t type) {
  return type == ipv4_type || type == name_type || type == ipv6_type;
}

// A name carries its length in front.
std::size_t address_size(std::uint8_t type, std::uint8_t first) {
  if (type == ipv4_type) return 4;
  if (type == ipv6_type) return 16;
  return std::size_t{1} + first;
}

std::string print_address(std::uint8_t type, Bytes address) {
  if (type == ipv4_type) {
    return format("{}.{}.{}.{}", address[0], address[1], address[2], address[3]);
  }
  if (type == ipv6_type) {
    core::Ipv6Bytes bytes{};
    std::ranges::copy(address, bytes.begin());
    return "[" + core::print_ipv6(bytes) + "]";
  }
  return {address.begin() + 1, address.end()};
}

}  // namespace

SocksGreeting read_socks_greeting(std::span<const std::uint8_t> bytes) {
  if (!bytes.empty() && bytes[0] != version) return {.progress = Progress::other};
  if (bytes.size() < 2) return {};
  if (bytes[1] == 0) return {.progress = Progress::malformed};
  const std::size_t size = std::size_t{2} + bytes[1];
  if (bytes.size() < size) return {};
  const Bytes methods = bytes.subspan(2, bytes[1]);
  return {.progress = Progress::done,
          .size = size,
          .without_authentication = std::ranges::find(methods, 0) != methods.end(),
          .with_password = std::ranges::find(methods, 2) != methods.end()};
}

SocksPassword read_socks_password(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t password_version = 1;
  if (!bytes.empty() && bytes[0] != password_version) return {.progress = Progress::malformed};
  if (bytes.size() < 2) return {};
  const std::size_t user_end = std::size_t{2} + bytes[1];
  if (bytes.size() <= user_end) return {};
  const std::size_t size = user_end + 1 + bytes[user_end];
  if (bytes.size() < size) return {};
  const Bytes user = bytes.subspan(2, bytes[1]);
  const Bytes password = bytes.subspan(user_end + 1, bytes[user_end]);
  return {.progress = Progress::done,
          .size = size,
          .user = {user.begin(), user.end()},
          .password = {password.begin(), password.end()}};
}

SocksRequest read_socks_request(std::span<const std::uint8_t> bytes) {
  if (!bytes.empty() && bytes[0] != version) return {.progress = Progress::malformed};
  if (bytes.size() > 2 && bytes[2] != 0) return {.progress = Progress::malformed};
  if (bytes.size() < request_head) return {};
  const std::uint8_t type = bytes[3];
  SocksRequest request{.progress = Progress::done};
  if (bytes[1] != connect_command) request.problem = SocksReply::command_not_supported;
  if (!is_known_type(type)) {
    // How long such an address is nobody knows, so the request ends here.
    request.size = request_head;
    if (request.problem == SocksReply::succeeded) {
      request.problem = SocksReply::address_type_not_supported;
    }
    return request;
  }
  const Bytes rest = bytes.subspan(request_head);
  if (rest.empty()) return {};
  if (type == name_type && rest[0] == 0) return {.progress = Progress::malformed};
  const std::size_t size = address_size(type, rest[0]);
  if (rest.size() < size + 2) return {};
  request.size = request_head + size + 2;
  request.host = print_address(type, rest.first(size));
  request.port = static_cast<std::uint16_t>(rest[size] << 8U | rest[size + 1]);
  return request;
}

std::string socks_answer(SocksReply reply) {
  std::string answer(10, '\0');
  answer[0] = static_cast<char>(version);
  answer[1] = static_cast<char>(reply);
  answer[3] = static_cast<char>(ipv4_type);
  return answer;
}

}  // namespace capgate::egress
