// nftables: a script that loads one table into one network namespace, and only into another one
// than its own. The rules see addresses, so a rule for a name opens nothing.
#include <algorithm>

#include "base/format.h"
#include "lower/egress_emit.h"

namespace capgate::lower {
namespace {

using core::AddressBlock;
using core::HostPattern;
using core::NetRefinements;

// What the kernel shows of the first namespace alone tells it from all others.
constexpr std::string_view script_begin = R"sh(set -eu
die() { printf 'capgate-egress-nft.sh: %s\n' "$1" >&2; exit 1; }
[ $# -ge 1 ] || die 'usage: capgate-egress-nft.sh PID|/run/netns/NAME [RESOLVER...]'
case $1 in
  /*) net=$1; user=/proc/self/ns/user ;;
  ''|*[!0-9]*) die 'name a process by its number, or a namespace by its absolute path' ;;
  *) net=/proc/$1/ns/net; user=/proc/$1/ns/user ;;
esac
shift
identity() { stat -L -c %d:%i -- "$1"; }
[ "$(identity "$net")" != "$(identity /proc/self/ns/net)" ] ||
  die 'that is the namespace of this shell: the rules would hold for everything in it'
enter() {
  if [ "$(identity "$user")" = "$(identity /proc/self/ns/user)" ]; then
    nsenter --net="$net" -- "$@"
  else
    nsenter --net="$net" --user="$user" --preserve-credentials -- "$@"
  fi
})sh";

constexpr std::string_view check_resolvers = R"sh(for resolver; do
  case $resolver in
    ''|*[!0-9a-fA-F:.]*) die "not an address: $resolver" ;;
  esac
done)sh";

constexpr std::string_view add_elements = R"sh(for resolver; do
  case $resolver in
    *:*) printf 'add element inet capgate resolvers6 { %s }\n' "$resolver" ;;
    *) printf 'add element inet capgate resolvers4 { %s }\n' "$resolver" ;;
  esac
done)sh";

constexpr std::string_view load = R"sh(} | enter /bin/sh -c '
[ -e /proc/sys/net/core/somaxconn ] || { echo "no /proc/sys/net to look at" >&2; exit 1; }
[ ! -e /proc/sys/net/core/netdev_max_backlog ] || {
  echo "that is the network of the whole machine: the rules would hold for all of it" >&2; exit 1; }
exec nft -f -')sh";

class Nftables {
 public:
  explicit Nftables(EgressJob& job) : job_(job), rules_(effective_rules(job)) {
    any_ = std::ranges::any_of(rules_, [](const ConnectGrant* grant) {
      return grant->capability.endpoint.host.kind == HostPattern::Kind::any;
    });
  }

  void emit() {
    add_script();
    add_table();
    add_output();
    add_input();
    file_.because("forwarding: nothing");
    file_.add("  chain forward {\n    type filter hook forward priority filter; policy drop;\n  }");
    file_.add("}\nRULES");
    add_resolvers();
    add_notes();
    File file = std::move(file_).take();
    file.executable = true;
    job_.artifact.files.push_back(std::move(file));
  }

 private:
  void add_script() {
    file_.because("loads into another network namespace alone, never into the machine's");
    file_.add("#!/bin/sh");
    file_.add(format("# capgate egress, policy {}", job_.input.policy.hash));
    file_.add(script_begin);
    file_.add(any_ ? check_resolvers
                   : "[ $# -eq 0 ] || die 'no rule needs names, so no resolver is opened'");
    file_.add("{ cat <<'RULES'");
  }

  void add_resolvers() {
    file_.because("DNS: only to resolvers that the caller names, and only where names are of use");
    if (any_) file_.add(add_elements);
    file_.because("loads into another network namespace alone, never into the machine's");
    file_.add(load);
  }

  void add_set(std::string_view name, std::string_view type, std::string_view elements) {
    file_.add(format("  set {} {{\n    type {}; flags interval;{}\n  }}", name, type, elements));
  }

  void add_table() {
    file_.because("a table of its own, replaced as a whole");
    file_.add("table inet capgate {}\ndelete table inet capgate\ntable inet capgate {");
    if (!any_) return;
    std::vector<AddressBlock> ipv4;
    std::vector<AddressBlock> ipv6;
    for (const AddressBlock& block : core::private_blocks()) {
      (block.ipv6 ? ipv6 : ipv4).push_back(block);
    }
    add_set("private4", "ipv4_addr", format("\n    elements = {{ {} }}", join_blocks(ipv4, ", ")));
    add_set("private6", "ipv6_addr", format("\n    elements = {{ {} }}", join_blocks(ipv6, ", ")));
    add_set("resolvers4", "ipv4_addr", "");
    add_set("resolvers6", "ipv6_addr", "");
  }

  void add_output() {
    file_.because("answers, the namespace's own loopback, and neighbours on the cable");
    file_.add("  chain output {\n    type filter hook output priority filter; policy drop;");
    file_.add("    ct state established,related accept");
    file_.add("    ct state invalid drop");
    file_.add("    oifname \"lo\" accept");
    file_.add(
        "    icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } "
        "ip6 hoplimit 255 accept");
    if (any_) {
      file_.because("DNS");
      file_.add("    meta l4proto { tcp, udp } th dport 53 ip daddr @resolvers4 accept");
      file_.add("    meta l4proto { tcp, udp } th dport 53 ip6 daddr @resolvers6 accept");
    }
    for (const ConnectGrant* grant : rules_) add_rule(*grant);
    file_.because("what no rule allows fails at once");
    file_.add("    reject with icmpx admin-prohibited\n  }");
  }

  void add_rule(const ConnectGrant& grant) {
    const core::Endpoint& endpoint = grant.capability.endpoint;
    if (!check(grant)) return;
    file_.because(grant.origins);
    file_.add(format("    # {}", print(endpoint)));
    const std::string port =
        endpoint.port ? format("tcp dport {}", *endpoint.port) : "meta l4proto tcp";
    if (endpoint.host.kind == HostPattern::Kind::any) {
      file_.add(format("    {} ip daddr != @private4 accept", port));
      file_.add(format("    {} ip6 daddr != @private6 accept", port));
    } else {
      const bool ipv6 = endpoint.host.kind == HostPattern::Kind::ipv6;
      file_.add(format("    {} {} daddr {} accept", port, ipv6 ? "ip6" : "ip", endpoint.host.text));
    }
  }

  // True if the rule can be written.
  bool check(const ConnectGrant& grant) {
    const NetRefinements& refine = grant.capability.refinements;
    const HostPattern& host = grant.capability.endpoint.host;
    const bool is_address =
        host.kind == HostPattern::Kind::ipv4 || host.kind == HostPattern::Kind::ipv6;
    const bool is_loopback =
        is_address && (host.kind == HostPattern::Kind::ipv4 ? host.address[0] == 127
                                                            : core::is_localhost_address(host));
    if (host.kind == HostPattern::Kind::name || host.kind == HostPattern::Kind::subdomains) {
      refuse(grant, "it sees addresses, not names, so that nothing is opened for this one");
      return false;
    }
    if (is_loopback) {
      refuse(grant, "the loopback of a network namespace is its own, so that nothing is opened");
      return false;
    }
    if (!refine.methods.empty() || !refine.paths.empty() ||
        refine.sni == NetRefinements::Sni::strict || refine.proto == NetRefinements::Proto::tls ||
        refine.proto == NetRefinements::Proto::http) {
      refuse(grant, "it does not see what is spoken");
    }
    return true;
  }

  void refuse(const ConnectGrant& grant, std::string reason) {
    job_.support.unsupported(grant.capability, grant.origins, std::move(reason),
                             "use capgate egress (--egress-target spec)");
  }

  void add_input() {
    file_.because("what comes in: answers, neighbours, and declared listeners");
    file_.add("  chain input {\n    type filter hook input priority filter; policy drop;");
    file_.add("    ct state established,related accept");
    file_.add("    iifname \"lo\" accept");
    file_.add(
        "    icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } "
        "ip6 hoplimit 255 accept");
    for (const auto& grant : job_.input.policy.listen) {
      file_.because(grant.origins);
      file_.add(format("    tcp dport {} accept", grant.capability.port));
    }
    file_.because("what comes in: nothing else");
    file_.add("  }");
  }

  void add_notes() {
    std::vector<std::string>& notes = job_.artifact.notes;
    notes.emplace_back("net: nftables sees addresses and ports, not what is said to them");
    if (any_) {
      notes.emplace_back(
          "net: a resolver that is named when the rules are loaded sees every name, and questions "
          "can carry data");
      notes.emplace_back(
          "net: nftables does not know the public addresses of the machine outside the namespace");
    }
  }

  EgressJob& job_;
  std::vector<const ConnectGrant*> rules_;
  bool any_ = false;
  FileBuilder file_{"capgate-egress-nft.sh"};
};

}  // namespace

void emit_nftables(EgressJob& job) { Nftables(job).emit(); }

}  // namespace capgate::lower
