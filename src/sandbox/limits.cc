#include "sandbox/limits.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "sandbox/memory_bound.h"
#include "sandbox/systemd_scope.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::string_view cgroup_root = "/sys/fs/cgroup";
constexpr std::size_t small_file = 65536;

std::string read_small(const std::string& path) {
  return sys::read_file(path, small_file).value_or("");
}

bool write_small(const std::string& path, std::string_view text) {
  const sys::Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 &&
         ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The cgroup of this process: that of a v1 controller, or of v2 for an empty name.
std::optional<std::string> own_cgroup(std::string_view controller) {
  const std::string table = read_small("/proc/self/cgroup");
  for (const std::string_view line : split(table, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) continue;
    const bool matches = controller.empty() ? fields[0] == "0"
                                            : capgate::contains(split(fields[1], ','), controller);
    const std::size_t path = fields[0].size() + fields[1].size() + 2;
    if (matches) return std::string(line.substr(path));
  }
  return std::nullopt;
}

std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = trim(text.substr(at + key.size()));
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

}  // namespace

class LimitSetup {
 public:
  explicit LimitSetup(const OwnProcesses& own) : own_(own) {}

  std::expected<Limits, Refusal> set_up(const std::vector<lower::PlanLimit>& limits,
                                        const std::vector<std::string>& accepted) {
    find_v2();
    if (needs_scope(limits)) ask_for_scope();
    for (const lower::PlanLimit& limit : limits) {
      std::string mechanism = hold(limit);
      const std::string text =
          format("limit:{}:{}", limit.name, limit_text(limit.name, limit.value));
      if (mechanism.empty() && !limit.is_default && !contains(accepted, text)) {
        return std::unexpected(
            Refusal{.message = format("limit:{}:{} cannot be held on this host", limit.name,
                                      limit_text(limit.name, limit.value)),
                    .help = help_for_missing_cgroup()});
      }
      out_.held_.push_back(
          {.name = limit.name, .value = limit.value, .mechanism = std::move(mechanism)});
    }
    if (auto entered = enter_v2(); !entered) return std::unexpected(std::move(entered).error());
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string help_for_missing_cgroup() const {
    const std::string& tried = out_.scope_failure_;
    return format(
        "it needs a cgroup that its user can write{}{} (see capgate doctor), or remove it",
        tried.empty() ? "" : ", and ", tried);
  }

  // A limit that was stated and that no cgroup holds so far. The defaults are not worth a
  // conversation with another process at each start; nor are pids, which an rlimit holds.
  [[nodiscard]] bool needs_scope(const std::vector<lower::PlanLimit>& limits) const {
    if (!has_v2() || ::geteuid() == 0) return false;
    const std::string offered = v2_.empty() ? "" : read_small(v2_ + "/cgroup.controllers");
    return std::ranges::any_of(limits, [&](const lower::PlanLimit& limit) {
      const bool is_of_cgroups = limit.name == "memory" || limit.name == "cpu";
      return is_of_cgroups && !limit.is_default &&
             !capgate::contains(split(trim(offered), ' '), limit.name);
    });
  }

  // Moves this process.
  void ask_for_scope() {
    const auto bus = session_bus();
    auto scope = bus ? join_systemd_scope(*bus) : std::unexpected("there is no session bus");
    if (!scope) {
      out_.scope_failure_ = std::move(scope).error();
      return;
    }
    find_v2();
    mechanism_v2_ = "cgroup v2, a scope of the user's systemd";
  }

  static bool has_v2() {
    struct statfs info{};
    return ::statfs(std::string(cgroup_root).c_str(), &info) == 0 &&
           info.f_type == CGROUP2_SUPER_MAGIC;
  }

  // A sibling of our own cgroup: a cgroup that holds processes cannot have limited children. Moving
  // there takes the right to write the common parent's list of processes.
  void find_v2() {
    if (!has_v2()) return;
    const auto own = own_cgroup("");
    if (!own || *own == "/") return;
    const std::string parent = format("{}{}", cgroup_root, own->substr(0, own->rfind('/')));
    const std::string procs = parent + "/cgroup.procs";
    if (::faccessat(AT_FDCWD, procs.c_str(), W_OK, AT_EACCESS) != 0) return;
    const std::string enabled = read_small(parent + "/cgroup.subtree_control");
    if (trim(enabled).empty()) return;
    v2_ = make_directory(parent);
  }

  // Root leaves root before it makes the namespaces, and then may not clone into the cgroup; but
  // what it opened before stays open to its child.
  std::expected<void, Refusal> enter_v2() {
    if (v2_.empty()) return {};
    if (::geteuid() == 0) {
      out_.procs_.emplace_back(::open((v2_ + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    } else {
      out_.v2_ = sys::Fd(::open(v2_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    if (out_.v2_.get() < 0 && out_.procs_.back().get() < 0) {
      return std::unexpected(
          Refusal{.message = format("cannot enter {}: {}", v2_, std::strerror(errno)),
                  .help = "see capgate doctor"});
    }
    return {};
  }

  // Named after this process. What a killed one left behind goes first.
  std::string make_directory(const std::string& parent) {
    sweep(parent);
    std::string path = format("{}/capgate-{}", parent, ::getpid());
    if (::mkdir(path.c_str(), 0700) != 0) return {};
    out_.directories_.push_back(path);
    return path;
  }

  static void sweep(const std::string& parent) {
    DIR* listing = ::opendir(parent.c_str());
    if (listing == nullptr) return;
    while (const dirent* entry = ::readdir(listing)) {
      const std::string_view name = entry->d_name;
      if (!name.starts_with("capgate-")) continue;
      pid_t owner = 0;
      const std::string_view digits = name.substr(name.find('-') + 1);
      std::from_chars(digits.data(), digits.data() + digits.size(), owner);
      const bool is_gone =
          owner == ::getpid() || (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH);
      if (is_gone) ::rmdir(format("{}/{}", parent, name).c_str());  // fails while it is in use
    }
    ::closedir(listing);
  }

  // The mechanism that holds it, or nothing.
  std::string hold(const lower::PlanLimit& limit) {
    if (limit.name == "memory") return hold_memory(limit.value);
    if (limit.name == "pids") return hold_pids(limit.value);
    if (limit.name == "files") {
      out_.rlimits_.push_back({.resource = RLIMIT_NOFILE, .value = limit.value});
      return "rlimit";
    }
    if (limit.name == "cpu") return hold_cpu(limit.value);
    if (limit.name == "disk") return "size of each private file system";
    if (limit.name == "time") {
      out_.seconds_ = limit.value;
      return "the supervisor's clock";
    }
    return {};
  }

  std::string hold_memory(std::uint64_t bytes) {
    out_.memory_ = bytes;
    const std::string value = std::to_string(bytes);
    if (!v2_.empty() && write_small(v2_ + "/memory.max", value)) {
      write_small(v2_ + "/memory.swap.max", "0");
      out_.memory_directory_ = v2_;
      return mechanism_v2_;
    }
    if (const std::string v1 = make_v1("memory"); !v1.empty()) {
      if (write_small(v1 + "/memory.limit_in_bytes", value)) {
        write_small(v1 + "/memory.memsw.limit_in_bytes", value);
        out_.memory_directory_ = v1;
        return "cgroup v1";
      }
    }
    // RLIMIT_DATA, not RLIMIT_AS: V8 and sanitizers reserve far more than they use.
    out_.rlimits_.push_back({.resource = RLIMIT_DATA, .value = bytes});
    out_.rlimits_.push_back({.resource = RLIMIT_MSGQUEUE, .value = message_queue_bytes});
    out_.watched_memory_ = bytes;
    return "rlimit for each process, and a watchdog over all of them";
  }

  std::string hold_pids(std::uint64_t count) {
    const std::uint64_t inside = count + own_.inside;
    // Inside the new user namespace it counts that namespace only.
    out_.rlimits_.push_back({.resource = RLIMIT_NPROC, .value = inside});
    const std::string value = std::to_string(inside + own_.beside);
    if (!v2_.empty() && write_small(v2_ + "/pids.max", value)) return mechanism_v2_;
    const std::string v1 = make_v1("pids");
    if (!v1.empty() && write_small(v1 + "/pids.max", value)) return "cgroup v1";
    return own_.by_root ? "" : "rlimit";
  }

  std::string hold_cpu(std::uint64_t percent) {
    constexpr std::uint64_t period = 100'000;
    const std::uint64_t quota = period * percent / 100;
    if (!v2_.empty() && write_small(v2_ + "/cpu.max", format("{} {}", quota, period))) {
      return mechanism_v2_;
    }
    const std::string v1 = make_v1("cpu");
    if (!v1.empty() && write_small(v1 + "/cpu.cfs_period_us", std::to_string(period)) &&
        write_small(v1 + "/cpu.cfs_quota_us", std::to_string(quota))) {
      return "cgroup v1";
    }
    return {};
  }

  // A child of our own cgroup of this controller, which the sandbox's first process enters.
  std::string make_v1(std::string_view controller) {
    const auto own = own_cgroup(controller);
    if (!own) return {};
    const std::string parent = format("{}/{}{}", cgroup_root, controller, *own == "/" ? "" : *own);
    std::string path = make_directory(parent);
    if (path.empty()) return {};
    sys::Fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (procs.get() < 0) return {};
    out_.procs_.push_back(std::move(procs));
    return path;
  }

  const OwnProcesses& own_;
  Limits out_;
  std::string v2_;
  std::string mechanism_v2_ = "cgroup v2";
};

Limits::~Limits() {
  for (const std::string& path : directories_) ::rmdir(path.c_str());
}

Placement Limits::placement() const {
  Placement out{.cgroup_procs = {}, .cgroup = v2_.get()};
  for (const sys::Fd& procs : procs_) out.cgroup_procs.push_back(procs.get());
  return out;
}

std::string Limits::explain_end() const {
  if (memory_directory_.empty()) return {};
  const std::string events = read_small(memory_directory_ + "/memory.events");
  const std::string v1 = read_small(memory_directory_ + "/memory.oom_control");
  if (number_after(events, "oom_kill ") + number_after(v1, "oom_kill ") == 0) return {};
  return format("memory limit {} reached; raise it with limit:memory:{}",
                limit_text("memory", memory_), limit_text("memory", memory_ * 2));
}

std::expected<Limits, Refusal> set_up_limits(const std::vector<lower::PlanLimit>& limits,
                                             const std::vector<std::string>& accepted,
                                             const OwnProcesses& own) {
  return LimitSetup(own).set_up(limits, accepted);
}

std::vector<BoundLimit> within_own(std::vector<BoundLimit> limits) {
  for (BoundLimit& limit : limits) {
    rlimit own{};
    const auto resource = static_cast<__rlimit_resource_t>(limit.resource);
    if (::getrlimit(resource, &own) == 0)
      limit.value = std::min<std::uint64_t>(limit.value, own.rlim_max);
  }
  return limits;
}

std::string limit_text(std::string_view name, std::uint64_t value) {
  if (name == "cpu") return format("{}%", value);
  if (name == "time") return format("{}s", value);
  if (name != "memory" && name != "disk") return std::to_string(value);
  constexpr std::string_view units[] = {"", "K", "M", "G"};
  std::size_t unit = 0;
  while (unit + 1 < std::size(units) && value != 0 && value % 1024 == 0) {
    value /= 1024;
    ++unit;
  }
  return format("{}{}", value, units[unit]);
}

}  // namespace capgate::sandbox
