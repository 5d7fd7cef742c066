#include "lower/container.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/ranges.h"
#include "core/sensitive.h"
#include "lower/forwarder.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using core::IpcCapability;
using core::LimitCapability;
using Access = ContainerMount::Access;

// The docker command gives every container the proxies of its own configuration, with their
// passwords, unless the variables are named already.
constexpr std::string_view proxy_settings[] = {
    "ALL_PROXY=", "FTP_PROXY=", "HTTPS_PROXY=", "HTTP_PROXY=", "NO_PROXY=",
    "all_proxy=", "ftp_proxy=", "https_proxy=", "http_proxy=", "no_proxy="};

class Planner {
 public:
  Planner(const Input& input, Support& support)
      : input_(input), policy_(input.policy), support_(support) {}

  Container plan(CallersProxies proxies) {
    refuse_what_no_engine_keeps();
    out_.needs = seccomp_needs(policy_);
    // The engine's init starts the server as a child, so the filter must let processes be made.
    out_.needs.processes = true;
    out_.forwards = uses_forwarder(policy_);
    out_.needs.forwarder = out_.forwards;
    add_limits();
    add_grants();
    add_sockets();
    add_clock();
    add_environment(proxies);
    return std::move(out_);
  }

 private:
  void refuse_what_no_engine_keeps() {
    refuse_native_only(input_, support_);
    refuse_beyond_forwarder(input_, support_);
    for (const auto& grant : policy_.programs) {
      support_.unsupported(grant.capability, grant.origins,
                           "every program of the image can be started",
                           "use --target bwrap or the native engine");
    }
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind != LimitCapability::Kind::time) continue;
      support_.unsupported(grant.capability, grant.origins, "it has no time limit",
                           "use the native engine");
    }
    for (const auto& grant : policy_.files) {
      const std::string& base = grant.capability.path.base;
      if (is_private_tmp(grant.capability)) continue;
      const auto hidden = core::credentials_below(base, input_.options.home);
      if (hidden.empty()) continue;
      support_.unsupported(grant.capability, grant.origins,
                           format("it cannot hide {} inside the grant", hidden.front().path),
                           "grant what is needed below it, or use the native engine");
    }
  }

  [[nodiscard]] ContainerLimit limit(LimitCapability::Kind kind) const {
    ContainerLimit limit{.value = limit_of(policy_, kind).value,
                         .cause = {.reason = "limits: safe defaults"}};
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == kind) limit.cause = {.reason = {}, .origins = &grant.origins};
    }
    return limit;
  }

  void add_limits() {
    out_.cpu = limit(LimitCapability::Kind::cpu);
    out_.disk = limit(LimitCapability::Kind::disk);
    out_.files = limit(LimitCapability::Kind::files);
    out_.memory = limit(LimitCapability::Kind::memory);
    out_.pids = limit(LimitCapability::Kind::pids);
  }

  // Engines refuse two mounts at one place: the first stands, which is the more particular grant.
  void mount(std::string_view path, Access access, const core::Origins& origins) {
    if (!taken_.emplace(path).second) return;
    out_.mounts.push_back({.source = std::string(path),
                           .target = std::string(path),
                           .access = access,
                           .origins = &origins});
  }

  void add_grants() {
    out_.mounts.reserve(policy_.files.size() + policy_.sockets.size() + 2);
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      if (is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
      mount(fs.path.base, fs.actions.has(FsAction::read) ? Access::read_only : Access::read_write,
            grant.origins);
    }
  }

  void add_sockets() {
    for (const auto& grant : policy_.sockets) {
      const std::string path = socket_path(grant, input_, support_);
      if (path.empty()) continue;
      mount(path, Access::read_only, grant.origins);
      if (grant.capability.kind == IpcCapability::Kind::dbus_session) {
        set("DBUS_SESSION_BUS_ADDRESS=unix:path=" + path, grant.origins);
      }
    }
  }

  void add_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      mount("/usr/share/zoneinfo", Access::read_only, grant.origins);
      mount("/etc/localtime", Access::read_only, grant.origins);
    }
  }

  void set(std::string setting, std::string_view reason) {
    out_.variables.push_back({std::move(setting), {.reason = reason}});
  }
  void set(std::string setting, const core::Origins& origins) {
    out_.variables.push_back({std::move(setting), {.reason = {}, .origins = &origins}});
  }

  void add_environment(CallersProxies proxies) {
    set("HOME=/tmp", "environment: HOME is the private /tmp");
    if (proxies == CallersProxies::must_be_overwritten) overwrite_proxies();
    for (const auto& grant : policy_.variables) set(grant.capability.name, grant.origins);
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind == IpcCapability::Kind::x11) set("DISPLAY", grant.origins);
    }
  }

  void overwrite_proxies() {
    const std::vector<std::string> declared = env_injections(policy_);
    for (const std::string_view setting : proxy_settings) {
      const std::string_view name = setting.substr(0, setting.size() - 1);
      if (contains(declared, name)) continue;
      set(std::string(setting),
          "environment: no proxy from the configuration of the docker command");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support& support_;
  Container out_;
  std::set<std::string, std::less<>> taken_;  // targets of mounts
};

}  // namespace

Container container_of(const Input& input, CallersProxies proxies, Support& support) {
  return Planner(input, support).plan(proxies);
}

std::vector<std::string_view> command_prefix(const Container& container) {
  if (!container.forwards) return {};
  return forward_words(container.needs);
}

std::string processors(const ContainerLimit& cpu) {
  return format("{}.{:02}", cpu.value / 100, cpu.value % 100);
}

}  // namespace capgate::lower
