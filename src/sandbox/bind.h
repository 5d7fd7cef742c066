// A Plan meets this host: every hole is filled, every path opened, every mount spelled out.
//
//   const auto bound = bind(plan, caller, command);
//   print(*bound)      what `run --dry-run` shows
//   launch(*bound)     what runs (launch.h)
//
// Nothing is decided here that the Plan leaves open; what cannot be had is a refusal. The bound
// plan keeps a descriptor of every host path, so that an inode number cannot be reused between the
// look and the mount.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"
#include "sandbox/capture.h"
#include "sandbox/host_path.h"
#include "sandbox/orders.h"
#include "sandbox/program.h"
#include "sandbox/watched.h"

namespace capgate::sandbox {

struct Trust;

// Files inside writable grants that the server must not change (policy_place.h), by their names in
// the granted directories.
struct KeptPlaces {
  std::vector<std::string> read_only;
  std::vector<std::string> missing;
};

// Who starts the sandbox, and where from.
struct Launcher {
  Caller caller;
  std::vector<std::string> environment;  // NAME=VALUE
  std::uint32_t uid = 0;
  int landlock_abi = 0;
  bool makes_missing_files = true;  // a dry run makes nothing
  std::string state = {};           // --profile: a directory of the host that is HOME inside
  std::string package = {};         // an installed package: read-only at package_place
  const Trust* trust = nullptr;     // only where something is sealed
  KeptPlaces kept = {};
};

// A fixed place, whatever the store is called: nothing of the host is ever granted there, entry
// points and compiled files can name it, and a HOME that is kept needs no mount point for it.
inline constexpr std::string_view package_place = "/opt/capgate/package";

struct BoundMount {
  orders::MountKind kind = orders::MountKind::directory;
  std::string target;
  std::string source;  // host path, link target or contents
  Identity identity;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  std::uint64_t attributes = 0;
  std::string_view rights = {};  // of a grant: "read", "write", "create", "delete" or "socket"
  bool optional = false;
  bool in_private = false;  // every directory above the target is the sandbox's own
  bool owned = false;       // a granted path: started as root, it is mounted with its owner mapped
};

struct BoundRule {
  std::string path;
  std::uint64_t access = 0;
};

struct BoundLimit {
  std::uint32_t resource = 0;
  std::uint64_t value = 0;
};

struct Bound {
  std::vector<BoundMount> mounts;
  std::vector<BoundRule> landlock;
  std::uint64_t landlock_handled = 0;
  std::uint64_t landlock_scoped = 0;
  std::uint32_t landlock_attribute_size = 0;
  std::string program;
  Identity program_identity;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // NAME=VALUE, without secrets
  std::vector<std::string> injected;     // names of secrets that the server holds (secrets.h)
  std::string directory;
  std::uint32_t uid = 1000;              // of user and group inside
  std::vector<std::string> executables;  // what Landlock lets run
  std::vector<std::string> notes;        // what the user should know
  Watched watched;                       // what is hidden or read-only in granted directories
  std::vector<std::string> not_held;     // directories below which nothing was looked at
  Capture capture;                       // empty without net capabilities
  std::vector<sys::Fd> kept;
};

[[nodiscard]] std::expected<Bound, Refusal> bind(const lower::Plan& plan, const Launcher& launcher,
                                                 const std::vector<std::string>& command);

}  // namespace capgate::sandbox
