#include "sandbox/sealed_place.h"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/view.h"
#include "sandbox/ways.h"

namespace capgate::sandbox {
namespace {

constexpr std::string_view keep_apart =
    "keep it outside of what the server can read, or grant less";
constexpr std::string_view copy_it =
    "copy it to a file of its own, with mode 600, and name that one";

bool is_bind(const BoundMount& mount) { return mount.kind == orders::MountKind::bind; }

// "/a/b", what follows a step of a way.
std::string after(const Way& way, std::size_t step) {
  std::string out;
  for (std::size_t i = step + 1; i < way.size(); ++i) out += format("/{}", way[i].name);
  return out;
}

class Visible {
 public:
  explicit Visible(const Bound& bound) : bound_(bound), view_(bound) {}

  // The mount through which the last file of the way is seen inside; null: it is not.
  [[nodiscard]] const BoundMount* find(const Way& way) const {
    for (std::size_t i = way.size(); i-- > 0;) {
      for (const BoundMount& mount : bound_.mounts) {
        if (!is_bind(mount) || !is_same_file(mount.identity, *way[i].identity)) continue;
        if (shows(mount.target + after(way, i), *way.back().identity)) return &mount;
      }
    }
    return nullptr;
  }

  // A granted directory of the same file system, where another name of the file may lie.
  [[nodiscard]] const BoundMount* find_beside(const Identity& file) const {
    for (const BoundMount& mount : bound_.mounts) {
      const bool is_grant = is_bind(mount) && !mount.rights.empty();
      if (is_grant && mount.identity.is_directory() && mount.identity.device == file.device) {
        return &mount;
      }
    }
    return nullptr;
  }

 private:
  // Not where something is mounted over it.
  [[nodiscard]] bool shows(const std::string& inside, const Identity& file) const {
    const Seen seen = view_.look(inside);
    if (!seen.exists || seen.host.empty()) return false;
    const auto identity = identify(seen.host);
    return identity && is_same_file(*identity, file);
  }

  const Bound& bound_;
  View view_;
};

bool has_other_names(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && info.st_nlink > 1;
}

Refusal could_read(const PolicyPlace& file, const BoundMount& mount) {
  return {.message =
              format("{} {}, and the server could read it: {} is {}",
                     escape_for_terminal(file.path), file.role, escape_for_terminal(mount.target),
                     mount.rights.empty() ? "part of every sandbox" : "granted"),
          .help = std::string(keep_apart)};
}

}  // namespace

std::expected<void, Refusal> check_sealed_files(const std::vector<PolicyPlace>& files,
                                                const Bound& bound, const Launcher& launcher) {
  if (files.empty()) return {};
  const Visible visible(bound);
  Ways ways;
  for (const PolicyPlace& file : files) {
    const std::string full = file.path.starts_with('/')
                                 ? file.path
                                 : format("{}/{}", launcher.caller.directory, file.path);
    const std::vector<Way> all = ways.to(full);
    // One that is not there has no value yet, and its provider says so.
    if (all.empty() || all.back().empty() || !all.back().back().identity) continue;
    if (const BoundMount* mount = visible.find(all.back())) {
      return std::unexpected(could_read(file, *mount));
    }
    if (!has_other_names(full)) continue;
    if (const BoundMount* mount = visible.find_beside(*all.back().back().identity)) {
      return std::unexpected(Refusal{
          .message =
              format("{} {}, and has several names (hard links), of which one may "
                     "lie in {}, which is granted",
                     escape_for_terminal(file.path), file.role, escape_for_terminal(mount->target)),
          .help = std::string(copy_it)});
    }
  }
  return {};
}

}  // namespace capgate::sandbox
