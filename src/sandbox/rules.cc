#include "sandbox/rules.h"

#include "base/ranges.h"
#include "sandbox/landlock.h"

namespace capgate::sandbox {
namespace {

class Rules {
 public:
  Rules(const Parts& parts, const Mounted& mounted)
      : plan_(parts.plan),
        holes_(parts.holes),
        grants_(parts.grants),
        mounted_(mounted),
        abi_(parts.launcher.landlock_abi),
        bound_(parts.bound) {}

  using Done = std::expected<void, Refusal>;

  Done allow() {
    bound_.landlock.reserve(plan_.landlock.size());
    bound_.landlock_handled = landlock_handled(abi_);
    bound_.landlock_scoped = landlock_scoped(abi_);
    bound_.landlock_attribute_size = landlock_attribute_size(abi_);
    for (const Program* program : mounted_.programs) {
      for (const auto& list : {program->executables, program->executable_directories}) {
        for (const std::string& path : list) {
          if (!contains(bound_.executables, path)) bound_.executables.push_back(path);
        }
      }
      for (const auto& list : {program->readable, program->prefixes}) {
        for (const std::string& path : list) rule(path, {"read_file", "read_dir"});
      }
    }
    for (const std::string& path : bound_.executables) {
      rule(path, {"execute", "read_file", "read_dir"});
    }
    for (const std::string& path : mounted_.sockets) rule(path, {"read_file", "write_file"});
    for (const lower::LandlockRule& planned : plan_.landlock) {
      if (auto done = allow_planned(planned); !done) return done;
    }
    return {};
  }

 private:
  Done allow_planned(const lower::LandlockRule& planned) {
    if (planned.path == "${PROGRAM}" || planned.path.starts_with("${EXEC:")) return {};
    if (planned.path.starts_with("${GLOB:")) {
      const std::string pattern = planned.path.substr(7, planned.path.size() - 8);
      for (const std::string& path : grants_.globbed[pattern]) rule(path, planned.rights);
      return {};
    }
    const std::string path = holes_.filled(planned.path);
    if (contains(planned.rights, std::string_view("refer")) && abi_ < 2 && !is_own(path)) {
      return std::unexpected(Refusal{
          .message = "this kernel's Landlock cannot allow moves between directories (ABI 1)",
          .help = "a kernel of 5.19 or later can"});
    }
    const bool deletes_only = contains(planned.rights, std::string_view("remove_file")) &&
                              !contains(planned.rights, std::string_view("write_file"));
    if (deletes_only && abi_ < 3) {
      return std::unexpected(
          Refusal{.message = "this kernel's Landlock cannot refuse truncation (ABI below 3)",
                  .help = "fs:delete needs a kernel of 6.2 or later"});
    }
    // Base directories that this host does not have.
    if (path == "/nix/store" && !identify(path)) return {};
    rule(path, planned.rights);
    return {};
  }

  // Rights that only directories have are an error on a file. A grant is mounted where it really
  // is, and was looked at already.
  void rule(const std::string& path, const std::vector<std::string_view>& names) {
    std::uint64_t access = access_of(names);
    const auto grant = find_grant(path);
    const std::string& real = grant == grants_.by_path.end() ? path : grant->first;
    const bool is_file = grant == grants_.by_path.end()
                             ? !is_directory_inside(path)
                             : !grant->second.path.identity.is_directory();
    if (is_file) access &= landlock_file_rights;
    bound_.landlock.push_back({.path = real, .access = access});
  }

  // Of a thousand grants most give the same rights.
  std::uint64_t access_of(const std::vector<std::string_view>& names) {
    if (names != last_names_) {
      last_names_ = names;
      last_access_ = landlock_access(names, abi_);
    }
    return last_access_;
  }

  using Found = decltype(Grants::by_path)::const_iterator;
  [[nodiscard]] Found find_grant(const std::string& path) const {
    const Found found = grants_.by_path.find(path);
    if (found != grants_.by_path.end() || is_own(path)) return found;
    const auto opened = open_host_path(path);
    return opened ? grants_.by_path.find(opened->resolved) : grants_.by_path.end();
  }

  // Directories of every sandbox, whatever the host has there.
  [[nodiscard]] bool is_own(std::string_view path) const {
    constexpr std::string_view own[] = {"/",          "/dev",  "/dev/shm", "/etc",
                                        "/nix/store", "/proc", "/tmp",     "/usr"};
    return contains(own, path) || path == holes_.home();
  }

  [[nodiscard]] bool is_directory_inside(const std::string& path) const {
    if (is_own(path)) return true;
    const auto identity = identify(path);
    return identity && identity->is_directory();
  }

  const lower::Plan& plan_;
  const Holes& holes_;
  Grants& grants_;
  const Mounted& mounted_;
  int abi_;
  Bound& bound_;
  std::vector<std::string_view> last_names_;
  std::uint64_t last_access_ = 0;
};

}  // namespace

std::expected<void, Refusal> add_rules(const Parts& parts, const Mounted& mounted) {
  return Rules(parts, mounted).allow();
}

}  // namespace capgate::sandbox
