// manifestHash: the known answers of the earlier implementation are in tests/conformance.
#include "core/provenance.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/manifests.h"
#include "text/yaml.h"

namespace capgate::core {
namespace {

std::string hash_of(std::string source) {
  const auto manifest = support::read_manifest(std::move(source));
  EXPECT_TRUE(manifest);
  return manifest ? manifest->hash : "";
}

const std::string known =
    R"({"name":"srv","version":"1.0.0","tools":[{"name":"t","capabilities":["fs:read:/x"]}]})";
constexpr std::string_view known_hash =
    "sha256:ed84115385089df118983e03900f9b6c473327cb48a663ca6d824a8cd3a5f807";

TEST(ManifestHash, IsTheEarlierOne) { EXPECT_EQ(hash_of(known), known_hash); }

TEST(ManifestHash, DoesNotDependOnSpelling) {
  EXPECT_EQ(hash_of(R"({ "tools" : [ { "capabilities" : [ "fs:read:\/x" ] , "name":"\u0074" } ],
                        "version":"1.0.0", "name":"srv" })"),
            known_hash);
  EXPECT_EQ(hash_of(R"({"grammar":"0.1","description":"d","serverCapabilities":null,"name":"srv",
                        "version":"1.0.0","tools":[{"name":"t","description":"x","inputSchema":{},
                        "capabilities":["fs:read:/x"]}],"seal":false})"),
            known_hash);
  const auto yaml = text::parse_yaml(
      "name: srv\nversion: \"1.0.0\"\ntools:\n  - name: t\n    capabilities: [\"fs:read:/x\"]\n");
  ASSERT_TRUE(yaml);
  EXPECT_EQ(manifest_hash(yaml->root()), known_hash);
}

TEST(ManifestHash, CoversEverythingThatIdentifies) {
  for (const std::string_view other :
       {R"({"name":"srw","version":"1.0.0","tools":[{"name":"t","capabilities":["fs:read:/x"]}]})",
        R"({"name":"srv","version":"1.0.1","tools":[{"name":"t","capabilities":["fs:read:/x"]}]})",
        R"({"name":"srv","version":"1.0.0","tools":[{"name":"u","capabilities":["fs:read:/x"]}]})",
        R"({"name":"srv","version":"1.0.0","tools":[{"name":"t","capabilities":["fs:read:/x/"]}]})",
        R"({"name":"srv","version":"1.0.0","tools":[{"name":"t","capabilities":[]}]})",
        R"({"name":"srv","version":"1.0.0","seal":true,
            "tools":[{"name":"t","capabilities":["fs:read:/x"]}]})",
        R"({"name":"srv","version":"1.0.0","serverCapabilities":["clock:system"],
            "tools":[{"name":"t","capabilities":["fs:read:/x"]}]})"}) {
    EXPECT_NE(hash_of(std::string(other)), known_hash) << other;
  }
}

TEST(ManifestHash, D28IdentityAndPolicyAreTwoHashes) {
  const auto one = support::read_manifest(support::manifest_json({{"fs:read:/a", "fs:read:/b"}}));
  const auto two =
      support::read_manifest(support::manifest_json({{"fs:read:/b", "fs:read:/a", "fs:read:/a"}}));
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->hash, two->hash);
  EXPECT_EQ(policy_hash(*merge(*one)), policy_hash(*merge(*two)));
}

TEST(ManifestHash, D28UnpairedSurrogatesNeverReachIt) {
  for (const std::string_view text : {R"("\ud800")", R"("\udc00")", R"("\ud800x")"}) {
    const auto manifest =
        support::read_manifest(R"({"name":)" + std::string(text) + R"(,"version":"1","tools":[]})");
    ASSERT_FALSE(manifest) << text;
    EXPECT_EQ(code_name(manifest.error()[0].code), "DOC_ENCODING");
  }
  EXPECT_TRUE(support::read_manifest(R"({"name":"\ufffd","version":"1","tools":[]})"));
}

}  // namespace
}  // namespace capgate::core
