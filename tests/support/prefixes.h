// What holds for every reader of a growing prefix: it decides at one byte, and with more bytes it
// does not think again.
//
//   const auto read = [&](std::size_t size) { return read_http_head(text.substr(0, size),
//   most).progress; }; support::find_decision(text.size(), read)  -> the size of the shortest
//   prefix that is not `more`
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "egress/hello.h"

namespace capgate::support {

using ReadPrefix = std::function<egress::Progress(std::size_t size)>;

[[nodiscard]] inline std::optional<std::size_t> find_decision(std::size_t size,
                                                              const ReadPrefix& read) {
  for (std::size_t at = 0; at <= size; ++at) {
    if (read(at) != egress::Progress::more) return at;
  }
  return std::nullopt;
}

// Also true if nothing is decided.
[[nodiscard]] inline bool keeps_decision(std::size_t size, const ReadPrefix& read) {
  const auto decision = find_decision(size, read);
  if (!decision) return true;
  const egress::Progress progress = read(*decision);
  for (std::size_t at = *decision + 1; at <= size; ++at) {
    if (read(at) != progress) return false;
  }
  return true;
}

}  // namespace capgate::support
