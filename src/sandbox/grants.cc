#include "sandbox/grants.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"
#include "core/sensitive.h"

namespace capgate::sandbox {
namespace {

using lower::PlanMount;

// What clock:tzdata mounts is part of the base system.
bool is_clock(std::string_view path) {
  return path == "/usr/share/zoneinfo" || path == "/etc/localtime";
}

// A view that outlives the Plan's text.
std::string_view rights_named(std::string_view name) {
  for (const std::string_view known : {"write", "create", "delete"}) {
    if (known == name) return known;
  }
  return "read";
}

// At any depth: "/sub/.git/hooks" has one.
bool has_held_name(std::string_view below) {
  for (std::size_t slash = 0; slash != std::string_view::npos; slash = below.find('/', slash + 1)) {
    if (core::is_held_name(below.substr(slash))) return true;
  }
  return false;
}

// What two grants of one path give.
std::string_view together(std::string_view a, std::string_view b) {
  if (a == b || b == "read") return a;
  return a == "read" ? b : "write";
}

}  // namespace

Grants::Grants(const lower::Plan& plan, const Holes& holes, bool makes_missing_files)
    : plan_(plan), holes_(holes), makes_missing_files_(makes_missing_files) {
  if (const std::string* home = holes.variable("HOME")) {
    homes_.front() = home->substr(home->find('=') + 1);
    homes_.back() = real_path(homes_.front());
  }
}

bool Grants::is_masked(const std::string& path) const {
  return std::ranges::any_of(plan_.mounts, [&](const PlanMount& mount) {
    return mount.kind == PlanMount::Kind::mask && holes_.filled(mount.target) == path;
  });
}

// What a grant of the directory would hide, a glob does not open either.
bool Grants::stays_hidden(const std::string& path) const {
  const std::string_view directory = parent_of(path);
  if (is_masked(path) || contains(plan_.hidden_names, path.substr(directory.size() + 1))) {
    return true;
  }
  return std::ranges::any_of(homes_, [&](const std::string& home) {
    const core::CredentialPath* entry = core::credential_at(path, home);
    return entry != nullptr && entry != core::credential_at(directory, home);
  });
}

// What a writable grant of the directory would protect, a glob does not open for writing either.
bool Grants::stays_as_it_is(const std::string& path) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  return contains(plan_.protected_names, name) ||
         std::ranges::any_of(homes_, [&](const std::string& home) {
           return core::startup_at(path, home) != nullptr;
         });
}

std::expected<void, Refusal> Grants::read() {
  for (const PlanMount& mount : plan_.mounts) {
    if (mount.origins == nullptr) continue;
    if (mount.kind == PlanMount::Kind::entries) {
      if (auto done = read_entries(mount.target, rights_named(mount.detail)); !done) return done;
    } else if (mount.kind == PlanMount::Kind::bind && mount.detail != "socket" &&
               !is_clock(mount.target)) {
      const std::string path = holes_.filled(mount.target);
      if (auto done = read_grant(path, rights_named(mount.detail), mount.directory); !done) {
        return done;
      }
    }
  }
  return refuse_grants_in_masks();
}

// The cover over a hidden directory has no place for a mount.
Grants::Done Grants::refuse_grants_in_masks() const {
  for (const PlanMount& mount : plan_.mounts) {
    if (mount.kind != PlanMount::Kind::mask) continue;
    const std::string mask = holes_.filled(mount.target);
    const auto below = by_path.lower_bound(mask + '/');
    if (below == by_path.end() || !core::is_at_or_below(below->first, mask)) continue;
    for (std::string_view above = parent_of(mask); !above.empty(); above = parent_of(above)) {
      if (!has(above)) continue;
      return std::unexpected(
          Refusal{.message = format("{} lies in {}, which stays hidden in the grant of {}",
                                    escape_for_terminal(below->first), escape_for_terminal(mask),
                                    escape_for_terminal(above)),
                  .help = "grant that directory as well, or less than the directory around it"});
    }
  }
  return {};
}

Grants::Done Grants::read_grant(const std::string& path, std::string_view rights, bool directory) {
  auto opened = open_to_list(path);
  if (opened && directory && !opened->identity.is_directory()) {
    return std::unexpected(
        Refusal{.message = format("{} is no directory", escape_for_terminal(path)),
                .help = "grant a file without /**"});
  }
  if (!opened && rights != "read" && !directory && !identify(path)) {
    if (!makes_missing_files_) {
      notes.push_back(
          format("fs: {} is missing and would be made empty", escape_for_terminal(path)));
      return {};
    }
    if (!make_empty_file(path)) return std::unexpected(std::move(opened).error());
    opened = open_host_path(path);
  }
  if (!opened) return std::unexpected(std::move(opened).error());
  return keep_grant(*std::move(opened), rights);
}

Grants::Done Grants::keep_grant(HostPath opened, std::string_view rights) {
  const std::uint32_t type = opened.identity.type;
  if (type != S_IFREG && type != S_IFDIR) {
    return std::unexpected(Refusal{.message = format("{} is neither a file nor a directory",
                                                     escape_for_terminal(opened.resolved)),
                                   .help = "a socket is granted with ipc:connect:unix:PATH"});
  }
  for (const auto& [place, target] : opened.links) {
    notes.push_back(format("fs: the link {} -> {} was followed", escape_for_terminal(place),
                           escape_for_terminal(target)));
  }
  // A Plan's grants come in the order of their paths.
  Grant& grant = by_path.try_emplace(by_path.end(), opened.resolved)->second;
  grant.is_named = true;
  grant.writable |= rights != "read";
  grant.rights = together(grant.rights, rights);
  if (grant.path.fd.get() < 0) grant.path = std::move(opened);
  return {};
}

bool Grants::make_empty_file(const std::string& path) {
  const auto directory = open_host_path(std::string(parent_of(path)));
  if (!directory) return false;
  const std::string name = path.substr(path.rfind('/') + 1);
  const sys::Fd made(::openat(directory->fd.get(), name.c_str(),
                              O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (made.get() < 0) return false;
  notes.push_back(format("fs: {} was missing and has been made empty", escape_for_terminal(path)));
  return true;
}

// "/dir/*.md": what matches now. Links and special files are no grant.
Grants::Done Grants::read_entries(const std::string& pattern, std::string_view rights) {
  const std::string directory(parent_of(pattern));
  const std::string glob(pattern.substr(directory.size() + 1));
  auto opened = open_host_path(directory.empty() ? "/" : directory);
  if (!opened) return std::unexpected(std::move(opened).error());
  const std::string readable = format("/proc/self/fd/{}", opened->fd.get());
  DIR* listing = ::opendir(readable.c_str());
  if (listing == nullptr) {
    return std::unexpected(Refusal{
        .message =
            format("cannot list {}: {}", escape_for_terminal(directory), std::strerror(errno)),
        .help = "grant its entries by name"});
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(listing)) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || ::fnmatch(glob.c_str(), entry->d_name, FNM_PERIOD) != 0) {
      continue;
    }
    names.push_back(name);
  }
  ::closedir(listing);
  std::ranges::sort(names);
  for (const std::string& name : names) {
    const std::string full = format("{}/{}", opened->resolved, name);
    if (stays_hidden(full)) {
      notes.push_back(format("fs: {} matches, but stays hidden: name it to grant it",
                             escape_for_terminal(full)));
      continue;
    }
    auto entry = open_host_path(full);
    const bool usable =
        entry && (entry->identity.type == S_IFREG || entry->identity.is_directory());
    if (!usable) {
      notes.push_back(format("fs: {} matches, but is no file or directory, or cannot be opened",
                             escape_for_terminal(format("{}/{}", directory, name))));
      continue;
    }
    const bool keeps = rights != "read" && stays_as_it_is(full);
    if (keeps) {
      notes.push_back(format("fs: {} matches, but stays read-only: name it to grant it",
                             escape_for_terminal(full)));
    }
    globbed[pattern].push_back(entry->resolved);
    if (auto done = keep_grant(*std::move(entry), keeps ? "read" : rights); !done) return done;
  }
  notes.push_back(format("fs: {} stands for {} entries; later ones are not covered",
                         escape_for_terminal(pattern), names.size()));
  return {};
}

bool Grants::any_at_or_below(const std::string& directory) const {
  const auto below = by_path.lower_bound(directory + '/');
  return has(directory) ||
         (below != by_path.end() && core::is_at_or_below(below->first, directory));
}

bool Grants::is_held_back(std::string_view path, std::string_view above) const {
  return has_held_name(path.substr(above.size())) ||
         std::ranges::any_of(homes_, [&](const std::string& home) {
           return core::is_held_back(path, above, home);
         });
}

bool Grants::is_covered(std::string_view path, const Grant& grant) const {
  for (std::string_view above = parent_of(path); !above.empty(); above = parent_of(above)) {
    const auto found = by_path.find(above);
    if (found == by_path.end()) continue;
    const Grant& wider = found->second;
    if (!wider.writable) return !grant.writable;
    // A weaker one, such as fs:create, covers nothing but its like.
    if (wider.rights != "write" && wider.rights != grant.rights) return false;
    // What is hidden or stays as it is inside a grant is opened by its own grant only, as far as
    // that goes: a grant to read it does not let the one above write it.
    return !is_held_back(path, above);
  }
  return false;
}

}  // namespace capgate::sandbox
