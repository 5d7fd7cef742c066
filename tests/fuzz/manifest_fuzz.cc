// Any bytes at all: a manifest becomes a policy whose lines declare that policy again, or gives
// mistakes that stand in the source and can be printed. The first character decides between JSON
// and YAML.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "core/grammar.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "core/scope.h"
#include "fuzz/mistakes.h"
#include "text/json_or_yaml.h"

namespace {

using namespace capgate;

// All of them, in the order of the source.
void check_mistakes(const Diagnostics& mistakes, std::string_view source) {
  fuzz::check_mistakes(mistakes, source);
  CAPGATE_ASSERT(std::ranges::is_sorted(
      mistakes, {}, [](const Diagnostic& mistake) { return mistake.where.begin; }));
}

// What the policy's own lines declare, as if they were the manifest.
core::Manifest declare_again(const std::vector<std::string>& lines) {
  core::Manifest manifest;
  for (const std::string& line : lines) {
    const auto parsed = core::parse_capability(line, {});
    CAPGATE_ASSERT(parsed.has_value() && parsed->size() == 1);
    CAPGATE_ASSERT(core::check_scope(parsed->front(), "").has_value());
    manifest.declared.push_back({.capability = parsed->front(), .where = {}});
  }
  return manifest;
}

void check_manifest(const core::Manifest& manifest, std::string_view source) {
  const auto policy = core::merge(manifest);
  if (!policy) return check_mistakes(policy.error(), source);
  std::vector<bool> is_origin(manifest.declared.size());
  core::for_each_grant(*policy, [&](const core::Capability&, const core::Origins& origins) {
    for (const std::uint32_t origin : origins) is_origin.at(origin) = true;
  });
  CAPGATE_ASSERT(std::ranges::find(is_origin, false) == is_origin.end());

  const std::vector<std::string> lines = core::policy_lines(*policy);
  const auto again = core::merge(declare_again(lines));
  CAPGATE_ASSERT(again.has_value());
  CAPGATE_ASSERT(core::policy_lines(*again) == lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto document = text::parse_json_or_yaml("fuzz", text::share(source));
  if (!document) {
    fuzz::check(document, source);
    return 0;
  }
  const core::Bindings bindings = {{.name = "A", .values = {"/a", "/b c"}}};
  const auto manifest = core::parse_manifest(*document, bindings);
  if (manifest) {
    check_manifest(*manifest, source);
  } else {
    check_mistakes(manifest.error(), source);
  }
  return 0;
}
