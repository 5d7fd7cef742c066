// What an fs grant lets a program do, as the three things that a kernel can tell apart.
//
//   read    read and list
//   modify  add entries and change contents (no mechanism separates filling a new file from
//           changing an old one)
//   remove  remove entries; with modify also rename them away
//
// read = {read}, create = {read, modify}, delete = {read, remove}, write = all three. So create and
// delete together are write, and the union of two grants is the union of their rights.
#pragma once

#include <cstdint>

#include "core/capability.h"

namespace capgate::core {

struct FileRights {
  std::uint8_t bits = 0;

  static constexpr std::uint8_t read = 1;
  static constexpr std::uint8_t modify = 2;
  static constexpr std::uint8_t remove = 4;

  [[nodiscard]] constexpr bool covers(FileRights other) const {
    return (bits | other.bits) == bits;
  }
  [[nodiscard]] constexpr bool has(std::uint8_t right) const { return (bits & right) != 0; }
  friend constexpr FileRights operator|(FileRights a, FileRights b) {
    return {static_cast<std::uint8_t>(a.bits | b.bits)};
  }
  friend constexpr bool operator==(FileRights, FileRights) = default;
};

[[nodiscard]] constexpr FileRights rights_of(FsActions actions) {
  std::uint8_t bits = FileRights::read;
  if (actions.has(FsAction::write)) bits |= FileRights::modify | FileRights::remove;
  if (actions.has(FsAction::create)) bits |= FileRights::modify;
  if (actions.has(FsAction::remove)) bits |= FileRights::remove;
  return {bits};
}

// The one action that stands for these rights.
[[nodiscard]] constexpr FsActions actions_for(FileRights rights) {
  if (rights.has(FileRights::modify) && rights.has(FileRights::remove)) return {FsAction::write};
  if (rights.has(FileRights::modify)) return {FsAction::create};
  if (rights.has(FileRights::remove)) return {FsAction::remove};
  return {FsAction::read};
}

// True if a declaration is why `granted` holds, and not only of the reading that comes with it.
[[nodiscard]] constexpr bool bears_on(FsActions declared, FileRights granted) {
  const unsigned beyond = granted.bits & ~unsigned{FileRights::read};
  return beyond == 0 || (rights_of(declared).bits & beyond) != 0;
}

[[nodiscard]] inline bool bears_on(const Capability& declared, const Capability& grant) {
  const auto* own = std::get_if<FsCapability>(&declared);
  const auto* fs = std::get_if<FsCapability>(&grant);
  return own == nullptr || fs == nullptr || bears_on(own->actions, rights_of(fs->actions));
}

}  // namespace capgate::core
