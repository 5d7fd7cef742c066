#include "lower/seccomp_docker.h"

#include <gtest/gtest.h>

#include <set>

#include "base/digest.h"
#include "lower/seccomp_shared.h"

// seccomp_oracle_test.cc feeds whole profiles to libseccomp; here: how a profile is written.
namespace capgate::lower {
namespace {

using core::syscall;

TEST(DockerProfile, IsWrittenAsDockerReadsIt) {
  const std::vector<Rule> rules{
      {syscall("read"), allow},
      {syscall("write"), allow},
      {syscall("mount"), not_permitted},
      {syscall("clone3"), not_there},
      {syscall("chmod"), allow, {{{.arg = 1, .mask = 06000, .value = 0}}}},
      {syscall("chmod"), not_permitted},
  };
  EXPECT_EQ(docker_profile_json(rules), R"({
  "defaultAction": "SCMP_ACT_ERRNO",
  "defaultErrnoRet": 38,
  "archMap": [
    {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
    {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []}
  ],
  "syscalls": [
    {"names":["read","write"],"action":"SCMP_ACT_ALLOW"},
    {"names":["mount"],"action":"SCMP_ACT_ERRNO","errnoRet":1},
    {"names":["clone3"],"action":"SCMP_ACT_ERRNO","errnoRet":38},
    {"names":["chmod"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":3072,"valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]},
    {"names":["chmod"],"action":"SCMP_ACT_ERRNO","errnoRet":1,"args":[{"index":1,"value":2048,"valueTwo":2048,"op":"SCMP_CMP_MASKED_EQ"}]},
    {"names":["chmod"],"action":"SCMP_ACT_ERRNO","errnoRet":1,"args":[{"index":1,"value":3072,"valueTwo":1024,"op":"SCMP_CMP_MASKED_EQ"}]}
  ]
}
)");
}

// runc takes two conditions on one argument for alternatives, and an entry without arguments beside
// others of the same call for all of it: either would open the call.
TEST(DockerProfile, NeverWritesWhatRuncWouldReadWider) {
  for (unsigned bits = 0; bits < 32; ++bits) {
    const SeccompNeeds needs{.processes = (bits & 1) != 0,
                             .nested_sandbox = (bits & 2) != 0,
                             .unix_sockets = (bits & 4) != 0,
                             .netlink_route = (bits & 8) != 0,
                             .forwarder = (bits & 16) != 0};
    std::set<core::SyscallId> plain;
    std::set<core::SyscallId> conditional;
    for (const DockerEntry& entry : docker_entries(seccomp_rules(needs), Precision::brief)) {
      std::set<unsigned> indices;
      for (const DockerArg& arg : entry.args) {
        EXPECT_TRUE(indices.insert(arg.index).second);
        EXPECT_TRUE(arg.op == DockerOp::masked_equal || entry.action != allow);
      }
      (entry.args.empty() ? plain : conditional).insert(entry.call);
    }
    for (const core::SyscallId call : plain) {
      EXPECT_FALSE(conditional.contains(call)) << core::syscall_info(call).name;
    }
  }
}

TEST(DockerProfile, LeavesLongRefusalsToTheDefault) {
  std::vector<Rule> rules;
  for (const std::uint32_t option : {0x11111111U, 0x22222222U}) {
    rules.push_back({syscall("prctl"), allow, {{{.mask = 0xffffffff, .value = option}}}});
  }
  rules.push_back({syscall("prctl"), not_permitted});
  EXPECT_GT(docker_entries(rules, Precision::exact).size(), 60U);
  EXPECT_EQ(docker_entries(rules, Precision::brief).size(), 2U);
}

// GE compares 64 bits: junk in the upper half may be refused by it, but must never be allowed.
TEST(DockerProfile, WritesAnyOtherNumberAsOneComparison) {
  const std::vector<Rule> rules{
      {syscall("prctl"), allow, {{{.arg = 0, .mask = 0xffffffff, .value = 3}}}},
      {syscall("prctl"), not_permitted},
  };
  const std::vector<DockerEntry> entries = docker_entries(rules, Precision::brief);
  ASSERT_EQ(entries.size(), 4U);  // 3, from 4 on, 0 to 1, 2
  EXPECT_EQ(entries[1].args[0].op, DockerOp::at_least);
  EXPECT_EQ(entries[1].args[0].value, 4U);
  EXPECT_EQ(entries[1].action, not_permitted);
}

// libseccomp goes wrong on inner arguments that no entry matches: see seccomp_docker.cc.
TEST(DockerProfile, LeavesNothingOpenBehindTwoArguments) {
  const std::vector<Rule> rules{
      {syscall("socketpair"),
       allow,
       {{{.arg = 0, .mask = 0xffffffff, .value = 1}, {.arg = 1, .mask = 0xf, .value = 1}}}},
      {syscall("socketpair"), not_permitted},
  };
  EXPECT_EQ(docker_entries(rules, Precision::exact).size(), 1U + 32U + 4U);
  EXPECT_EQ(docker_entries(rules, Precision::brief).size(), 1U + 2U + 4U);

  std::vector<Rule> scattered = rules;
  scattered[0].when[0].value = 0x11111111;
  EXPECT_GT(docker_entries(scattered, Precision::brief).size(), 32U);
}

TEST(DockerProfile, KeepsEveryAllowanceHoweverLong) {
  const std::vector<Rule> rules{
      {syscall("ioctl"), not_permitted, {{{.arg = 1, .mask = 0xffffffff, .value = 0x5412}}}},
      {syscall("ioctl"), allow},
  };
  EXPECT_EQ(docker_entries(rules, Precision::brief).size(), 33U);
}

TEST(DockerProfile, IsSharedWithItsBase64) {
  const SharedDockerProfile& profile = shared_docker_profile({.processes = true});
  EXPECT_EQ(profile.json, docker_profile_json(seccomp_rules({.processes = true})));
  EXPECT_EQ(profile.base64, base64(profile.json));
  EXPECT_EQ(&profile, &shared_docker_profile({.processes = true}));
}

}  // namespace
}  // namespace capgate::lower
