// Any bytes as the broker's orders: read_policy refuses them with a place in the text, or returns a
// policy that prints, and reads again, as the same policy.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "egress/policy.h"
#include "fuzz/mistakes.h"

namespace {

using namespace capgate;
using egress::EgressLimits;
using egress::Policy;

bool is_same(const EgressLimits& a, const EgressLimits& b) {
  return a.connections == b.connections && a.per_second == b.per_second && a.bytes == b.bytes &&
         a.idle_seconds == b.idle_seconds && a.head_bytes == b.head_bytes &&
         a.hello_seconds == b.hello_seconds && a.dial_seconds == b.dial_seconds;
}

bool is_same(const Policy& a, const Policy& b) {
  const auto same_rule = [](const egress::Rule& x, const egress::Rule& y) {
    return x.connect == y.connect && x.text == y.text && x.position == y.position;
  };
  const auto same_seal = [](const egress::Seal& x, const egress::Seal& y) {
    return x.env == y.env && x.placeholder == y.placeholder && x.position == y.position;
  };
  return a.server == b.server && a.sandbox == b.sandbox && a.hash == b.hash &&
         a.roots_file == b.roots_file && a.roots_directory == b.roots_directory &&
         a.proxy_credential == b.proxy_credential && a.public_only == b.public_only &&
         a.lacking == b.lacking && is_same(a.limits, b.limits) &&
         std::ranges::equal(a.rules, b.rules, same_rule) &&
         std::ranges::equal(a.seals, b.seals, same_seal);
}

// Zero would mean "no connection" or "no time": the reader must refuse it.
void check_limits(const EgressLimits& limits) {
  CAPGATE_ASSERT(limits.connections > 0 && limits.per_second > 0 && limits.idle_seconds > 0);
  CAPGATE_ASSERT(limits.head_bytes > 0 && limits.hello_seconds > 0 && limits.dial_seconds > 0);
}

void check_policy(const Policy& policy) {
  check_limits(policy.limits);
  for (const egress::Rule& rule : policy.rules) {
    CAPGATE_ASSERT(rule.text == print(core::Capability(rule.connect)));
  }
  for (const egress::Seal& seal : policy.seals) {
    CAPGATE_ASSERT(!seal.env.to.empty() && !seal.placeholder.empty());
  }
  const std::string printed = egress::print_policy(policy);
  const auto again = egress::read_policy(printed);
  CAPGATE_ASSERT(again.has_value() && is_same(*again, policy));
  CAPGATE_ASSERT(egress::print_policy(*again) == printed);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto policy = egress::read_policy(text);
  if (policy) {
    check_policy(*policy);
  } else {
    fuzz::check_mistake(policy.error(), text);
  }
  return 0;
}
