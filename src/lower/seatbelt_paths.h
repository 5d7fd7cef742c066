// What a Seatbelt profile says about the policy's paths, as plain values: the grants in the
// kernel's spelling, what stays closed inside them, and which programs may start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/rights.h"
#include "lower/artifact.h"

namespace capgate::lower::seatbelt {

// An fs grant, but for the private /tmp.
struct FileGrant {
  const core::Granted<core::FsCapability>* granted = nullptr;
  std::string base;  // canonical
  core::FileRights rights;

  [[nodiscard]] bool is_entries() const {
    return granted->capability.path.shape == core::PathPattern::Shape::entries;
  }
  [[nodiscard]] bool writes() const {
    return rights.has(core::FileRights::modify) || rights.has(core::FileRights::remove);
  }
};
// Parents before what is below them.
[[nodiscard]] std::vector<FileGrant> file_grants(const core::Policy& policy);

// A path that stays closed although a grant above it is open; only a grant at or below it opens
// something again.
struct HeldPath {
  enum class Kind : unsigned char { closed, read_only };
  std::string root;  // canonical: the grant's base
  std::string tail;  // begins with '/': root + tail is the path
  Kind kind = Kind::closed;
  const core::Origins* origins = nullptr;  // of the grant

  [[nodiscard]] std::string path() const { return root + tail; }
};
// Credentials and secrets below the grant; where it writes, also what host programs run later.
[[nodiscard]] std::vector<HeldPath> held_paths(const FileGrant& grant, std::string_view home);

// The credential paths outside any grant: "~/.ssh" with the tail "/.ssh" below HOME if that is
// known, and those of the whole machine with their canonical path.
struct CredentialList {
  std::vector<std::string> below_home;
  std::vector<std::string> absolute;
};
[[nodiscard]] CredentialList credential_list(std::string_view home);

struct Programs {
  std::vector<std::string> files;      // may be started
  std::vector<std::string> trees;      // so may what is in here: an interpreter's own prefix
  std::vector<std::string> libraries;  // directories that may be read and loaded from
  std::vector<std::string> library_regexes;
  std::vector<std::string> links;        // directories of links on the way: metadata only
  std::vector<std::string> directories;  // for PATH
};
// --program and the declared programs. Without --program: what the system itself brings.
[[nodiscard]] Programs programs_of(const Input& input);

}  // namespace capgate::lower::seatbelt
