// What the files that describe a host say. Pure: contents in, answers out.
//
//   distribution_of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n")  -> Distribution::ubuntu
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sandbox/doctor.h"

namespace capgate::sandbox {

// The value of NAME=VALUE in os-release, without its quotes; empty if there is none.
[[nodiscard]] std::string os_release_value(std::string_view os_release, std::string_view name);
[[nodiscard]] Distribution distribution_of(std::string_view os_release);

[[nodiscard]] Wsl wsl_of(std::string_view kernel);

// The engine that a path in /proc/self/cgroup names, or that systemd wrote down.
[[nodiscard]] std::string container_of_cgroup(std::string_view proc_cgroup);

// The value of "Name:\tvalue" in /proc/self/status.
[[nodiscard]] std::string_view status_value(std::string_view status, std::string_view name);

// An id that root can become in order to be nobody in particular: mapped here, and not one of the
// low ids of accounts or the id that stands for unmapped owners. 0: this namespace has none.
[[nodiscard]] std::uint32_t unowned_id(std::string_view id_map);

struct MountLine {
  std::string mounted_root;  // the directory of that file system that is mounted
  std::string point;
  std::string type;
  std::string options;  // of the file system: "rw,memory"
};
[[nodiscard]] std::vector<MountLine> parse_mountinfo(std::string_view mountinfo);

// Where child groups of this process would be made. `controllers` is empty for v2.
struct CgroupPlace {
  CgroupKind kind = CgroupKind::v2;
  std::string controllers;
  std::string directory;
  friend bool operator==(const CgroupPlace&, const CgroupPlace&) = default;
};
// v2 first if it is mounted; then the v1 hierarchies of memory, pids and cpu.
[[nodiscard]] std::vector<CgroupPlace> cgroup_places(std::string_view proc_cgroup,
                                                     const std::vector<MountLine>& mounts);

// What making a child group at a place gave. `controllers` is what v2 offers there.
struct CgroupTrial {
  CgroupPlace place;
  int err = 0;
  std::string controllers;
};
// v2 if it limits memory and processes, else v1, else what little v2 does.
[[nodiscard]] Cgroups choose_cgroups(const std::vector<CgroupTrial>& trials);

}  // namespace capgate::sandbox
