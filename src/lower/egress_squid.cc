// squid: a whole configuration. Each rule is one http_access line whose conditions are: what is
// spoken, the port, the host as it was asked for, and last every address that it resolves to. A
// `dst` condition holds if one of the addresses matches, so `!private` means that none does; squid
// dials what its own cache holds, where an answer stays for a minute at least, whatever its TTL.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "lower/egress_emit.h"

namespace capgate::lower {
namespace {

using core::AddressBlock;
using core::HostPattern;
using core::NetRefinements;
using Proto = NetRefinements::Proto;

// squid keeps IPv4 addresses as ::ffff:a.b.c.d, so a block that holds that range would be all of
// them. It is cut out; such an address in a URL is IPv4 to squid, and meets the blocks of IPv4.
std::string squid_blocks(const std::vector<AddressBlock>& blocks) {
  constexpr AddressBlock mapped{
      .ipv6 = true, .prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, .bits = 96};
  std::string out;
  for (const AddressBlock& block : blocks) {
    if (core::covers(block, mapped)) {
      for (const AddressBlock& part : core::subtract(block, mapped)) out += ' ' + print(part);
    } else {
      out += ' ' + print(block);
    }
  }
  return out;
}

// Beside the port: nothing is kept, nothing of the client is told, and one request is one
// connection, so that each address was checked for it.
constexpr std::string_view frame_lines[] = {
    "visible_hostname capgate",
    "cache deny all",
    "cache_mem 0",
    "maximum_object_size 0 KB",
    "access_log none",
    "cache_log /dev/null",
    "cache_store_log none",
    "pid_filename none",
    "netdb_filename none",
    "coredump_dir /tmp",
    "pinger_enable off",
    "client_db off",
    "icp_port 0",
    "htcp_port 0",
    "snmp_port 0",
    "global_internal_static off",
    "via off",
    "forwarded_for delete",
    "httpd_suppress_version_string on",
    "host_verify_strict on",
    "always_direct allow all",
    "server_persistent_connections off",
    "dns_defnames off",
    "negative_dns_ttl 1 minute",
    "shutdown_lifetime 1 second",
};

bool starts_like_an_option(const std::string& method) { return method.starts_with('-'); }

class Squid {
 public:
  explicit Squid(EgressJob& job) : job_(job), rules_(effective_rules(job)) {}

  void emit() {
    add_frame();
    add_conditions();
    for (std::size_t i = 0; i < rules_.size(); ++i) add_rule(*rules_[i], i + 1);
    file_.because("what no rule allows");
    file_.add("http_access deny all");
    list_listeners(job_);
    job_.artifact.notes.emplace_back(
        "net: squid does not look inside tunnels: the name in TLS is not compared with the host");
    job_.artifact.notes.emplace_back(
        "net: squid does not know this host's own public addresses: a name may lead to them");
    job_.artifact.files.push_back(std::move(file_).take());
  }

 private:
  void add_frame() {
    file_.because("a proxy on loopback: no cache, no disk, no trace of the client");
    file_.add(format("# capgate egress, policy {}\n# squid -N -d 1 -f capgate-egress.squid.conf",
                     job_.input.policy.hash));
    file_.add(format("http_port {}:{}", proxy_address, proxy_port));
    for (const std::string_view line : frame_lines) file_.add(line);
  }

  [[nodiscard]] bool any_reach(Reach reach) const {
    return std::ranges::any_of(rules_, [&](const ConnectGrant* grant) {
      return reach_of(grant->capability, job_.public_only) == reach;
    });
  }

  void add_conditions() {
    file_.because("conditions that rules share");
    file_.add("acl cg_connect method CONNECT");
    file_.add("acl cg_http proto HTTP");
    file_.add("acl cg_literal dstdom_regex -n ^\\[ ^[0-9.]+$");
    file_.add("acl cg_local_name dstdomain -n .localhost");
    file_.add("acl cg_private dst" + squid_blocks(core::private_blocks()));
    if (any_reach(Reach::private_network)) {
      file_.add("acl cg_closed dst" + squid_blocks(core::closed_blocks()));
    }
    if (any_reach(Reach::loopback)) file_.add("acl cg_loopback dst 127.0.0.1 ::1");
    file_.because("squid's own pages, and every scheme but http and tunnels");
    file_.add("http_access deny manager");
    file_.add("http_access deny !cg_connect !cg_http");
  }

  // Conditions of the host, and those of its addresses.
  struct Host {
    std::string host;
    std::string addresses;
  };

  Host add_host(const HostPattern& host, Reach reach, std::size_t number) {
    const std::string addresses = reach == Reach::private_network ? " !cg_closed"
                                  : reach == Reach::loopback      ? " cg_loopback"
                                                                  : " !cg_private";
    switch (host.kind) {
      case HostPattern::Kind::any: return {" !cg_local_name", addresses};
      case HostPattern::Kind::subdomains:
        file_.add(format("acl cg_host_{} dstdomain -n .{}", number, host.text));
        file_.add(format("acl cg_apex_{} dstdomain -n {}", number, host.text));
        return {format(" !cg_literal cg_host_{0} !cg_apex_{0}", number), addresses};
      case HostPattern::Kind::name:
        file_.add(format("acl cg_host_{} dstdomain -n {}", number, host.text));
        return {format(" !cg_literal cg_host_{}", number), addresses};
      case HostPattern::Kind::ipv4:
      case HostPattern::Kind::ipv6:
        file_.add(format("acl cg_host_{} dst {}", number, host.text));
        return {" cg_literal", format(" cg_host_{}", number)};
    }
    return {};
  }

  void check(const ConnectGrant& grant) {
    const NetRefinements& refine = grant.capability.refinements;
    std::string reason;
    if (!refine.paths.empty()) {
      reason = "it compares paths after decoding them, so that an encoded slash would pass";
    } else if (!refine.methods.empty() && refine.proto != Proto::http) {
      reason = "it sees methods in plain HTTP alone, which proto=http would say";
    } else if (std::ranges::any_of(refine.methods, starts_like_an_option)) {
      reason = "it would take a method that starts with '-' for an option";
    } else if (refine.proto == Proto::tls) {
      reason = "it does not look whether TLS is spoken in a tunnel";
    } else if (refine.sni == NetRefinements::Sni::strict) {
      reason = "it does not look at the name in TLS";
    }
    if (reason.empty()) return;
    job_.support.unsupported(grant.capability, grant.origins, std::move(reason),
                             "use capgate egress (--egress-target spec)");
  }

  void add_rule(const ConnectGrant& grant, std::size_t number) {
    check(grant);
    const core::Endpoint& endpoint = grant.capability.endpoint;
    const NetRefinements& refine = grant.capability.refinements;
    file_.because(grant.origins);
    file_.add(format("# {}", print(endpoint)));
    std::string conditions = refine.proto == Proto::http ? " !cg_connect" : "";
    if (endpoint.port) {
      file_.add(format("acl cg_port_{} port {}", number, *endpoint.port));
      conditions += format(" cg_port_{}", number);
    }
    if (refine.proto == Proto::http && !refine.methods.empty()) {
      file_.add(format("acl cg_method_{} method {}", number, join(refine.methods, " ")));
      conditions += format(" cg_method_{}", number);
    }
    const Host host = add_host(endpoint.host, reach_of(grant.capability, job_.public_only), number);
    file_.add(format("http_access allow{}{}{}", conditions, host.host, host.addresses));
  }

  EgressJob& job_;
  std::vector<const ConnectGrant*> rules_;
  FileBuilder file_{"capgate-egress.squid.conf"};
};

}  // namespace

void emit_squid(EgressJob& job) { Squid(job).emit(); }

}  // namespace capgate::lower
