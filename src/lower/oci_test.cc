#include "lower/oci.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "support/lowering.h"
#include "text/json.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;
using text::Value;

// config.json, parsed.
class Config {
 public:
  explicit Config(const Strings& capabilities, Options options = {})
      : lowered_("oci", capabilities, with_command(std::move(options))),
        document_(text::parse_json(lowered_.artifact().files.front().contents)) {
    EXPECT_TRUE(document_);
  }

  // The value at "linux.resources.pids".
  [[nodiscard]] Value at(std::string_view path) const {
    Value value = document_->root();
    for (const std::string_view key : split(path, '.')) value = *value.find(key);
    return value;
  }
  [[nodiscard]] Strings texts(std::string_view path) const {
    Strings out;
    for (const Value item : at(path).elements()) out.emplace_back(item.text());
    return out;
  }
  [[nodiscard]] std::vector<Value> items(std::string_view path) const {
    std::vector<Value> out;
    for (const Value item : at(path).elements()) out.push_back(item);
    return out;
  }
  // The options of the mount there, or nothing.
  [[nodiscard]] Strings mount(std::string_view destination, std::string_view source) const {
    for (const Value mount : at("mounts").elements()) {
      if (mount.find("destination")->text() != destination) continue;
      EXPECT_EQ(mount.find("source")->text(), source);
      Strings out;
      for (const Value option : mount.find("options")->elements()) out.emplace_back(option.text());
      return out;
    }
    return {};
  }
  [[nodiscard]] const Artifact& artifact() const { return lowered_.artifact(); }

 private:
  static Options with_command(Options options) {
    if (options.command.empty()) options.command = {"/server"};
    return options;
  }

  Lowered lowered_;
  decltype(text::parse_json("")) document_;
};

bool has(const Strings& texts, std::string_view text) {
  return std::ranges::count(texts, text) != 0;
}

TEST(Oci, IsClosedWithoutAnyCapability) {
  const Config config({});
  for (const std::string_view set :
       {"bounding", "effective", "inheritable", "permitted", "ambient"}) {
    EXPECT_EQ(config.texts(format("process.capabilities.{}", set)), Strings{}) << set;
  }
  EXPECT_EQ(config.at("process.noNewPrivileges").text(), "true");
  EXPECT_EQ(config.at("root.readonly").text(), "true");
  EXPECT_EQ(config.texts("process.args"), Strings{"/server"});
  EXPECT_EQ(config.items("linux.namespaces").size(), 7U);
  EXPECT_EQ(config.at("linux.seccomp.defaultAction").text(), "SCMP_ACT_ERRNO");
  EXPECT_EQ(config.texts("linux.seccomp.architectures"), Strings{"SCMP_ARCH_X86_64"});
  EXPECT_TRUE(has(config.mount("/proc", "proc"), "ro"));
  EXPECT_EQ(config.items("mounts").size(), 4U);
}

TEST(Oci, GrantsAreMountsInTheOrderOfTheirPaths) {
  const Config config({"fs:write:/a/b", "fs:read:/a/**"});
  EXPECT_EQ(config.mount("/a", "/a"), (Strings{"bind", "nosuid", "nodev", "ro"}));
  EXPECT_EQ(config.mount("/a/b", "/a/b"), (Strings{"bind", "nosuid", "nodev", "rw", "noexec"}));
  EXPECT_EQ(config.items("mounts").at(4).find("destination")->text(), "/a");
}

TEST(Oci, OddPathsStayOneText) {
  for (const auto& [written, meant] : {std::pair{"/a,ro:b", "/a,ro:b"},
                                       {"/with \\\"quotes\\\"", "/with \"quotes\""},
                                       {"/back\\\\slash", "/back\\slash"},
                                       {"/größe 'x' %s", "/größe 'x' %s"}}) {
    const Config config({format("fs:read:\"{}\"", written)});
    EXPECT_TRUE(has(config.mount(meant, meant), "ro")) << written;
    EXPECT_EQ(config.items("mounts").size(), 5U);
  }
}

TEST(Oci, CredentialsAreMaskedAndWhatTheHostRunsIsReadOnly) {
  const Config config({"fs:read:/home/u/.local/share/**", "fs:write:/home/u/p/**"},
                      {.home = "/home/u"});
  EXPECT_TRUE(has(config.texts("linux.maskedPaths"), "/home/u/.local/share/keyrings"));
  EXPECT_TRUE(has(config.texts("linux.readonlyPaths"), "/home/u/p/.git/hooks"));
  EXPECT_TRUE(has(config.texts("linux.readonlyPaths"), "/proc/sysrq-trigger"));
  const Config named({"fs:write:/p/**", "fs:read:/p/.git/hooks/**"});
  EXPECT_FALSE(has(named.texts("linux.readonlyPaths"), "/p/.git/hooks"));
  // A node may be a file: nothing can be looked for below it.
  EXPECT_FALSE(has(Config({"fs:write:/p"}).texts("linux.readonlyPaths"), "/p/.git/hooks"));
}

TEST(Oci, AMaskThatWouldHideAGrantIsRefused) {
  const Lowered oci("oci",
                    {"fs:read:/home/u/.local/share/**", "fs:read:/home/u/.local/share/keyrings/a"},
                    {.home = "/home/u", .command = {"/server"}});
  EXPECT_EQ(oci.verdict(), "ADAPTER_UNSUPPORTED");
}

TEST(Oci, DeclaredEndpointsAreReachedThroughTheForwarder) {
  const Config config({"net:connect:api.example.com:443"}, {.egress_dir = "/srv/egress"});
  EXPECT_EQ(config.texts("process.args"),
            (Strings{"/run/capgate/capgate-init", "forward", "--no-processes", "--", "/server"}));
  EXPECT_TRUE(has(config.mount("/run/capgate", "/srv/egress"), "ro"));
  const Config sockets({"net:connect:a.example:443", "ipc:connect:self"});
  EXPECT_TRUE(has(sockets.texts("process.args"), "--unix-sockets"));
}

TEST(Oci, LimitsComeFromThePolicy) {
  const Config config(
      {"limit:memory:512M", "limit:pids:32", "limit:files:64", "limit:cpu:150%", "limit:disk:1M"});
  EXPECT_EQ(config.at("linux.resources.memory.limit").text(), "536870912");
  EXPECT_EQ(config.at("linux.resources.memory.swap").text(), "536870912");
  EXPECT_EQ(config.at("linux.resources.pids.limit").text(), "32");
  EXPECT_EQ(config.at("linux.resources.cpu.quota").text(), "150000");
  EXPECT_EQ(config.items("process.rlimits").front().find("hard")->text(), "64");
  EXPECT_TRUE(has(config.mount("/tmp", "tmpfs"), "size=1048576"));
}

TEST(Oci, AClockIsMountedOnce) {
  EXPECT_EQ(Config({"clock:tzdata"}).items("mounts").size(), 6U);
  EXPECT_EQ(Config({"clock:tzdata", "fs:read:/usr/share/zoneinfo/**"}).items("mounts").size(), 6U);
}

TEST(Oci, TheUserOutsideIsChosen) {
  const Config config({}, {.user = "7:8"});
  EXPECT_EQ(config.items("linux.uidMappings").front().find("hostID")->text(), "7");
  EXPECT_EQ(config.items("linux.gidMappings").front().find("hostID")->text(), "8");
}

TEST(Oci, RefusesWhatItCannotKeep) {
  for (const std::string capability :
       {"exec:spawn:git", "limit:time:30s", "fs:create:/x", "fs:read:/x/*", "env:inject:TOKEN",
        "env:read:LANGUAGE", "env:inject:A?to=h.example:443", "ipc:connect:dbus:session",
        "ipc:connect:x11", "net:listen:8080"}) {
    EXPECT_EQ(Lowered("oci", {capability}, {.command = {"/server"}}).verdict(),
              "ADAPTER_UNSUPPORTED")
        << capability;
  }
}

TEST(Oci, AnAcceptedVariableIsLeftOut) {
  const Config config({"env:inject:TOKEN"}, {.accepted = {"env:inject:TOKEN"}});
  EXPECT_EQ(config.texts("process.env").size(), 4U);
  EXPECT_EQ(config.artifact().env_injections, Strings{"TOKEN"});
  EXPECT_EQ(config.artifact().unenforced, Strings{"env:inject:TOKEN"});
}

}  // namespace
}  // namespace capgate::lower
