#include "sandbox/doctor_files.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace capgate::sandbox {
namespace {

std::optional<Distribution> known(std::string_view id) {
  struct Entry {
    std::string_view id;
    Distribution distribution;
  };
  static constexpr Entry table[] = {
      {"ubuntu", Distribution::ubuntu},          {"debian", Distribution::debian},
      {"fedora", Distribution::fedora},          {"rhel", Distribution::fedora},
      {"centos", Distribution::fedora},          {"arch", Distribution::arch},
      {"archarm", Distribution::arch},           {"opensuse", Distribution::opensuse},
      {"suse", Distribution::opensuse},          {"sles", Distribution::opensuse},
      {"alpine", Distribution::alpine},          {"nixos", Distribution::nixos},
      {"opensuse-leap", Distribution::opensuse}, {"opensuse-tumbleweed", Distribution::opensuse},
  };
  for (const Entry& entry : table) {
    if (entry.id == id) return entry.distribution;
  }
  return std::nullopt;
}

bool names_controller(std::string_view list, std::string_view controller) {
  const auto names = split(list, ',');
  return std::ranges::find(names, controller) != names.end();
}

// The directory of a group below a mount that may show only a part of the tree, as in a container.
// A group outside of that part ("/../x", or another branch) has no directory here.
std::optional<std::string> directory_below(const MountLine& mount, std::string_view group) {
  if (group.starts_with("/..")) return std::nullopt;
  if (mount.mounted_root != "/") {
    if (!group.starts_with(mount.mounted_root)) return mount.point;
    group.remove_prefix(mount.mounted_root.size());
    if (!group.empty() && !group.starts_with('/')) return std::nullopt;
  }
  if (group.empty() || group == "/") return mount.point;
  return mount.point + std::string(group);
}

// Spaces and a few others are written as three octal digits.
std::string unescape_mount_path(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() &&
        std::ranges::all_of(text.substr(at + 1, 3), is_octal)) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

std::string os_release_value(std::string_view os_release, std::string_view name) {
  for (const std::string_view line : EachPart(os_release, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || line.substr(0, equals) != name) continue;
    std::string_view value = trim(line.substr(equals + 1));
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    return std::string(value);
  }
  return "";
}

Distribution distribution_of(std::string_view os_release) {
  if (const auto own = known(os_release_value(os_release, "ID"))) return *own;
  const std::string like = os_release_value(os_release, "ID_LIKE");
  for (const std::string_view id : EachPart(like, ' ')) {
    if (const auto other = known(id)) return *other;
  }
  return Distribution::other;
}

Wsl wsl_of(std::string_view kernel) {
  const std::string lower = to_lower(kernel);
  if (!lower.contains("microsoft")) return Wsl::none;
  return lower.contains("wsl2") || lower.contains("microsoft-standard") ? Wsl::wsl2 : Wsl::wsl1;
}

std::string container_of_cgroup(std::string_view proc_cgroup) {
  struct Sign {
    std::string_view text;
    std::string_view engine;
  };
  // Kubernetes first: its groups also name the engine that it uses.
  static constexpr Sign signs[] = {
      {"kubepods", "kubernetes"}, {"/docker", "docker"}, {"docker-", "docker"},
      {"libpod", "podman"},       {"/lxc", "lxc"},       {"machine.slice", "systemd-nspawn"}};
  for (const Sign& sign : signs) {
    if (proc_cgroup.contains(sign.text)) return std::string(sign.engine);
  }
  return "";
}

std::string_view status_value(std::string_view status, std::string_view name) {
  for (const std::string_view line : EachPart(status, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && line.substr(0, colon) == name) {
      return trim(line.substr(colon + 1));
    }
  }
  return {};
}

std::uint32_t unowned_id(std::string_view id_map) {
  static constexpr std::uint64_t lowest = 60000;
  static constexpr std::uint64_t highest = 0x7fff'0000;
  static constexpr std::uint64_t overflow = 65534;
  std::uint64_t best = 0;
  for (const std::string_view line : EachPart(id_map, '\n')) {
    std::vector<std::uint64_t> numbers;
    for (const std::string_view word : EachPart(line, ' ')) {
      if (const auto number = parse_decimal(word)) numbers.push_back(*number);
    }
    if (numbers.size() != 3 || numbers[2] == 0) continue;
    std::uint64_t last = std::min(numbers[0] + numbers[2] - 1, highest);
    if (last == overflow) --last;
    if (last >= numbers[0] && last >= lowest) best = std::max(best, last);
  }
  return static_cast<std::uint32_t>(best);
}

std::vector<MountLine> parse_mountinfo(std::string_view mountinfo) {
  // 36 35 98:0 /root /point rw,noatime master:1 - type source options
  std::vector<MountLine> mounts;
  for (const std::string_view line : EachPart(mountinfo, '\n')) {
    const auto words = split(line, ' ');
    const auto dash = std::ranges::find(words, std::string_view("-"));
    if (words.size() < 6 || words.end() - dash < 4) continue;
    mounts.push_back({.mounted_root = unescape_mount_path(words[3]),
                      .point = unescape_mount_path(words[4]),
                      .type = std::string(dash[1]),
                      .options = std::string(dash[3])});
  }
  return mounts;
}

std::vector<CgroupPlace> cgroup_places(std::string_view proc_cgroup,
                                       const std::vector<MountLine>& mounts) {
  const auto group_of = [&](std::string_view controller) -> std::optional<std::string_view> {
    for (const std::string_view line : EachPart(proc_cgroup, '\n')) {
      const auto first = line.find(':');
      const auto second = line.find(':', first + 1);
      if (first == std::string_view::npos || second == std::string_view::npos) continue;
      const std::string_view controllers = line.substr(first + 1, second - first - 1);
      const bool is_it =
          controller.empty() ? line.starts_with("0::") : names_controller(controllers, controller);
      if (is_it) return line.substr(second + 1);
    }
    return std::nullopt;
  };

  std::vector<CgroupPlace> places;
  const auto add = [&](CgroupKind kind, std::string_view controller) {
    const auto group = group_of(controller);
    if (!group) return;
    for (const MountLine& mount : mounts) {
      const bool is_it = kind == CgroupKind::v2 ? mount.type == "cgroup2"
                                                : mount.type == "cgroup" &&
                                                      names_controller(mount.options, controller);
      if (!is_it) continue;
      if (auto directory = directory_below(mount, *group)) {
        places.push_back({kind, std::string(controller), std::move(*directory)});
        return;
      }
    }
  };
  add(CgroupKind::v2, "");
  for (const std::string_view controller : {"memory", "pids", "cpu"}) {
    add(CgroupKind::v1, controller);
  }
  return places;
}

Cgroups choose_cgroups(const std::vector<CgroupTrial>& trials) {
  Cgroups v1{.kind = CgroupKind::v1};
  Cgroups v2{.kind = CgroupKind::v2};
  Cgroups none;
  for (const CgroupTrial& trial : trials) {
    if (trial.err != 0) none = {.err = trial.err, .directory = trial.place.directory};
  }
  for (const std::string_view controller : {"memory", "pids", "cpu"}) {
    const auto usable = [&](CgroupKind kind) {
      return std::ranges::find_if(trials, [&](const CgroupTrial& trial) {
        if (trial.err != 0 || trial.place.kind != kind) return false;
        if (kind == CgroupKind::v1) return trial.place.controllers == controller;
        const auto offered = split(trial.controllers, ' ');
        return std::ranges::find(offered, controller) != offered.end();
      });
    };
    for (Cgroups* cgroups : {&v1, &v2}) {
      const auto trial = usable(cgroups->kind);
      if (trial == trials.end()) {
        cgroups->missing.emplace_back(controller);
      } else if (cgroups->directory.empty()) {
        cgroups->directory = trial->place.directory;
      }
    }
  }
  const auto limits_most = [](const Cgroups& cgroups) {
    return std::ranges::all_of(cgroups.missing,
                               [](std::string_view name) { return name == "cpu"; });
  };
  if (limits_most(v2)) return v2;
  if (!v1.directory.empty() && (limits_most(v1) || v2.directory.empty())) return v1;
  if (!v2.directory.empty()) return v2;
  if (none.err == 0 && !trials.empty()) {
    none.directory = trials.front().place.directory;
    none.missing = v2.missing;
  }
  return none;
}

}  // namespace capgate::sandbox
