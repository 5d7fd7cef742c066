// What the processes of a sandbox hold in memory, as the watchdog of a limit:memory sees it where
// no cgroup counts it.
//
//   memory_of_descendants(init)   -> bytes
//
// Counted are private pages, page tables, and shared memory that some process maps. Of the kinds
// that no process needs to map, memory_bound.h tells which ones a server cannot have. One is left:
// a shared mapping that was touched and then unmapped but for its first page. Only a cgroup counts
// that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string_view>

namespace capgate::sandbox {

// Of a process and all of its descendants.
[[nodiscard]] std::uint64_t memory_of_descendants(pid_t pid);

// Shared anonymous mappings by the inode behind each: as far as it is mapped, not what is resident.
// A page that a process has touched and then dropped from its own tables (MADV_DONTNEED) is still
// there, and no process's status tells of it.
using SharedMappings = std::map<std::uint64_t, std::uint64_t>;
void add_shared_mappings(std::string_view maps, SharedMappings& into);

}  // namespace capgate::sandbox
