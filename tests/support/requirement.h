// What a test needs of the machine, for example root. A machine that lacks it skips the test and
// says why; with CAPGATE_REQUIRE_ALL=1, where everything must be tested, the same is a failure.
//
//   CAPGATE_REQUIRE(::geteuid() == 0, "needs root to make a link of root's");
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace capgate::support {

[[nodiscard]] inline bool must_test_everything() {
  const char* value = std::getenv("CAPGATE_REQUIRE_ALL");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace capgate::support

// A macro, since both ways out must return from the test itself.
#define CAPGATE_REQUIRE(condition, reason)       \
  if (condition) {                               \
  } else if (support::must_test_everything()) {  \
    FAIL() << "not testable here: " << (reason); \
  } else                                         \
    GTEST_SKIP() << "not testable here: " << (reason)
