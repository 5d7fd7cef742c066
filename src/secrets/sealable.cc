#include "secrets/sealable.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"

namespace capgate::secrets {
namespace {

bool is_private_key(std::string_view value) {
  const bool is_pem = value.contains("PRIVATE KEY-----");
  const bool is_service_account = trim(value).starts_with('{') && value.contains("\"private_key\"");
  return is_pem || is_service_account;
}

}  // namespace

std::optional<Problem> why_not_sealable(std::string_view name, std::string_view value) {
  if (is_private_key(value)) {
    return Problem{
        .message = format("{} is a private key and cannot be sealed: a key signs requests, it does "
                          "not stand in them",
                          name),
        .help = format("write env:inject:{} without to=, and the server holds the key", name)};
  }
  if (std::ranges::any_of(value, is_control)) {
    return Problem{
        .message = format("{} cannot be sealed: it holds a line break or another control "
                          "character, which no request carries",
                          name),
        .help = "bind the token alone, without what stands around it"};
  }
  if (value.size() < shortest_sealed) {
    return Problem{.message = format("{} cannot be sealed: it has fewer than {} bytes, and would "
                                     "be found where it does not stand",
                                     name, shortest_sealed),
                   .help = "is it the right value? Tokens are longer"};
  }
  return std::nullopt;
}

}  // namespace capgate::secrets
