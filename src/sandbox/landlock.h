// Landlock's numbers. Own constants, in a table that can grow: the headers of stable distributions
// are years behind the kernels that run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace capgate::sandbox {

// The rights of a file; the others are an error on one.
inline constexpr std::uint64_t landlock_file_rights =
    (1U << 0) | (1U << 1) | (1U << 2) | (1U << 14) | (1U << 15);

// Every filesystem right and scope that this ABI has.
[[nodiscard]] std::uint64_t landlock_handled(int abi);
[[nodiscard]] std::uint64_t landlock_scoped(int abi);
[[nodiscard]] std::uint32_t landlock_attribute_size(int abi);

// The rights of a Plan's names ("read_file", "make_dir") that this ABI knows.
[[nodiscard]] std::uint64_t landlock_access(const std::vector<std::string_view>& names, int abi);

// What the running kernel has; 0: none.
[[nodiscard]] int probe_landlock_abi();

}  // namespace capgate::sandbox
