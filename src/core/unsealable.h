// Secrets that cannot be sealed, known by the names that programs give them. A sealed value is put
// into a request in place of a placeholder; that needs a secret which is itself sent. One that
// signs requests is never sent: the server computes with it, so it must hold it.
//
//   why_unsealable("AWS_SECRET_ACCESS_KEY")  -> "it signs requests and is never sent itself"
//   why_unsealable("GITHUB_TOKEN")           -> nothing
//
// A table of names cannot be complete. What it does not know fails closed: the service refuses a
// signature that was made with a placeholder.
#pragma once

#include <optional>
#include <string_view>

namespace capgate::core {

[[nodiscard]] std::optional<std::string_view> why_unsealable(std::string_view variable);

}  // namespace capgate::core
