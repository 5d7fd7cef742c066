// A verdict for people: what was wrong, and the capability that would allow it.
#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "egress/decide.h"
#include "egress/url_path.h"

namespace capgate::egress {
namespace {

using core::HostPattern;
using core::NetConnect;
using core::NetRefinements;

std::string destination(const Flow& flow) {
  return print(core::Endpoint{.host = flow.host, .port = flow.port});
}

std::string_view field_name(const Flow& flow) {
  const bool is_request = flow.speech == Speech::http || !flow.method.empty();
  return is_request ? "Host" : "SNI";
}

std::string explain_other_name(const Flow& flow) {
  const std::string_view field = field_name(flow);
  if (flow.said_is_invalid || !flow.said) {
    return format("{} is not a host name, instead of {}", field, print(flow.host));
  }
  const core::Endpoint said{.host = *flow.said, .port = flow.said_port};
  const core::Endpoint asked{.host = flow.host, .port = flow.port};
  return format("{} names {}, the connection goes to {}", field, print(said),
                flow.said_port ? print(asked) : print(flow.host));
}

std::string_view speech_name(Speech speech) {
  switch (speech) {
    case Speech::unknown: return "nothing";
    case Speech::tls: return "TLS";
    case Speech::http: return "plain HTTP";
    case Speech::other: return "neither TLS nor HTTP/1.1";
  }
  return "";
}

std::string explain_speech(const Verdict& verdict, const Flow& flow) {
  using Proto = NetRefinements::Proto;
  const Proto proto = verdict.rule->connect.refinements.proto;
  if (proto == Proto::tls) return format("{} where the rule wants TLS", speech_name(flow.speech));
  if (proto == Proto::http) {
    return format("{} where the rule wants plain HTTP", speech_name(flow.speech));
  }
  return format("{} on port {}", speech_name(flow.speech), flow.port);
}

// A rule with this name, or for names below one, could say private=true; `*` cannot.
bool is_opened_by_private(const Verdict& verdict, const Flow& flow) {
  const bool is_name = flow.host.kind == HostPattern::Kind::name &&
                       !core::names_private_endpoint(flow.host) &&
                       verdict.rule->connect.endpoint.host.kind != HostPattern::Kind::any;
  return is_name && !verdict.public_only && !flow.address_is_own && flow.address &&
         core::is_private_network_address(*flow.address);
}

std::string explain_address(const Verdict& verdict, const Flow& flow) {
  const std::string address = flow.address ? print(*flow.address) : "an unknown address";
  const std::string_view what =
      verdict.reason == Reason::own_address ? "one of this host's own addresses" : "private";
  if (verdict.public_only) {
    return format("{} leads to {}, which is {}; assert:fetch.block_rfc1918 excludes it",
                  print(flow.host), address, what);
  }
  if (core::names_private_endpoint(flow.host)) {
    return format("{} leads to {}, which is not this host's loopback", print(flow.host), address);
  }
  if (is_opened_by_private(verdict, flow)) {
    return format("{} leads to {}, which is private, and the rule has no private=true",
                  print(flow.host), address);
  }
  return format("{} leads to {}, which is {}; only a rule for the address itself reaches it",
                print(flow.host), address, what);
}

// What `connect` is written as, if that is a capability at all.
std::string written(const NetConnect& connect) {
  const core::Capability capability = connect;
  const std::string text = print(capability);
  const auto parsed = core::parse_capability(text, {});
  const bool is_same = parsed && parsed->size() == 1 && parsed->front() == capability;
  return is_same ? text : std::string();
}

// Sandboxes ask capgate itself for names, so no rule for port 53 can be declared.
constexpr std::uint16_t dns_port = 53;

bool is_sensible(const HostPattern& host) {
  return !core::is_private_address(host) || core::is_site_address(host) ||
         core::is_localhost_address(host);
}

std::string remedy_for_endpoint(const HostPattern& host, const Verdict& verdict, const Flow& flow) {
  if (flow.port == dns_port || flow.address_is_own || !is_sensible(host)) return {};
  if (verdict.public_only && core::names_private_endpoint(host)) return {};
  return written({.endpoint = {.host = host, .port = flow.port}});
}

// The closest rule for this flow's endpoint alone: what is loosened is loosened there only.
NetConnect narrowed(const Verdict& verdict, const Flow& flow) {
  return {.endpoint = {.host = flow.host, .port = flow.port},
          .refinements = verdict.rule->connect.refinements};
}

std::string remedy_for_name(const Verdict& verdict, const Flow& flow) {
  if (flow.terminated) return {};  // TLS is terminated for its own name alone
  NetConnect connect = narrowed(verdict, flow);
  if (connect.refinements.sni == NetRefinements::Sni::strict) return {};
  connect.refinements.sni = NetRefinements::Sni::any;
  return written(connect);
}

std::string remedy_for_speech(const Verdict& verdict, const Flow& flow) {
  using Proto = NetRefinements::Proto;
  NetConnect connect = narrowed(verdict, flow);
  if (!connect.refinements.methods.empty() || !connect.refinements.paths.empty()) return {};
  connect.refinements.proto = flow.speech == Speech::tls    ? Proto::tls
                              : flow.speech == Speech::http ? Proto::http
                                                            : Proto::tcp;
  // A secret goes there: nothing should pass unread.
  if (flow.terminated && connect.refinements.proto == Proto::tcp) return {};
  return written(connect);
}

// For a name that somebody declared, the name: its address may change. Under `*` the server chose
// the name, so only the address says what would be opened.
std::string remedy_for_private(const Verdict& verdict, const Flow& flow) {
  if (flow.port == dns_port) return {};
  if (is_opened_by_private(verdict, flow)) {
    NetConnect connect = narrowed(verdict, flow);
    connect.refinements.private_network = true;
    return written(connect);
  }
  if (!flow.address || !core::is_site_address(*flow.address)) return {};
  return remedy_for_endpoint(*flow.address, verdict, flow);
}

std::string remedy_for_method(const Verdict& verdict, const Flow& flow) {
  NetConnect connect = narrowed(verdict, flow);
  connect.refinements.methods.push_back(flow.method);
  sort_and_deduplicate(connect.refinements.methods);
  return written(connect);
}

std::string remedy_for_path(const Verdict& verdict, const Flow& flow) {
  if (is_ambiguous_path(flow.path) || flow.path.contains('*')) return {};
  NetConnect connect = narrowed(verdict, flow);
  connect.refinements.paths.push_back(flow.path);
  sort_and_deduplicate(connect.refinements.paths);
  return written(connect);
}

}  // namespace

std::string explain(const Verdict& verdict, const Flow& flow) {
  switch (verdict.reason) {
    case Reason::allowed:
      return verdict.inner_name_unverified ? "allowed; inner name not verified" : "allowed";
    case Reason::no_rule:
      return verdict.rule == nullptr ? format("no rule covers {}", destination(flow))
                                     : "the address to dial is not the one that was asked for";
    case Reason::no_name:
      return flow.speech == Speech::http ? "HTTP without a Host header" : "TLS without SNI";
    case Reason::other_name: return explain_other_name(flow);
    case Reason::inner_name_unknown:
      return "the inner name is encrypted (ECH), and the rule says sni=strict";
    case Reason::not_spoken_here: return explain_speech(verdict, flow);
    case Reason::other_method: return format("the rule has no method {}", quoted(flow.method));
    case Reason::other_path:
      return is_ambiguous_path(flow.path)
                 ? format("the path {} can be read in more than one way", quoted(flow.path))
                 : format("the rule has no path {}", quoted(flow.path));
    case Reason::override_field:
      return format("the field {} replaces the method or the path that the rule limits",
                    quoted(flow.override_field));
    case Reason::private_address:
    case Reason::own_address: return explain_address(verdict, flow);
  }
  return {};
}

std::string remedy(const Verdict& verdict, const Flow& flow) {
  switch (verdict.reason) {
    case Reason::no_rule:
      if (verdict.rule != nullptr) return {};
      return remedy_for_endpoint(flow.host, verdict, flow);
    case Reason::no_name: return remedy_for_name(verdict, flow);
    case Reason::not_spoken_here: return remedy_for_speech(verdict, flow);
    case Reason::other_method: return remedy_for_method(verdict, flow);
    case Reason::other_path: return remedy_for_path(verdict, flow);
    case Reason::private_address: return remedy_for_private(verdict, flow);
    // Fronting, what is hidden or replaced on purpose, and this host itself: nothing to suggest.
    case Reason::allowed:
    case Reason::other_name:
    case Reason::inner_name_unknown:
    case Reason::override_field:
    case Reason::own_address: return {};
  }
  return {};
}

}  // namespace capgate::egress
