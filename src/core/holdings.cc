#include "core/holdings.h"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/ranges.h"
#include "core/limits.h"
#include "core/rights.h"
#include "core/sensitive.h"
#include "core/symbolic.h"

namespace capgate::core {
namespace {

using Shape = PathPattern::Shape;
using Sni = NetRefinements::Sni;
using Proto = NetRefinements::Proto;

// A rule that names more combinations of methods and paths is compared as a whole.
constexpr std::size_t most_requests = 1024;

// Of a longer path only this much is looked at for a "/**" above it; beyond it, too much may be
// told of a change.
constexpr std::size_t longest_above = 1024;

auto key_of(const Granted<FsCapability>& grant) {
  return std::pair(std::string_view(grant.capability.path.base),
                   std::string_view(grant.capability.path.glob));
}

std::string_view parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

FileRights rights_at(Layers held, std::string_view base, std::string_view glob) {
  FileRights rights;
  for (const Holdings* layer : held) {
    const auto* grant = layer->find(base, glob);
    if (grant != nullptr) rights = rights | rights_of(grant->capability.actions);
  }
  return rights;
}

// What the grants at a directory and above it let a program do there: a merge of files along one
// branch of the tree, from the root down.
FileRights rights_below(Layers held, std::string_view base) {
  std::string_view above;
  FileRights rights;
  for (std::size_t end = 0; end != std::string_view::npos && end <= base.size();) {
    const std::string_view path = end == 0 ? "/" : base.substr(0, end);
    // The next component ends at the next slash, the last one with the text.
    end = end == base.size() ? std::string_view::npos
                             : std::min(base.find('/', end + 1), base.size());
    // /tmp is the sandbox's own: granting it says nothing about host paths below it.
    const FileRights own = path == "/tmp" ? FileRights{} : rights_at(held, path, "");
    if (own == FileRights{}) continue;
    const bool held_back = !above.empty() && is_held_back(path, above, held.front()->home());
    if (!held_back && rights.covers(own)) continue;
    rights = held_back ? own : own | rights;
    above = path;
  }
  const bool holds = !above.empty() && !is_held_back(base, above, held.front()->home());
  return holds ? rights : FileRights{};
}

std::size_t requests_of(const NetRefinements& refine) {
  return std::max<std::size_t>(refine.methods.size(), 1) *
         std::max<std::size_t>(refine.paths.size(), 1);
}

// Calls `use` for each request until it returns false.
template <typename Use>
bool all_requests(const NetRefinements& refine, Use use) {
  const std::vector<std::string> any(1);
  for (const std::string& method : refine.methods.empty() ? any : refine.methods) {
    for (const std::string& path : refine.paths.empty() ? any : refine.paths) {
      if (!use(Holdings::Request{.method = method, .path = path})) return false;
    }
  }
  return true;
}

auto order_of(const Endpoint& endpoint) {
  return std::tuple(endpoint.host.kind, std::string_view(endpoint.host.text), endpoint.port);
}

auto order_of(const Endpoint& endpoint, const Holdings::Request& request) {
  return std::tuple_cat(order_of(endpoint), std::tuple(request.method, request.path));
}

// Which check lets everything pass that the other one does.
bool is_as_wide(Sni a, Sni b) {
  const auto width = [](Sni sni) { return sni == Sni::any ? 2 : sni == Sni::match ? 1 : 0; };
  return width(a) >= width(b);
}

bool is_as_wide(Proto a, Proto b) {
  if (a == b || a == Proto::tcp) return true;
  return a == Proto::detect && b != Proto::tcp;
}

bool is_as_wide(const NetRefinements& a, const NetRefinements& b) {
  return is_as_wide(a.sni, b.sni) && is_as_wide(a.proto, b.proto) &&
         (a.private_network || !b.private_network);
}

// Calls `use` for each endpoint that covers `endpoint`, itself first, until it returns true.
template <typename Use>
bool any_cover(const Endpoint& endpoint, Use use) {
  const auto both_ports = [&](const HostPattern& host) {
    if (use(Endpoint{.host = host, .port = endpoint.port})) return true;
    return endpoint.port && use(Endpoint{.host = host, .port = std::nullopt});
  };
  using Kind = HostPattern::Kind;
  const HostPattern& host = endpoint.host;
  if (both_ports(host)) return true;
  if (may_be_private(host) || host.kind == Kind::any) return false;
  if (host.kind == Kind::name || host.kind == Kind::subdomains) {
    const std::string_view name = host.text;
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
         dot = name.find('.', dot + 1)) {
      const HostPattern wider{.kind = Kind::subdomains, .text = std::string(name.substr(dot + 1))};
      if (both_ports(wider)) return true;
    }
  }
  return both_ports({.kind = Kind::any, .text = "*"});
}

template <typename T, typename Same>
const T* find_in(const std::vector<Granted<T>>& grants, Same same) {
  const auto it =
      std::ranges::find_if(grants, [&](const Granted<T>& grant) { return same(grant.capability); });
  return it == grants.end() ? nullptr : &it->capability;
}

// The lists of names are sorted by them.
const EnvCapability* find_variable(const Policy& policy, std::string_view name) {
  const auto by_name = [](const auto& grant) { return std::string_view(grant.capability.name); };
  const auto it = std::ranges::lower_bound(policy.variables, name, {}, by_name);
  return it != policy.variables.end() && by_name(*it) == name ? &it->capability : nullptr;
}

const ExecCapability* find_program(const Policy& policy, std::string_view program) {
  const auto by_name = [](const auto& grant) { return std::string_view(grant.capability.program); };
  const auto it = std::ranges::lower_bound(policy.programs, program, {}, by_name);
  return it != policy.programs.end() && by_name(*it) == program ? &it->capability : nullptr;
}

class Question {
 public:
  explicit Question(Layers held) : held_(held) {}

  bool operator()(const FsCapability& fs) const {
    const PathPattern& path = fs.path;
    const FileRights wanted = rights_of(fs.actions);
    const bool by_own_alone = may_be_held_back(path, held_.front()->home());
    const FileRights above = by_own_alone ? FileRights{} : rights_below(held_, path.base);
    if ((above | rights_at(held_, path.base, path.glob)).covers(wanted)) return true;
    return path.shape == Shape::entries && !has_stand_in(path.glob) &&
           (above | rights_at(held_, path.base, "*")).covers(wanted);
  }

  bool operator()(const NetConnect& net) const {
    const auto any_allows = [&](const Holdings::Request& request) {
      return any([&](const Holdings& held) { return held.allows(net, request); });
    };
    if (any([&](const Holdings& held) { return held.has(net); })) return true;
    if (requests_of(net.refinements) > most_requests) return any_allows({});
    return all_requests(net.refinements, any_allows);
  }

  bool operator()(const ExecCapability& exec) const {
    return any([&](const Holdings& held) {
      const ExecCapability* own = find_program(held.policy(), exec.program);
      return own != nullptr && (own->nested_sandbox || !exec.nested_sandbox);
    });
  }

  // A value that is held can go anywhere, a sealed one to its endpoints only. What is read comes
  // from the launcher and is held, so a seal does not cover it.
  bool operator()(const EnvCapability& env) const {
    using enum EnvCapability::Action;
    const auto is_held = [&](const EnvCapability& own) {
      return own.to.empty() && (own.action == inject || env.action == read);
    };
    if (any_variable(env.name, is_held)) return true;
    if (env.to.empty()) return false;
    return std::ranges::all_of(env.to, [&](const Endpoint& to) {
      return any_variable(env.name, [&](const EnvCapability& own) {
        return own.as == env.as && std::ranges::binary_search(own.to, to);
      });
    });
  }

  bool operator()(const IpcCapability& ipc) const {
    return any([&](const Holdings& held) {
      return find_in(held.policy().sockets, [&](const IpcCapability& own) {
               return own.kind == ipc.kind && own.path == ipc.path;
             }) != nullptr;
    });
  }

  bool operator()(const NetListen& listen) const { return has(&Policy::listen, listen); }
  bool operator()(const ClockCapability& clock) const { return has(&Policy::clocks, clock); }

  bool operator()(const LimitCapability& limit) const {
    const auto own = limit_kept(held_, limit.kind);
    return !own || own->value >= limit.value;
  }
  bool operator()(const AssertCapability&) const { return true; }  // a promise grants nothing

 private:
  template <typename Predicate>
  bool any(Predicate predicate) const {
    return std::ranges::any_of(held_, [&](const Holdings* held) { return predicate(*held); });
  }

  template <typename Predicate>
  bool any_variable(std::string_view name, Predicate predicate) const {
    return any([&](const Holdings& held) {
      const EnvCapability* own = find_variable(held.policy(), name);
      return own != nullptr && predicate(*own);
    });
  }

  template <typename T>
  bool has(std::vector<Granted<T>> Policy::* list, const T& wanted) const {
    return any([&](const Holdings& held) {
      const auto by_value = [](const Granted<T>& grant) -> const T& { return grant.capability; };
      return std::ranges::binary_search(held.policy().*list, wanted, {}, by_value);
    });
  }

  Layers held_;
};

std::optional<Capability> related_in(const Holdings& held, const Capability& grant) {
  if (const auto* fs = std::get_if<FsCapability>(&grant)) {
    const auto* found = held.nearest(fs->path);
    if (found != nullptr) return Capability(found->capability);
  } else if (const auto* net = std::get_if<NetConnect>(&grant)) {
    const auto* found = held.nearest(net->endpoint);
    if (found != nullptr) return Capability(found->capability);
  } else if (const auto* env = std::get_if<EnvCapability>(&grant)) {
    const EnvCapability* found = find_variable(held.policy(), env->name);
    if (found != nullptr) return Capability(*found);
  } else if (const auto* exec = std::get_if<ExecCapability>(&grant)) {
    const ExecCapability* found = find_program(held.policy(), exec->program);
    if (found != nullptr) return Capability(*found);
  }
  return {};
}

}  // namespace

Holdings::Holdings(const Policy& policy, std::string_view home) : policy_(policy), home_(home) {
  for (const auto& grant : policy.connect) {
    if (requests_of(grant.capability.refinements) > most_requests) continue;
    all_requests(grant.capability.refinements, [&](const Request& request) {
      atoms_.push_back({.rule = &grant.capability, .request = request});
      return true;
    });
  }
  std::ranges::sort(atoms_, {},
                    [](const Atom& atom) { return order_of(atom.rule->endpoint, atom.request); });
}

const Granted<FsCapability>* Holdings::find(std::string_view base, std::string_view glob) const {
  const auto it = std::ranges::lower_bound(policy_.files, std::pair(base, glob), {}, key_of);
  return it != policy_.files.end() && key_of(*it) == std::pair(base, glob) ? &*it : nullptr;
}

const Granted<FsCapability>* Holdings::nearest(const PathPattern& path) const {
  if (const auto* same = find(path.base, path.glob)) return same;
  if (may_be_held_back(path, home_)) return nullptr;
  for (std::string_view above = path.base;; above = parent_of(above)) {
    const auto* grant = find(above, "");
    if (grant != nullptr && above != "/tmp") {
      return is_held_back(path.base, above, home_) ? nullptr : grant;
    }
    if (above == "/") return nullptr;
  }
}

bool Holdings::has(const NetConnect& rule) const {
  const auto by_value = [](const auto& grant) -> const NetConnect& { return grant.capability; };
  return std::ranges::binary_search(policy_.connect, rule, {}, by_value);
}

bool Holdings::has_atom(const Endpoint& endpoint, const NetConnect& rule,
                        const Request& request) const {
  const auto key = [](const Atom& atom) { return order_of(atom.rule->endpoint, atom.request); };
  const auto found = std::ranges::equal_range(atoms_, order_of(endpoint, request), {}, key);
  return std::ranges::any_of(found, [&](const Atom& atom) {
    return is_as_wide(atom.rule->refinements, rule.refinements);
  });
}

bool Holdings::allows_at(const Endpoint& endpoint, const NetConnect& rule,
                         const Request& request) const {
  const auto with_method = [&](std::string_view method) {
    if (has_atom(endpoint, rule, {.method = method, .path = {}})) return true;
    if (request.path.empty()) return false;
    if (has_atom(endpoint, rule, {.method = method, .path = request.path})) return true;
    // "/repos/**" lets everything below /repos pass.
    for (std::size_t slash = request.path.find('/');
         slash < longest_above && slash + 1 < request.path.size();
         slash = request.path.find('/', slash + 1)) {
      const std::string above = std::string(request.path.substr(0, slash)) + "/**";
      if (has_atom(endpoint, rule, {.method = method, .path = above})) return true;
    }
    return false;
  };
  return with_method({}) || (!request.method.empty() && with_method(request.method));
}

bool Holdings::allows(const NetConnect& rule, const Request& request) const {
  return any_cover(rule.endpoint,
                   [&](const Endpoint& endpoint) { return allows_at(endpoint, rule, request); });
}

const Granted<NetConnect>* Holdings::nearest(const Endpoint& endpoint) const {
  const Granted<NetConnect>* found = nullptr;
  const auto key = [](const auto& grant) { return order_of(grant.capability.endpoint); };
  any_cover(endpoint, [&](const Endpoint& cover) {
    const auto it = std::ranges::lower_bound(policy_.connect, order_of(cover), {}, key);
    if (it == policy_.connect.end() || key(*it) != order_of(cover)) return false;
    found = &*it;
    return true;
  });
  return found;
}

bool covers(Layers held, const Capability& grant) { return std::visit(Question(held), grant); }

std::optional<Capability> related(Layers held, const Capability& grant) {
  for (const Holdings* layer : held) {
    if (auto found = related_in(*layer, grant)) return found;
  }
  return {};
}

std::optional<LimitCapability> limit_of(Layers held, LimitCapability::Kind kind) {
  std::optional<LimitCapability> largest;
  for (const Holdings* layer : held) {
    const auto* own = find_in(layer->policy().limits,
                              [&](const LimitCapability& limit) { return limit.kind == kind; });
    if (own != nullptr && (!largest || largest->value < own->value)) largest = *own;
  }
  return largest;
}

std::optional<LimitCapability> limit_kept(Layers held, LimitCapability::Kind kind) {
  const auto stated = limit_of(held, kind);
  return stated ? stated : default_limit(kind);
}

const AssertCapability* assertion_of(Layers held, std::string_view id) {
  const auto by_id = [](const auto& grant) { return std::string_view(grant.capability.id); };
  for (const Holdings* layer : held) {
    const auto& list = layer->policy().assertions;
    const auto it = std::ranges::lower_bound(list, id, {}, by_id);
    if (it != list.end() && by_id(*it) == id) return &it->capability;
  }
  return nullptr;
}

}  // namespace capgate::core
