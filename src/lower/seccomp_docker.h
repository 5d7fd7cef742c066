// The same rules as an OCI/docker seccomp profile, for engines that bring libseccomp themselves.
//
//   docker_profile_json(seccomp_rules(needs))  -> {"defaultAction": "SCMP_ACT_ERRNO", ...}
//
// libseccomp has no order of rules: entries of one call are alternatives, and an entry without
// arguments swallows the others. So the ordered list is turned into entries that exclude each
// other, each a set of (argument & mask) == value over different arguments. Nothing becomes wider
// by it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lower/seccomp.h"

namespace capgate::lower {

enum class DockerOp : std::uint8_t {
  masked_equal,  // SCMP_CMP_MASKED_EQ: (argument & mask) == value; the mask is in the low half
  at_least,      // SCMP_CMP_GE: all 64 bits, so only for refusals
};

struct DockerArg {
  unsigned index = 0;
  DockerOp op = DockerOp::masked_equal;
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
};

struct DockerEntry {
  core::SyscallId call;
  Action action;
  std::vector<DockerArg> args;  // all must hold, one per index at most
};

enum class Precision : std::uint8_t {
  exact,  // the answers of assemble(), bit for bit: the test's oracle; a hundred kilobytes of JSON
  brief,  // what a profile carries: a refusal may have another errno, or also meet a call with
          // junk in the upper half of an argument. Never wider.
};

// Rules that ask for the exec token cannot be expressed: a bug of the caller.
[[nodiscard]] std::vector<DockerEntry> docker_entries(const std::vector<Rule>& rules,
                                                      Precision precision);

// For x86_64 and aarch64. Docker 20.10 with runc 1.1 or later, and podman.
[[nodiscard]] std::string docker_profile_json(const std::vector<Rule>& rules);

// The value of linux.seccomp in a runtime-spec config.json, for one architecture.
[[nodiscard]] std::string oci_seccomp_json(Arch arch, const std::vector<Rule>& rules);

}  // namespace capgate::lower
