// The mounts of a sandbox in the making: adds what a mount needs before it (parent directories,
// mount points) and knows what is private and what belongs to the host.
//
//   Tree tree;
//   tree.bind("/srv/data", host_path, read_only);    makes /srv and /srv/data first
//
// Pure: nothing is opened or mounted here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sandbox/bind.h"

namespace capgate::sandbox {

class Tree {
 public:
  void directory(const std::string& path, std::uint32_t mode = 0755);
  void file(const std::string& path, std::string contents, std::uint32_t mode);
  void symlink(const std::string& path, std::string target);
  void tmpfs(const std::string& path, std::uint64_t size, std::uint32_t mode,
             std::uint64_t attributes);
  void proc(const std::string& path, std::uint64_t attributes);
  // `source` as the host has it, at `target` inside.
  void bind(const std::string& target, const std::string& source, const Identity& identity,
            std::uint64_t attributes, std::string_view rights = {});
  // Something that is there already, mounted on itself with more attributes.
  void pin(const std::string& path, const Identity& identity, std::uint64_t attributes);
  void cover(const std::string& path, const Identity& identity);
  // A file that was made in the sandbox, in the place of one of the kernel's; "" is an empty one.
  void cover_with(const std::string& path, const std::string& made);
  // Room for so many mounts more, each on a mount point that is made for it.
  void reserve(std::size_t mounts);
  // Added when everything is in place.
  void read_only_at_the_end(const std::string& path);

  // True if something made or mounted here already is at this path.
  [[nodiscard]] bool has(std::string_view path) const { return places_.contains(path); }
  // True if the path lies in a mount of the host: there nothing is made.
  [[nodiscard]] bool is_host(std::string_view path) const;

  // True if neither the path nor anything above it is a mount of the host.
  [[nodiscard]] bool is_private(std::string_view path) const;

  [[nodiscard]] std::vector<BoundMount> take() &&;

 private:
  // What is at a path: something that was made in a directory of ours, or a mount point.
  enum class Place { made, own, host };
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  void parents(const std::string& path);

  std::vector<BoundMount> mounts_;
  std::unordered_map<std::string, Place, Hash, std::equal_to<>> places_;
  std::vector<std::string> read_only_;
};

}  // namespace capgate::sandbox
