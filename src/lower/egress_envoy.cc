// Envoy: a static bootstrap with a forward proxy for plain HTTP and CONNECT. The first RBAC filter
// looks at the authority, so that nothing is resolved for what no rule covers; the second one,
// after the name was resolved, at the authority and the address together. Envoy may dial another
// address of the same answer than the one that it shows to the filter, so names count as not
// enforced.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "lower/egress_emit.h"
#include "text/yaml_write.h"

namespace capgate::lower {
namespace {

using core::AddressBlock;
using core::HostPattern;
using core::NetRefinements;
using text::YamlWriter;

constexpr std::string_view type_prefix = "type.googleapis.com/envoy.extensions.";

// For RE2, which compares the whole text.
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!is_alnum(c) && c != '_') out += '\\';
    out += c;
  }
  return out;
}

// The authority of a request for this endpoint. Only plain HTTP may leave out its port, 80.
std::string authority_pattern(const core::Endpoint& endpoint) {
  std::string host = literal(print(endpoint.host));
  if (endpoint.host.kind == HostPattern::Kind::any) host = R"((?:\[[0-9a-f:]+\]|[0-9a-z._-]+))";
  if (endpoint.host.kind == HostPattern::Kind::subdomains) {
    host = R"((?:[0-9a-z_-]+\.)+)" + literal(endpoint.host.text);
  }
  if (!endpoint.port) return format("(?i){}(?::[0-9]+)?", host);
  const std::string port = format(":{}", *endpoint.port);
  return format("(?i){}{}", host, *endpoint.port == 80 ? format("(?:{})?", port) : port);
}

class Envoy {
 public:
  explicit Envoy(EgressJob& job) : job_(job), rules_(effective_rules(job)) {}

  void emit() {
    for (const ConnectGrant* grant : rules_) check(*grant);
    yaml_.comment(format("capgate egress, policy {}", job_.input.policy.hash));
    yaml_.begin_map().key("static_resources").begin_map();
    yaml_.key("listeners").begin_list();
    write_listener();
    yaml_.end_list().key("clusters").begin_list();
    write_cluster();
    yaml_.end_list().end_map().end_map();
    list_listeners(job_);
    job_.artifact.notes.emplace_back(
        "net: Envoy does not look inside tunnels: the name in TLS is not compared with the host");
    job_.artifact.files.push_back(
        {.name = "capgate-egress.envoy.yaml", .contents = std::move(yaml_).take()});
  }

 private:
  void check(const ConnectGrant& grant) {
    const NetRefinements& refine = grant.capability.refinements;
    const bool http = refine.proto == NetRefinements::Proto::http;
    std::string reason;
    if (!refine.paths.empty()) {
      reason = "it reads paths in another way than capgate";
    } else if (!refine.methods.empty() && !http) {
      reason = "it sees methods in plain HTTP alone, which proto=http would say";
    } else if (refine.proto == NetRefinements::Proto::tls) {
      reason = "it does not look whether TLS is spoken in a tunnel";
    } else if (refine.sni == NetRefinements::Sni::strict) {
      reason = "it does not look at the name in TLS";
    } else if (reach_of(grant.capability, job_.public_only) != Reach::address) {
      reason =
          "of the addresses that a name resolves to it checks the first and may dial another one, "
          "a private one too";
    }
    if (reason.empty()) return;
    job_.support.unsupported(grant.capability, grant.origins, std::move(reason),
                             "use capgate egress (--egress-target spec)");
  }

  YamlWriter& begin_typed(std::string_view name, std::string_view type) {
    yaml_.begin_map().key("name").string(name);
    return yaml_.key("typed_config")
        .begin_map()
        .key("@type")
        .string(format("{}{}", type_prefix, type));
  }
  void end_typed() { yaml_.end_map().end_map(); }

  void write_address(std::string_view address, unsigned port) {
    yaml_.key("address").begin_map().key("socket_address").begin_map();
    yaml_.key("address").string(address).key("port_value").number(port);
    yaml_.end_map().end_map();
  }

  void write_listener() {
    yaml_.begin_map().key("name").string("capgate");
    write_address(proxy_address, proxy_port);
    yaml_.key("filter_chains").begin_list().begin_map().key("filters").begin_list();
    begin_typed("envoy.filters.network.http_connection_manager",
                "filters.network.http_connection_manager.v3.HttpConnectionManager");
    yaml_.key("stat_prefix").string("capgate");
    yaml_.key("strip_trailing_host_dot").boolean(true);
    yaml_.key("http_protocol_options").begin_map();
    yaml_.key("allow_absolute_url").boolean(true).end_map();
    yaml_.key("upgrade_configs").begin_list().begin_map();
    yaml_.key("upgrade_type").string("CONNECT").end_map().end_list();
    write_routes();
    yaml_.key("http_filters").begin_list();
    write_rbac("capgate.authority", /*with_addresses=*/false);
    begin_typed("envoy.filters.http.dynamic_forward_proxy",
                "filters.http.dynamic_forward_proxy.v3.FilterConfig");
    yaml_.key("save_upstream_address").boolean(true);
    write_dns_cache();
    end_typed();
    write_rbac("capgate.address", /*with_addresses=*/true);
    begin_typed("envoy.filters.http.router", "filters.http.router.v3.Router");
    end_typed();
    yaml_.end_list();
    end_typed();
    yaml_.end_list().end_map().end_list().end_map();
  }

  void write_routes() {
    yaml_.key("route_config").begin_map().key("name").string("capgate");
    yaml_.key("virtual_hosts").begin_list().begin_map();
    yaml_.key("name").string("capgate").key("domains").begin_list().string("*").end_list();
    yaml_.key("routes").begin_list();
    yaml_.begin_map().key("match").begin_map();
    yaml_.key("connect_matcher").begin_map().end_map().end_map();
    yaml_.key("route").begin_map().key("cluster").string("capgate");
    yaml_.key("upgrade_configs").begin_list().begin_map();
    yaml_.key("upgrade_type").string("CONNECT");
    yaml_.key("connect_config").begin_map().end_map();
    yaml_.end_map().end_list().end_map().end_map();
    yaml_.begin_map().key("match").begin_map().key("prefix").string("/").end_map();
    yaml_.key("route").begin_map().key("cluster").string("capgate").end_map().end_map();
    yaml_.end_list().end_map().end_list().end_map();
  }

  void write_dns_cache() {
    yaml_.key("dns_cache_config").begin_map().key("name").string("capgate");
    yaml_.key("dns_lookup_family").string("V4_PREFERRED").end_map();
  }

  // Without a policy nothing is allowed.
  void write_rbac(std::string_view name, bool with_addresses) {
    begin_typed(name, "filters.http.rbac.v3.RBAC");
    yaml_.key("rules").begin_map().key("action").string("ALLOW");
    yaml_.key("policies").begin_map();
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const core::NetConnect& rule = rules_[i]->capability;
      yaml_.comment(print(rule.endpoint));
      yaml_.key(format("rule-{}", i + 1)).begin_map();
      yaml_.key("permissions").begin_list().begin_map().key("and_rules").begin_map();
      yaml_.key("rules").begin_list();
      write_conditions(rule);
      if (with_addresses) write_reach(rule);
      yaml_.end_list().end_map().end_map().end_list();
      yaml_.key("principals").begin_list().begin_map().key("any").boolean(true);
      yaml_.end_map().end_list().end_map();
    }
    yaml_.end_map().end_map();
    end_typed();
  }

  void write_header(std::string_view header, std::string_view pattern) {
    yaml_.begin_map().key("header").begin_map().key("name").string(header);
    yaml_.key("string_match").begin_map().key("safe_regex").begin_map();
    yaml_.key("regex").string(pattern).end_map().end_map().end_map().end_map();
  }
  void begin_not() { yaml_.begin_map().key("not_rule"); }

  void write_conditions(const core::NetConnect& rule) {
    write_header(":authority", authority_pattern(rule.endpoint));
    if (rule.endpoint.host.kind == HostPattern::Kind::any) {
      begin_not();
      write_header(":authority", R"((?i)(?:.*\.)?localhost(?::[0-9]+)?)");
      yaml_.end_map();
    }
    // A tunnel names its port; without one it would be that of plain HTTP.
    if (rule.refinements.proto == NetRefinements::Proto::http) {
      begin_not();
      write_header(":method", "CONNECT");
      yaml_.end_map();
      if (!rule.refinements.methods.empty()) {
        std::string methods;
        for (const std::string& method : rule.refinements.methods) {
          methods += methods.empty() ? "" : "|";
          methods += literal(method);
        }
        write_header(":method", methods);
      }
    }
  }

  void write_upstream(const AddressBlock& block) {
    const std::string text = print(block);
    yaml_.begin_map().key("matcher");
    begin_typed("envoy.rbac.matchers.upstream_ip_port",
                "rbac.matchers.upstream_ip_port.v3.UpstreamIpPortMatcher");
    yaml_.key("upstream_ip").begin_map();
    yaml_.key("address_prefix").string(std::string_view(text).substr(0, text.find('/')));
    yaml_.key("prefix_len").number(block.bits).end_map();
    end_typed();
    yaml_.end_map();
  }

  void write_any_of(const std::vector<AddressBlock>& blocks) {
    yaml_.begin_map().key("or_rules").begin_map().key("rules").begin_list();
    for (const AddressBlock& block : blocks) write_upstream(block);
    yaml_.end_list().end_map().end_map();
  }

  // Without an address nothing matches, so one must be known as well.
  void write_none_of(const std::vector<AddressBlock>& blocks) {
    write_any_of({{.bits = 0}, {.ipv6 = true, .bits = 0}});
    begin_not();
    write_any_of(blocks);
    yaml_.end_map();
  }

  void write_reach(const core::NetConnect& rule) {
    const HostPattern& host = rule.endpoint.host;
    const bool ipv6 = host.kind == HostPattern::Kind::ipv6;
    switch (reach_of(rule, job_.public_only)) {
      case Reach::address:
        write_upstream({.ipv6 = ipv6, .prefix = host.address, .bits = ipv6 ? 128U : 32U});
        return;
      case Reach::loopback:
        write_any_of({{.prefix = {127, 0, 0, 1}, .bits = 32},
                      {.ipv6 = true,
                       .prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                       .bits = 128}});
        return;
      case Reach::private_network: write_none_of(core::closed_blocks()); return;
      case Reach::public_only:
      case Reach::nothing: write_none_of(core::private_blocks()); return;
    }
  }

  void write_cluster() {
    yaml_.begin_map().key("name").string("capgate").key("lb_policy").string("CLUSTER_PROVIDED");
    yaml_.key("cluster_type");
    begin_typed("envoy.clusters.dynamic_forward_proxy",
                "clusters.dynamic_forward_proxy.v3.ClusterConfig");
    write_dns_cache();
    end_typed();
    yaml_.end_map();
  }

  EgressJob& job_;
  std::vector<const ConnectGrant*> rules_;
  YamlWriter yaml_;
};

}  // namespace

void emit_envoy(EgressJob& job) { Envoy(job).emit(); }

}  // namespace capgate::lower
