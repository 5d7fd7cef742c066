// The token of a proxy at a port that every program of this host can reach.
//
//   const std::string token = TRY(open_token("/home/me/.config/capgate/egress.token"));
//
// It is read from the file, which nobody else may read, or made there. It is never printed.
#pragma once

#include <expected>
#include <string>

#include "sandbox/host_path.h"

namespace capgate::sandbox {

[[nodiscard]] std::expected<std::string, Refusal> open_token(const std::string& path);

}  // namespace capgate::sandbox
