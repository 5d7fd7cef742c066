#include "sandbox/steps.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string>

namespace capgate::sandbox {
namespace {

using orders::Report;
using orders::Step;

Report failed(Step step, int error = EPERM, std::uint32_t index = 0) {
  return {.kind = Report::Kind::failed, .step = step, .value = error, .index = index};
}

// The variable is the process's own: every test leaves it unset.
class Fault : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("CAPGATE_FAIL_STEP"); }
  static void inject(const std::string& name) { ::setenv("CAPGATE_FAIL_STEP", name.c_str(), 1); }
};

TEST(Steps, EveryStepHasANameOfItsOwnAndWords) {
  std::set<std::string_view> names;
  std::set<std::string> words;
  const Bound bound;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Step::count); ++i) {
    const std::string_view name = step_name(static_cast<Step>(i));
    EXPECT_FALSE(name.empty()) << i;
    EXPECT_NE(name, "unknown") << i;
    EXPECT_TRUE(names.insert(name).second) << name;
    const Refusal refusal = explain_failure(failed(static_cast<Step>(i)), bound);
    const std::string said = refusal.message.substr(0, refusal.message.find(':'));
    EXPECT_FALSE(said.empty()) << name;
    EXPECT_TRUE(words.insert(said).second) << said;
    EXPECT_NE(refusal.message.find("(step " + std::string(name) + ")"), std::string::npos);
    EXPECT_FALSE(refusal.help.empty()) << name;
  }
}

// The table is in the order of the enumeration, which only these names can show.
TEST(Steps, NamesStandAtTheirSteps) {
  EXPECT_EQ(step_name(Step::none), "none");
  EXPECT_EQ(step_name(Step::id_maps), "id_maps");
  EXPECT_EQ(step_name(Step::start_init), "start_init");
  EXPECT_EQ(step_name(Step::read_orders), "read_orders");
  EXPECT_EQ(step_name(Step::reset), "reset");
  EXPECT_EQ(step_name(Step::loopback), "loopback");
  EXPECT_EQ(step_name(Step::network), "network");
  EXPECT_EQ(step_name(Step::host_name), "host_name");
  EXPECT_EQ(step_name(Step::private_tree), "private_tree");
  EXPECT_EQ(step_name(Step::new_root), "new_root");
  EXPECT_EQ(step_name(Step::mounts), "mounts");
  EXPECT_EQ(step_name(Step::pivot), "pivot");
  EXPECT_EQ(step_name(Step::fork_server), "fork_server");
  EXPECT_EQ(step_name(Step::program), "program");
  EXPECT_EQ(step_name(Step::limits), "limits");
  EXPECT_EQ(step_name(Step::bounding_set), "bounding_set");
  EXPECT_EQ(step_name(Step::ids), "ids");
  EXPECT_EQ(step_name(Step::capabilities), "capabilities");
  EXPECT_EQ(step_name(Step::no_new_privs), "no_new_privs");
  EXPECT_EQ(step_name(Step::landlock), "landlock");
  EXPECT_EQ(step_name(Step::descriptors), "descriptors");
  EXPECT_EQ(step_name(Step::directory), "directory");
  EXPECT_EQ(step_name(Step::read_back), "read_back");
  EXPECT_EQ(step_name(Step::seccomp), "seccomp");
  EXPECT_EQ(step_name(Step::exec), "exec");
  EXPECT_EQ(step_name(Step::init_drop), "init_drop");
  EXPECT_EQ(step_name(Step::count), "unknown");
}

TEST(Steps, AFailedMountOrRuleIsNamed) {
  Bound bound;
  bound.mounts = {{.target = "/first"}, {.target = "/sec\x1bond"}};
  bound.landlock = {{.path = "/rule"}};
  const std::string mount = explain_failure(failed(Step::mounts, EACCES, 1), bound).message;
  EXPECT_NE(mount.find("/sec"), std::string::npos) << mount;
  EXPECT_EQ(mount.find('\x1b'), std::string::npos);
  EXPECT_NE(mount.find("Permission denied"), std::string::npos) << mount;
  EXPECT_NE(explain_failure(failed(Step::landlock), bound).message.find("(/rule)"),
            std::string::npos);
  // An index that is none must not be read.
  EXPECT_NE(explain_failure(failed(Step::mounts, EACCES, 99), bound).message, "");
}

TEST(Steps, AFailedRedirectSaysWhatToDeclareInstead) {
  Bound bound;
  bound.capture.messages = {{.protocol = NETLINK_ROUTE, .what = "route"},
                            {.protocol = NETLINK_NETFILTER, .what = "redirect"}};
  bound.capture.sockets = {{.kind = egress::wire::SocketKind::capture, .port = 443}};
  const Refusal redirect = explain_failure(failed(Step::network, EOPNOTSUPP, 1), bound);
  EXPECT_NE(redirect.message.find("no nf_tables redirect"), std::string::npos) << redirect.message;
  EXPECT_NE(redirect.help.find("declare the ports"), std::string::npos) << redirect.help;
  EXPECT_EQ(explain_failure(failed(Step::network, EPERM, 0), bound).message.find("nf_tables"),
            std::string::npos);
  const std::string socket = explain_failure(failed(Step::network, EPERM, 2), bound).message;
  EXPECT_NE(socket.find("capture on port 443"), std::string::npos) << socket;
  // An index that is none must not be read.
  EXPECT_NE(explain_failure(failed(Step::network, EPERM, 99), bound).message, "");
}

TEST(Steps, AChangedPathIsSaidInWords) {
  const Refusal refusal = explain_failure(failed(Step::mounts, ESTALE), {});
  EXPECT_NE(refusal.message.find("changed while it was being granted"), std::string::npos);
  EXPECT_EQ(refusal.exit_code, 125);
}

TEST(Steps, OnlyTheExecHasTheCodesOfACommand) {
  EXPECT_EQ(explain_failure(failed(Step::exec, ENOENT), {}).exit_code, 127);
  EXPECT_EQ(explain_failure(failed(Step::exec, EACCES), {}).exit_code, 126);
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Step::count); ++i) {
    if (static_cast<Step>(i) == Step::exec) continue;
    EXPECT_EQ(explain_failure(failed(static_cast<Step>(i), ENOENT), {}).exit_code, 125) << i;
  }
}

TEST_F(Fault, IsNoneUnlessItIsAskedFor) { EXPECT_EQ(injected_fault(), Step::none); }

TEST_F(Fault, EveryStepCanBeNamed) {
  for (std::uint32_t i = 1; i < static_cast<std::uint32_t>(Step::count); ++i) {
    inject(std::string(step_name(static_cast<Step>(i))));
    EXPECT_EQ(injected_fault(), static_cast<Step>(i)) << i;
  }
}

TEST_F(Fault, AnUnknownNameFails) {
  for (const char* name : {"", "nothing", "Pivot", "pivot "}) {
    inject(name);
    EXPECT_NE(injected_fault(), Step::none) << name;
  }
}

}  // namespace
}  // namespace capgate::sandbox
