// Capabilities lowered to a target in one step, for tests.
//
//   const Lowered bwrap("bwrap", {"fs:read:/w/**"});
//   bwrap.has({"--ro-bind", "/w", "/w"})
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lower/targets.h"
#include "support/manifests.h"

namespace capgate::support {

class Lowered {
 public:
  Lowered(std::string_view target, const Strings& capabilities, lower::Options options = {})
      : manifest_(read(capabilities, options)), options_(std::move(options)) {
    auto policy = core::merge(manifest_);
    EXPECT_TRUE(policy);
    policy_ = *std::move(policy);
    result_ = lower::find_target(target)->lower({manifest_, policy_, options_});
  }
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;
  ~Lowered() = default;

  [[nodiscard]] bool ok() const { return result_.has_value(); }
  [[nodiscard]] const lower::Artifact& artifact() const { return *result_; }
  [[nodiscard]] const Diagnostics& mistakes() const { return result_.error(); }
  [[nodiscard]] Strings argv() const { return {result_->argv.begin(), result_->argv.end()}; }

  // True if argv holds these words one after the other.
  [[nodiscard]] bool has(const Strings& words) const {
    return !std::ranges::search(result_->argv, words).empty();
  }
  [[nodiscard]] std::string json() const {
    return print_json(*result_, {manifest_, policy_, options_}, text::JsonWriter::Style::compact);
  }
  // The codes of the refusal, or "ok".
  [[nodiscard]] std::string verdict() const {
    if (ok()) return "ok";
    std::string out;
    for (const Diagnostic& mistake : mistakes()) {
      out += format("{}{}", out.empty() ? "" : " ", code_name(mistake.code));
    }
    return out;
  }

 private:
  static core::Manifest read(const Strings& capabilities, const lower::Options& options) {
    core::Bindings bindings;
    if (!options.home.empty()) bindings.push_back({.name = "HOME", .values = {options.home}});
    auto manifest = read_manifest(manifest_json({capabilities}), bindings);
    EXPECT_TRUE(manifest) << manifest.error().front().message;
    return *std::move(manifest);
  }

  core::Manifest manifest_;
  lower::Options options_;
  core::Policy policy_;
  Checked<lower::Artifact> result_;
};

}  // namespace capgate::support
