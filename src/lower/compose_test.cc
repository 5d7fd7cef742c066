#include "lower/compose.h"

#include <gtest/gtest.h>

#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

Options with_image(Strings command = {}) {
  return {.image = "example.org/server:1", .command = std::move(command)};
}

std::string file_of(const Lowered& compose, std::string_view name) {
  for (const File& file : compose.artifact().files) {
    if (file.name == name) return file.contents;
  }
  ADD_FAILURE() << "no file " << name;
  return {};
}

std::string yaml_of(const Strings& capabilities, Strings command = {}) {
  const Lowered compose("compose", capabilities, with_image(std::move(command)));
  EXPECT_EQ(compose.verdict(), "ok");
  return file_of(compose, "compose.yaml");
}

TEST(Compose, WithoutDeclaredEgressThereIsOneServiceWithoutNetwork) {
  const std::string yaml = yaml_of({});
  EXPECT_TRUE(yaml.contains("    network_mode: none\n"));
  EXPECT_TRUE(yaml.contains("    read_only: true\n"));
  EXPECT_FALSE(yaml.contains("broker"));
  EXPECT_FALSE(yaml.contains("entrypoint"));
  EXPECT_FALSE(yaml.contains("networks"));
}

TEST(Compose, TheBrokerHasTheNetworkAndTheServerItsSocket) {
  const Lowered compose("compose", {"net:connect:h.example:443"}, with_image({"/server", "$HOME"}));
  ASSERT_EQ(compose.verdict(), "ok");
  const std::string yaml = file_of(compose, "compose.yaml");
  EXPECT_EQ(yaml.find("network_mode: none"), yaml.rfind("network_mode: none"));
  EXPECT_TRUE(yaml.contains("      - /run/capgate/capgate-init\n      - forward\n"));
  EXPECT_TRUE(yaml.contains("$$HOME")) << "compose replaces what follows a single sign";
  EXPECT_TRUE(yaml.contains("${CAPGATE_IMAGE:?"));
  EXPECT_TRUE(file_of(compose, "egress.json").contains("\"net:connect:h.example:443\""));
}

TEST(Compose, TheBrokersImageCanBeNamed) {
  Options options = with_image({"/server"});
  options.broker_image = "example.org/capgate:1";
  const Lowered compose("compose", {"net:connect:h.example:443"}, options);
  EXPECT_TRUE(file_of(compose, "compose.yaml").contains("    image: \"example.org/capgate:1\"\n"));
  EXPECT_FALSE(file_of(compose, "compose.yaml").contains("CAPGATE_IMAGE"));
}

TEST(Compose, DeclaredEgressNeedsACommand) {
  const Lowered compose("compose", {"net:connect:h.example:443"}, with_image());
  EXPECT_EQ(compose.verdict(), "ADAPTER_UNSUPPORTED");
}

TEST(Compose, APathIsOneValueWhateverIsInIt) {
  const std::string yaml = yaml_of({"fs:write:\"/a: b # 'x' \\\"y\\\" \\\\ , %z é\""});
  EXPECT_TRUE(yaml.contains(R"(source: "/a: b # 'x' \"y\" \\ , %z é")")) << yaml;
}

TEST(Compose, AMissingSourceIsNotMadeAndMountsBelowAReadOnlyGrantStayOut) {
  const std::string yaml = yaml_of({"fs:read:/srv/data/**"});
  EXPECT_TRUE(yaml.contains("        read_only: true\n"));
  EXPECT_TRUE(yaml.contains("          create_host_path: false\n          recursive: disabled\n"));
}

TEST(Compose, LimitsComeFromThePolicy) {
  const std::string yaml = yaml_of(
      {"limit:memory:512M", "limit:pids:32", "limit:files:64", "limit:cpu:150%", "limit:disk:1M"});
  for (const std::string_view line :
       {"mem_limit: 536870912", "memswap_limit: 536870912", "pids_limit: 32", "nofile: 64",
        "cpu_quota: 150000", "size=1048576"}) {
    EXPECT_TRUE(yaml.contains(line)) << line;
  }
}

TEST(Compose, ValuesOfVariablesAreNotInTheFile) {
  EXPECT_TRUE(yaml_of({"env:inject:TOKEN"}).contains("      - TOKEN\n"));
}

TEST(Compose, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"exec:spawn:git", "limit:time:30s", "fs:create:/x", "fs:read:/x/*", "fs:read:/var/lib/**",
        "env:inject:A?to=h.example:443", "ipc:connect:dbus:session", "net:listen:8080"}) {
    EXPECT_EQ(Lowered("compose", {capability}, with_image()).verdict(), "ADAPTER_UNSUPPORTED")
        << capability;
  }
}

}  // namespace
}  // namespace capgate::lower
