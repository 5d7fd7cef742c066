#include "sandbox/doctor.h"

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "sys/error.h"

namespace capgate::sandbox {
namespace {

using Outcome = Attempt::Outcome;

// What a missing Check means. Of memfd_exec: init is then started from its file.
constexpr Status without(Check check) {
  switch (check) {
    case Check::namespaces:
    case Check::id_map:
    case Check::loopback:
    case Check::private_mounts:
    case Check::tmpfs:
    case Check::proc:
    case Check::pivot:
    case Check::landlock:
    case Check::seccomp: return Status::failed;
    case Check::listener:
    case Check::cgroup:
    case Check::memfd_exec:
    case Check::any_address:
    case Check::redirect:
    case Check::broker:
    case Check::audit:
    case Check::locked_memory:
    case Check::tls_broker:
    case Check::store:
    case Check::count: return Status::limited;
  }
  return Status::failed;
}

bool is_refusal(int err) { return err == EPERM || err == EACCES; }

// A filter answers EPERM or ENOSYS; the other ways in which a container is confined only EPERM.
bool is_refused_by_container(int err, const Facts& facts) {
  if (facts.is_filtered && err == ENOSYS) return true;
  return is_refusal(err) && (facts.is_filtered || !facts.container.empty());
}

Cause refused_or_missing(int err, const Facts& facts) {
  if (is_refusal(err) && facts.apparmor_restrict_userns.value_or(0) != 0) return Cause::apparmor;
  if (is_refused_by_container(err, facts)) return Cause::container_filter;
  if (err == ENOSYS || err == ENODEV || err == EINVAL) return Cause::old_kernel;
  return Cause::unknown;
}

Cause cause_of_no_namespaces(int err, const Facts& facts) {
  if (err == ENOSPC || err == EUSERS) {
    return facts.max_user_namespaces == 0U ? Cause::user_limit : Cause::namespace_limit;
  }
  if (is_refusal(err)) {
    if (facts.unprivileged_userns_clone == 0U) return Cause::userns_clone;
    if (!facts.uid_is_mapped) return Cause::unmapped_user;
    if (facts.is_chrooted) return Cause::chroot;
  }
  return refused_or_missing(err, facts);
}

// The kernel mounts a new proc only where the old one is wholly visible: a container that covers
// parts of /proc is told EPERM, whatever its capabilities.
Cause cause_of_no_proc(int err, const Facts& facts) {
  if (facts.apparmor_restrict_userns.value_or(0) != 0) return refused_or_missing(err, facts);
  return is_refusal(err) ? Cause::container_proc : refused_or_missing(err, facts);
}

Cause cause_of_no_pivot(int err, const Facts& facts) {
  if (err == EINVAL && facts.root_is_initramfs) return Cause::initramfs;
  if (err == EINVAL && facts.is_chrooted) return Cause::chroot;
  return err == EINVAL ? Cause::unknown : refused_or_missing(err, facts);
}

Cause cause_of_no_listener(int err, const Facts& facts) {
  return err == EBUSY ? Cause::second_listener : refused_or_missing(err, facts);
}

Cause cause_of_no_cgroup(int err) {
  if (err == 0) return Cause::no_cgroups;
  return is_refusal(err) || err == EROFS ? Cause::no_delegation : Cause::unknown;
}

// Whatever else the kernel answers, it lacks one of the modules.
Cause cause_of_no_redirect(int err, const Facts& facts) {
  return is_refusal(err) ? refused_or_missing(err, facts) : Cause::no_redirect;
}

std::string landlock_detail(unsigned abi) {
  if (abi < 2)
    return format("ABI {}: a policy that needs moves or truncation held is refused", abi);
  if (abi < 3) return format("ABI {}: a policy that needs truncation held is refused", abi);
  return format("ABI {}: every file right{}", abi, abi >= 6 ? " and scope" : "");
}

std::string cgroup_detail(const Cgroups& cgroups) {
  switch (cgroups.kind) {
    case CgroupKind::none:
      return "none that this user may use: default limits are held by rlimits and a watchdog, and "
             "a "
             "stated limit that they cannot hold is refused";
    case CgroupKind::v1:
    case CgroupKind::v2: break;
  }
  std::string detail =
      format("v{} in {}", cgroups.kind == CgroupKind::v1 ? 1 : 2, cgroups.directory);
  for (const std::string& controller : cgroups.missing) {
    detail += format("{}{}", &controller == &cgroups.missing.front() ? ", without " : " and ",
                     controller);
  }
  return detail;
}

std::string working_detail(Check check, const Facts& facts) {
  switch (check) {
    case Check::namespaces: return "user, mount, pid, net, ipc, uts and cgroup, by one clone3";
    case Check::id_map: return "uid and gid 1000 inside, written by the sandbox itself";
    case Check::loopback: return "up, in a network namespace without any other way out";
    case Check::private_mounts: return "no mount of a sandbox reaches the host";
    case Check::tmpfs: return "mounted with a size limit";
    case Check::proc: return "mounted, showing one pid namespace only";
    case Check::pivot: return "the host's files are gone after pivot_root";
    case Check::landlock: return landlock_detail(facts.landlock_abi);
    case Check::seccomp: return "a filter holds";
    case Check::listener: return "a filter can ask a supervisor, as run --trace does";
    case Check::cgroup: return cgroup_detail(facts.cgroups);
    case Check::memfd_exec: return "a program can be started from memory";
    case Check::any_address:
      return facts.has_ipv6 ? "every IPv4 and IPv6 address leads to the broker"
                            : "every IPv4 address leads to the broker; there is no IPv6 here";
    case Check::redirect: return "every TCP port leads to the broker";
    case Check::broker: return "capgate-broker is beside capgate";
    case Check::audit: return format("logs can be written in {}", facts.audit_directory);
    case Check::locked_memory: return "secrets can be kept in memory that is never swapped out";
    case Check::tls_broker: return "capgate-broker-tls is beside capgate";
    case Check::store: return "capgate-store is beside capgate";
    case Check::count: break;
  }
  return "";
}

// What cannot be declared without it; empty: the cause says it all.
std::string_view refused_without(Check check) {
  if (check == Check::any_address || check == Check::broker) {
    return "; net:connect and net:listen are refused";
  }
  if (check == Check::redirect) {
    return "; net:connect without a port (net:connect:*), and net:listen at a port that is also "
           "connected to, are refused";
  }
  if (check == Check::audit) {
    return "; net:connect and net:listen are refused without run --audit FILE";
  }
  if (check == Check::locked_memory) return "; env:inject is refused where values do not fit";
  if (check == Check::tls_broker) return "; env:inject with to= is refused";
  if (check == Check::store) return "; capgate secret and --secret NAME=store:... are refused";
  return "";
}

// What is wrong with a program is told with its reason.
bool is_missing_program(Cause cause) {
  return cause == Cause::no_broker || cause == Cause::no_tls_broker || cause == Cause::no_store;
}

Finding shortfall(Check check, Status status, std::string detail, Cause cause, const Facts& facts) {
  return {.check = check,
          .status = status,
          .detail = std::move(detail),
          .cause = cause,
          .remedies = remedies(cause, facts)};
}

Finding of_failed(Check check, const Facts& facts) {
  const int err = facts.of(check).err;
  const Cause cause = cause_of(check, err, facts);
  const std::string reason =
      is_missing_program(cause) ? "" : format("{}: ", sys::reason({.err = err}));
  return shortfall(check, without(check),
                   format("{}{}{}", reason, explain(cause, facts), refused_without(check)), cause,
                   facts);
}

Finding of_working(Check check, const Facts& facts) {
  std::string detail = working_detail(check, facts);
  if (check == Check::landlock && facts.landlock_abi < 3) {
    return shortfall(check, Status::limited, std::move(detail), Cause::old_kernel, facts);
  }
  if (check == Check::listener && facts.ptrace_scope.value_or(0) >= 3) {
    return shortfall(check, Status::limited, explain(Cause::ptrace_forbidden, facts),
                     Cause::ptrace_forbidden, facts);
  }
  if (check == Check::cgroup && !facts.cgroups.missing.empty()) {
    return shortfall(check, Status::limited, std::move(detail), Cause::controllers_missing, facts);
  }
  return {.check = check, .detail = std::move(detail)};
}

Finding of_cgroups(const Facts& facts) {
  if (facts.cgroups.kind != CgroupKind::none) return of_working(Check::cgroup, facts);
  const Cause cause = facts.cgroups.missing.empty() ? cause_of_no_cgroup(facts.cgroups.err)
                                                    : Cause::controllers_missing;
  return shortfall(Check::cgroup, without(Check::cgroup), cgroup_detail(facts.cgroups), cause,
                   facts);
}

Finding find(Check check, const Facts& facts) {
  const Attempt& attempt = facts.of(check);
  switch (attempt.outcome) {
    case Outcome::worked:
      return check == Check::cgroup ? of_cgroups(facts) : of_working(check, facts);
    case Outcome::failed:
      return check == Check::cgroup ? of_cgroups(facts) : of_failed(check, facts);
    case Outcome::no_answer:
      return shortfall(check, without(check), explain(Cause::no_answer, facts), Cause::no_answer,
                       facts);
    case Outcome::not_tried: break;
  }
  return {.check = check, .status = Status::untested, .detail = "something before it failed"};
}

struct StepName {
  std::string_view step;
  Check check;
};
// Steps of the launcher and of init that fail for the reason for which a Check fails.
constexpr StepName step_names[] = {
    {"clone3", Check::namespaces},        {"id_maps", Check::id_map},
    {"uid_map", Check::id_map},           {"gid_map", Check::id_map},
    {"host_name", Check::private_mounts}, {"private_tree", Check::private_mounts},
    {"new_root", Check::tmpfs},           {"mounts", Check::private_mounts},
    {"start_init", Check::memfd_exec},
};

std::optional<Check> check_of_step(std::string_view step) {
  for (const StepName& entry : step_names) {
    if (entry.step == step) return entry.check;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(Check::count); ++i) {
    if (name_of(static_cast<Check>(i)) == step) return static_cast<Check>(i);
  }
  return std::nullopt;
}

}  // namespace

Cause cause_of(Check check, int err, const Facts& facts) {
  if (check == Check::cgroup) return cause_of_no_cgroup(err);
  if (err == 0) return Cause::none;
  if (facts.wsl == Wsl::wsl1) return Cause::wsl1;
  switch (check) {
    case Check::namespaces: return cause_of_no_namespaces(err, facts);
    case Check::proc: return cause_of_no_proc(err, facts);
    case Check::pivot: return cause_of_no_pivot(err, facts);
    case Check::listener: return cause_of_no_listener(err, facts);
    case Check::landlock:
      return err == EOPNOTSUPP ? Cause::landlock_not_started : refused_or_missing(err, facts);
    case Check::memfd_exec:
      return facts.memfd_noexec == 2U ? Cause::memfd_forbidden : refused_or_missing(err, facts);
    case Check::redirect: return cause_of_no_redirect(err, facts);
    case Check::broker: return Cause::no_broker;
    case Check::audit: return Cause::audit_not_writable;
    case Check::locked_memory:
      return err == ENOMEM || err == EPERM || err == EAGAIN ? Cause::memory_not_locked
                                                            : Cause::unknown;
    case Check::tls_broker: return Cause::no_tls_broker;
    case Check::store: return Cause::no_store;
    case Check::any_address:
    case Check::id_map:
    case Check::loopback:
    case Check::private_mounts:
    case Check::tmpfs:
    case Check::seccomp: return refused_or_missing(err, facts);
    case Check::cgroup:
    case Check::count: break;
  }
  return Cause::unknown;
}

std::vector<Finding> findings(const Facts& facts) {
  std::vector<Finding> all;
  all.reserve(static_cast<std::size_t>(Check::count));
  for (std::size_t i = 0; i < static_cast<std::size_t>(Check::count); ++i) {
    all.push_back(find(static_cast<Check>(i), facts));
  }
  return all;
}

// An untested Check is no success: `run` would need it.
bool is_enforceable(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& finding) {
    return finding.status == Status::failed ||
           (finding.status == Status::untested && without(finding.check) == Status::failed);
  });
}

std::string explain_launch_failure(std::string_view step, int err, const Facts& facts) {
  std::string text = format("{} failed: {}", step, sys::reason({.err = err}));
  const auto check = check_of_step(step);
  const Cause cause = check ? cause_of(*check, err, facts) : Cause::unknown;
  if (cause == Cause::none || cause == Cause::unknown) {
    return text + "; `capgate doctor` shows what this machine can enforce";
  }
  text += format(". {}.", explain(cause, facts));
  const std::vector<Remedy> ways = remedies(cause, facts);
  if (!ways.empty()) {
    const Remedy& best = ways.front();
    text += format(" To fix it: {}", best.what);
    if (best.file) text += format("; create {} as `capgate doctor` prints it", best.file->path);
    for (const std::string& command : best.commands) text += format("; {}", command);
    text += ".";
  }
  return text;
}

}  // namespace capgate::sandbox
