// How the cost of something grows, for tests of algorithms: a ratio, never an absolute time.
#pragma once

#include <algorithm>
#include <chrono>

namespace capgate::support {

// The shortest of several runs, which a busy machine disturbs least.
template <typename Work>
[[nodiscard]] double shortest_seconds(Work work) {
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

}  // namespace capgate::support
