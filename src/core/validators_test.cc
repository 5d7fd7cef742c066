#include "core/validators.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "core/merge.h"
#include "support/manifests.h"

namespace capgate::core {
namespace {

Checked<Validators> parse(std::string source) {
  return parse_validators(support::json_document(std::move(source)));
}

TEST(Validators, MapAssertionsToWords) {
  const auto validators = parse(R"({"validators": {"a.b": "checked by hand", "c": "a test"}})");
  ASSERT_TRUE(validators);
  EXPECT_EQ((*validators)->size(), 2U);
  EXPECT_EQ((*validators)->at("a.b"), "checked by hand");
  EXPECT_TRUE(parse(R"({"validators": {}})"));
}

TEST(Validators, RefuseAnotherShape) {
  for (const std::string_view source :
       {"null", "[]", "\"x\"", "{}", R"({"validators": []})", R"({"validators": null})",
        R"({"validators": {}, "more": 1})", R"({"validator": {}})"}) {
    const auto validators = parse(std::string(source));
    ASSERT_FALSE(validators) << source;
    ASSERT_EQ(validators.error().size(), 1U);
    EXPECT_EQ(code_name(validators.error()[0].code), "VALIDATORS_SHAPE");
    EXPECT_EQ(validators.error()[0].where.end, source.size());
  }
}

TEST(Validators, ReportEveryMistakeWithItsPlace) {
  const auto validators = parse(R"({"validators": {"a": 1, "b": "ok", "c": "", "d": []}})");
  ASSERT_FALSE(validators);
  ASSERT_EQ(validators.error().size(), 3U);
  EXPECT_EQ(validators.error()[0].where.begin, 21U);
  EXPECT_EQ(validators.error()[1].where.begin, 40U);
  EXPECT_EQ(validators.error()[2].where.begin, 49U);
}

TEST(Validators, AnAssertionThatNobodyVerifiesIsAnError) {
  const auto manifest = support::read_manifest(
      support::manifest_json({{"assert:a.b:\"x\"", "fs:read:/w", "assert:c:\"y\"", "assert:d"}}));
  ASSERT_TRUE(manifest);
  const auto policy = merge(*manifest);
  ASSERT_TRUE(policy);
  EXPECT_TRUE(check_assertions(*policy, *manifest, std::nullopt).empty());
  const auto some = parse(R"({"validators": {"a.b": "checked", "unused": "x"}})");
  const Diagnostics mistakes = check_assertions(*policy, *manifest, *some);
  ASSERT_EQ(mistakes.size(), 2U);
  EXPECT_EQ(code_name(mistakes[0].code), "ASSERT_UNRECOGNIZED");
  EXPECT_EQ(mistakes[0].where, manifest->declared[2].where);
  EXPECT_EQ(mistakes[1].where, manifest->declared[3].where);
}

TEST(Validators, WhatCapgateKeepsItselfNeedsNoEntry) {
  const auto manifest = support::read_manifest(
      support::manifest_json({{"assert:fetch.block_rfc1918", "net:connect:*"}}));
  ASSERT_TRUE(manifest);
  const auto policy = merge(*manifest);
  ASSERT_TRUE(policy);
  const auto none = parse(R"({"validators": {}})");
  EXPECT_TRUE(check_assertions(*policy, *manifest, *none).empty());

  const AssertCapability& assertion = policy->assertions[0].capability;
  EXPECT_TRUE(validator_of(assertion, std::nullopt).starts_with("built in"));
  const auto claimed = parse(R"({"validators": {"fetch.block_rfc1918": "by hand"}})");
  EXPECT_TRUE(validator_of(assertion, *claimed).starts_with("built in"));
  EXPECT_EQ(validator_of({.id = "other", .text = "x"}, std::nullopt), "");
}

}  // namespace
}  // namespace capgate::core
