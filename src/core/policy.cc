#include "core/policy.h"

#include "base/digest.h"

namespace capgate::core {

std::vector<std::string> policy_lines(const Policy& policy) {
  std::vector<std::string> lines;
  for_each_grant(policy, [&](const Capability& capability, const Origins&) {
    lines.push_back(print(capability));
  });
  return lines;
}

std::string policy_hash(const Policy& policy) {
  std::string text = "capgate-policy-1\n";
  for (const std::string& line : policy_lines(policy)) {
    text += line;
    text += '\n';
  }
  return "sha256:" + sha256_hex(text);
}

}  // namespace capgate::core
