// What the emitters of the egress target share. Each takes parsed hosts and ports; none sees the
// text of a manifest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/address_blocks.h"
#include "lower/common.h"

namespace capgate::lower {

using ConnectGrant = core::Granted<core::NetConnect>;

// Which addresses a rule leads to, once its host is resolved (egress/decide.h says the same of a
// single flow).
enum class Reach : unsigned char {
  public_only,      // no private address
  private_network,  // a name with private=true: private ones too, but for closed_blocks()
  loopback,         // localhost: 127.0.0.1 and ::1
  address,          // the address that the rule names, private or not
  nothing,          // *.localhost, or a private endpoint under assert:fetch.block_rfc1918
};
[[nodiscard]] Reach reach_of(const core::NetConnect& rule, bool public_only);

struct EgressJob {
  const Input& input;
  Support& support;
  Artifact& artifact;
  bool public_only;
};

// The rules that lead anywhere; a note says it of the others.
[[nodiscard]] std::vector<const ConnectGrant*> effective_rules(EgressJob& job);
// Puts net:listen into notCovered: a proxy has no say in it.
void list_listeners(EgressJob& job);
// "127.0.0.1:3128" for each proxy, and the words of its first lines.
inline constexpr std::string_view proxy_address = "127.0.0.1";
inline constexpr unsigned proxy_port = 3128;

[[nodiscard]] std::string join_blocks(const std::vector<core::AddressBlock>& blocks,
                                      std::string_view separator);

// Each adds its file to the artifact.
void emit_spec(EgressJob& job);
void emit_squid(EgressJob& job);
void emit_nftables(EgressJob& job);
void emit_envoy(EgressJob& job);
void emit_mitmproxy(EgressJob& job);

}  // namespace capgate::lower
