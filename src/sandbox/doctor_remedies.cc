// What to do about each Cause, for each distribution. Words only: nothing here is ever carried out.
#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/doctor.h"

namespace capgate::sandbox {
namespace {

using Commands = std::vector<std::string>;

std::string as_root(std::string_view command, const Facts& facts) {
  if (facts.uid == 0) return std::string(command);
  return format("{} {}", facts.distribution == Distribution::alpine ? "doas" : "sudo", command);
}

Remedy nixos_option(std::string what, std::string_view line, const Facts& facts) {
  return {.what = std::move(what),
          .commands = {format("# in /etc/nixos/configuration.nix: {}", line),
                       as_root("nixos-rebuild switch", facts)}};
}

// Now, and after the next boot.
Remedy set_sysctl(std::string_view key, unsigned value, std::string what, const Facts& facts) {
  if (facts.distribution == Distribution::nixos) {
    return nixos_option(std::move(what), format("boot.kernel.sysctl.\"{}\" = {};", key, value),
                        facts);
  }
  return {.what = std::move(what),
          .commands = {as_root(format("sysctl -w {}={}", key, value), facts),
                       format("echo '{}={}' | {}", key, value,
                              as_root("tee -a /etc/sysctl.d/90-capgate.conf", facts))}};
}

Remedy newer_kernel(const Facts& facts) {
  constexpr std::string_view needed =
      "run Linux 6.2 or later (5.13 is the least), built with USER_NS, SECCOMP_FILTER and "
      "SECURITY_LANDLOCK";
  if (facts.wsl == Wsl::wsl2) {
    return {.what = std::string(needed), .commands = {"wsl --update", "wsl --shutdown"}};
  }
  const auto commands = [&]() -> Commands {
    switch (facts.distribution) {
      // A stable release gets a newer kernel from its backports only.
      case Distribution::debian:
        return {as_root("apt update", facts),
                as_root("apt install -t \"$(. /etc/os-release; echo $VERSION_CODENAME)-backports\" "
                        "linux-image-$(dpkg --print-architecture)",
                        facts)};
      case Distribution::ubuntu:
        return {as_root("apt update", facts),
                as_root("apt install linux-generic-hwe-$(lsb_release -rs)", facts)};
      case Distribution::fedora: return {as_root("dnf upgrade kernel", facts)};
      case Distribution::arch: return {as_root("pacman -Syu linux", facts)};
      case Distribution::opensuse: return {as_root("zypper update kernel-default", facts)};
      case Distribution::alpine: return {as_root("apk add --upgrade linux-lts", facts)};
      case Distribution::nixos:
        return nixos_option("", "boot.kernelPackages = pkgs.linuxPackages_latest;", facts).commands;
      case Distribution::other: break;
    }
    return {};
  }();
  Remedy remedy{.what = std::string(needed), .commands = commands};
  if (!commands.empty()) remedy.commands.push_back(as_root("reboot", facts));
  return remedy;
}

// `lsm=` replaces the kernel's own list: whatever it does not name again is switched off, SELinux
// and AppArmor too. So a list that cannot be read here is never guessed.
std::string lsm_parameter(const Facts& facts) {
  if (facts.lsm.empty()) return "lsm=landlock,LIST";
  std::string list = "landlock";
  for (const std::string_view name : EachPart(facts.lsm, ',')) {
    // The kernel adds this one by itself.
    if (name != "capability" && name != "landlock") list += format(",{}", name);
  }
  return format("lsm={}", list);
}

Commands add_to_grub(std::string_view parameter, std::string_view rewrite, const Facts& facts) {
  return {as_root(format("sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{} /' /etc/default/grub", parameter),
                  facts),
          as_root(rewrite, facts), as_root("reboot", facts)};
}

Remedy start_landlock(const Facts& facts) {
  const std::string parameter = lsm_parameter(facts);
  std::string what = format("boot with {}", parameter);
  if (facts.lsm.empty()) what += ", where LIST is what /sys/kernel/security/lsm holds";
  if (facts.wsl == Wsl::wsl2) {
    return {.what = std::move(what),
            .file = FileToCreate{.path = "%UserProfile%\\.wslconfig",
                                 .contents = format("[wsl2]\nkernelCommandLine = {}\n", parameter)},
            .commands = {"wsl --shutdown"}};
  }
  switch (facts.distribution) {
    case Distribution::debian:
    case Distribution::ubuntu:
      return {.what = what, .commands = add_to_grub(parameter, "update-grub", facts)};
    case Distribution::fedora:
      return {
          .what = what,
          .commands = {as_root(format("grubby --update-kernel=ALL --args={}", parameter), facts),
                       as_root("reboot", facts)}};
    case Distribution::arch:
      return {.what = what,
              .commands = add_to_grub(parameter, "grub-mkconfig -o /boot/grub/grub.cfg", facts)};
    case Distribution::opensuse:
      return {.what = what,
              .commands = add_to_grub(parameter, "grub2-mkconfig -o /boot/grub2/grub.cfg", facts)};
    case Distribution::alpine:
      return {.what = what,
              .commands = {as_root(format("sed -i 's/^default_kernel_opts=\"/&{} /' "
                                          "/etc/update-extlinux.conf",
                                          parameter),
                                   facts),
                           as_root("update-extlinux", facts), as_root("reboot", facts)}};
    case Distribution::nixos: {
      Remedy remedy =
          nixos_option(what, format("boot.kernelParams = [ \"{}\" ];", parameter), facts);
      remedy.commands.push_back(as_root("reboot", facts));
      return remedy;
    }
    case Distribution::other: break;
  }
  return {.what = std::move(what)};
}

// A path that means itself in a profile: no glob, no space, no quote.
bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && std::ranges::all_of(path, [](char c) {
           return is_alnum(c) || c == '/' || c == '.' || c == '_' || c == '-' || c == '+';
         });
}

// The profile gives whoever can replace the program the right too, so it is bound to a path that
// only root can write.
Remedy apparmor_profile(const Facts& facts) {
  const bool in_place = facts.program_is_roots && is_plain_path(facts.program);
  const std::string program = in_place ? facts.program : "/usr/local/bin/capgate";
  Remedy remedy{.what = "give this one program a profile that allows user namespaces",
                .file = FileToCreate{.path = "/etc/apparmor.d/capgate",
                                     .contents = format("abi <abi/4.0>,\n"
                                                        "include <tunables/global>\n"
                                                        "\n"
                                                        "profile capgate {} flags=(unconfined) {{\n"
                                                        "  userns,\n"
                                                        "\n"
                                                        "  include if exists <local/capgate>\n"
                                                        "}}\n",
                                                        program)},
                .commands = {}};
  if (!in_place) {
    remedy.commands.push_back(
        as_root("install -o root -g root -m 755 \"$(command -v capgate)\" " + program, facts));
  }
  remedy.commands.push_back(as_root("apparmor_parser -r /etc/apparmor.d/capgate", facts));
  return remedy;
}

constexpr std::string_view filter_rule =
    R"({"action": "SCMP_ACT_ALLOW", "names": ["clone", "clone3", "unshare", "mount", "umount2", )"
    R"("pivot_root", "open_tree", "move_mount", "mount_setattr", "fsopen", "fsconfig", "fsmount", )"
    R"("sethostname", "seccomp", "landlock_create_ruleset", "landlock_add_rule", )"
    R"("landlock_restrict_self"]})";

// The same for a refused call and a covered /proc: whoever meets one meets the other next.
std::vector<Remedy> loosen_container(const Facts& facts) {
  const std::string rule = format("'.syscalls += [{}]'", filter_rule);
  if (facts.container == "podman") {
    return {{.what = "outside the container, start it so",
             .commands = {
                 format("jq {} /usr/share/containers/seccomp.json > capgate-seccomp.json", rule),
                 "podman run --security-opt seccomp=capgate-seccomp.json --security-opt "
                 "unmask=ALL ..."}}};
  }
  if (facts.container == "lxc") {
    return {{.what = "outside the container, allow nesting (incus; for LXD write lxc)",
             .commands = {"incus config set NAME security.nesting=true", "incus restart NAME"}}};
  }
  if (facts.container == "kubernetes") {
    return {{.what = "in the pod's specification: hostUsers: false, and in the container's "
                     "securityContext procMount: Unmasked and a seccompProfile of type Localhost, "
                     "made from the default one on the node",
             .commands = {format("jq {} default.json > capgate-seccomp.json", rule)}}};
  }
  if (facts.container == "systemd-nspawn") {
    return {{.what = "outside the container, start it so",
             .commands = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE=1 systemd-nspawn --private-users=pick "
                          "--system-call-filter=\"@mount @sandbox\" ..."}}};
  }
  return {{.what = "outside the container, start it with a seccomp profile made from the engine's "
                   "default.json, and with /proc uncovered",
           .commands = {format("jq {} default.json > capgate-seccomp.json", rule),
                        "docker run --security-opt seccomp=capgate-seccomp.json --security-opt "
                        "apparmor=unconfined --security-opt systempaths=unconfined ..."}}};
}

std::vector<Remedy> delegate_cgroup(const Facts& facts) {
  if (!facts.container.empty()) {
    return {{.what = "outside the container, start it with a cgroup namespace of its own and a "
                     "writable /sys/fs/cgroup"}};
  }
  if (facts.distribution == Distribution::alpine) {
    return {{.what = "let root give this user a group, and start capgate inside it",
             .commands = {as_root("install -d -o $(id -u) /sys/fs/cgroup/capgate", facts)}}};
  }
  return {{.what = "start capgate in a scope that systemd delegates",
           .commands = {"systemd-run --user --scope -p Delegate=yes capgate run ..."}}};
}

std::vector<Remedy> enable_controllers(const Facts& facts) {
  if (facts.cgroups.kind == CgroupKind::v1) {
    return {{.what = "mount the missing controllers, or boot with the unified hierarchy "
                     "(systemd.unified_cgroup_hierarchy=1)"}};
  }
  if (facts.distribution == Distribution::alpine || !facts.container.empty()) {
    return {{.what = "enable the controllers in cgroup.subtree_control, from the top down"}};
  }
  return {{.what = "let systemd delegate the controllers to users",
           .file = FileToCreate{.path = "/etc/systemd/system/user@.service.d/delegate.conf",
                                .contents = "[Service]\nDelegate=cpu memory pids\n"},
           .commands = {as_root("systemctl daemon-reload", facts), "# log out and in again"}}};
}

std::vector<Remedy> raise_namespace_limits(const Facts& facts) {
  std::vector<Remedy> all;
  all.reserve(facts.zero_limits.size());
  for (const std::string& key : facts.zero_limits) {
    all.push_back(set_sysctl(key, 15000, "allow these namespaces", facts));
  }
  if (all.empty()) {
    all.push_back(
        {.what = "the limit that is reached is not visible here: raise "
                 "user.max_*_namespaces outside, or nest fewer user namespaces (32 at most)"});
  }
  return all;
}

// Now, and after the next boot. A container has its host's kernel.
Remedy load_redirect(const Facts& facts) {
  constexpr std::string_view modules = "nf_tables nft_chain_nat nft_redir";
  if (facts.distribution == Distribution::nixos) {
    return nixos_option("load the kernel's modules",
                        R"(boot.kernelModules = [ "nf_tables" "nft_chain_nat" "nft_redir" ];)",
                        facts);
  }
  return {.what = facts.container.empty() ? "load the kernel's modules"
                                          : "load the kernel's modules, outside of the container",
          .commands = {as_root(format("modprobe -a {}", modules), facts),
                       format("printf '%s\\n' {} | {}", modules,
                              as_root("tee /etc/modules-load.d/capgate.conf", facts))}};
}

std::string problem_of(const Missing& program, std::string_view name) {
  return program.problem.empty() ? format("{} is not beside capgate", name) : program.problem;
}

Remedy install(const Missing& program, std::string_view name) {
  return {.what = program.help.empty() ? format("install {} in the directory of capgate", name)
                                       : program.help};
}

// The limit is the one of a login or of a service, so both are said.
Remedy lock_more_memory(const Facts& facts) {
  if (!facts.container.empty()) {
    Remedy remedy{.what = "outside the container, let it lock memory: raise its RLIMIT_MEMLOCK"};
    if (facts.container == "docker" || facts.container == "podman") {
      remedy.commands = {format("{} run --ulimit memlock=8388608 ...", facts.container)};
    }
    return remedy;
  }
  if (facts.distribution == Distribution::nixos) {
    return nixos_option("let users lock memory",
                        R"(security.pam.loginLimits = [ { domain = "*"; item = "memlock"; )"
                        R"(type = "-"; value = "8192"; } ];)",
                        facts);
  }
  return {.what = "let users lock memory; for a service of systemd write LimitMEMLOCK=8M",
          .file = FileToCreate{.path = "/etc/security/limits.d/90-capgate.conf",
                               .contents = "* - memlock 8192\n"},
          .commands = {"# log out and in again"}};
}

}  // namespace

std::string explain(Cause cause, const Facts& facts) {
  switch (cause) {
    case Cause::none: return "nothing is wrong";
    case Cause::wsl1: return "WSL 1 has no Linux kernel and no namespaces";
    case Cause::old_kernel: return format("kernel {} does not have what is needed", facts.kernel);
    case Cause::user_limit: return "user.max_user_namespaces is 0";
    case Cause::namespace_limit:
      if (facts.zero_limits.empty()) return "a limit on namespaces is reached";
      return format("{} {} 0", join(facts.zero_limits, " and "),
                    facts.zero_limits.size() == 1 ? "is" : "are");
    case Cause::userns_clone: return "kernel.unprivileged_userns_clone is 0";
    case Cause::unmapped_user: return "this user has no mapping in its user namespace";
    case Cause::chroot: return "a program in a chroot can make no user namespace and no new root";
    case Cause::apparmor:
      return "kernel.apparmor_restrict_unprivileged_userns is 1: AppArmor takes every capability "
             "in "
             "a user namespace from programs without a profile";
    case Cause::container_filter:
      if (facts.container.empty()) return "a seccomp filter around this program refuses it";
      return format("the {} of {} refuses it",
                    facts.is_filtered ? "seccomp profile" : "security profile", facts.container);
    case Cause::container_proc:
      return format("{} covers parts of /proc, and the kernel then mounts no new one",
                    facts.container.empty() ? "something" : facts.container);
    case Cause::initramfs: return "the root is the initramfs, which pivot_root cannot leave";
    case Cause::landlock_not_started:
      return "the kernel has Landlock and did not start it: it is not in the lsm= list";
    case Cause::memfd_forbidden: return "vm.memfd_noexec is 2";
    case Cause::second_listener:
      return "a supervisor outside already listens to this program's calls";
    case Cause::ptrace_forbidden:
      return "kernel.yama.ptrace_scope is 3, so run --trace cannot read the paths of calls";
    case Cause::no_delegation: return "the control group is not this user's";
    case Cause::controllers_missing:
      return format("there is no controller for {}", join(facts.cgroups.missing, " and "));
    case Cause::no_cgroups: return "no control groups are mounted";
    case Cause::no_redirect: return "this kernel has no nf_tables redirect";
    case Cause::no_broker: return problem_of(facts.broker, "capgate-broker");
    case Cause::no_tls_broker: return problem_of(facts.tls_broker, "capgate-broker-tls");
    case Cause::no_store: return problem_of(facts.store, "capgate-store");
    case Cause::memory_not_locked: return "this user may lock too little memory (RLIMIT_MEMLOCK)";
    case Cause::audit_not_writable:
      return format("no log can be made in {}", facts.audit_directory);
    case Cause::no_answer: return "the attempt gave no answer in time";
    case Cause::unknown: return "the reason is not known";
  }
  return "";
}

std::vector<Remedy> remedies(Cause cause, const Facts& facts) {
  switch (cause) {
    case Cause::none: return {};
    case Cause::wsl1:
      return {{.what = "in Windows, turn this distribution into WSL 2",
               .commands = {"wsl --list --verbose", "wsl --set-version NAME 2"}}};
    case Cause::old_kernel: return {newer_kernel(facts)};
    case Cause::user_limit:
      return {set_sysctl("user.max_user_namespaces", 15000, "allow user namespaces", facts)};
    case Cause::namespace_limit: return raise_namespace_limits(facts);
    case Cause::userns_clone:
      return {set_sysctl("kernel.unprivileged_userns_clone", 1, "allow user namespaces", facts)};
    case Cause::unmapped_user:
      return {
          {.what = "map this user where its user namespace is made (newuidmap, --map-root-user)"}};
    case Cause::chroot:
      return {{.what = "enter the tree with pivot_root or a container instead of chroot"}};
    case Cause::apparmor:
      return {apparmor_profile(facts),
              set_sysctl("kernel.apparmor_restrict_unprivileged_userns", 0,
                         "last resort: lift the restriction for every program", facts)};
    case Cause::container_filter:
    case Cause::container_proc: return loosen_container(facts);
    case Cause::initramfs:
      return {{.what = "start from a real root: let init copy itself to a tmpfs, then",
               .commands = {"switch_root /newroot /sbin/init"}}};
    case Cause::landlock_not_started: return {start_landlock(facts)};
    case Cause::memfd_forbidden:
      return {
          set_sysctl("vm.memfd_noexec", 1, "allow programs in memory to those that ask", facts)};
    case Cause::second_listener: return {{.what = "start capgate outside of that supervisor"}};
    case Cause::ptrace_forbidden: {
      Remedy remedy = set_sysctl("kernel.yama.ptrace_scope", 1,
                                 "allow it to parents, from the next boot", facts);
      if (facts.distribution != Distribution::nixos) remedy.commands.erase(remedy.commands.begin());
      remedy.commands.push_back(as_root("reboot", facts));
      return {remedy};
    }
    case Cause::no_delegation: return delegate_cgroup(facts);
    case Cause::controllers_missing: return enable_controllers(facts);
    case Cause::no_cgroups:
      return {{.what = "mount them",
               .commands = {as_root("mount -t cgroup2 cgroup2 /sys/fs/cgroup", facts)}}};
    case Cause::no_redirect:
      return {load_redirect(facts), {.what = "declare each port instead: net:connect:HOST:PORT"}};
    case Cause::no_broker: return {install(facts.broker, "capgate-broker")};
    case Cause::no_tls_broker: return {install(facts.tls_broker, "capgate-broker-tls")};
    case Cause::no_store: return {install(facts.store, "capgate-store")};
    case Cause::memory_not_locked: return {lock_more_memory(facts)};
    case Cause::audit_not_writable:
      return {{.what = "set HOME or XDG_STATE_HOME to a directory of yours, or name a file with "
                       "run --audit FILE"}};
    case Cause::no_answer:
    case Cause::unknown: return {};
  }
  return {};
}

}  // namespace capgate::sandbox
