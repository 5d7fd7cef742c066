// What a client of the proxy must show where others can reach the port, too: a user and a password.
//
//   policy.proxy_credential = proxy_credential(proxy_user, token);
//   shows_credential(policy.proxy_credential, "Basic Y2FwZ2F0ZTp0b2tlbg==")
//
// The broker holds a hash: it can tell whether somebody knows the token, and does not know it
// itself.
#pragma once

#include <string>
#include <string_view>

namespace capgate::egress {

inline constexpr std::string_view proxy_user = "capgate";

[[nodiscard]] std::string proxy_credential(std::string_view user, std::string_view password);

// The value of Proxy-Authorization. How long it takes does not depend on how much of it is right.
[[nodiscard]] bool shows_credential(std::string_view credential, std::string_view authorization);
[[nodiscard]] bool is_same_credential(std::string_view one, std::string_view other);

}  // namespace capgate::egress
