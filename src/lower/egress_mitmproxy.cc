// mitmproxy: an addon for development. It decides as the broker does: on the host that was asked
// for, on what is said, and on the address, which it resolves itself and puts in the place of the
// name, so that the checked address is the one that is dialled.
#include "base/format.h"
#include "lower/egress_emit.h"
#include "text/json_write.h"

namespace capgate::lower {
namespace {

using core::NetRefinements;
using text::JsonWriter;

// The program, after its data. It is a file of Python, so it is kept as one.
constexpr std::string_view program =
#include "lower/egress_mitmproxy_addon.inc"
    ;

std::string_view kind_of(const core::HostPattern& host) {
  constexpr std::string_view names[] = {"any", "subdomains", "name", "address", "address"};
  return names[static_cast<std::size_t>(host.kind)];
}

std::string_view reach_name(Reach reach) {
  constexpr std::string_view names[] = {"public", "private", "loopback", "address", "nothing"};
  return names[static_cast<std::size_t>(reach)];
}

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key).begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

// JSON without true, false and null is Python as well, with the same strings.
void write_rule(JsonWriter& json, const core::NetConnect& rule, bool public_only) {
  constexpr std::string_view snis[] = {"match", "any", "strict"};
  constexpr std::string_view protos[] = {"detect", "tcp", "tls", "http"};
  const NetRefinements& refine = rule.refinements;
  json.begin_object().key("kind").string(kind_of(rule.endpoint.host));
  json.key("host").string(rule.endpoint.host.text);
  json.key("port").number(rule.endpoint.port.value_or(0));
  json.key("reach").string(reach_name(reach_of(rule, public_only)));
  json.key("sni").string(snis[static_cast<std::size_t>(refine.sni)]);
  json.key("proto").string(protos[static_cast<std::size_t>(refine.proto)]);
  write_strings(json, "methods", refine.methods);
  write_strings(json, "paths", refine.paths);
  json.end_object();
}

void write_blocks(JsonWriter& json, const std::vector<core::AddressBlock>& blocks) {
  json.begin_array();
  for (const core::AddressBlock& block : blocks) json.string(print(block));
  json.end_array();
}

}  // namespace

void emit_mitmproxy(EgressJob& job) {
  JsonWriter rules(JsonWriter::Style::pretty);
  rules.begin_array();
  for (const ConnectGrant* grant : effective_rules(job)) {
    write_rule(rules, grant->capability, job.public_only);
  }
  rules.end_array();
  JsonWriter private_blocks(JsonWriter::Style::compact);
  write_blocks(private_blocks, core::private_blocks());
  JsonWriter closed_blocks(JsonWriter::Style::compact);
  write_blocks(closed_blocks, core::closed_blocks());
  list_listeners(job);
  job.artifact.notes.emplace_back(
      "net: mitmproxy is for development: it reads what is inside TLS, and clients must trust its "
      "certificate");
  job.artifact.files.push_back(
      {.name = "capgate_egress.py",
       .contents =
           format("\"\"\"capgate egress, policy {}\n\n    mitmdump --listen-host {} "
                  "--listen-port {} -s capgate_egress.py\n\"\"\"\n\nRULES = {}\n"
                  "PRIVATE = {}\nCLOSED = {}\n{}",
                  job.input.policy.hash, proxy_address, proxy_port, std::move(rules).take(),
                  std::move(private_blocks).take(), std::move(closed_blocks).take(), program)});
}

}  // namespace capgate::lower
