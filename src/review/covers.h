// Whether one line of a manifest says all that another one says.
//
//   covers(fs:write:/srv/**, fs:read:/srv/notes)  -> true
//   covers(fs:read:/srv/**, fs:read:/srv/.env)  -> false: only its own line opens it
//   covers(net:connect:*.x.com, net:connect:x.com)  -> false
//
// It agrees with the merge (core/merge.h): the second line changes nothing beside the first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/capability.h"

namespace capgate::review {

// `home` is the caller's home directory, or empty: credentials are found by it.
[[nodiscard]] bool covers(const core::Capability& wide, const core::Capability& narrow,
                          std::string_view home = {});

// Lines of which one may cover another. A line is found by what could cover it: the directories
// above its path, the suffixes of its host. So a question costs a few look-ups, however many lines
// there are. The capabilities and `home` must outlive it.
class CoverIndex {
 public:
  explicit CoverIndex(std::string_view home = {}) : home_(home) {}

  void add(const core::Capability& capability, std::uint32_t line);
  // A line that covers `capability`, other than `except`.
  [[nodiscard]] std::optional<std::uint32_t> find(const core::Capability& capability,
                                                  std::uint32_t except = UINT32_MAX) const;

 private:
  struct Entry {
    const core::Capability* capability;
    std::uint32_t line;
  };
  [[nodiscard]] std::optional<std::uint32_t> find_at(std::string_view key,
                                                     const core::Capability& capability,
                                                     std::uint32_t except) const;

  std::string_view home_;
  std::unordered_map<std::string, std::vector<Entry>> entries_;
};

}  // namespace capgate::review
