// The public C++ interface, used as a program would: nothing here knows the compiler's own headers.
#include <capgate/capgate.h>
#include <capgate/capgate_c.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/scarce_memory.h"
#include "support/source_directory.h"

namespace {

std::string read_source(const std::string& path) {
  std::ifstream file(std::string(capgate::support::source_directory()) + "/" + path,
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string manifest_of(const std::string& capability) {
  return R"({"name": "s", "version": "1", "tools": [
  {"name": "look", "capabilities": [")" +
         capability + R"("]}, {"name": "idle", "capabilities": []}]})";
}

capgate::Policy policy_of(const std::string& capability) {
  return *capgate::compile(*capgate::parse(manifest_of(capability)));
}

// "CODE message", of the first error; or "ok".
template <typename T>
std::string verdict(const capgate::Expected<T>& result) {
  return result ? "ok" : result.error().at(0).code + " " + result.error().at(0).message;
}

TEST(Library, CompilesAManifestAsTheGoldenSays) {
  const auto manifest =
      capgate::parse(read_source("tests/golden/github/manifest.json"), {.name = "manifest.json"});
  ASSERT_TRUE(manifest);
  const auto policy = capgate::compile(*manifest);
  ASSERT_TRUE(policy);
  // Those whose goldens stand in one file; tests/library compares all with the program itself.
  for (const std::string target : {"bwrap", "docker", "plan", "podman"}) {
    const auto artifact = capgate::lower(*policy, target, {.pretty = true});
    ASSERT_TRUE(artifact) << target;
    EXPECT_EQ(artifact->target(), target);
    EXPECT_EQ(artifact->json(), read_source("tests/golden/github/" + target + ".json"));
  }
}

TEST(Library, ParseTellsWhatAManifestIsAndNeeds) {
  const auto manifest = capgate::parse(manifest_of("fs:read:${ROOT}/**"));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->name(), "s");
  EXPECT_EQ(manifest->version(), "1");
  EXPECT_EQ(manifest->tools(), (std::vector<std::string>{"look", "idle"}));
  EXPECT_EQ(manifest->variables(), std::vector<std::string>{"ROOT"});
  EXPECT_EQ(verdict(capgate::compile(*manifest)), "CAP_VARIABLE variable ROOT is not bound");
  const auto policy = capgate::compile(
      *manifest, {.variables = {{.name = "ROOT", .values = {"/a"}}, {"ROOT", {"/b"}}}});
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->capabilities(), (std::vector<std::string>{"fs:read:/a/**", "fs:read:/b/**"}));
  EXPECT_TRUE(policy->hash().starts_with("sha256:"));
}

TEST(Library, YamlIsReadToo) {
  const auto manifest = capgate::parse("name: s\nversion: '1'\ntools: []\n");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->name(), "s");
}

TEST(Library, AToolHasAPolicyOfItsOwn) {
  const auto manifest = capgate::parse(manifest_of("fs:read:/a/**"));
  ASSERT_TRUE(manifest);
  EXPECT_EQ(capgate::compile(*manifest, {.tool = "look"})->capabilities().size(), 1U);
  EXPECT_TRUE(capgate::compile(*manifest, {.tool = "idle"})->capabilities().empty());
  EXPECT_EQ(verdict(capgate::compile(*manifest, {.tool = "lok"})),
            "TOOL_UNKNOWN there is no tool \"lok\"");
}

TEST(Library, MistakesHaveTheirPlace) {
  const auto manifest = capgate::parse(manifest_of("fs:read:a"), {.name = "m.json"});
  ASSERT_FALSE(manifest);
  ASSERT_EQ(manifest.error().size(), 1U);
  const capgate::Diagnostic& error = manifest.error().front();
  EXPECT_EQ(error.code, "CAP_FS_RELATIVE");
  EXPECT_EQ(error.file, "m.json");
  EXPECT_EQ(error.line, 2U);
  EXPECT_EQ(error.column, 46U);
  EXPECT_FALSE(error.help.empty());
}

TEST(Library, WhatATargetCannotEnforceIsRefusedUnlessAccepted) {
  const capgate::Policy policy = policy_of("fs:create:/a/**");
  EXPECT_TRUE(verdict(capgate::lower(policy, "bwrap")).starts_with("ADAPTER_UNSUPPORTED"));
  const auto artifact = capgate::lower(policy, "bwrap", {.accept_unenforced = {"fs:create:/a/**"}});
  ASSERT_TRUE(artifact) << verdict(artifact);
  EXPECT_EQ(artifact->unenforced(), std::vector<std::string>{"fs:create:/a/**"});
}

TEST(Library, WrongOptionsAreRefused) {
  const capgate::Policy policy = policy_of("fs:read:/a/**");
  using capgate::lower;
  EXPECT_EQ(verdict(lower(policy, "none")), "OPTION_INVALID there is no target \"none\"");
  EXPECT_EQ(verdict(lower(policy, "docker", {.user = "me"})),
            "OPTION_INVALID user cannot be \"me\"");
  for (const char* program : {"node", "/", "/a/../b", ""}) {
    EXPECT_TRUE(verdict(lower(policy, "bwrap", {.programs = {program}}))
                    .starts_with("OPTION_INVALID program cannot be"))
        << program;
  }
  EXPECT_TRUE(verdict(lower(policy, "bwrap", {.accept_unenforced = {"x"}}))
                  .starts_with("OPTION_INVALID \"x\" cannot be accepted"));
  const auto manifest = capgate::parse(manifest_of("fs:read:/a/**"));
  const auto bind = [&](capgate::Variable variable) {
    return verdict(capgate::compile(*manifest, {.variables = {std::move(variable)}}));
  };
  EXPECT_EQ(bind({"root", {"/a"}}), "OPTION_INVALID a variable cannot be named \"root\"");
  EXPECT_EQ(bind({"ROOT", {"/a"}}), "OPTION_INVALID variable ROOT is not used");
  EXPECT_EQ(bind({"HOME", {}}), "OPTION_INVALID variable HOME takes one absolute path");
  EXPECT_EQ(bind({"HOME", {"a"}}), "OPTION_INVALID variable HOME takes one absolute path");
  EXPECT_EQ(bind({"HOME", {"/home/me"}}), "ok");
}

TEST(Library, ValidatorsMakeOtherAssertionsErrors) {
  const auto manifest = capgate::parse(manifest_of("assert:mine:\\\"kept\\\""));
  ASSERT_TRUE(manifest) << verdict(manifest);
  EXPECT_EQ(verdict(capgate::compile(*manifest)), "ok");
  EXPECT_TRUE(verdict(capgate::compile(*manifest, {.validators = {{}}}))
                  .starts_with("ASSERT_UNRECOGNIZED"));
  const auto policy = capgate::compile(*manifest, {.validators = {{{"mine", "by hand"}}}});
  ASSERT_TRUE(policy) << verdict(policy);
  EXPECT_NE(capgate::lower_to_bwrap(*policy)->json().find("by hand"), std::string::npos);
}

TEST(Library, EveryTargetHasAFunctionOfItsOwn) {
  const std::string header = read_source("include/capgate/capgate.h");
  for (const capgate::Target& target : capgate::targets()) {
    const std::string name(target.name);
    const std::string line = "inline Expected<Artifact> lower_to_" + name +
                             "(const Policy& policy, const LowerOptions& options = {}) noexcept "
                             "{ return lower(policy, \"" +
                             name + "\", options); }\n";
    EXPECT_NE(header.find(line), std::string::npos) << "add to capgate.h: " << line;
  }
  const capgate::Policy policy = policy_of("fs:read:/a/**");
  EXPECT_EQ(capgate::lower_to_docker(policy)->json(), capgate::lower(policy, "docker")->json());
}

TEST(Library, ResultsConvertToTheStandardType) {
  const std::expected<capgate::Manifest, capgate::Errors> good =
      capgate::parse(manifest_of("fs:read:/a"));
  EXPECT_TRUE(good.has_value());
  const std::expected<capgate::Manifest, capgate::Errors> bad = capgate::parse("{");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().front().code, "DOC_SYNTAX");
}

TEST(Library, ValuesOutliveWhatTheyWereMadeOf) {
  auto manifest = std::make_unique<capgate::Expected<capgate::Manifest>>(
      capgate::parse(manifest_of("fs:read:/a")));
  const capgate::Policy policy = *capgate::compile(**manifest);
  manifest.reset();
  EXPECT_TRUE(capgate::lower_to_plan(policy));
}

TEST(Library, RunningOutOfMemoryIsAFailureLikeAnyOther) {
  const std::string text = read_source("examples/github.json");
  const capgate::LowerOptions options;
  bool failed = false;
  const auto attempt = [&] {
    const auto manifest = capgate::parse(text);
    failed = !manifest;
    if (failed) return;
    const auto policy = capgate::compile(*manifest);
    failed = !policy;
    if (failed) return;
    failed = !capgate::lower(*policy, "plan", options);
  };
  std::size_t allocations = 0;
  while (capgate::support::with_scarce_memory(allocations, attempt)) {
    EXPECT_TRUE(failed) << allocations;
    allocations += 1 + allocations / 32;  // each of the first ones, then fewer
  }
  EXPECT_FALSE(failed);
  EXPECT_GT(allocations, 100U);
}

TEST(Library, RunningOutOfMemoryIsAnAnswerLikeAnyOther) {
  const std::string request =
      R"({"manifest":"name: s\nversion: v\ntools: []\nserverCapabilities: ['fs:read:/a/**']",)"
      R"("target":"plan","pretty":true})";
  char* answer = nullptr;
  const auto attempt = [&] { answer = capgate_call(request.data(), request.size(), nullptr); };
  std::size_t allocations = 0;
  while (capgate::support::with_scarce_memory(allocations, attempt)) {
    EXPECT_NE(std::string(answer).find("OUT_OF_MEMORY"), std::string::npos) << answer;
    capgate_free(answer);
    allocations += 1 + allocations / 32;  // each of the first ones, then fewer
  }
  EXPECT_TRUE(std::string(answer).starts_with("{\n  \"ok\": true")) << answer;
  capgate_free(answer);
  EXPECT_GT(allocations, 50U);
}

}  // namespace
