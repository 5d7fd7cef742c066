// What must hold for whatever a reader of a growing prefix returns, for any bytes at all.
#pragma once

#include <cstddef>

#include "base/assert.h"
#include "support/prefixes.h"

namespace capgate::fuzz {

// Reading every prefix of a long input would take the time of many inputs.
constexpr std::size_t longest_by_prefix = 600;

inline void check_prefixes(std::size_t size, const support::ReadPrefix& read) {
  if (size <= longest_by_prefix) {
    CAPGATE_ASSERT(support::keeps_decision(size, read));
    return;
  }
  const egress::Progress half = read(size / 2);
  CAPGATE_ASSERT(half == egress::Progress::more || half == read(size));
}

}  // namespace capgate::fuzz
