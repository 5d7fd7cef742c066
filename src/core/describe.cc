#include "core/describe.h"

#include "base/format.h"
#include "base/text.h"
#include "core/built_in.h"
#include "core/rights.h"

namespace capgate::core {
namespace {

std::string_view verbs(FileRights rights) {
  const bool modify = rights.has(FileRights::modify);
  const bool remove = rights.has(FileRights::remove);
  if (modify && remove) return "read, change, create, rename and remove";
  if (modify) return "read, add to and change, but not remove,";
  if (remove) return "read and remove";
  return "read and list";
}

std::string place(const PathPattern& path) {
  if (path.base == "/tmp" && path.shape != PathPattern::Shape::entries) {
    return "the sandbox's own, private /tmp";
  }
  const std::string base = escape_for_terminal(path.base);
  switch (path.shape) {
    case PathPattern::Shape::node:
      return format("{} (with everything below, if a directory)", base);
    case PathPattern::Shape::tree: return format("{} and everything below it", base);
    case PathPattern::Shape::entries:
      return format("the entries {} of {} that exist at start", escape_for_terminal(path.glob),
                    base);
  }
  return {};
}

std::string host_words(const HostPattern& host) {
  switch (host.kind) {
    case HostPattern::Kind::any: return "every public host";
    case HostPattern::Kind::subdomains: return format("every host below {}", host.text);
    case HostPattern::Kind::name:
      return names_private_endpoint(host) ? "this machine's loopback" : host.text;
    case HostPattern::Kind::ipv4:
    case HostPattern::Kind::ipv6: return print(host);
  }
  return {};
}

std::string endpoint_words(const Endpoint& endpoint) {
  return endpoint.port ? format("{} on port {}", host_words(endpoint.host), *endpoint.port)
                       : format("{} on every port", host_words(endpoint.host));
}

struct Words {
  std::string operator()(const FsCapability& fs) const {
    return format("{} {}", verbs(rights_of(fs.actions)), place(fs.path));
  }

  std::string operator()(const NetConnect& net) const {
    std::string out = format("connect to {}", endpoint_words(net.endpoint));
    const NetRefinements& refine = net.refinements;
    if (refine.private_network) out += ", in your private network too";
    if (!refine.methods.empty()) out += format(", methods {}", join(refine.methods, ", "));
    if (!refine.paths.empty()) out += format(", paths {}", join(refine.paths, ", "));
    if (refine.proto == NetRefinements::Proto::tcp) out += ", any protocol";
    if (refine.proto == NetRefinements::Proto::tls) out += ", TLS only";
    if (refine.proto == NetRefinements::Proto::http) out += ", HTTP only";
    if (refine.sni == NetRefinements::Sni::any) out += ", TLS server name not checked";
    if (refine.sni == NetRefinements::Sni::strict) out += ", hidden TLS server names refused";
    return out;
  }

  std::string operator()(const NetListen& net) const {
    return format("accept connections from this machine on port {}", net.port);
  }

  std::string operator()(const ExecCapability& exec) const {
    return format("start the program {}{}", exec.program,
                  exec.nested_sandbox ? ", which may build a sandbox of its own" : "");
  }

  std::string operator()(const EnvCapability& env) const {
    if (env.action == EnvCapability::Action::read) {
      return format("see the launcher's variable {}", env.name);
    }
    if (env.to.empty()) return format("hold the secret {} in its environment", env.name);
    std::string hosts;
    for (const Endpoint& endpoint : env.to) {
      hosts += format("{}{}", hosts.empty() ? "" : ", ", print(endpoint));
    }
    return format("use the secret {} toward {}, in {}, without holding it", env.name, hosts,
                  place_words(env.as));
  }

  std::string operator()(const IpcCapability& ipc) const {
    switch (ipc.kind) {
      case IpcCapability::Kind::dbus_session:
        return "talk to the services of the user's session bus";
      case IpcCapability::Kind::dbus_system: return "talk to the services of the system bus";
      case IpcCapability::Kind::netlink_route:
        return "read the network configuration of its sandbox";
      case IpcCapability::Kind::self: return "use Unix sockets among its own processes";
      case IpcCapability::Kind::unix_path:
        return format("talk to the socket {}", escape_for_terminal(ipc.path));
      case IpcCapability::Kind::x11:
        return "use the X display, which shows and sends every key press";
    }
    return {};
  }

  std::string operator()(const ClockCapability& clock) const {
    return clock.source == ClockCapability::Source::system
               ? "tell the time (always possible; declared for reviewers)"
               : "read the time zone files and the host's own zone";
  }

  std::string operator()(const LimitCapability& limit) const {
    switch (limit.kind) {
      case LimitCapability::Kind::cpu:
        return format("use {}% of one processor at most", limit.value);
      case LimitCapability::Kind::disk:
        return format("fill each private directory with {} at most", print_limit_value(limit));
      case LimitCapability::Kind::files: return format("hold {} open files at most", limit.value);
      case LimitCapability::Kind::memory:
        return format("use {} of memory at most", print_limit_value(limit));
      case LimitCapability::Kind::pids:
        return format("have {} processes and threads at most", limit.value);
      case LimitCapability::Kind::time:
        return format("run for {} at most", print_limit_value(limit));
    }
    return {};
  }

  std::string operator()(const AssertCapability& assertion) const {
    if (assertion.id == block_private_id) {
      return "promises, kept by capgate: it reaches no private address";
    }
    return format("promises, for the host to verify: {}", escape_for_terminal(assertion.text));
  }
};

}  // namespace

std::string describe(const Capability& capability) { return std::visit(Words{}, capability); }

std::string place_words(const SecretPlace& place) {
  switch (place.kind) {
    case SecretPlace::Kind::header: return format("the header {}", place.header);
    case SecretPlace::Kind::basic: return "the password of basic authentication";
    case SecretPlace::Kind::query: return "the query";
    case SecretPlace::Kind::path: return "the path";
    case SecretPlace::Kind::body: return "the body";
  }
  return {};
}

std::string_view enforcement(const Capability& capability) {
  constexpr std::string_view mechanisms[] = {
      "mount namespace (exact binds) and Landlock",
      "network namespace without a way out, and the egress broker",
      "network namespace, published at the host's loopback",
      "visible programs, Landlock execute rights and seccomp",
      "cleared environment",
      "bind of exactly that socket; without one no Unix socket can be made",
      "mounts",
      "cgroup, rlimits, size of private file systems, watchdog",
      "nothing in the sandbox: metadata for the host",
  };
  const auto* assertion = std::get_if<AssertCapability>(&capability);
  if (assertion != nullptr && assertion->id == block_private_id) {
    return "the compiler (no rule names a private endpoint) and the egress broker";
  }
  const auto* env = std::get_if<EnvCapability>(&capability);
  if (env != nullptr && !env->to.empty()) {
    return "a placeholder in the environment, and the egress broker, which terminates TLS there";
  }
  return mechanisms[capability.index()];
}

}  // namespace capgate::core
