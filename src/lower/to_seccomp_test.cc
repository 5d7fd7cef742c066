#include "lower/to_seccomp.h"

#include <gtest/gtest.h>

#include "lower/seccomp_shared.h"
#include "support/lowering.h"

namespace capgate::lower {
namespace {

using support::Lowered;
using support::Strings;

TEST(ToSeccomp, HoldsTheFilterThatTheOtherTargetsUse) {
  for (const auto& [capabilities, needs] :
       {std::pair{Strings{}, SeccompNeeds{}},
        {Strings{"exec:spawn:git"}, SeccompNeeds{.processes = true}},
        {Strings{"ipc:connect:self"}, SeccompNeeds{.unix_sockets = true}}}) {
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const Lowered seccomp("seccomp", capabilities, {.arch = arch});
      const auto& files = seccomp.artifact().files;
      ASSERT_EQ(files.size(), 2U);
      EXPECT_EQ(files[0].name, "seccomp.json");
      EXPECT_EQ(files[0].contents, shared_docker_profile(needs).json);
      EXPECT_EQ(files[1].name, "seccomp.bpf");
      EXPECT_TRUE(files[1].binary);
      EXPECT_EQ(files[1].contents, to_bytes(shared_filter(arch, needs).program));
    }
  }
}

TEST(ToSeccomp, SaysWhichProgramsAndSocketsItDoesNotTellApart) {
  const Lowered seccomp("seccomp", {"exec:spawn:git", "ipc:connect:self", "ipc:connect:x11",
                                    "ipc:connect:netlink-route", "ipc:connect:unix:/a.sock"});
  EXPECT_EQ(seccomp.artifact().not_covered,
            (Strings{"exec:spawn:git", "ipc:connect:\"unix:/a.sock\"", "ipc:connect:x11"}));
}

TEST(ToSeccomp, NothingOfItCanBeAccepted) {
  EXPECT_EQ(Lowered("seccomp", {"fs:read:/a"}, {.accepted = {"fs:read:/a"}}).verdict(),
            "ACCEPT_UNUSED");
}

}  // namespace
}  // namespace capgate::lower
