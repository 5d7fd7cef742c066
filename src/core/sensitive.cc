#include "core/sensitive.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "base/format.h"
#include "core/path.h"
#include "core/sensitive_tables.h"
#include "core/symbolic.h"

namespace capgate::core {
namespace {

// Inside this file a directory never ends in a slash, and the root is "": then "below DIR" is
// always "starts with DIR, then a slash".
std::string_view without_trailing_slash(std::string_view path) {
  while (path.ends_with('/')) {
    path.remove_suffix(1);
  }
  return path;
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path[directory.size()] == '/' &&
         path.starts_with(directory);
}

// "/home/u/x" -> "/home/u" for the parent "/home"; empty if `path` has no component below `parent`.
std::string_view child_of(std::string_view path, std::string_view parent) {
  if (!is_below(path, parent) || path.size() == parent.size() + 1) return {};
  return path.substr(0, path.find('/', parent.size() + 1));
}

constexpr std::string_view parents_of_homes[] = {"/home", "/Users"};

// The home directory that `path` lies in by its name alone.
std::string_view home_by_name(std::string_view path) {
  for (const std::string_view parent : parents_of_homes) {
    if (const std::string_view home = child_of(path, parent); !home.empty()) return home;
  }
  return {};
}

// A part of a table and where it stands: an entry "~/x" below /home/u, or "/x" below "".
template <typename Entry>
struct Placed {
  std::string_view root;
  std::span<const Entry> entries;
  std::size_t cut = 0;  // the "~" that `root` replaces

  [[nodiscard]] std::string_view tail(const Entry& entry) const { return entry.path.substr(cut); }
};

// The whole table and every home directory that can matter for one path. No allocation.
template <typename Entry>
class Placements {
 public:
  Placements(const SplitTable<Entry>& table, std::string_view path, std::string_view home) {
    add({.root = "", .entries = table.absolute, .cut = 0});
    if (home.starts_with('/')) add_home(table, without_trailing_slash(home));
    add_home(table, "/root");
    if (const auto named = home_by_name(path); !named.empty()) add_home(table, named);
  }
  [[nodiscard]] auto begin() const { return placed_.begin(); }
  [[nodiscard]] auto end() const { return placed_.begin() + static_cast<std::ptrdiff_t>(count_); }

 private:
  void add(const Placed<Entry>& placed) { placed_[count_++] = placed; }
  void add_home(const SplitTable<Entry>& table, std::string_view root) {
    for (std::size_t i = 1; i < count_; ++i) {
      if (placed_[i].root == root) return;
    }
    add({.root = root, .entries = table.home, .cut = 1});
  }

  std::array<Placed<Entry>, 4> placed_;
  std::size_t count_ = 0;
};

// The caller's own home is where its work lies, not a credential as a whole: /root for root.
bool is_own_home(std::string_view entry, std::string_view home) {
  return entry.starts_with('/') && entry == without_trailing_slash(home);
}

// The innermost entry at or above `tail`, component by component from the top, until no entry can
// lie further down: one search for a path that has nothing to do with the table.
template <typename Entry>
const Entry* innermost_of(const Placed<Entry>& placed, std::string_view tail,
                          std::string_view home) {
  const auto key = [&](const Entry& entry) { return placed.tail(entry); };
  const Entry* best = nullptr;
  for (std::size_t end = 0; end < tail.size();) {
    end = std::min(tail.find('/', end + 1), tail.size());
    const std::string_view prefix = tail.substr(0, end);
    const auto found = std::ranges::lower_bound(placed.entries, prefix, std::less<>{}, key);
    if (found == placed.entries.end() || !key(*found).starts_with(prefix)) break;
    if (key(*found) == prefix && !is_own_home(found->path, home)) best = &*found;
  }
  return best;
}

template <typename Entry>
const Entry* innermost_entry(const SplitTable<Entry>& table, std::string_view path,
                             std::string_view home) {
  const Entry* best = nullptr;
  std::size_t best_size = 0;
  path = without_trailing_slash(path);
  for (const Placed<Entry>& placed : Placements<Entry>(table, path, home)) {
    if (!is_at_or_below(path, placed.root)) continue;
    const Entry* found = innermost_of(placed, path.substr(placed.root.size()), home);
    if (found == nullptr) continue;
    const std::size_t size = placed.root.size() + placed.tail(*found).size();
    if (size > best_size) best = found;
    best_size = std::max(best_size, size);
  }
  return best;
}

// True for what a sorted table holds before the first path below `directory`.
bool is_before_children(std::string_view text, std::string_view directory) {
  const int order = text.compare(0, directory.size(), directory);
  if (order != 0) return order < 0;
  return text.size() == directory.size() || text[directory.size()] < '/';
}

template <typename Entry>
std::span<const Entry> entries_below(const Placed<Entry>& placed, std::string_view directory) {
  const auto first = std::ranges::partition_point(placed.entries, [&](const Entry& entry) {
    return is_before_children(placed.tail(entry), directory);
  });
  const std::span<const Entry> rest(first, placed.entries.end());
  const auto last = std::ranges::find_if_not(
      rest, [&](const Entry& entry) { return is_below(placed.tail(entry), directory); });
  return {rest.begin(), last};
}

template <typename Found, typename Entry>
std::vector<Found> all_below(const SplitTable<Entry>& table, std::string_view path,
                             std::string_view home) {
  std::vector<Found> out;
  path = without_trailing_slash(path);
  for (const Placed<Entry>& placed : Placements<Entry>(table, path, home)) {
    const bool inside = is_at_or_below(path, placed.root);
    if (!inside && !is_below(placed.root, path)) continue;
    const std::string_view directory = inside ? path.substr(placed.root.size()) : "";
    for (const Entry& entry : entries_below(placed, directory)) {
      if (is_own_home(entry.path, home)) continue;
      out.push_back({std::string(placed.root).append(placed.tail(entry)), &entry});
    }
  }
  // Two homes may interleave, and HOME=/ makes "~/Library/Keychains" and "/Library/Keychains" one.
  std::ranges::sort(out, {},
                    [](const Found& f) { return std::pair(std::string_view(f.path), f.entry); });
  const auto doubles = std::ranges::unique(out, {}, &Found::path);
  out.erase(doubles.begin(), doubles.end());
  return out;
}

// The private mounts of the sandbox always win here, so a grant could only be void or an escape.
constexpr std::string_view own_mounts[] = {"/proc", "/sys", "/dev"};

struct RefusedDirectory {
  std::string_view path;
  std::string_view reason;
};
constexpr RefusedDirectory refused_directories[] = {
    {"/etc", "/etc holds the configuration and the secrets of the whole machine"},
    {"/run", "/run holds the sockets and the secrets of the whole machine"},
    {"/var/run", "/var/run holds the sockets and the secrets of the whole machine"},
    {"/root", "/root is a home directory"},
    {"/home", "/home holds every home directory"},
    {"/Users", "/Users holds every home directory"},
};

std::optional<std::string> refused_mount(std::string_view path) {
  for (const std::string_view mount : own_mounts) {
    if (path == mount) return format("{} is the sandbox's own", mount);
    if (is_below(path, mount))
      return format("{} lies in {}, which is the sandbox's own", path, mount);
  }
  return std::nullopt;
}

std::optional<std::string> refused_home(std::string_view path, std::string_view home) {
  if (home.starts_with('/')) {
    home = without_trailing_slash(home);
    if (path == home) return format("{} is the home directory", path);
    if (is_below(home, path)) return format("{} holds the home directory {}", path, home);
  }
  if (home_by_name(path) == path) return format("{} is a home directory", path);
  return std::nullopt;
}

// Programs, libraries, configuration and boot files: what other programs, or root, run later. On
// merged-usr systems /bin and its like are links into /usr.
constexpr std::string_view unsafe_write_directories[] = {
    "/usr",    "/etc",    "/bin",  "/sbin", "/lib",    "/lib32",   "/lib64",
    "/libx32", "/libo32", "/boot", "/efi",  "/System", "/Library", "/private/etc"};

std::string_view last_component(std::string_view path) { return path.substr(path.rfind('/') + 1); }

constexpr std::string_view harmless_examples[] = {".env.example", ".env.sample", ".env.template"};

std::optional<std::string_view> find_socket(std::span<const ControlSocket> table,
                                            std::string_view path) {
  const auto found = std::ranges::find(table, path, &ControlSocket::path);
  if (found == table.end()) return std::nullopt;
  return found->controls;
}

}  // namespace

bool is_held_name(std::string_view below) {
  if (!below.starts_with('/')) return false;
  const auto holds = [below](std::string_view name) {
    return is_at_or_below(below.substr(1), name);
  };
  return std::ranges::any_of(protected_workspace_paths(), holds) ||
         std::ranges::any_of(workspace_secret_names(), holds);
}

std::optional<std::string> refused_scope(std::string_view path, std::string_view home) {
  path = without_trailing_slash(path);
  if (path.empty()) return "/ is the whole machine";
  if (auto mount = refused_mount(path)) return mount;
  const auto listed = std::ranges::find(refused_directories, path, &RefusedDirectory::path);
  if (listed != std::ranges::end(refused_directories)) return std::string(listed->reason);
  return refused_home(path, home);
}

std::optional<std::string_view> unsafe_write(std::string_view path) {
  for (const std::string_view directory : unsafe_write_directories) {
    if (is_at_or_below(path, directory)) return directory;
  }
  return std::nullopt;
}

bool is_loader_variable(std::string_view name) {
  const auto begins = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::ranges::any_of(loader_variable_prefixes(), begins) ||
         std::ranges::binary_search(loader_variables(), name);
}

bool is_workspace_secret(std::string_view path) {
  const std::string_view name = last_component(path);
  if (std::ranges::find(harmless_examples, name) != std::ranges::end(harmless_examples)) {
    return false;
  }
  return std::ranges::any_of(workspace_secret_globs(), [&](std::string_view glob) {
    if (!glob.contains('/')) return matches_glob(name, glob);
    return path == glob || (path.ends_with(glob) && path[path.size() - glob.size() - 1] == '/');
  });
}

std::optional<std::string_view> control_socket(std::string_view path) {
  // /var/run is /run; the tables know one spelling.
  if (is_below(path, "/var/run")) path.remove_prefix(std::string_view("/var").size());
  if (auto controls = find_socket(system_control_sockets(), path)) return controls;
  const std::string_view runtime_directory = child_of(path, "/run/user");
  if (!runtime_directory.empty() && is_below(path, runtime_directory)) {
    const std::string_view rest = path.substr(runtime_directory.size() + 1);
    if (auto controls = find_socket(user_control_sockets(), rest)) return controls;
  }
  return find_socket(control_socket_names(), last_component(path));
}

const CredentialPath* credential_at(std::string_view path, std::string_view home) {
  return innermost_entry(split_credential_paths(), path, home);
}

bool is_held_back(std::string_view path, std::string_view above, std::string_view home) {
  if (may_be_held_back(path, above, home)) return true;
  const CredentialPath* entry = credential_at(path, home);
  if (entry != nullptr && entry != credential_at(above, home)) return true;
  return is_held_name(path.substr(above == "/" ? 0 : above.size()));
}

std::vector<HiddenPath> credentials_below(std::string_view path, std::string_view home) {
  return all_below<HiddenPath>(split_credential_paths(), path, home);
}

const StartupPath* startup_at(std::string_view path, std::string_view home) {
  return innermost_entry(split_startup_paths(), path, home);
}

std::vector<ReadOnlyPath> startup_below(std::string_view path, std::string_view home) {
  std::vector<ReadOnlyPath> out = all_below<ReadOnlyPath>(split_startup_paths(), path, home);
  // What lies among credentials is out of sight, so there is nothing to keep read-only. Only a
  // grant that opens those credentials shows it.
  std::erase_if(out, [&](const ReadOnlyPath& each) {
    const std::string_view directory = std::string_view(each.path).substr(0, each.path.rfind('/'));
    const CredentialPath* around = credential_at(directory, home);
    return around != nullptr && around != credential_at(path, home);
  });
  return out;
}

}  // namespace capgate::core
