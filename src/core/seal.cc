#include "core/seal.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "core/unsealable.h"

namespace capgate::core {
namespace {

using Proto = NetRefinements::Proto;
using Sni = NetRefinements::Sni;

constexpr std::uint16_t http_port = 80;

EnvCapability* injected(Declared& declared) {
  auto* env = std::get_if<EnvCapability>(&declared.capability);
  return env != nullptr && env->action == EnvCapability::Action::inject ? env : nullptr;
}

// ---- Sealing ---------------------------------------------------------------------------------

// Where something else than HTTP in TLS is at home, so that a declared port says nothing about it:
// ssh, mail, directories, databases, queues.
bool is_port_of_another_protocol(std::uint16_t port) {
  constexpr std::uint16_t ports[] = {22,   25,   110,  143,  389,  465,  587,  636,  993,   995,
                                     1433, 1521, 3306, 5432, 5672, 6379, 9042, 9092, 11211, 27017};
  return contains(ports, port);
}

bool may_receive(const NetConnect& connect) {
  const Endpoint& endpoint = connect.endpoint;
  return endpoint.host.kind == HostPattern::Kind::name && endpoint.port &&
         !is_port_of_another_protocol(*endpoint.port) &&
         is_terminable(connect.refinements, *endpoint.port);
}

std::string line_for(std::string_view name, std::string_view endpoint) {
  return format("env:inject:{}?to={}", name, endpoint);
}

class Sealer {
 public:
  explicit Sealer(Manifest& manifest) : manifest_(manifest) {}

  Diagnostics seal() {
    collect();
    for (auto& [name, variable] : variables_) {
      if (!variable.open.empty()) bind(name, variable);
    }
    sort_diagnostics(mistakes_);
    return std::move(mistakes_);
  }

 private:
  // More are not needed: two make it doubtful, and a message names a few. So a manifest with many
  // variables and many endpoints does not cost their product.
  static constexpr std::size_t most_candidates = 5;

  // What some declarations let the server reach.
  struct Reach {
    std::vector<Endpoint> candidates;   // sorted, distinct
    const NetConnect* unfit = nullptr;  // a rule that is no candidate: a wildcard, another protocol

    [[nodiscard]] bool is_empty() const { return candidates.empty() && unfit == nullptr; }
    void add(const Reach& other) {
      candidates.insert(candidates.end(), other.candidates.begin(), other.candidates.end());
      if (unfit == nullptr) unfit = other.unfit;
      shorten();
    }
    void shorten() {
      sort_and_deduplicate(candidates);
      if (candidates.size() > most_candidates) candidates.resize(most_candidates);
    }
  };

  struct Variable {
    std::vector<std::uint32_t> open;  // what is to be sealed: indices into Manifest::declared
    EnvCapability sealed;             // what other declarations say together
  };

  void collect() {
    for (std::uint32_t i = 0; i < manifest_.declared.size(); ++i) {
      Declared& declared = manifest_.declared[i];
      if (const auto* connect = std::get_if<NetConnect>(&declared.capability)) {
        Reach& reach = by_owner_[declared.tool];
        if (may_receive(*connect)) {
          reach.candidates.push_back(connect->endpoint);
        } else {
          reach.unfit = connect;
        }
      } else if (const EnvCapability* env = injected(declared)) {
        Variable& variable = variables_[env->name];
        if (env->to.empty()) {
          variable.open.push_back(i);
        } else {
          variable.sealed.as = env->as;
          variable.sealed.to.insert(variable.sealed.to.end(), env->to.begin(), env->to.end());
        }
      }
    }
    for (auto& [owner, reach] : by_owner_) {
      reach.shorten();
      everywhere_.add(reach);
    }
  }

  void bind(std::string_view name, Variable& variable) {
    if (const auto reason = why_unsealable(name)) {
      complain(Code::cap_env_unsealable, variable, format("{} cannot be sealed: {}", name, *reason),
               "seal the others one by one with to=, or use a credential that is sent, such as "
               "a bearer token");
      return;
    }
    if (is_loader_variable(name)) {
      complain(Code::cap_env_unsealable, variable,
               format("{} cannot be sealed: it is read by programs, not sent", name),
               format("write env:read:{}?unsafe=true if it holds no secret", name));
      return;
    }
    if (variable.sealed.to.empty()) {
      const Reach reach = reach_of(variable);
      if (reach.candidates.size() != 1) return complain_of(name, variable, reach);
      variable.sealed.to = reach.candidates;
    }
    sort_and_deduplicate(variable.sealed.to);
    for (const std::uint32_t index : variable.open) {
      EnvCapability& env = *injected(manifest_.declared[index]);
      env.to = variable.sealed.to;
      env.as = variable.sealed.as;
    }
  }

  // A tool that declares any rule at all uses its secrets there, and not where other tools go.
  [[nodiscard]] Reach reach_of(const Variable& variable) const {
    std::vector<std::uint32_t> owners;
    owners.reserve(variable.open.size());
    for (const std::uint32_t index : variable.open) {
      owners.push_back(manifest_.declared[index].tool);
    }
    sort_and_deduplicate(owners);
    Reach reach;
    for (const std::uint32_t owner : owners) {
      if (const auto found = by_owner_.find(owner); found != by_owner_.end()) {
        reach.add(found->second);
      }
    }
    if (!reach.is_empty()) return reach;
    const auto shared = by_owner_.find(Declared::whole_server);
    return shared == by_owner_.end() ? everywhere_ : shared->second;
  }

  void complain_of(std::string_view name, const Variable& variable, const Reach& reach) {
    if (!reach.candidates.empty()) {
      std::vector<std::string> names;
      names.reserve(reach.candidates.size());
      for (const Endpoint& candidate : reach.candidates) names.push_back(print(candidate));
      complain(Code::seal_ambiguous, variable,
               format("{} cannot be sealed: it could go to {}", name, join(names, ", ")),
               format("write {}, or another of them; repeat to= for several",
                      line_for(name, names.front())));
      return;
    }
    complain(
        Code::seal_ambiguous, variable,
        format("{} cannot be sealed: no net:connect names a host and a port that speaks TLS", name),
        reach.unfit == nullptr
            ? format("write {} and net:connect:HOST:443 with the host that receives it",
                     line_for(name, "HOST:443"))
            : format("write {} with the host and port that receive it, which {} does not tell",
                     line_for(name, "HOST:443"), print(Capability(*reach.unfit))));
  }

  void complain(Code code, const Variable& variable, std::string message, std::string help) {
    mistakes_.push_back({.code = code,
                         .where = manifest_.declared[variable.open.front()].where,
                         .message = std::move(message),
                         .help = std::move(help)});
  }

  Manifest& manifest_;
  std::map<std::string, Variable, std::less<>> variables_;
  std::map<std::uint32_t, Reach> by_owner_;  // by Declared::tool
  Reach everywhere_;
  Diagnostics mistakes_;
};

// ---- Checking --------------------------------------------------------------------------------

// The rules of a manifest, found by the endpoint that they name.
class Rules {
 public:
  explicit Rules(const Manifest& manifest) {
    for (const Declared& declared : manifest.declared) {
      const auto* connect = std::get_if<NetConnect>(&declared.capability);
      if (connect != nullptr) rules_.push_back(connect);
    }
    // Of rules that differ in methods, paths and private alone one is kept: at most twelve share an
    // endpoint.
    const auto whole = [](const NetConnect* rule) {
      return std::tuple(place(*rule), rule->refinements.sni, rule->refinements.proto);
    };
    std::ranges::sort(rules_, {}, whole);
    const auto rest = std::ranges::unique(rules_, {}, whole);
    rules_.erase(rest.begin(), rest.end());
  }

  // All that cover `to`, which is a name and a port.
  [[nodiscard]] std::vector<const NetConnect*> covering(const Endpoint& to) const {
    std::vector<const NetConnect*> found;
    const std::string_view name = to.host.text;
    add({HostPattern::Kind::name, name}, to, found);
    for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
         dot = name.find('.', dot + 1)) {
      add({HostPattern::Kind::subdomains, name.substr(dot + 1)}, to, found);
    }
    add({HostPattern::Kind::any, "*"}, to, found);
    return found;
  }

 private:
  using Host = std::pair<HostPattern::Kind, std::string_view>;

  static std::pair<Host, int> place(const NetConnect& rule) {
    const Endpoint& endpoint = rule.endpoint;
    return {{endpoint.host.kind, endpoint.host.text}, endpoint.port ? *endpoint.port : -1};
  }

  void add(const Host& host, const Endpoint& to, std::vector<const NetConnect*>& found) const {
    const auto place_of = [](const NetConnect* rule) { return place(*rule); };
    for (const int port : {int{*to.port}, -1}) {
      for (const NetConnect* rule :
           std::ranges::equal_range(rules_, std::pair(host, port), {}, place_of)) {
        if (matches(rule->endpoint, to)) found.push_back(rule);
      }
    }
  }

  std::vector<const NetConnect*> rules_;
};

// Why TLS under a rule that covers the endpoint is not terminated, and what to write.
std::pair<std::string_view, std::string_view> obstacle(const NetConnect& rule) {
  if (rule.refinements.proto == Proto::http) {
    return {"is plain HTTP, which would show the value to the network",
            "use the service's TLS port, and remove proto=http"};
  }
  if (rule.refinements.proto == Proto::tcp) {
    return {"passes what is said unread, so that TLS cannot be terminated", "remove proto=tcp"};
  }
  if (rule.refinements.sni == Sni::any) {
    return {"lets TLS name any host, and only its own can be terminated", "remove sni=any"};
  }
  return {"allows plain HTTP, which would show the value to the network",
          "use the service's TLS port, or add proto=tls if it speaks TLS on this one"};
}

void check_seal(const Declared& declared, const Rules& rules, Diagnostics& mistakes) {
  const auto* env = std::get_if<EnvCapability>(&declared.capability);
  if (env == nullptr) return;
  for (const Endpoint& to : env->to) {
    const std::uint16_t port = *to.port;
    const auto covering = rules.covering(to);
    const bool usable = std::ranges::any_of(
        covering, [&](const NetConnect* rule) { return is_terminable(rule->refinements, port); });
    if (usable) continue;
    Diagnostic mistake{.code = Code::seal_unusable, .where = declared.where};
    if (covering.empty()) {
      mistake.message = format("{} is sealed for {}, which no capability lets the server reach",
                               env->name, print(to));
      mistake.help = format("add net:connect:{}, or remove this to=", print(to));
    } else {
      const auto [reason, help] = obstacle(*covering.front());
      mistake.message = format("{} is sealed for {}, but {} {}", env->name, print(to),
                               print(Capability(*covering.front())), reason);
      mistake.help = help;
    }
    mistakes.push_back(std::move(mistake));
  }
}

bool is_sealed(const Declared& declared) {
  const auto* env = std::get_if<EnvCapability>(&declared.capability);
  return env != nullptr && !env->to.empty();
}

}  // namespace

bool is_terminable(const NetRefinements& rule, std::uint16_t port) {
  if (rule.sni == Sni::any) return false;
  switch (rule.proto) {
    case Proto::detect: return port != http_port;
    case Proto::tls: return true;
    case Proto::tcp:
    case Proto::http: return false;
  }
  return false;
}

Diagnostics seal_variables(Manifest& manifest) {
  std::vector<Declared> before = manifest.declared;
  Diagnostics mistakes = Sealer(manifest).seal();
  if (!mistakes.empty()) manifest.declared = std::move(before);
  return mistakes;
}

Diagnostics check_seals(const Manifest& manifest) {
  Diagnostics mistakes;
  if (std::ranges::none_of(manifest.declared, is_sealed)) return mistakes;
  const Rules rules(manifest);
  for (const Declared& declared : manifest.declared) check_seal(declared, rules, mistakes);
  sort_diagnostics(mistakes);
  return mistakes;
}

}  // namespace capgate::core
