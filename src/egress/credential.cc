#include "egress/credential.h"

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "egress/http_text.h"

namespace capgate::egress {

// Of the form in which HTTP carries it, so that nothing has to be decoded.
std::string proxy_credential(std::string_view user, std::string_view password) {
  return sha256_hex(base64(format("{}:{}", user, password)));
}

bool is_same_credential(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  }
  return difference == 0;
}

bool shows_credential(std::string_view credential, std::string_view authorization) {
  constexpr std::string_view scheme = "basic ";
  if (!equal_in_any_case(authorization.substr(0, scheme.size()), scheme)) return false;
  return is_same_credential(sha256_hex(trim(authorization.substr(scheme.size()))), credential);
}

}  // namespace capgate::egress
