#include "lower/plan_network.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "core/built_in.h"
#include "core/seal.h"

namespace capgate::lower {
namespace {

using core::HostPattern;
using core::NetConnect;
using Grant = core::Granted<NetConnect>;

// Names and addresses of a machine's own loopback.
bool is_loopback(const HostPattern& host) {
  if (host.kind == HostPattern::Kind::name) return core::names_private_endpoint(host);
  if (host.kind == HostPattern::Kind::ipv4) return host.address[0] == 127;
  return core::is_localhost_address(host);
}

// The declaration that says just this; one that is covered by it may stand before it.
const core::Declared& declaration(const Grant& grant, const core::Manifest& manifest) {
  for (const std::uint32_t index : grant.origins) {
    const core::Declared& declared = manifest.declared[index];
    const auto* connect = std::get_if<NetConnect>(&declared.capability);
    if (connect != nullptr && *connect == grant.capability) return declared;
  }
  return manifest.declared[grant.origins.front()];
}

class NetworkPlanner {
 public:
  NetworkPlanner(const Input& input, Support& support)
      : input_(input), policy_(input.policy), support_(support) {
    for (const auto& grant : policy_.variables) {
      sealed_.insert(sealed_.end(), grant.capability.to.begin(), grant.capability.to.end());
    }
    std::ranges::sort(sealed_);
  }

  PlanNetwork plan() {
    network_.public_only = core::is_public_only(policy_);
    refuse_dns_port();
    for (const auto& grant : policy_.listen) network_.published.push_back(grant.capability.port);
    for (const Grant& grant : policy_.connect) connect(grant);
    sort_and_deduplicate(network_.listeners);
    sort_and_deduplicate(network_.localhost);
    refuse_published_localhost();
    choose_capture();
    return std::move(network_);
  }

 private:
  void connect(const Grant& grant) {
    const core::Endpoint& endpoint = grant.capability.endpoint;
    check_refinements(grant);
    network_.dns = true;
    network_.rules.push_back(
        {.connect = grant.capability,
         .position = position_of(declaration(grant, input_.manifest), input_)});
    if (endpoint.port) {
      network_.listeners.push_back(*endpoint.port);
      if (is_loopback(endpoint.host)) network_.localhost.push_back(*endpoint.port);
      return;
    }
    network_.every_port = true;
    if (!is_loopback(endpoint.host)) return;
    support_.impossible(grant.capability, grant.origins,
                        "the loopback inside is the sandbox's own, but for ports that are named",
                        format("name the port: net:connect:{}:5432", print(endpoint.host)));
  }

  // Requests are seen in plain HTTP, and inside TLS that the broker terminates.
  void check_refinements(const Grant& grant) {
    const core::NetRefinements& refine = grant.capability.refinements;
    if (refine.methods.empty() && refine.paths.empty()) return;
    if (refine.proto == core::NetRefinements::Proto::http) return;
    const core::Endpoint& endpoint = grant.capability.endpoint;
    const bool sealed = std::ranges::binary_search(sealed_, endpoint);
    if (sealed && core::is_terminable(refine, *endpoint.port)) return;
    support_.unsupported(
        grant.capability, grant.origins,
        sealed ? "methods and paths are seen where TLS is terminated, which proto=tcp, sni=any and "
                 "port 80 without proto=tls prevent"
               : "methods and paths are seen in plain HTTP, and inside TLS only where a sealed "
                 "secret goes to this very host and port",
        sealed ? "remove what prevents it, or remove methods= and paths="
               : "add proto=http if the server speaks plain HTTP, seal its secret with "
                 "env:inject:NAME?to=HOST:PORT, or remove methods= and paths=");
  }

  void refuse_dns_port() {
    constexpr std::uint16_t dns_port = 53;
    constexpr std::string_view reason =
        "port 53 inside is capgate's own: it answers the sandbox's DNS, over UDP and TCP";
    for (const Grant& grant : policy_.connect) {
      if (grant.capability.endpoint.port != dns_port) continue;
      support_.impossible(grant.capability, grant.origins, reason,
                          "remove it: declared names are resolved without a rule for DNS");
    }
    for (const auto& grant : policy_.listen) {
      if (grant.capability.port != dns_port) continue;
      support_.impossible(grant.capability, grant.origins, reason, "publish another port");
    }
  }

  // One port of the loopback inside cannot be the server's and lead out as well.
  void refuse_published_localhost() {
    for (const Grant& grant : policy_.connect) {
      const core::Endpoint& endpoint = grant.capability.endpoint;
      if (!endpoint.port || !is_loopback(endpoint.host) || !is_published(*endpoint.port)) continue;
      support_.impossible(
          grant.capability, grant.origins,
          format("net:listen:{} makes this port of the loopback the server's own", *endpoint.port),
          "use another port for one of them");
    }
  }

  void choose_capture() {
    using enum PlanNetwork::Capture;
    if (network_.rules.empty()) return;
    const auto published = [&](std::uint16_t port) { return is_published(port); };
    const bool redirects =
        network_.every_port || std::ranges::any_of(network_.listeners, published);
    network_.capture = redirects ? redirect : listeners;
    if (!redirects) return;
    network_.redirect_port = first_redirect_port;
    while (is_published(network_.redirect_port) ||
           contains(network_.listeners, network_.redirect_port)) {
      ++network_.redirect_port;
    }
  }

  [[nodiscard]] bool is_published(std::uint16_t port) const {
    return contains(network_.published, port);
  }

  const Input& input_;
  const core::Policy& policy_;
  Support& support_;
  std::vector<core::Endpoint> sealed_;  // sorted: where TLS is terminated
  PlanNetwork network_;
};

}  // namespace

PlanNetwork plan_network(const Input& input, Support& support) {
  return NetworkPlanner(input, support).plan();
}

}  // namespace capgate::lower
