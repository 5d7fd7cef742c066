#include "lower/seccomp_shared.h"

#include <array>
#include <mutex>

#include "base/digest.h"
#include "lower/seccomp_docker.h"

namespace capgate::lower {
namespace {

template <typename T>
struct Once {
  std::once_flag built;
  T value;
};

constexpr std::size_t different_needs = 256;

std::size_t index_of(const SeccompNeeds& needs) {
  const std::array answers{needs.processes,        needs.nested_sandbox,  needs.unix_sockets,
                           needs.netlink_route,    needs.exec_token,      needs.forwarder,
                           needs.memory_is_mapped, needs.fixed_attributes};
  std::size_t index = 0;
  for (const bool answer : answers) {
    index = 2 * index + (answer ? 1 : 0);
  }
  return index;
}

}  // namespace

const SharedFilter& shared_filter(Arch arch, const SeccompNeeds& needs) {
  static std::array<Once<SharedFilter>, 2 * different_needs> filters;
  auto& [built, filter] = filters[2 * index_of(needs) + (arch == Arch::x86_64 ? 0 : 1)];
  std::call_once(built, [&] {
    filter.program = assemble(arch, seccomp_rules(needs));
    filter.base64 = base64(to_bytes(filter.program));
  });
  return filter;
}

const SharedDockerProfile& shared_docker_profile(const SeccompNeeds& needs) {
  static std::array<Once<SharedDockerProfile>, different_needs> profiles;
  auto& [built, profile] = profiles[index_of(needs)];
  std::call_once(built, [&] {
    profile.json = docker_profile_json(seccomp_rules(needs));
    profile.base64 = base64(profile.json);
  });
  return profile;
}

}  // namespace capgate::lower
