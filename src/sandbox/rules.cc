#include "sandbox/rules.h"

#include "base/ranges.h"
#include "sandbox/landlock.h"

namespace capgate::sandbox {
namespace {

class Rules {
 public:
  Rules(const lower::Plan& plan, const Holes& holes, Grants& grants,
        const std::vector<const Program*>& programs, const std::vector<std::string>& sockets,
        int abi, Bound& bound)
      : plan_(plan),
        holes_(holes),
        grants_(grants),
        programs_(programs),
        sockets_(sockets),
        abi_(abi),
        bound_(bound) {}

  using Done = std::expected<void, Refusal>;

  Done allow() {
    bound_.landlock_handled = landlock_handled(abi_);
    bound_.landlock_scoped = landlock_scoped(abi_);
    bound_.landlock_attribute_size = landlock_attribute_size(abi_);
    for (const Program* program : programs_) {
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
    for (const std::string& path : sockets_) rule(path, {"read_file", "write_file"});
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
    const bool is_own = path == holes_.home() || path == "/tmp" || path == "/dev/shm";
    if (contains(planned.rights, std::string_view("refer")) && abi_ < 2 && !is_own) {
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

  // Rights that only directories have are an error on a file.
  void rule(const std::string& path, const std::vector<std::string_view>& names) {
    std::uint64_t access = landlock_access(names, abi_);
    const std::string real = resolved_grant(path);
    const auto identity = identify(real);
    if (identity && !identity->is_directory() && !is_private(real)) access &= landlock_file_rights;
    bound_.landlock.push_back({.path = real, .access = access});
  }

  static bool is_private(std::string_view path) { return path == "/tmp" || path == "/dev/shm"; }

  // A grant is mounted where it really is.
  std::string resolved_grant(const std::string& path) const {
    if (grants_.has(path)) return path;
    const auto opened = open_host_path(path);
    return opened && grants_.has(opened->resolved) ? opened->resolved : path;
  }

  const lower::Plan& plan_;
  const Holes& holes_;
  Grants& grants_;
  const std::vector<const Program*>& programs_;
  const std::vector<std::string>& sockets_;
  int abi_;
  Bound& bound_;
};

}  // namespace

std::expected<void, Refusal> add_rules(const lower::Plan& plan, const Holes& holes, Grants& grants,
                                       const std::vector<const Program*>& programs,
                                       const std::vector<std::string>& sockets, int abi,
                                       Bound& bound) {
  return Rules(plan, holes, grants, programs, sockets, abi, bound).allow();
}

}  // namespace capgate::sandbox
