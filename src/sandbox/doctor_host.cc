// Gathers the Facts: from files, and from the attempts.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "sandbox/beside.h"
#include "sandbox/broker.h"
#include "sandbox/doctor.h"
#include "sandbox/doctor_files.h"
#include "sandbox/doctor_probes.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

constexpr std::size_t most_bytes = 1 << 20;

// Absent and unreadable are the same here: nothing is known.
std::string text_of(const std::string& path) {
  auto text = sys::read_file(path, most_bytes);
  return text ? std::move(*text) : std::string();
}

Setting setting(std::string_view key) {
  std::string path = format("/proc/sys/{}", key);
  std::ranges::replace(path, '.', '/');
  return parse_decimal(trim(text_of(path)));
}

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

std::string container() {
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  if (exists("/run/.containerenv")) return "podman";
  if (exists("/.dockerenv")) return "docker";
  std::string systemd(trim(text_of("/run/systemd/container")));
  if (!systemd.empty()) return systemd;
  return container_of_cgroup(text_of("/proc/self/cgroup"));
}

std::string own_path() {
  char path[4096];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

// Nobody else can replace it, or a directory on the way to it.
bool only_root_can_replace(std::string path) {
  while (!path.empty()) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0 || info.st_uid != 0) return false;
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
    path.resize(path.rfind('/'));
  }
  return true;
}

std::vector<std::string> zero_limits() {
  std::vector<std::string> zeros;
  for (const std::string_view kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}) {
    std::string key = format("user.max_{}_namespaces", kind);
    if (setting(key) == 0U) zeros.push_back(std::move(key));
  }
  return zeros;
}

void read_mounts(Facts& facts) {
  const auto mounts = parse_mountinfo(text_of("/proc/self/mountinfo"));
  const auto root = std::ranges::find(mounts, "/", &MountLine::point);
  facts.is_chrooted = !mounts.empty() && root == mounts.end();
  // Later lines lie on top of earlier ones.
  for (const MountLine& mount : mounts) {
    if (mount.point == "/") facts.root_is_initramfs = mount.type == "rootfs";
  }
}

void record(const std::vector<Answer>& answers, Check first, Check last, Facts& facts) {
  for (auto i = static_cast<std::size_t>(first); i <= static_cast<std::size_t>(last); ++i) {
    const auto check = static_cast<Check>(i);
    const auto answer = std::ranges::find(answers, check, &Answer::check);
    if (answer == answers.end()) {
      facts.of(check).outcome = Attempt::Outcome::no_answer;
      return;
    }
    facts.of(check) = Attempt::of(answer->err);
    if (check == Check::landlock) facts.landlock_abi = answer->value;
    if (answer->err != 0) return;
  }
}

void probe_cgroups(Facts& facts) {
  const auto places =
      cgroup_places(text_of("/proc/self/cgroup"), parse_mountinfo(text_of("/proc/self/mountinfo")));
  const std::vector<Answer> answers = try_cgroups(places);
  std::vector<CgroupTrial> trials;
  for (const Answer& answer : answers) {
    if (answer.value >= places.size()) continue;
    const CgroupPlace& place = places[answer.value];
    trials.push_back(
        {.place = place,
         .err = answer.err,
         .controllers = std::string(trim(text_of(place.directory + "/cgroup.controllers")))});
  }
  facts.cgroups = choose_cgroups(trials);
  const bool all_answered = trials.size() == places.size();
  facts.of(Check::cgroup) = {.outcome = facts.cgroups.kind != CgroupKind::none
                                            ? Attempt::Outcome::worked
                                        : all_answered ? Attempt::Outcome::failed
                                                       : Attempt::Outcome::no_answer,
                             .err = facts.cgroups.err};
}

// Neither of the two depends on the other.
void record_network(const std::vector<Answer>& answers, Facts& facts) {
  if (!facts.of(Check::loopback).worked()) return;
  record(answers, Check::any_address, Check::any_address, facts);
  record(answers, Check::redirect, Check::redirect, facts);
  const auto answer = std::ranges::find(answers, Check::any_address, &Answer::check);
  facts.has_ipv6 = answer != answers.end() && answer->value != 0;
}

Attempt look_for(std::expected<sys::Fd, Refusal> program, Missing& missing) {
  if (program) return Attempt::of(0);
  missing = {.problem = std::move(program.error().message),
             .help = std::move(program.error().help)};
  return Attempt::of(ENOENT);
}

void look_for_programs(Facts& facts) {
  facts.of(Check::broker) = look_for(find_broker(plain_broker), facts.broker);
  facts.of(Check::tls_broker) = look_for(
      find_beside({.name = tls_broker, .needed_by = "sealed secrets need"}), facts.tls_broker);
  facts.of(Check::store) = look_for(
      find_beside({.name = "capgate-store", .needed_by = "stored secrets need"}), facts.store);
}

}  // namespace

Facts read_host() {
  Facts facts;
  facts.kernel = trim(text_of("/proc/sys/kernel/osrelease"));
  std::string os_release = text_of("/etc/os-release");
  if (os_release.empty()) os_release = text_of("/usr/lib/os-release");
  facts.pretty_name = os_release_value(os_release, "PRETTY_NAME");
  facts.distribution = distribution_of(os_release);
  facts.wsl = wsl_of(facts.kernel);
  facts.container = container();
  facts.uid = ::geteuid();
  facts.uid_is_mapped = !trim(text_of("/proc/self/uid_map")).empty();
  facts.is_filtered = status_value(text_of("/proc/self/status"), "Seccomp") == "2";
  read_mounts(facts);
  facts.program = own_path();
  facts.program_is_roots = only_root_can_replace(facts.program);
  facts.apparmor_profile = trim(text_of("/proc/self/attr/apparmor/current"));
  facts.lsm = trim(text_of("/sys/kernel/security/lsm"));
  facts.zero_limits = zero_limits();
  facts.max_user_namespaces = setting("user.max_user_namespaces");
  facts.unprivileged_userns_clone = setting("kernel.unprivileged_userns_clone");
  facts.apparmor_restrict_userns = setting("kernel.apparmor_restrict_unprivileged_userns");
  facts.ptrace_scope = setting("kernel.yama.ptrace_scope");
  facts.memfd_noexec = setting("vm.memfd_noexec");
  return facts;
}

Facts probe_host(const std::string& audit_directory) {
  Facts facts = read_host();
  Ids ids;
  if (facts.uid == 0) {
    ids = {.uid = unowned_id(text_of("/proc/self/uid_map")),
           .gid = unowned_id(text_of("/proc/self/gid_map"))};
  }
  const std::vector<Answer> answers = try_sandbox(ids);
  record(answers, Check::namespaces, Check::pivot, facts);
  record_network(answers, facts);
  record(try_landlock(), Check::landlock, Check::landlock, facts);
  record(try_seccomp(), Check::seccomp, Check::seccomp, facts);
  record(try_listener(), Check::listener, Check::listener, facts);
  record(try_memfd_exec(), Check::memfd_exec, Check::memfd_exec, facts);
  probe_cgroups(facts);
  look_for_programs(facts);
  facts.audit_directory = audit_directory;
  record(try_audit(audit_directory), Check::audit, Check::audit, facts);
  record(try_locked_memory(ids), Check::locked_memory, Check::locked_memory, facts);
  return facts;
}

}  // namespace capgate::sandbox
