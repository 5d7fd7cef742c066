// A path of the host, opened: what is checked by name once and then known by identity.
//
//   const auto path = open_host_path("/srv/data");
//   path->identity       device, inode and type; the inode number cannot be reused meanwhile
//   path->resolved       the same file without symbolic links, shown to the user
//
// The last component must not be a symbolic link, and an earlier one is followed only where root
// owns it: what the user's own programs can change must not decide what is mounted.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sys/fd.h"

namespace capgate::sandbox {

// Why capgate does not start a server, and what to do about it.
struct Refusal {
  std::string message;
  std::string help;
  int exit_code = 125;
};

struct Identity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint32_t type = 0;  // S_IFMT bits
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;

  [[nodiscard]] bool is_directory() const { return type == S_IFDIR; }
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct HostPath {
  sys::Fd fd;  // O_PATH, unless it was opened to be listed; keeps the inode
  Identity identity;
  std::string resolved;
  // Symbolic links that were followed, with what they hold: made again inside.
  std::vector<std::pair<std::string, std::string>> links;
};

// A refusal that names the path and the reason if it cannot be opened.
[[nodiscard]] std::expected<HostPath, Refusal> open_host_path(const std::string& path);
// The same, but a directory that the caller may read is open for reading where that takes no call
// more: its names can be had from the descriptor itself.
[[nodiscard]] std::expected<HostPath, Refusal> open_to_list(const std::string& path);

[[nodiscard]] std::expected<Identity, int> identify(int fd);
// Without following a link at the end. ENOENT and the like are the error.
[[nodiscard]] std::expected<Identity, int> identify(const std::string& path);
[[nodiscard]] std::expected<Identity, int> identify_at(int directory, const std::string& name);

// What a symbolic link holds; empty if it cannot be read.
[[nodiscard]] std::string read_link(int directory, const std::string& name);

// "/a" of "/a/b", and "" of "/a", so that a walk upwards ends.
[[nodiscard]] inline std::string_view parent_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}
// Without any link, or the path itself if it leads nowhere.
[[nodiscard]] std::string real_path(const std::string& path);

// "/a/./b/../c" is "/a/c", by its text: right only where the components are no links.
[[nodiscard]] std::string plain_path(std::string_view path);

}  // namespace capgate::sandbox
