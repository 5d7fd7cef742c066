#include "lower/common.h"

#include <algorithm>

#include "base/digest.h"
#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/base_system.h"
#include "core/limits.h"
#include "core/rights.h"
#include "core/sensitive.h"

namespace capgate::lower {
namespace {

using core::Capability;
using core::LimitCapability;

void note_files(const Input& input, std::vector<std::string>& notes) {
  for (const auto& grant : input.policy.files) {
    const core::FsCapability& fs = grant.capability;
    const std::string shown = escape_for_terminal(print(fs.path));
    if (is_private_tmp(fs)) {
      notes.push_back(format("fs: {} is the sandbox's own /tmp, not the host's", shown));
      continue;
    }
    if (const auto* entry = core::credential_at(fs.path.base, input.options.home)) {
      notes.push_back(
          format("fs: {} is granted although it holds credentials ({})", shown, entry->group));
    }
    if (fs.unsafe)
      notes.push_back(format("fs: {} is writable and changes what the host runs", shown));
    if (fs.path.shape == core::PathPattern::Shape::entries) {
      notes.push_back(
          format("fs: {} covers the entries that exist when the sandbox starts", shown));
    }
  }
}

void note_rest(const core::Policy& policy, std::vector<std::string>& notes) {
  for (const auto& grant : policy.connect) {
    const core::HostPattern& host = grant.capability.endpoint.host;
    if (host.kind == core::HostPattern::Kind::any) {
      notes.push_back(format("net: {} reaches every public host; private addresses stay blocked",
                             print(grant.capability)));
    }
    if (grant.capability.refinements.private_network) {
      notes.push_back(
          format("net: {} names hosts in your network; whoever serves the name's zone "
                 "chooses which",
                 print(grant.capability)));
    }
  }
  for (const auto& grant : policy.programs) {
    if (!grant.capability.nested_sandbox) continue;
    notes.push_back(
        format("exec: {} may make namespaces for its own sandbox; pid and ipc "
               "isolation stay",
               grant.capability.program));
  }
  for (const auto& grant : policy.variables) {
    if (!grant.capability.unsafe) continue;
    notes.push_back(format("env: {} decides what code programs load", grant.capability.name));
  }
  for (const auto& grant : policy.sockets) {
    using enum core::IpcCapability::Kind;
    const core::IpcCapability& ipc = grant.capability;
    const std::string shown = escape_for_terminal(print_ipc_endpoint(ipc));
    if (ipc.unsafe) notes.push_back(format("ipc: {} lets the server control the host", shown));
    if (ipc.kind == x11) notes.push_back("ipc: x11 lets the server read and send every key press");
    if (ipc.kind == dbus_session || ipc.kind == dbus_system) {
      notes.push_back(format("ipc: services on {} may start programs outside the sandbox", shown));
    }
  }
}

// What a policy's files are sorted by.
std::string_view base_of(const core::Granted<core::FsCapability>& grant) {
  return grant.capability.path.base;
}

bool separates_adding_from_removing(const core::FsCapability& fs) {
  return fs.actions.has(core::FsAction::create) || fs.actions.has(core::FsAction::remove);
}

}  // namespace

std::span<const std::string_view> base_etc_paths() { return core::base_etc_paths; }

GeneratedFiles generated_etc_files(const Input& input, std::string_view home, TextStore& texts) {
  static_assert(sandbox_hostname == "capgate");
  constexpr std::string_view group = "user:x:1000:\nnogroup:x:65534:\n";
  constexpr std::string_view hostname = "capgate\n";
  constexpr std::string_view hosts = "127.0.0.1 localhost capgate\n::1 localhost capgate\n";
  constexpr std::string_view switches = "passwd: files\ngroup: files\nhosts: files dns\n";
  constexpr std::string_view resolver = "nameserver 127.0.0.53\noptions ndots:0 edns0\n";
  static const std::string encoded[] = {base64(group), base64(hostname), base64(hosts),
                                        base64(switches), base64(resolver)};

  constexpr std::size_t prefix = std::string_view("sha256:").size();
  const std::string machine = input.policy.hash.substr(prefix, 32) + "\n";
  std::string users = "user:x:1000:1000:user:";
  users += home;
  users +=
      ":/usr/sbin/nologin\n"
      "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
  const auto made = [&](std::string_view path, const std::string& contents) {
    return GeneratedFile{path, texts.keep(contents), texts.keep(base64(contents))};
  };
  return {{
      {"/etc/group", group, encoded[0]},
      {"/etc/hostname", hostname, encoded[1]},
      {"/etc/hosts", hosts, encoded[2]},
      made("/etc/machine-id", machine),
      {"/etc/nsswitch.conf", switches, encoded[3]},
      made("/etc/passwd", users),
      {"/etc/resolv.conf", resolver, encoded[4]},
  }};
}

PlanLimit limit_of(const core::Policy& policy, LimitCapability::Kind kind) {
  for (const auto& grant : policy.limits) {
    if (grant.capability.kind != kind) continue;
    return {.name = limit_name(kind), .value = grant.capability.value, .is_default = false};
  }
  const auto usual = core::default_limit(kind);
  return {.name = limit_name(kind), .value = usual ? usual->value : 0};
}

SeccompNeeds seccomp_needs(const core::Policy& policy) {
  SeccompNeeds needs{.processes = !policy.programs.empty(),
                     .unix_sockets = !policy.sockets.empty()};
  for (const auto& grant : policy.programs) {
    needs.nested_sandbox |= grant.capability.nested_sandbox;
  }
  for (const auto& grant : policy.sockets) {
    needs.netlink_route |= grant.capability.kind == core::IpcCapability::Kind::netlink_route;
  }
  for (const auto& grant : policy.files) {
    const core::FileRights rights = core::rights_of(grant.capability.actions);
    const bool is_weak =
        rights.has(core::FileRights::modify) != rights.has(core::FileRights::remove);
    needs.fixed_attributes |= is_weak && !is_private_tmp(grant.capability);
  }
  // A browser's own processes talk over Unix sockets.
  needs.unix_sockets |= needs.nested_sandbox;
  return needs;
}

std::vector<std::string> env_injections(const core::Policy& policy) {
  std::vector<std::string> names;
  names.reserve(policy.variables.size() + 1);
  for (const auto& grant : policy.variables) names.push_back(grant.capability.name);
  for (const auto& grant : policy.sockets) {
    if (grant.capability.kind == core::IpcCapability::Kind::x11) names.emplace_back("DISPLAY");
  }
  sort_and_deduplicate(names);
  return names;
}

std::string position_of(const core::Declared& declared, const Input& input) {
  if (declared.where == Span::nowhere()) return "--allow";
  if (input.source == nullptr) return {};
  const std::string_view name = input.source->name();
  if (name == "--allow") return "--allow";  // words have no lines
  const auto [line, column] = input.source->position(declared.where.begin);
  return format("{}:{}:{}", name.substr(name.rfind('/') + 1), line, column);
}

std::vector<std::string> policy_notes(const Input& input) {
  std::vector<std::string> notes = input.manifest.notes;
  note_files(input, notes);
  note_rest(input.policy, notes);
  return notes;
}

bool is_granted(const core::Policy& policy, std::string_view path) {
  const auto same = std::ranges::equal_range(policy.files, path, {}, base_of);
  return std::ranges::any_of(same, [](const auto& grant) {
    return grant.capability.path.shape != core::PathPattern::Shape::entries;
  });
}

bool holds_a_grant(const core::Policy& policy, std::string_view directory) {
  if (std::ranges::binary_search(policy.files, directory, {}, base_of)) return true;
  const std::string below = std::string(directory) + '/';
  const auto first = std::ranges::lower_bound(policy.files, std::string_view(below), {}, base_of);
  return first != policy.files.end() && base_of(*first).starts_with(below);
}

std::string socket_path(const core::Granted<core::IpcCapability>& grant, const Input& input,
                        Support& support) {
  switch (grant.capability.kind) {
    case core::IpcCapability::Kind::self:
    case core::IpcCapability::Kind::netlink_route: return {};
    case core::IpcCapability::Kind::x11: return "/tmp/.X11-unix";
    case core::IpcCapability::Kind::unix_path: return grant.capability.path;
    case core::IpcCapability::Kind::dbus_system: return "/run/dbus/system_bus_socket";
    case core::IpcCapability::Kind::dbus_session: break;
  }
  if (!input.options.runtime_dir.empty()) return input.options.runtime_dir + "/bus";
  support.unsupported(grant.capability, grant.origins, "where the bus is depends on the user",
                      "say it with --set XDG_RUNTIME_DIR=/run/user/1000");
  return {};
}

bool is_private_tmp(const core::FsCapability& fs) { return fs.path.base == "/tmp"; }

bool Support::unsupported(const Capability& capability, const core::Origins& origins,
                          std::string reason, std::string help) {
  std::string text = print(capability);
  if (contains(input_.options.accepted, text)) {
    accepted_.insert(std::move(text));
    return true;
  }
  const std::string shown = escape_for_terminal(text);
  if (!refused_.insert(std::move(text)).second) return false;
  mistakes_.push_back(
      {.code = Code::adapter_unsupported,
       .where = input_.manifest.declared[origins.front()].where,
       .message = format("{} cannot enforce {}: {}", target_, shown, reason),
       .help = format("{}; or accept it with --accept-unenforced '{}'", help, shown)});
  return false;
}

void Support::impossible(const Capability& capability, const core::Origins& origins,
                         std::string_view reason, std::string help) {
  std::string text = print(capability);
  const std::string shown = escape_for_terminal(text);
  if (!refused_.insert(std::move(text)).second) return;
  mistakes_.push_back({.code = Code::adapter_unsupported,
                       .where = input_.manifest.declared[origins.front()].where,
                       .message = format("{} cannot enforce {}: {}", target_, shown, reason),
                       .help = std::move(help)});
}

Checked<std::vector<std::string>> Support::finish() && {
  for (const std::string& accepted : input_.options.accepted) {
    if (accepted_.contains(accepted)) continue;
    mistakes_.push_back(
        {.code = Code::accept_unused,
         .where = Span::nowhere(),
         .message = format("--accept-unenforced {} accepts nothing", quoted(accepted)),
         .help =
             format("{} enforces it, or the policy does not hold it; remove the option", target_)});
  }
  if (!mistakes_.empty()) {
    sort_diagnostics(mistakes_);
    return std::unexpected(std::move(mistakes_));
  }
  return std::vector<std::string>(accepted_.begin(), accepted_.end());
}

void refuse_native_only(const Input& input, Support& support) {
  for (const auto& grant : input.policy.files) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) continue;
    if (fs.path.shape == core::PathPattern::Shape::entries) {
      support.unsupported(fs, grant.origins,
                          "which entries match is only known at launch, so none is mounted",
                          "grant the directory, or use the native engine");
    } else if (separates_adding_from_removing(fs)) {
      support.unsupported(fs, grant.origins, "a writable mount allows adding and removing alike",
                          "write fs:write if both are meant, or use the native engine");
    }
  }
  for (const auto& grant : input.policy.variables) {
    if (grant.capability.to.empty()) continue;
    support.unsupported(
        grant.capability, grant.origins,
        "only capgate's own broker keeps the value from the server, which would hold it here",
        format("use capgate run (--target plan), or write env:inject:{} if the server may hold it",
               grant.capability.name));
  }
}

}  // namespace capgate::lower
