// Any lines as endpoints: whatever of them the grammar takes, each file of the egress target holds
// exactly the rules of the policy, read back by readers that know no other line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/format.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/merge.h"
#include "lower/egress.h"
#include "lower/egress_emit.h"
#include "support/egress_files.h"
#include "text/json.h"
#include "text/json_write.h"

namespace {

using namespace capgate;

core::Manifest manifest_of(std::string_view input) {
  constexpr std::size_t most = 16;
  std::vector<std::string> capabilities;
  for (const std::string_view line : split(input, '\n')) {
    std::string capability = format("net:connect:{}", line);
    const auto parsed = core::parse_capability(capability, {});
    if (parsed && capabilities.size() < most) capabilities.push_back(std::move(capability));
  }
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("name").string("s").key("version").string("1").key("tools");
  json.begin_array().begin_object().key("name").string("t").key("capabilities").begin_array();
  for (const std::string& capability : capabilities) json.string(capability);
  json.end_array().end_object().end_array().end_object();
  const auto document = text::parse_json(std::move(json).take());
  CAPGATE_ASSERT(document.has_value());
  auto manifest = core::parse_manifest(*document, {});
  CAPGATE_ASSERT(manifest.has_value());
  return *std::move(manifest);
}

struct Counts {
  std::size_t all = 0;        // rules of the policy
  std::size_t effective = 0;  // those that lead anywhere
  std::size_t nft = 0;        // lines: one for each family
};

Counts count(const core::Policy& policy) {
  Counts counts{.all = policy.connect.size()};
  for (const auto& grant : policy.connect) {
    if (lower::reach_of(grant.capability, false) == lower::Reach::nothing) continue;
    ++counts.effective;
    counts.nft += grant.capability.endpoint.host.kind == core::HostPattern::Kind::any ? 2 : 1;
  }
  return counts;
}

void check_spec(const std::string& text, const core::Policy& policy) {
  const auto document = text::parse_yaml(text);
  CAPGATE_ASSERT(document.has_value());
  std::size_t i = 0;
  for (const text::Value rule : document->root().find("rules")->elements()) {
    const auto endpoint = core::parse_endpoint(rule.find("connect")->text());
    CAPGATE_ASSERT(endpoint && *endpoint == policy.connect[i++].capability.endpoint);
  }
  CAPGATE_ASSERT(i == policy.connect.size());
}

void check_addon(std::string_view text, std::size_t rules) {
  const std::size_t begin = text.find("\nRULES = ") + 9;
  const std::size_t end = text.find("\nPRIVATE = ");
  const auto document = text::parse_json(std::string(text.substr(begin, end - begin)));
  CAPGATE_ASSERT(document.has_value() && document->root().count() == rules);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const core::Manifest manifest =
      manifest_of(std::string_view(reinterpret_cast<const char*>(data), size));
  const auto policy = core::merge(manifest);
  if (!policy) return 0;
  const Counts counts = count(*policy);
  for (const std::string kind : {"spec", "squid", "nftables", "envoy", "mitmproxy"}) {
    const lower::Options options{.egress_target = kind};
    const auto artifact = lower::lower_to_egress({manifest, *policy, options});
    if (!artifact) continue;
    const std::string& text = artifact->files.at(0).contents;
    if (kind == "spec") check_spec(text, *policy);
    if (kind == "squid") CAPGATE_ASSERT(support::SquidFile(text).rules() == counts.effective);
    if (kind == "nftables") CAPGATE_ASSERT(support::NftFile(text).rules() == counts.nft);
    if (kind == "envoy") CAPGATE_ASSERT(support::EnvoyFile(text).rules() == counts.effective);
    if (kind == "mitmproxy") check_addon(text, counts.effective);
  }
  return 0;
}
