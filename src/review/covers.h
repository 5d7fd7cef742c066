// Whether one line of a manifest says all that another one says.
//
//   covers(fs:write:/srv/**, fs:read:/srv/notes)  -> true
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

[[nodiscard]] bool covers(const core::Capability& wide, const core::Capability& narrow);

// Lines of which one may cover another. A line is found by what could cover it: the directories
// above its path, the suffixes of its host. So a question costs a few look-ups, however many lines
// there are. The capabilities must outlive it.
class CoverIndex {
 public:
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

  std::unordered_map<std::string, std::vector<Entry>> entries_;
};

}  // namespace capgate::review
