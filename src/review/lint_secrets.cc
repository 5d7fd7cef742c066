// Which secrets may flow where.
#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "core/seal.h"
#include "core/sensitive.h"
#include "core/unsealable.h"
#include "review/lint_detail.h"
#include "review/lint_tables.h"

namespace capgate::review::detail {
namespace {

using core::EnvCapability;
using core::HostPattern;
using core::NetConnect;

// Who may be reached: each party once, and whether that is everybody.
struct Parties {
  std::set<std::string, std::less<>> sites;
  bool everybody = false;

  void add(const HostPattern& host) {
    switch (host.kind) {
      case HostPattern::Kind::any: everybody = true; return;
      case HostPattern::Kind::subdomains:
        if (why_shared(host.text)) everybody = true;
        sites.emplace(site_of(host.text));
        return;
      case HostPattern::Kind::name: sites.emplace(site_of(host.text)); return;
      case HostPattern::Kind::ipv4:
      case HostPattern::Kind::ipv6: sites.insert(host.text); return;
    }
  }
  [[nodiscard]] bool are_several() const { return everybody || sites.size() > 1; }
};

std::string words(const Parties& parties) {
  if (parties.everybody) return "hosts that anybody can have";
  std::string out;
  std::size_t count = 0;
  for (const std::string& site : parties.sites) {
    if (++count > 3) return out + format(" and {} more", parties.sites.size() - 3);
    out += (out.empty() ? "" : ", ") + escape_for_terminal(site);
  }
  return out;
}

struct Network {
  Parties parties;
  std::string sealable;  // the first endpoint to which a value could be sealed, or empty
};

Network find_network(const Linter& linter) {
  Network out;
  for (const Line& line : linter.lines()) {
    const auto* net = std::get_if<NetConnect>(line.capability);
    if (net == nullptr) continue;
    out.parties.add(net->endpoint.host);
    // Nobody is told to seal a token to a host that EXFILTRATION_HOST warns of.
    const HostPattern& host = net->endpoint.host;
    const bool is_plain = host.kind == HostPattern::Kind::name && net->endpoint.port &&
                          exfiltration_service(host.text) == nullptr;
    if (out.sealable.empty() && is_plain &&
        core::is_terminable(net->refinements, *net->endpoint.port)) {
      out.sealable = core::print(net->endpoint);
    }
  }
  return out;
}

// All lines about one variable: its seals count together.
struct Secret {
  const Line* line = nullptr;
  Parties sealed_to;
  bool is_held = false;  // the server itself has the value
};

std::map<std::string, Secret, std::less<>> find_secrets(const Linter& linter) {
  std::map<std::string, Secret, std::less<>> out;
  for (const Line& line : linter.lines()) {
    const auto* env = std::get_if<EnvCapability>(line.capability);
    if (env == nullptr) continue;
    const bool is_read = env->action == EnvCapability::Action::read;
    if (is_read && !core::is_secret_name(env->name)) continue;
    Secret& secret = out[env->name];
    if (env->to.empty()) {
      if (!secret.is_held) secret.line = &line;
      secret.is_held = true;
    }
    if (secret.line == nullptr) secret.line = &line;
    for (const core::Endpoint& endpoint : env->to) secret.sealed_to.add(endpoint.host);
  }
  return out;
}

std::string how_to_seal(const std::string& name, const Network& network) {
  if (const auto reason = core::why_unsealable(name)) {
    return format("it cannot be sealed ({}): name fewer hosts", *reason);
  }
  return format("write env:inject:{}?to={}, with the host that it is for", name,
                network.sealable.empty() ? "HOST:443" : network.sealable);
}

void lint_secret(Linter& linter, const std::string& name, const Secret& secret,
                 const Network& network) {
  if (!secret.is_held) {
    if (!secret.sealed_to.are_several()) return;
    linter.about(*secret.line, {.rule = rule::secret_many_hosts,
                                .message = format("{} is sealed to hosts of several parties: {}",
                                                  name, words(secret.sealed_to)),
                                .help = "seal it to the one that it is for"});
  } else if (network.parties.are_several()) {
    linter.about(*secret.line, {.rule = rule::secret_many_hosts,
                                .message = format("the server holds {} and can reach {}", name,
                                                  words(network.parties)),
                                .help = how_to_seal(name, network)});
  } else if (!network.sealable.empty() && !core::why_unsealable(name) && !name.ends_with("_ID")) {
    linter.about(*secret.line, {.rule = rule::secret_not_sealed,
                                .message = format("the server itself holds {}", name),
                                .help = how_to_seal(name, network)});
  }
}

}  // namespace

void lint_secrets(Linter& linter) {
  const Network network = find_network(linter);
  for (const auto& [name, secret] : find_secrets(linter)) {
    lint_secret(linter, name, secret, network);
  }
}

}  // namespace capgate::review::detail
