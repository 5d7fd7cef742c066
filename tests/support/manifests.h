// Manifests for tests, made from capability strings and read like any other.
//
//   const Policy policy = merged({"fs:read:/w/**", "fs:write:/w/out/**"});
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "core/manifest.h"
#include "core/merge.h"
#include "core/policy.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::support {

using Strings = std::vector<std::string>;

// One tool for each list.
[[nodiscard]] inline std::string manifest_json(const std::vector<Strings>& tools) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.begin_object().key("name").string("s").key("version").string("1");
  json.key("tools").begin_array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    json.begin_object().key("name").string(i == 0 ? "t" : format("t{}", i));
    json.key("capabilities").begin_array();
    for (const std::string& capability : tools[i]) json.string(capability);
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return std::move(json).take();
}

// The document must be well-formed JSON.
[[nodiscard]] inline text::Document json_document(std::string source) {
  auto document = text::parse_json(std::move(source));
  if (!document) {
    ADD_FAILURE() << document.error().front().message;
    return text::Document(text::share("null"));
  }
  return *std::move(document);
}

[[nodiscard]] inline Checked<core::Manifest> read_manifest(std::string source,
                                                           const core::Bindings& bindings = {}) {
  const auto document = text::parse_json(std::move(source));
  if (!document) return std::unexpected(document.error());
  return core::parse_manifest(*document, bindings);
}

// Parses and merges; the caller expects both to work.
[[nodiscard]] inline Checked<core::Policy> try_merge(const Strings& capabilities) {
  const auto manifest = read_manifest(manifest_json({capabilities}));
  if (!manifest) return std::unexpected(manifest.error());
  return core::merge(*manifest);
}

[[nodiscard]] inline core::Policy merged(const Strings& capabilities) {
  auto policy = try_merge(capabilities);
  if (!policy) {
    for (const Diagnostic& mistake : policy.error()) {
      ADD_FAILURE() << code_name(mistake.code) << ": " << mistake.message;
    }
    return {};
  }
  return *std::move(policy);
}

[[nodiscard]] inline Strings merged_lines(const Strings& capabilities) {
  return core::policy_lines(merged(capabilities));
}

}  // namespace capgate::support
