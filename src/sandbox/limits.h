// Limits on a running server, by the strongest mechanism that this host has: a cgroup (v2 where it
// is delegated, v1 where it can be written), else rlimits inside the new user namespace and a
// watchdog.
//
//   auto limits = set_up_limits(plan.limits, accepted);
//   launch(..., limits->placement());
//   limits->explain_end()    "memory limit 512M reached; raise it with limit:memory:1G"
//
// A limit that the manifest states and that cannot be held is a refusal, unless it is accepted by
// name. The defaults are held as
// well as possible, and the report says how.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "sandbox/launch.h"

namespace capgate::sandbox {

struct HeldLimit {
  std::string_view name;
  std::uint64_t value = 0;
  std::string mechanism;  // "cgroup v2", "rlimit", ...; empty: not held
};

class Limits {
 public:
  Limits() = default;
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;
  Limits(Limits&&) = default;
  Limits& operator=(Limits&&) = delete;
  ~Limits();  // removes the cgroups: the sandbox must be dead

  [[nodiscard]] Placement placement() const;
  [[nodiscard]] const std::vector<BoundLimit>& rlimits() const { return rlimits_; }
  [[nodiscard]] const std::vector<HeldLimit>& held() const { return held_; }
  // No cgroup counts the memory: the caller watches it (memory_use.h), and takes from the server
  // the means to hold memory that cannot be watched.
  [[nodiscard]] std::optional<std::uint64_t> watched_memory() const { return watched_memory_; }
  [[nodiscard]] std::optional<std::uint64_t> seconds() const { return seconds_; }

  // Why the user's systemd gave no cgroup, if it was asked for one; empty otherwise.
  [[nodiscard]] const std::string& scope_failure() const { return scope_failure_; }

  // Why the server was killed, if a limit of a cgroup did it. Nothing otherwise.
  [[nodiscard]] std::string explain_end() const;

 private:
  friend class LimitSetup;

  sys::Fd v2_;
  std::vector<sys::Fd> procs_;
  std::vector<std::string> directories_;
  std::string memory_directory_;
  std::uint64_t memory_ = 0;
  std::vector<BoundLimit> rlimits_;
  std::vector<HeldLimit> held_;
  std::optional<std::uint64_t> watched_memory_;
  std::optional<std::uint64_t> seconds_;
  std::string scope_failure_;
};

// Processes of the engine's own that are counted with the server's: in its user namespace, and
// outside of that in its cgroup.
struct OwnProcesses {
  std::uint64_t inside = 1;
  std::uint64_t beside = 0;
  bool by_root = false;  // the sandbox has root's uid, whose processes no rlimit counts
};

[[nodiscard]] std::expected<Limits, Refusal> set_up_limits(
    const std::vector<lower::PlanLimit>& limits, const std::vector<std::string>& accepted,
    const OwnProcesses& own = {});

// A caller that may do less than the default gives what it has.
[[nodiscard]] std::vector<BoundLimit> within_own(std::vector<BoundLimit> limits);

// "512M", as a capability writes it.
[[nodiscard]] std::string limit_text(std::string_view name, std::uint64_t value);

}  // namespace capgate::sandbox
