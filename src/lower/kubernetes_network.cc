// Who may talk to whom. The server reaches the broker and nothing else, not even a name server: a
// question to one leaves the cluster. The broker reaches name servers and what is declared.
#include <algorithm>
#include <span>

#include "base/format.h"
#include "lower/kubernetes_objects.h"

namespace capgate::lower {
namespace {

using core::HostPattern;
using core::NetConnect;
using text::YamlWriter;

// What a name must not lead to. The broker holds the exact list, address by address; these keep it
// to that, should it fail.
constexpr std::string_view public_v4_except[] = {
    "0.0.0.0/8",       "10.0.0.0/8",     "100.64.0.0/10", "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12",   "192.0.0.0/24",   "192.0.2.0/24",  "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",   "240.0.0.0/4"};
constexpr std::string_view public_v6 = "2000::/3";
constexpr std::string_view public_v6_except[] = {"2001:db8::/32", "2002::/16"};
constexpr std::string_view private_v6[] = {"::/3", "2001:db8::/32", "2002::/16", "fc00::/6"};
constexpr std::string_view site_blocks[] = {"10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12",
                                            "192.168.0.0/16", "fc00::/7"};

bool is_address(const HostPattern& host) {
  return host.kind == HostPattern::Kind::ipv4 || host.kind == HostPattern::Kind::ipv6;
}

std::string block_of(const HostPattern& host) {
  return format("{}/{}", host.text, host.kind == HostPattern::Kind::ipv4 ? 32 : 128);
}

void write_selector(YamlWriter& yaml, std::string_view name) {
  yaml.begin_map().key("matchLabels").begin_map();
  yaml.key("app.kubernetes.io/name").string(name).end_map().end_map();
}

// ---- networking.k8s.io ----

void write_port(YamlWriter& yaml, std::string_view protocol, std::uint64_t port) {
  yaml.begin_map().key("protocol").string(protocol).key("port").number(port).end_map();
}

// A list of one peer, all pods of that name in this namespace, at the broker's port.
void write_pods(YamlWriter& yaml, std::string_view direction, std::string_view name) {
  yaml.begin_list().begin_map().key(direction).begin_list().begin_map().key("podSelector");
  write_selector(yaml, name);
  yaml.end_map().end_list().key("ports").begin_list();
  write_port(yaml, "TCP", broker_port);
  yaml.end_list().end_map().end_list();
}

void write_block(YamlWriter& yaml, std::string_view cidr,
                 std::span<const std::string_view> except = {}) {
  yaml.begin_map().key("ipBlock").begin_map().key("cidr").string(cidr);
  if (!except.empty()) {
    yaml.key("except").begin_list();
    for (const std::string_view block : except) yaml.string(block);
    yaml.end_list();
  }
  yaml.end_map().end_map();
}

void write_name_servers(YamlWriter& yaml) {
  yaml.begin_map().key("to").begin_list().begin_map();
  yaml.key("namespaceSelector").begin_map().key("matchLabels").begin_map();
  yaml.key("kubernetes.io/metadata.name").string("kube-system").end_map().end_map();
  yaml.key("podSelector").begin_map().key("matchLabels").begin_map();
  yaml.key("k8s-app").string("kube-dns").end_map().end_map().end_map().end_list();
  yaml.key("ports").begin_list();
  write_port(yaml, "UDP", 53);
  write_port(yaml, "TCP", 53);
  yaml.end_list().end_map();
}

void write_rule(YamlWriter& yaml, const NetConnect& rule) {
  const HostPattern& host = rule.endpoint.host;
  yaml.begin_map().key("to").begin_list();
  if (is_address(host)) {
    write_block(yaml, block_of(host));
  } else {
    write_block(yaml, "0.0.0.0/0", public_v4_except);
    write_block(yaml, public_v6, public_v6_except);
    if (rule.refinements.private_network) {
      for (const std::string_view block : site_blocks) write_block(yaml, block);
    }
  }
  yaml.end_list();
  if (rule.endpoint.port) {
    yaml.key("ports").begin_list();
    write_port(yaml, "TCP", *rule.endpoint.port);
    yaml.end_list();
  }
  yaml.end_map();
}

void begin_policy(YamlWriter& yaml, std::string_view name) {
  yaml.next_document();
  begin_object(yaml, "networking.k8s.io/v1", "NetworkPolicy", name);
  yaml.key("spec").begin_map().key("podSelector");
  write_selector(yaml, name);
  yaml.key("policyTypes").begin_list().string("Ingress").string("Egress").end_list();
}

void write_plain(YamlWriter& yaml, const core::Policy& policy, const ObjectNames& names) {
  begin_policy(yaml, names.server);
  yaml.key("ingress").begin_list().end_list().key("egress");
  if (policy.connect.empty()) {
    yaml.begin_list().end_list().end_map().end_map();
    return;
  }
  write_pods(yaml, "to", names.broker);
  yaml.end_map().end_map();

  begin_policy(yaml, names.broker);
  yaml.key("ingress");
  write_pods(yaml, "from", names.server);
  yaml.key("egress").begin_list();
  write_name_servers(yaml);
  for (const auto& grant : policy.connect) write_rule(yaml, grant.capability);
  yaml.end_list().end_map().end_map();
}

// ---- cilium.io ----

void write_cilium_port(YamlWriter& yaml, std::string_view port, std::string_view protocol) {
  yaml.begin_map().key("port").string(port).key("protocol").string(protocol).end_map();
}

void write_cilium_pods(YamlWriter& yaml, std::string_view direction, std::string_view name) {
  yaml.begin_list().begin_map().key(direction).begin_list();
  write_selector(yaml, name);
  yaml.end_list().key("toPorts").begin_list().begin_map().key("ports").begin_list();
  write_cilium_port(yaml, std::to_string(broker_port), "TCP");
  yaml.end_list().end_map().end_list().end_map().end_list();
}

// matchName or matchPattern. Cilium's * stands for one label, so that deeper names stay closed.
void write_name(YamlWriter& yaml, const HostPattern& host) {
  yaml.begin_map();
  if (host.kind == HostPattern::Kind::name) {
    yaml.key("matchName").string(host.text);
  } else {
    yaml.key("matchPattern").string(host.kind == HostPattern::Kind::any ? "*" : print(host));
  }
  yaml.end_map();
}

// Through Cilium's own name server, which only answers for declared names.
void write_cilium_names(YamlWriter& yaml, const core::Policy& policy) {
  yaml.begin_map().key("toEndpoints").begin_list().begin_map().key("matchLabels").begin_map();
  yaml.key("k8s:io.kubernetes.pod.namespace").string("kube-system");
  yaml.key("k8s:k8s-app").string("kube-dns").end_map().end_map().end_list();
  yaml.key("toPorts").begin_list().begin_map().key("ports").begin_list();
  write_cilium_port(yaml, "53", "ANY");
  yaml.end_list().key("rules").begin_map().key("dns").begin_list();
  for (const auto& grant : policy.connect) {
    const HostPattern& host = grant.capability.endpoint.host;
    if (!is_address(host)) write_name(yaml, host);
  }
  yaml.end_list().end_map().end_map().end_list().end_map();
}

void write_cilium_rule(YamlWriter& yaml, const NetConnect& rule) {
  const HostPattern& host = rule.endpoint.host;
  yaml.begin_map();
  if (is_address(host)) {
    yaml.key("toCIDR").begin_list().string(block_of(host)).end_list();
  } else {
    yaml.key("toFQDNs").begin_list();
    write_name(yaml, host);
    yaml.end_list();
  }
  if (rule.endpoint.port) {
    yaml.key("toPorts").begin_list().begin_map().key("ports").begin_list();
    write_cilium_port(yaml, std::to_string(*rule.endpoint.port), "TCP");
    yaml.end_list().end_map().end_list();
  }
  yaml.end_map();
}

bool leads_to_private(const core::Policy& policy) {
  return std::ranges::any_of(policy.connect, [](const auto& grant) {
    const HostPattern& host = grant.capability.endpoint.host;
    return grant.capability.refinements.private_network ||
           (is_address(host) && core::is_private_address(host));
  });
}

// A name that leads to one of these is still refused: a denial counts more than what allows.
void write_cilium_denial(YamlWriter& yaml) {
  yaml.key("egressDeny").begin_list().begin_map().key("toCIDR").begin_list();
  for (const std::string_view block : public_v4_except) yaml.string(block);
  for (const std::string_view block : private_v6) yaml.string(block);
  yaml.end_list().end_map().end_list();
}

void begin_cilium(YamlWriter& yaml, std::string_view name) {
  yaml.next_document();
  begin_object(yaml, "cilium.io/v2", "CiliumNetworkPolicy", name);
  yaml.key("spec").begin_map().key("endpointSelector");
  write_selector(yaml, name);
}

// A list with one empty rule: the direction is policed, and nothing is allowed in it.
void write_nothing(YamlWriter& yaml) { yaml.begin_list().begin_map().end_map().end_list(); }

void write_cilium(YamlWriter& yaml, const core::Policy& policy, const ObjectNames& names) {
  begin_cilium(yaml, names.server);
  write_nothing(yaml.key("ingress"));
  yaml.key("egress");
  if (policy.connect.empty()) {
    write_nothing(yaml);
    yaml.end_map().end_map();
    return;
  }
  write_cilium_pods(yaml, "toEndpoints", names.broker);
  yaml.end_map().end_map();

  begin_cilium(yaml, names.broker);
  yaml.key("ingress");
  write_cilium_pods(yaml, "fromEndpoints", names.server);
  yaml.key("egress").begin_list();
  write_cilium_names(yaml, policy);
  for (const auto& grant : policy.connect) write_cilium_rule(yaml, grant.capability);
  yaml.end_list();
  if (!leads_to_private(policy)) write_cilium_denial(yaml);
  yaml.end_map().end_map();
}

}  // namespace

void write_network_policies(YamlWriter& yaml, const Input& input, const ObjectNames& names) {
  if (input.options.cilium) {
    write_cilium(yaml, input.policy, names);
  } else {
    write_plain(yaml, input.policy, names);
  }
}

void refuse_loopback(const Input& input, Support& support) {
  for (const auto& grant : input.policy.connect) {
    const HostPattern& host = grant.capability.endpoint.host;
    const bool loopback = is_address(host)
                              ? core::is_localhost_address(host) ||
                                    (host.kind == HostPattern::Kind::ipv4 && host.address[0] == 127)
                              : core::names_private_endpoint(host);
    if (!loopback) continue;
    support.impossible(grant.capability, grant.origins,
                       "the loopback would be that of the broker's pod",
                       "name the service that is meant: net:connect:NAME.NAMESPACE.svc:PORT?"
                       "private=true");
  }
}

}  // namespace capgate::lower
