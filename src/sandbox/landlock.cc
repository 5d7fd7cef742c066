#include "sandbox/landlock.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace capgate::sandbox {
namespace {

struct Right {
  std::string_view name;
  int abi;
};
// In the order of their bits.
constexpr Right rights[] = {
    {"execute", 1},    {"write_file", 1},  {"read_file", 1}, {"read_dir", 1},
    {"remove_dir", 1}, {"remove_file", 1}, {"make_char", 1}, {"make_dir", 1},
    {"make_reg", 1},   {"make_sock", 1},   {"make_fifo", 1}, {"make_block", 1},
    {"make_sym", 1},   {"refer", 2},       {"truncate", 3},  {"ioctl_dev", 5},
};

constexpr int abi_with_network = 4;  // its rights stay unhandled: the namespace has no way out
constexpr int abi_with_scopes = 6;
constexpr std::uint64_t scope_abstract_sockets = 1;
constexpr std::uint64_t scope_signals = 2;

}  // namespace

std::uint64_t landlock_handled(int abi) {
  std::uint64_t bits = 0;
  for (std::size_t bit = 0; bit < std::size(rights); ++bit) {
    if (rights[bit].abi <= abi) bits |= std::uint64_t{1} << bit;
  }
  return bits;
}

std::uint64_t landlock_scoped(int abi) {
  return abi >= abi_with_scopes ? scope_abstract_sockets | scope_signals : 0;
}

std::uint32_t landlock_attribute_size(int abi) {
  if (abi >= abi_with_scopes) return 24;
  return abi >= abi_with_network ? 16 : 8;
}

std::uint64_t landlock_access(const std::vector<std::string_view>& names, int abi) {
  std::uint64_t bits = 0;
  for (const std::string_view name : names) {
    const auto* const right = std::ranges::find(rights, name, &Right::name);
    if (right != std::end(rights) && right->abi <= abi) {
      bits |= std::uint64_t{1} << static_cast<unsigned>(right - rights);
    }
  }
  return bits;
}

int probe_landlock_abi() {
  constexpr unsigned version = 1;
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, version);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

}  // namespace capgate::sandbox
