// Can a sandbox be enforced on this machine, and if not, what would make it possible?
//
//   const Facts facts = probe_host(logs);       // tries everything, in throw-away processes
//   for (const Finding& f : findings(facts)) …  // pure: what holds, what does not, and the remedy
//   is_enforceable(findings(facts))             // false: `capgate run` refuses
//
// The launcher asks the same questions after a step failed, from facts that cost a few reads:
//
//   explain_launch_failure("id_maps", EACCES, read_host())
//     -> "AppArmor lets only programs with a profile use user namespaces. To fix it: ..."
//
// Nothing here changes the machine. Remedies are words and commands for the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capgate::sandbox {

// What became of one attempt.
struct Attempt {
  enum class Outcome : unsigned char { not_tried, worked, failed, no_answer };
  Outcome outcome = Outcome::not_tried;
  int err = 0;  // of `failed`

  [[nodiscard]] static Attempt of(int err) {
    return {.outcome = err == 0 ? Outcome::worked : Outcome::failed, .err = err};
  }
  [[nodiscard]] bool worked() const { return outcome == Outcome::worked; }
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

// What is tried. Up to `pivot` in this order inside one throw-away sandbox, where the first failure
// leaves the rest untried; the others each in a process of their own. From `any_address` on they
// are what the network of a server needs.
enum class Check : unsigned char {
  namespaces,
  id_map,
  loopback,
  private_mounts,
  tmpfs,
  proc,
  pivot,
  landlock,
  seccomp,
  listener,
  cgroup,
  memfd_exec,
  any_address,  // in the same sandbox as `loopback`, as is
  redirect,     //
  broker,
  audit,
  locked_memory,  // from here on: what secrets need
  tls_broker,
  store,
  count,
};
[[nodiscard]] std::string_view name_of(Check check);  // "id-map"

enum class Distribution : unsigned char {
  other,
  debian,
  ubuntu,
  fedora,  // and RHEL with its rebuilds
  arch,
  opensuse,
  alpine,
  nixos,
};
[[nodiscard]] std::string_view name_of(Distribution distribution);

enum class Wsl : unsigned char { none, wsl1, wsl2 };

// A file below /proc/sys, if this kernel has it and it holds a number.
using Setting = std::optional<std::uint64_t>;

// Limits are held by the first of these that the user may use.
enum class CgroupKind : unsigned char { none, v1, v2 };

struct Cgroups {
  CgroupKind kind = CgroupKind::none;
  int err = 0;                       // why not, of the last attempt; 0: no cgroup is mounted
  std::string directory;             // where child groups were made, or could not be
  std::vector<std::string> missing;  // of memory, pids and cpu: what cannot be limited there
  friend bool operator==(const Cgroups&, const Cgroups&) = default;
};

// Of a program beside capgate: why it cannot be used, and what to do.
struct Missing {
  std::string problem;
  std::string help;
};

struct Facts {
  // Read from files: read_host() fills in these.
  std::string kernel;       // "6.1.0-18-amd64"
  std::string pretty_name;  // "Debian GNU/Linux 12 (bookworm)"
  Distribution distribution = Distribution::other;
  Wsl wsl = Wsl::none;
  std::string container;  // "docker", "podman", ...; empty: none that can be seen
  std::uint32_t uid = 0;
  bool uid_is_mapped = true;             // a user without a mapping can make no user namespace
  bool is_filtered = false;              // a seccomp filter is already in force
  bool is_chrooted = false;              // `/` is no mount point
  bool root_is_initramfs = false;        // pivot_root cannot leave it
  std::string program;                   // this program's own path
  bool program_is_roots = false;         // only root can replace it
  std::string apparmor_profile;          // that this program runs under; empty: no AppArmor
  std::string lsm;                       // "landlock,yama,apparmor": the active ones, if readable
  std::vector<std::string> zero_limits;  // "user.max_net_namespaces": each that is 0
  Setting max_user_namespaces;           // user.max_user_namespaces
  Setting unprivileged_userns_clone;     // kernel.unprivileged_userns_clone, Debian's
  Setting apparmor_restrict_userns;      // kernel.apparmor_restrict_unprivileged_userns
  Setting ptrace_scope;                  // kernel.yama.ptrace_scope
  Setting memfd_noexec;                  // vm.memfd_noexec

  // Tried: probe_host() fills in these too.
  Attempt attempts[static_cast<std::size_t>(Check::count)];
  unsigned landlock_abi = 0;
  Cgroups cgroups;
  bool has_ipv6 = false;        // of any_address
  Missing broker;               // capgate-broker,
  Missing tls_broker;           // capgate-broker-tls and
  Missing store;                // capgate-store, where they cannot be used
  std::string audit_directory;  // where a run makes its log

  [[nodiscard]] Attempt& of(Check check) { return attempts[static_cast<std::size_t>(check)]; }
  [[nodiscard]] const Attempt& of(Check check) const {
    return attempts[static_cast<std::size_t>(check)];
  }

  // Other engines of `capgate run` that are installed, with what they say of their version.
  std::vector<std::pair<std::string, std::string>> engines;
};

[[nodiscard]] Facts read_host();
// `audit_directory` need not exist yet; it is not made.
[[nodiscard]] Facts probe_host(const std::string& audit_directory);

// ---- from here on pure --------------------------------------------------------------------------

// Why something does not work. Each has its own remedy.
enum class Cause : unsigned char {
  none,
  wsl1,
  old_kernel,            // the call does not exist
  user_limit,            // user.max_user_namespaces is 0
  namespace_limit,       // another user.max_*_namespaces is 0, or an outer limit is reached
  userns_clone,          // kernel.unprivileged_userns_clone is 0
  unmapped_user,         //
  chroot,                //
  apparmor,              // restricts user namespaces
  container_filter,      // the container's seccomp profile, or another that confines it
  container_proc,        // the container hides parts of /proc
  initramfs,             //
  landlock_not_started,  // built, but not in the boot list
  memfd_forbidden,       // vm.memfd_noexec is 2
  second_listener,       // a supervisor outside already has one
  ptrace_forbidden,      // kernel.yama.ptrace_scope is 3
  no_delegation,         // cgroups exist, and are not this user's
  controllers_missing,   //
  no_cgroups,            //
  no_redirect,           // no nf_tables, or not its modules for a redirect
  no_broker,             // not beside capgate, or not only its owner's
  audit_not_writable,    //
  memory_not_locked,     // RLIMIT_MEMLOCK is too low
  no_tls_broker,         // as no_broker
  no_store,              // as no_broker
  no_answer,             // the attempt hung
  unknown,
};
[[nodiscard]] std::string_view name_of(Cause cause);  // "apparmor"

struct FileToCreate {
  std::string path;
  std::string contents;
  friend bool operator==(const FileToCreate&, const FileToCreate&) = default;
};

// One way out. Several for a cause are in the order of preference.
struct Remedy {
  std::string what;
  std::optional<FileToCreate> file;   // first
  std::vector<std::string> commands;  // then
  friend bool operator==(const Remedy&, const Remedy&) = default;
};

enum class Status : unsigned char {
  ok,
  limited,   // a sandbox holds, and something that the detail names is refused or weaker
  failed,    // no sandbox can be enforced
  untested,  // because something before it failed
};
[[nodiscard]] std::string_view name_of(Status status);

struct Finding {
  Check check = Check::namespaces;
  Status status = Status::ok;
  std::string detail;
  Cause cause = Cause::none;
  std::vector<Remedy> remedies;
};

[[nodiscard]] Cause cause_of(Check check, int err, const Facts& facts);
[[nodiscard]] std::string explain(Cause cause, const Facts& facts);  // one sentence
[[nodiscard]] std::vector<Remedy> remedies(Cause cause, const Facts& facts);

// One for each Check, in their order.
[[nodiscard]] std::vector<Finding> findings(const Facts& facts);
[[nodiscard]] bool is_enforceable(const std::vector<Finding>& findings);

// Why a step of the launcher failed and what to do, in one paragraph. `step` is the name of a Check
// or of a step of the launcher; the text never is empty.
[[nodiscard]] std::string explain_launch_failure(std::string_view step, int err,
                                                 const Facts& facts);

[[nodiscard]] std::string doctor_text(const Facts& facts);
[[nodiscard]] std::string doctor_json(const Facts& facts);  // schemaVersion 1

}  // namespace capgate::sandbox
