#include "core/capability.h"

#include "base/format.h"
#include "base/text.h"

namespace capgate::core {
namespace {

// A scope that holds a character of the grammar stands in quotes. Colons of IPv6 and of ipc
// endpoints are printed by their own functions and never come here.
void append_scope(std::string& out, std::string_view scope) {
  if (find_any(scope, ":?\"\\$") == std::string_view::npos) {
    out += scope;
    return;
  }
  out += '"';
  for (const char c : scope) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

class Refinements {
 public:
  explicit Refinements(std::string& out) : out_(out) {}
  std::string& add(std::string_view key) {
    out_ += first_ ? '?' : '&';
    first_ = false;
    out_ += key;
    out_ += '=';
    return out_;
  }
  void add_flag(std::string_view key, bool set) {
    if (set) add(key) += "true";
  }

 private:
  std::string& out_;
  bool first_ = true;
};

std::string_view proto_name(NetRefinements::Proto proto) {
  switch (proto) {
    case NetRefinements::Proto::detect: return "";
    case NetRefinements::Proto::tcp: return "tcp";
    case NetRefinements::Proto::tls: return "tls";
    case NetRefinements::Proto::http: return "http";
  }
  return "";
}

std::string place_name(const SecretPlace& place) {
  switch (place.kind) {
    case SecretPlace::Kind::header: return "header:" + place.header;
    case SecretPlace::Kind::basic: return "basic";
    case SecretPlace::Kind::query: return "query";
    case SecretPlace::Kind::path: return "path";
    case SecretPlace::Kind::body: return "body";
  }
  return "";
}

struct Printer {
  std::string operator()(const FsCapability& fs) const {
    std::string out = "fs:";
    bool first = true;
    const auto add = [&](FsAction action, std::string_view name) {
      if (!fs.actions.has(action)) return;
      if (!first) out += ',';
      first = false;
      out += name;
    };
    add(FsAction::read, "read");
    add(FsAction::create, "create");
    add(FsAction::write, "write");
    add(FsAction::remove, "delete");
    out += ':';
    append_scope(out, print(fs.path));
    Refinements(out).add_flag("unsafe", fs.unsafe);
    return out;
  }

  std::string operator()(const NetConnect& net) const {
    std::string out = "net:connect:" + print(net.endpoint);
    Refinements refinements(out);
    const NetRefinements& refine = net.refinements;
    if (!refine.methods.empty()) refinements.add("methods") += join(refine.methods, ",");
    if (!refine.paths.empty()) refinements.add("paths") += join(refine.paths, ",");
    refinements.add_flag("private", refine.private_network);
    if (refine.proto != NetRefinements::Proto::detect) {
      refinements.add("proto") += proto_name(refine.proto);
    }
    if (refine.sni == NetRefinements::Sni::any) refinements.add("sni") += "any";
    if (refine.sni == NetRefinements::Sni::strict) refinements.add("sni") += "strict";
    return out;
  }

  std::string operator()(const NetListen& net) const { return format("net:listen:{}", net.port); }

  std::string operator()(const ExecCapability& exec) const {
    std::string out = "exec:spawn:" + exec.program;
    Refinements(out).add_flag("nestedSandbox", exec.nested_sandbox);
    return out;
  }

  std::string operator()(const EnvCapability& env) const {
    std::string out = env.action == EnvCapability::Action::read ? "env:read:" : "env:inject:";
    out += env.name;
    Refinements refinements(out);
    if (!env.to.empty() && env.as != SecretPlace{}) refinements.add("as") += place_name(env.as);
    for (const Endpoint& endpoint : env.to) refinements.add("to") += print(endpoint);
    refinements.add_flag("unsafe", env.unsafe);
    return out;
  }

  std::string operator()(const IpcCapability& ipc) const {
    std::string out = "ipc:connect:";
    if (ipc.kind == IpcCapability::Kind::unix_path) {
      append_scope(out, print_ipc_endpoint(ipc));
    } else {
      out += print_ipc_endpoint(ipc);
    }
    Refinements(out).add_flag("unsafe", ipc.unsafe);
    return out;
  }

  std::string operator()(const ClockCapability& clock) const {
    return clock.source == ClockCapability::Source::system ? "clock:system" : "clock:tzdata";
  }

  std::string operator()(const LimitCapability& limit) const {
    return format("limit:{}:{}", limit_name(limit.kind), print_limit_value(limit));
  }

  std::string operator()(const AssertCapability& assertion) const {
    std::string out = "assert:" + assertion.id;
    if (assertion.text == assertion.id) return out;
    out += ":\"";
    for (const char c : assertion.text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out += '"';
  }
};

std::string print_with_unit(std::uint64_t value, std::uint64_t step, std::string_view units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value % step == 0 && value != 0) {
    value /= step;
    ++unit;
  }
  std::string out = std::to_string(value);
  if (units[unit] != ' ') out += units[unit];
  return out;
}

}  // namespace

std::string print(const Capability& capability) { return std::visit(Printer{}, capability); }

std::string_view kind_name(const Capability& capability) {
  constexpr std::string_view names[] = {"fs",  "net",   "net",   "exec",  "env",
                                        "ipc", "clock", "limit", "assert"};
  return names[capability.index()];
}

std::string print_ipc_endpoint(const IpcCapability& ipc) {
  switch (ipc.kind) {
    case IpcCapability::Kind::dbus_session: return "dbus:session";
    case IpcCapability::Kind::dbus_system: return "dbus:system";
    case IpcCapability::Kind::netlink_route: return "netlink-route";
    case IpcCapability::Kind::self: return "self";
    case IpcCapability::Kind::unix_path: return "unix:" + ipc.path;
    case IpcCapability::Kind::x11: return "x11";
  }
  return {};
}

std::string print_limit_value(const LimitCapability& limit) {
  switch (limit.kind) {
    case LimitCapability::Kind::memory:
    case LimitCapability::Kind::disk: return print_with_unit(limit.value, 1024, " KMG");
    case LimitCapability::Kind::time: return print_with_unit(limit.value, 60, "smh");
    case LimitCapability::Kind::cpu: return std::to_string(limit.value) + "%";
    case LimitCapability::Kind::files:
    case LimitCapability::Kind::pids: return std::to_string(limit.value);
  }
  return {};
}

std::string_view limit_name(LimitCapability::Kind kind) {
  switch (kind) {
    case LimitCapability::Kind::cpu: return "cpu";
    case LimitCapability::Kind::disk: return "disk";
    case LimitCapability::Kind::files: return "files";
    case LimitCapability::Kind::memory: return "memory";
    case LimitCapability::Kind::pids: return "pids";
    case LimitCapability::Kind::time: return "time";
  }
  return {};
}

}  // namespace capgate::core
