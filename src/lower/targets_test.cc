// The table of targets tells the truth: what a target says it keeps it lowers, and what it says it
// does not keep it refuses (whole) or lists (partial).
#include "lower/targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/grammar.h"
#include "support/manifests.h"

namespace capgate::lower {
namespace {

using support::Strings;

// Of each column what everyone can keep who keeps the kind at all, and what is harder.
struct Samples {
  std::string_view column;
  Strings plain;
  Strings harder;
};

const std::vector<Samples>& samples() {
  static const std::vector<Samples> all{
      {"fs", {"fs:read:/workspace/**"}, {"fs:write:/workspace/out/**"}},
      {"net:connect", {"net:connect:203.0.113.7:443"}, {"net:connect:api.example.com:443"}},
      {"net:listen", {"net:listen:8080"}, {}},
      {"exec", {"exec:spawn:git"}, {}},
      {"env", {"env:inject:API_KEY"}, {"env:read:LANGUAGE"}},
      {"env sealed", {"env:inject:API_KEY?to=api.example.com:443"}, {}},
      {"ipc", {"ipc:connect:self"}, {"ipc:connect:\"unix:/srv/app.sock\""}},
      {"clock", {"clock:system"}, {"clock:tzdata"}},
      {"limit", {"limit:disk:64M", "limit:memory:512M", "limit:files:64"}, {"limit:time:30s"}},
      {"assert", {"assert:data.stays:\"here\""}, {}},
  };
  return all;
}

Checked<Artifact> lowered(const Target& target, const std::string& capability) {
  Strings capabilities{capability};
  if (capability.contains("?to=")) capabilities.push_back("net:connect:api.example.com:443");
  const auto manifest = support::read_manifest(support::manifest_json({capabilities}));
  const core::Policy policy = support::merged(capabilities);
  Options options{.home = "/home/alice",
                  .runtime_dir = "/run/user/1000",
                  .programs = {"/usr/bin/node"},
                  .image = "example/server:1",
                  .broker_image = "example/capgate:1",
                  .command = {"/usr/bin/node", "server.js"}};
  // Of a sealed variable only the seal is asked about here.
  if (capability.contains("?to=") && target.coverage->connect.level == Cover::Level::no &&
      target.extent == Target::Extent::whole) {
    options.accepted = {"net:connect:api.example.com:443"};
  }
  return lower_to(target, {*manifest, policy, options});
}

bool is_kept(const Target& target, const std::string& capability) {
  const auto artifact = lowered(target, capability);
  if (!artifact) {
    EXPECT_EQ(artifact.error().front().code, Code::adapter_unsupported)
        << target.name << " " << capability << ": " << artifact.error().front().message;
    return false;
  }
  const auto& rest = artifact->not_covered;
  const std::string name = print(core::parse_capability(capability, {})->front());
  return std::ranges::find(rest, name) == rest.end();
}

TEST(Targets, KeepWhatTheirTableSays) {
  for (const Target& target : targets()) {
    const auto covers = columns_of(*target.coverage);
    for (std::size_t i = 0; i < covers.size(); ++i) {
      const Samples& sample = samples()[i];
      ASSERT_EQ(sample.column, coverage_columns[i]);
      const auto kept = [&](const std::string& text) { return is_kept(target, text); };
      const std::string shown = std::string(target.name) + " " + std::string(sample.column);
      if (covers[i].level == Cover::Level::enforced) {
        EXPECT_TRUE(std::ranges::all_of(sample.plain, kept)) << shown;
        EXPECT_TRUE(std::ranges::all_of(sample.harder, kept)) << shown;
      } else if (covers[i].level == Cover::Level::partly) {
        // A part of some sandbox may list what it keeps in part: the rest is somebody else's.
        const bool partial = target.extent == Target::Extent::partial;
        EXPECT_TRUE(partial || std::ranges::any_of(sample.plain, kept)) << shown;
        EXPECT_FALSE(covers[i].how.empty()) << shown << " does not say how";
      } else {
        EXPECT_TRUE(std::ranges::none_of(sample.plain, kept)) << shown;
        EXPECT_TRUE(std::ranges::none_of(sample.harder, kept)) << shown;
      }
    }
  }
}

TEST(Targets, PartialOnesNeverRefuseWhatIsNotTheirs) {
  for (const Target& target : targets()) {
    if (target.extent == Target::Extent::whole) continue;
    for (const Samples& sample : samples()) {
      for (const std::string& text : sample.plain) {
        EXPECT_TRUE(lowered(target, text)) << target.name << " " << text;
      }
    }
  }
}

}  // namespace
}  // namespace capgate::lower
