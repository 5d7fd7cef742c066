#include "sandbox/doctor_files.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace capgate::sandbox {
namespace {

TEST(DistributionOf, KnowsTheIdOrWhatItIsLike) {
  struct Case {
    const char* os_release;
    Distribution expected;
  };
  const Case cases[] = {
      {"ID=debian\n", Distribution::debian},
      {"ID=ubuntu\nID_LIKE=debian\n", Distribution::ubuntu},
      {"ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Distribution::ubuntu},
      {"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Distribution::fedora},
      {"ID=fedora\n", Distribution::fedora},
      {"ID=\"rhel\"\n", Distribution::fedora},
      {"ID=manjaro\nID_LIKE=arch\n", Distribution::arch},
      {"ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", Distribution::opensuse},
      {"ID='alpine'\n", Distribution::alpine},
      {"ID=nixos\n", Distribution::nixos},
      {"VARIANT_ID=debian\nID=void\n", Distribution::other},
      {"", Distribution::other},
  };
  for (const Case& one : cases)
    EXPECT_EQ(distribution_of(one.os_release), one.expected) << one.os_release;
}

TEST(WslOf, TellsTheVersionsApart) {
  EXPECT_EQ(wsl_of("4.4.0-19041-Microsoft"), Wsl::wsl1);
  EXPECT_EQ(wsl_of("5.15.153.1-microsoft-standard-WSL2"), Wsl::wsl2);
  EXPECT_EQ(wsl_of("4.19.104-microsoft-standard"), Wsl::wsl2);
  EXPECT_EQ(wsl_of("6.1.0-18-amd64"), Wsl::none);
}

TEST(ContainerOfCgroup, NamesTheEngine) {
  EXPECT_EQ(container_of_cgroup("0::/system.slice/docker-12ab.scope\n"), "docker");
  EXPECT_EQ(container_of_cgroup("4:memory:/docker/12ab\n"), "docker");
  EXPECT_EQ(container_of_cgroup("0::/kubepods/besteffort/pod1/docker-12ab\n"), "kubernetes");
  EXPECT_EQ(container_of_cgroup("0::/user.slice/libpod-12ab.scope\n"), "podman");
  EXPECT_EQ(container_of_cgroup("0::/user.slice/user-1000.slice/session-2.scope\n"), "");
}

TEST(StatusValue, FindsTheWholeName) {
  const char* status = "Name:\tx\nSeccomp_filters:\t3\nSeccomp:\t2\n";
  EXPECT_EQ(status_value(status, "Seccomp"), "2");
  EXPECT_EQ(status_value(status, "NoNewPrivs"), "");
}

TEST(UnownedId, IsMappedHighAndNotTheOverflowId) {
  EXPECT_EQ(unowned_id("         0          0 4294967295\n"), 0x7fff0000U);
  EXPECT_EQ(unowned_id("0 100000 65536\n"), 65535U);
  EXPECT_EQ(unowned_id("0 100000 65535\n"), 65533U);
  EXPECT_EQ(unowned_id("0 1000 1\n1 100000 65536\n"), 65536U);
  EXPECT_EQ(unowned_id("0 12345 1\n"), 0U);
  EXPECT_EQ(unowned_id("65534 12345 1\n"), 0U);
  EXPECT_EQ(unowned_id(""), 0U);
}

TEST(ParseMountinfo, ReadsOptionalFieldsAndEscapes) {
  const auto mounts = parse_mountinfo(
      "22 1 0:20 / / rw - ext4 /dev/sda rw\n"
      "36 35 98:0 /a\\040b /mnt/c\\134d rw,noatime shared:1 master:2 - cgroup none rw,memory\n"
      "broken line\n");
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[1].mounted_root, "/a b");
  EXPECT_EQ(mounts[1].point, "/mnt/c\\d");
  EXPECT_EQ(mounts[1].type, "cgroup");
  EXPECT_EQ(mounts[1].options, "rw,memory");
}

TEST(CgroupPlaces, FindsTheUnifiedGroup) {
  const auto places =
      cgroup_places("0::/user.slice/x.scope\n",
                    parse_mountinfo("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"));
  EXPECT_EQ(places,
            (std::vector<CgroupPlace>{{CgroupKind::v2, "", "/sys/fs/cgroup/user.slice/x.scope"}}));
}

TEST(CgroupPlaces, FindsEachEarlierHierarchy) {
  const auto places =
      cgroup_places("5:pids:/\n4:memory:/a/b\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n",
                    parse_mountinfo("1 0 0:1 / /c/memory rw - cgroup cgroup rw,memory\n"
                                    "2 0 0:2 / /c/pids rw - cgroup cgroup rw,pids\n"
                                    "3 0 0:3 / /c/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"));
  EXPECT_EQ(places, (std::vector<CgroupPlace>{{CgroupKind::v1, "memory", "/c/memory/a/b"},
                                              {CgroupKind::v1, "pids", "/c/pids"},
                                              {CgroupKind::v1, "cpu", "/c/cpu"}}));
}

TEST(CgroupPlaces, KnowsMountsThatShowAPartOfTheTree) {
  const auto mounts = parse_mountinfo("1 0 0:1 /docker/1 /sys/fs/cgroup rw - cgroup2 c rw\n");
  EXPECT_EQ(cgroup_places("0::/docker/1/x\n", mounts).at(0).directory, "/sys/fs/cgroup/x");
  EXPECT_EQ(cgroup_places("0::/docker/1\n", mounts).at(0).directory, "/sys/fs/cgroup");
  EXPECT_TRUE(cgroup_places("0::/docker/12\n", mounts).empty());
  EXPECT_TRUE(cgroup_places("0::/../other\n", mounts).empty());
  EXPECT_TRUE(cgroup_places("0::/docker/1\n", {}).empty());
}

CgroupTrial v2(int err, const char* controllers) {
  return {.place = {CgroupKind::v2, "", "/two"}, .err = err, .controllers = controllers};
}
CgroupTrial v1(const char* controller, int err = 0) {
  return {.place = {CgroupKind::v1, controller, "/one"}, .err = err, .controllers = ""};
}

TEST(ChooseCgroups, PrefersTheUnifiedOneThatLimits) {
  EXPECT_EQ(choose_cgroups({v2(0, "cpu memory pids"), v1("memory")}),
            (Cgroups{.kind = CgroupKind::v2, .directory = "/two"}));
  EXPECT_EQ(choose_cgroups({v2(0, "memory pids")}),
            (Cgroups{.kind = CgroupKind::v2, .directory = "/two", .missing = {"cpu"}}));
}

TEST(ChooseCgroups, TakesTheEarlierOneWhereItHasTheControllers) {
  EXPECT_EQ(choose_cgroups({v2(0, "hugetlb"), v1("memory"), v1("pids"), v1("cpu")}),
            (Cgroups{.kind = CgroupKind::v1, .directory = "/one"}));
  EXPECT_EQ(choose_cgroups({v2(EACCES, "memory pids cpu"), v1("memory"), v1("pids", EACCES)}),
            (Cgroups{.kind = CgroupKind::v1, .directory = "/one", .missing = {"pids", "cpu"}}));
}

TEST(ChooseCgroups, ATreeWithoutControllersIsNone) {
  EXPECT_EQ(choose_cgroups({v2(0, "hugetlb")}),
            (Cgroups{.directory = "/two", .missing = {"memory", "pids", "cpu"}}));
  EXPECT_EQ(choose_cgroups({}), Cgroups{});
  EXPECT_EQ(choose_cgroups({v2(EACCES, "memory pids cpu")}),
            (Cgroups{.err = EACCES, .directory = "/two"}));
}

}  // namespace
}  // namespace capgate::sandbox
