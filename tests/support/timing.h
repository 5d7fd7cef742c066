// How the cost of something grows, for tests of algorithms: a ratio, never an absolute time.
#pragma once

#include <time.h>

#include <algorithm>

namespace capgate::support {

// The processor time of this thread: other processes do not change it.
[[nodiscard]] inline double thread_seconds() {
  timespec used{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// The shortest of several runs, which a busy machine disturbs least.
template <typename Work>
[[nodiscard]] double shortest_seconds(Work work) {
  double best = 1e9;
  for (int run = 0; run < 3; ++run) {
    const double start = thread_seconds();
    work();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

}  // namespace capgate::support
