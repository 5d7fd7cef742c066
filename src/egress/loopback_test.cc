#include "egress/loopback.h"

#include <gtest/gtest.h>

#include <string>

#include "egress/policy.h"
#include "support/flow_vectors.h"

namespace capgate::egress {
namespace {

TEST(Loopback, AnAddressOfLocalhostMeansTheNameWhereARuleHasIt) {
  const auto meant = [](const std::string& rule, const std::string& host) {
    return host_meant(support::policy_of({rule}), support::host_of(host), 5000).text;
  };
  EXPECT_EQ(meant("localhost:5000", "127.0.0.1"), "localhost");
  EXPECT_EQ(meant("localhost", "::1"), "localhost");
  EXPECT_EQ(meant("localhost:5001", "127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(meant("127.0.0.1:5000", "127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(meant("*", "127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(meant("localhost:5000", "127.0.0.2"), "127.0.0.2");
  EXPECT_EQ(meant("localhost:5000", "a.test"), "a.test");
}

}  // namespace
}  // namespace capgate::egress
