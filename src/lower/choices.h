// What a caller may choose for the fields of Options: one answer for the command line, the library
// and whoever else lowers.
//
//   if (auto mistake = settle_options(target, options, "--")) ...   "--user cannot be "x""
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lower/artifact.h"
#include "lower/targets.h"

namespace capgate::lower {

inline constexpr std::string_view egress_targets[] = {"spec", "squid", "nftables", "envoy",
                                                      "mitmproxy"};

struct OptionMistake {
  std::string message;
  std::string help;
};

// Brings paths into their canonical form, and finds the first value that cannot be meant: a user
// that is no two numbers, an image that could be another word, a command where the artifact holds
// none. `dashes` stands before the name of an option, as the caller writes it.
[[nodiscard]] std::optional<OptionMistake> settle_options(const Target& target, Options& options,
                                                          std::string_view dashes);

}  // namespace capgate::lower
