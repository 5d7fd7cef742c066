#include <gtest/gtest.h>

#include "sandbox/doctor.h"

namespace capgate::sandbox {
namespace {

constexpr Distribution distributions[] = {
    Distribution::other, Distribution::debian,   Distribution::ubuntu, Distribution::fedora,
    Distribution::arch,  Distribution::opensuse, Distribution::alpine, Distribution::nixos};

Facts on(Distribution distribution) {
  Facts facts;
  facts.distribution = distribution;
  facts.uid = 1000;
  facts.kernel = "5.10.0";
  facts.program = "/usr/bin/capgate";
  facts.program_is_roots = true;
  return facts;
}

std::string commands(Cause cause, const Facts& facts) {
  std::string text;
  for (const Remedy& remedy : remedies(cause, facts)) {
    for (const std::string& command : remedy.commands) text += command + "\n";
  }
  return text;
}

TEST(Remedies, EveryCauseHasAnExplanationAndAllButTheUnknownARemedy) {
  for (const Distribution distribution : distributions) {
    const Facts facts = on(distribution);
    for (int i = 1; i <= static_cast<int>(Cause::unknown); ++i) {
      const auto cause = static_cast<Cause>(i);
      EXPECT_FALSE(name_of(cause).empty()) << i;
      EXPECT_FALSE(explain(cause, facts).empty()) << name_of(cause);
      const bool has_none = cause == Cause::no_answer || cause == Cause::unknown;
      EXPECT_EQ(remedies(cause, facts).empty(), has_none) << name_of(cause);
      for (const Remedy& remedy : remedies(cause, facts)) EXPECT_FALSE(remedy.what.empty());
    }
  }
}

struct Case {
  Distribution distribution;
  Cause cause;
  const char* expected;
};

constexpr Case cases[] = {
    {Distribution::debian, Cause::user_limit,
     "sudo sysctl -w user.max_user_namespaces=15000\n"
     "echo 'user.max_user_namespaces=15000' | sudo tee -a /etc/sysctl.d/90-capgate.conf\n"},
    {Distribution::alpine, Cause::user_limit,
     "doas sysctl -w user.max_user_namespaces=15000\n"
     "echo 'user.max_user_namespaces=15000' | doas tee -a /etc/sysctl.d/90-capgate.conf\n"},
    {Distribution::nixos, Cause::user_limit,
     "# in /etc/nixos/configuration.nix: boot.kernel.sysctl.\"user.max_user_namespaces\" = 15000;\n"
     "sudo nixos-rebuild switch\n"},
    {Distribution::debian, Cause::userns_clone,
     "sudo sysctl -w kernel.unprivileged_userns_clone=1\n"
     "echo 'kernel.unprivileged_userns_clone=1' | sudo tee -a /etc/sysctl.d/90-capgate.conf\n"},
    {Distribution::debian, Cause::no_redirect,
     "sudo modprobe -a nf_tables nft_chain_nat nft_redir\n"
     "printf '%s\\n' nf_tables nft_chain_nat nft_redir | sudo tee "
     "/etc/modules-load.d/capgate.conf\n"},
    {Distribution::nixos, Cause::no_redirect,
     "# in /etc/nixos/configuration.nix: boot.kernelModules = [ \"nf_tables\" \"nft_chain_nat\" "
     "\"nft_redir\" ];\n"
     "sudo nixos-rebuild switch\n"},
    {Distribution::fedora, Cause::old_kernel, "sudo dnf upgrade kernel\nsudo reboot\n"},
    {Distribution::arch, Cause::old_kernel, "sudo pacman -Syu linux\nsudo reboot\n"},
    {Distribution::opensuse, Cause::old_kernel, "sudo zypper update kernel-default\nsudo reboot\n"},
    {Distribution::other, Cause::old_kernel, ""},
};

TEST(Remedies, AreTheExactCommandsOfTheDistribution) {
  for (const Case& one : cases) {
    EXPECT_EQ(commands(one.cause, on(one.distribution)), one.expected)
        << name_of(one.distribution) << ' ' << name_of(one.cause);
  }
}

TEST(Remedies, RootNeedsNoSudo) {
  Facts facts = on(Distribution::debian);
  facts.uid = 0;
  EXPECT_FALSE(commands(Cause::apparmor, facts).contains("sudo"));
  EXPECT_FALSE(commands(Cause::user_limit, facts).contains("sudo"));
}

TEST(Remedies, AppArmorGetsAProfileFirstAndTheSwitchLast) {
  const auto ways = remedies(Cause::apparmor, on(Distribution::ubuntu));
  ASSERT_EQ(ways.size(), 2U);
  ASSERT_TRUE(ways[0].file);
  EXPECT_EQ(ways[0].file->path, "/etc/apparmor.d/capgate");
  EXPECT_EQ(ways[0].file->contents,
            "abi <abi/4.0>,\n"
            "include <tunables/global>\n"
            "\n"
            "profile capgate /usr/bin/capgate flags=(unconfined) {\n"
            "  userns,\n"
            "\n"
            "  include if exists <local/capgate>\n"
            "}\n");
  EXPECT_EQ(ways[0].commands,
            std::vector<std::string>{"sudo apparmor_parser -r /etc/apparmor.d/capgate"});
  EXPECT_TRUE(ways[1].what.starts_with("last resort"));
}

TEST(Remedies, AProfileIsNeverBoundToAPathThatOthersCanWrite) {
  Facts facts = on(Distribution::ubuntu);
  facts.program = "/home/me/capgate";
  facts.program_is_roots = false;
  const Remedy remedy = remedies(Cause::apparmor, facts).front();
  EXPECT_TRUE(remedy.file->contents.contains("profile capgate /usr/local/bin/capgate flags"));
  ASSERT_EQ(remedy.commands.size(), 2U);
  EXPECT_TRUE(remedy.commands[0].starts_with("sudo install -o root -g root -m 755 "));
}

TEST(Remedies, AProfileIsNeverBoundToAPattern) {
  for (const char* path : {"/opt/{a,b}/capgate", "/opt/a b/capgate", "/opt/*/capgate",
                           "/opt/x\n}\nprofile y /** {/capgate", ""}) {
    Facts facts = on(Distribution::ubuntu);
    facts.program = path;
    EXPECT_TRUE(remedies(Cause::apparmor, facts)
                    .front()
                    .file->contents.contains("profile capgate /usr/local/bin/capgate flags"))
        << path;
  }
}

TEST(Remedies, LandlockKeepsTheOtherModulesInTheList) {
  Facts facts = on(Distribution::fedora);
  facts.lsm = "capability,yama,selinux,bpf";
  EXPECT_EQ(commands(Cause::landlock_not_started, facts),
            "sudo grubby --update-kernel=ALL --args=lsm=landlock,yama,selinux,bpf\nsudo reboot\n");
  facts.distribution = Distribution::debian;
  EXPECT_TRUE(commands(Cause::landlock_not_started, facts).contains("sudo update-grub\n"));
}

TEST(Remedies, AListOfModulesThatCannotBeReadIsNotGuessed) {
  const Remedy remedy = remedies(Cause::landlock_not_started, on(Distribution::fedora)).front();
  EXPECT_EQ(remedy.what,
            "boot with lsm=landlock,LIST, where LIST is what /sys/kernel/security/lsm holds");
}

TEST(Remedies, OnWsl2TheKernelBelongsToWindows) {
  Facts facts = on(Distribution::ubuntu);
  facts.wsl = Wsl::wsl2;
  EXPECT_EQ(commands(Cause::old_kernel, facts), "wsl --update\nwsl --shutdown\n");
  EXPECT_EQ(remedies(Cause::landlock_not_started, facts).front().file->path,
            "%UserProfile%\\.wslconfig");
  EXPECT_TRUE(commands(Cause::wsl1, facts).contains("wsl --set-version NAME 2"));
}

TEST(Remedies, TheModulesOfAContainerAreItsHosts) {
  Facts facts = on(Distribution::debian);
  facts.container = "docker";
  EXPECT_TRUE(remedies(Cause::no_redirect, facts).front().what.contains("outside"));
}

TEST(Remedies, ContainersAreLoosenedFromOutside) {
  Facts facts = on(Distribution::debian);
  const auto text = [&](const char* engine) {
    facts.container = engine;
    EXPECT_EQ(commands(Cause::container_filter, facts), commands(Cause::container_proc, facts));
    return remedies(Cause::container_proc, facts).front().what +
           commands(Cause::container_proc, facts);
  };
  EXPECT_TRUE(text("docker").contains("--security-opt systempaths=unconfined"));
  EXPECT_TRUE(text("podman").contains("--security-opt unmask=ALL"));
  EXPECT_TRUE(text("lxc").contains("security.nesting=true"));
  EXPECT_TRUE(text("kubernetes").contains("procMount: Unmasked"));
  EXPECT_TRUE(text("systemd-nspawn").contains("systemd-nspawn --"));
  EXPECT_TRUE(text("").contains("seccomp"));
}

TEST(Remedies, EachLimitThatIsZeroIsNamed) {
  Facts facts = on(Distribution::debian);
  facts.zero_limits = {"user.max_net_namespaces", "user.max_pid_namespaces"};
  EXPECT_EQ(explain(Cause::namespace_limit, facts),
            "user.max_net_namespaces and user.max_pid_namespaces are 0");
  EXPECT_TRUE(commands(Cause::namespace_limit, facts).contains("user.max_pid_namespaces=15000"));
}

}  // namespace
}  // namespace capgate::sandbox
