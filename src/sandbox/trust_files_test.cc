#include "sandbox/trust_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace capgate::sandbox {
namespace {

namespace fs = std::filesystem;
using orders::MountKind;
using Texts = std::vector<std::string>;

const std::string host_root = "-----BEGIN CERTIFICATE-----\nhost\n-----END CERTIFICATE-----\n";
const std::string anchor = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n";

class TrustFiles : public testing::Test {
 protected:
  TrustFiles() {
    std::string pattern = (fs::temp_directory_path() / "trust-XXXXXX").string();
    directory_ = fs::canonical(::mkdtemp(pattern.data())).string();
  }
  ~TrustFiles() override { fs::remove_all(directory_); }

  std::string make(const std::string& name) {
    const fs::path path = fs::path(directory_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "of the host";
    return path.string();
  }

  void show(const std::string& path) { tree_.bind(path, path, *identify(path), 0); }

  std::expected<void, Refusal> place() {
    return place_trust({plan_, launcher_, holes_, grants_, tree_, bound_}, trust_);
  }

  std::vector<BoundMount> mounts(MountKind kind) {
    std::vector<BoundMount> out;
    for (const BoundMount& mount : Tree(tree_).take()) {
      if (mount.kind == kind) out.push_back(mount);
    }
    return out;
  }

  Texts covered_with(const std::string& made) {
    Texts out;
    for (const BoundMount& mount : mounts(MountKind::cover)) {
      if (mount.source == made) out.push_back(mount.target);
    }
    return out;
  }

  std::string directory_;
  lower::Plan plan_;
  Launcher launcher_;
  Holes holes_{plan_, launcher_.environment};
  Grants grants_{plan_, holes_, false};
  Tree tree_;
  Bound bound_;
  Trust trust_{.key = {}, .certificate = {}, .bundle = host_root + anchor, .key_store = "JKS"};
};

TEST_F(TrustFiles, AreMadeInADirectoryOfTheirOwn) {
  ASSERT_TRUE(place());
  std::map<std::string, std::string> made;
  for (const BoundMount& mount : mounts(MountKind::file)) made[mount.target] = mount.source;
  EXPECT_EQ(made, (std::map<std::string, std::string>{{"/etc/capgate/ca.pem", host_root + anchor},
                                                      {"/etc/capgate/anchor.pem", anchor},
                                                      {"/etc/capgate/cacerts", "JKS"}}));
}

TEST_F(TrustFiles, NothingIsCoveredThatCannotBeSeen) {
  bound_.executables = {make("jdk/bin/java")};
  make("jdk/lib/security/cacerts");
  ASSERT_TRUE(place());
  EXPECT_TRUE(mounts(MountKind::cover).empty());
}

TEST_F(TrustFiles, CoverEachWellKnownBundleThatCanBeSeen) {
  std::set<std::string> there;
  for (const std::string& path : well_known_bundles()) {
    if (fs::is_regular_file(path)) there.insert(fs::canonical(path).string());
  }
  for (const std::string& path : there) show(path);
  ASSERT_TRUE(place());
  const Texts covered = covered_with("/etc/capgate/ca.pem");
  EXPECT_EQ(covered, Texts(there.begin(), there.end()));
}

TEST_F(TrustFiles, CoverTheKeyStoreOfAGrantedJdkWhereItsLinkLeads) {
  const std::string store = make("store/cacerts");
  bound_.executables = {make("jdk/bin/java"), make("old/bin/java"), make("other/bin/javac")};
  const std::string old = make("old/jre/lib/security/cacerts");
  const std::string own = make("old/jre/lib/security/jssecacerts");
  make("other/lib/security/cacerts");
  fs::create_directories(directory_ + "/jdk/lib/security");
  fs::create_symlink(store, directory_ + "/jdk/lib/security/cacerts");
  show(directory_);
  ASSERT_TRUE(place());
  EXPECT_EQ(covered_with("/etc/capgate/cacerts"), (Texts{old, own, store}));
}

TEST_F(TrustFiles, VariablesNameThemUnlessTheManifestHasThem) {
  bound_.environment = {"SSL_CERT_FILE=/mine", "PATH=/usr/bin"};
  ASSERT_TRUE(place());
  const auto has = [&](const std::string& entry) {
    return std::ranges::count(bound_.environment, entry) == 1;
  };
  EXPECT_TRUE(has("SSL_CERT_FILE=/mine"));
  EXPECT_FALSE(has("SSL_CERT_FILE=/etc/capgate/ca.pem"));
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT",
                           "AWS_CA_BUNDLE", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"}) {
    EXPECT_TRUE(has(std::string(name) + "=/etc/capgate/ca.pem")) << name;
  }
  for (const char* name : {"NODE_EXTRA_CA_CERTS", "DENO_CERT"}) {
    EXPECT_TRUE(has(std::string(name) + "=/etc/capgate/anchor.pem")) << name;
  }
}

TEST_F(TrustFiles, TheirDirectoryCannotBeGranted) {
  tree_.bind("/etc/capgate", directory_, *identify(directory_), 0);
  const auto placed = place();
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().message,
            "/etc/capgate is where a sandbox with sealed secrets has its certificates");
}

TEST(Trust, EachSealedHostIsNamedOnce) {
  const auto endpoint = [](std::string name) {
    return core::Endpoint{.host = {.kind = core::HostPattern::Kind::name, .text = std::move(name)},
                          .port = 443};
  };
  std::vector<lower::PlanSeal> seals(2);
  seals[0].env.to = {endpoint("api.github.com"), endpoint("uploads.github.com")};
  seals[1].env.to = {endpoint("api.github.com"), endpoint("localhost")};
  EXPECT_EQ(sealed_hosts(seals), (Texts{"api.github.com", "uploads.github.com", "localhost"}));
}

TEST(Trust, TheCallersVariableNamesTheHostsBundle) {
  EXPECT_EQ(find_host_bundle({"A=b", "SSL_CERT_FILE=/x/roots.pem"}), "/x/roots.pem");
  const auto known = well_known_bundles();
  const std::string found = find_host_bundle({"SSL_CERT_FILE="});
  EXPECT_TRUE(found.empty() || std::ranges::find(known, found) != known.end()) << found;
}

TEST(Trust, WithoutTheProgramThatMakesItItIsRefused) {
  const auto trust = make_trust({}, {});
  ASSERT_FALSE(trust);
  EXPECT_TRUE(trust.error().message.starts_with("sealed secrets need /"));
  EXPECT_TRUE(trust.error().message.ends_with("/capgate-broker-tls: No such file or directory"));
}

}  // namespace
}  // namespace capgate::sandbox
