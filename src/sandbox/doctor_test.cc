#include "sandbox/doctor.h"

#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sandbox/doctor_probes.h"

namespace capgate::sandbox {
namespace {

using Outcome = Attempt::Outcome;

Facts healthy() {
  Facts facts;
  facts.kernel = "6.12.0";
  facts.distribution = Distribution::debian;
  facts.uid = 1000;
  facts.program = "/usr/bin/capgate";
  facts.program_is_roots = true;
  facts.max_user_namespaces = 15000;
  for (Attempt& attempt : facts.attempts) attempt = Attempt::of(0);
  facts.landlock_abi = 6;
  facts.cgroups = {.kind = CgroupKind::v2, .directory = "/sys/fs/cgroup/x"};
  facts.has_ipv6 = true;
  facts.audit_directory = "/home/me/.local/state/capgate/audit";
  return facts;
}

// `check` fails; as on a real host, what follows in the same sandbox is not tried.
Facts failing(Check check, int err, Facts facts = healthy()) {
  facts.of(check) = Attempt::of(err);
  if (check < Check::pivot) {
    for (auto later = static_cast<std::size_t>(check) + 1;
         later <= static_cast<std::size_t>(Check::pivot); ++later) {
      facts.attempts[later] = {};
    }
  }
  return facts;
}

Finding finding(Check check, const Facts& facts) {
  return findings(facts)[static_cast<std::size_t>(check)];
}

constexpr Check required[] = {Check::namespaces,     Check::id_map,   Check::loopback,
                              Check::private_mounts, Check::tmpfs,    Check::proc,
                              Check::pivot,          Check::landlock, Check::seccomp};
constexpr Check optional_checks[] = {Check::listener,      Check::memfd_exec, Check::any_address,
                                     Check::redirect,      Check::broker,     Check::audit,
                                     Check::locked_memory, Check::tls_broker, Check::store};

TEST(Findings, AHealthyHostIsOkInEverything) {
  const auto all = findings(healthy());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(Check::count));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].check, static_cast<Check>(i));
    EXPECT_EQ(all[i].status, Status::ok) << name_of(all[i].check);
    EXPECT_FALSE(all[i].detail.empty());
    EXPECT_TRUE(all[i].remedies.empty());
  }
  EXPECT_TRUE(is_enforceable(all));
}

TEST(Findings, EveryRequiredAttemptThatFailsMakesTheHostUnenforceable) {
  for (const Check check : required) {
    const auto all = findings(failing(check, EPERM));
    EXPECT_EQ(all[static_cast<std::size_t>(check)].status, Status::failed) << name_of(check);
    EXPECT_FALSE(is_enforceable(all)) << name_of(check);
  }
}

TEST(Findings, EveryRequiredAttemptThatHangsOrWasNotMadeMakesTheHostUnenforceable) {
  for (const Check check : required) {
    for (const Outcome outcome : {Outcome::no_answer, Outcome::not_tried}) {
      Facts facts = healthy();
      facts.of(check) = {.outcome = outcome};
      EXPECT_FALSE(is_enforceable(findings(facts))) << name_of(check);
    }
  }
}

TEST(Findings, NothingTriedIsNothingEnforceable) {
  EXPECT_FALSE(is_enforceable(findings(Facts{})));
}

TEST(Findings, WhatIsNotRequiredOnlyLimits) {
  for (const Check check : optional_checks) {
    const auto all = findings(failing(check, EPERM));
    EXPECT_EQ(all[static_cast<std::size_t>(check)].status, Status::limited) << name_of(check);
    EXPECT_TRUE(is_enforceable(all)) << name_of(check);
  }
}

TEST(Findings, WhatFollowsAFailureIsUntestedAndNotOk) {
  const Facts facts = failing(Check::id_map, EACCES);
  EXPECT_EQ(finding(Check::namespaces, facts).status, Status::ok);
  for (const Check check : {Check::loopback, Check::proc, Check::pivot}) {
    EXPECT_EQ(finding(check, facts).status, Status::untested);
  }
  EXPECT_EQ(finding(Check::landlock, facts).status, Status::ok);
}

// ---- causes -------------------------------------------------------------------------------------

struct CauseCase {
  const char* name;
  Check check;
  int err;
  void (*change)(Facts&);
  Cause expected;
};
void nothing(Facts& /*facts*/) {}
void apparmor(Facts& facts) { facts.apparmor_restrict_userns = 1; }
void filtered(Facts& facts) { facts.is_filtered = true; }
void docker(Facts& facts) { facts.container = "docker"; }

const CauseCase cause_cases[] = {
    {"limit of user namespaces", Check::namespaces, ENOSPC,
     [](Facts& f) { f.max_user_namespaces = 0; }, Cause::user_limit},
    {"limit of others", Check::namespaces, ENOSPC,
     [](Facts& f) { f.zero_limits = {"user.max_net_namespaces"}; }, Cause::namespace_limit},
    {"an outer limit", Check::namespaces, ENOSPC, nothing, Cause::namespace_limit},
    {"too deep", Check::namespaces, EUSERS, nothing, Cause::namespace_limit},
    {"Debian's switch", Check::namespaces, EPERM, [](Facts& f) { f.unprivileged_userns_clone = 0; },
     Cause::userns_clone},
    {"the switch comes before AppArmor", Check::namespaces, EPERM,
     [](Facts& f) {
       f.unprivileged_userns_clone = 0;
       f.apparmor_restrict_userns = 1;
     },
     Cause::userns_clone},
    {"a switch that is on is not it", Check::namespaces, EPERM,
     [](Facts& f) { f.unprivileged_userns_clone = 1; }, Cause::unknown},
    {"unmapped", Check::namespaces, EPERM, [](Facts& f) { f.uid_is_mapped = false; },
     Cause::unmapped_user},
    {"chroot", Check::namespaces, EPERM, [](Facts& f) { f.is_chrooted = true; }, Cause::chroot},
    {"AppArmor refuses the namespace", Check::namespaces, EACCES, apparmor, Cause::apparmor},
    {"filter refuses clone3", Check::namespaces, EPERM, filtered, Cause::container_filter},
    {"filter hides clone3", Check::namespaces, ENOSYS, filtered, Cause::container_filter},
    {"container refuses", Check::namespaces, EPERM, docker, Cause::container_filter},
    {"a container without a filter hides nothing", Check::namespaces, ENOSYS, docker,
     Cause::old_kernel},
    {"no clone3", Check::namespaces, ENOSYS, nothing, Cause::old_kernel},
    {"no such namespace", Check::namespaces, EINVAL, nothing, Cause::old_kernel},
    {"refused for no visible reason", Check::namespaces, EPERM, nothing, Cause::unknown},
    {"out of memory", Check::namespaces, ENOMEM, apparmor, Cause::unknown},
    {"AppArmor: map", Check::id_map, EACCES, apparmor, Cause::apparmor},
    {"AppArmor: map, EPERM", Check::id_map, EPERM, apparmor, Cause::apparmor},
    {"AppArmor: loopback", Check::loopback, EPERM, apparmor, Cause::apparmor},
    {"AppArmor: mounts", Check::private_mounts, EACCES, apparmor, Cause::apparmor},
    {"AppArmor: proc", Check::proc, EPERM, apparmor, Cause::apparmor},
    {"AppArmor switched off", Check::loopback, EPERM,
     [](Facts& f) { f.apparmor_restrict_userns = 0; }, Cause::unknown},
    {"mount refused in a container", Check::private_mounts, EACCES, docker,
     Cause::container_filter},
    {"no new mount calls", Check::tmpfs, ENOSYS, nothing, Cause::old_kernel},
    {"covered proc in a container", Check::proc, EPERM, docker, Cause::container_proc},
    {"covered proc", Check::proc, EPERM, nothing, Cause::container_proc},
    {"initramfs", Check::pivot, EINVAL, [](Facts& f) { f.root_is_initramfs = true; },
     Cause::initramfs},
    {"chroot without a mount", Check::pivot, EINVAL, [](Facts& f) { f.is_chrooted = true; },
     Cause::chroot},
    {"pivot for no visible reason", Check::pivot, EINVAL, nothing, Cause::unknown},
    {"pivot filtered", Check::pivot, EPERM, filtered, Cause::container_filter},
    {"Landlock not started", Check::landlock, EOPNOTSUPP, nothing, Cause::landlock_not_started},
    {"Landlock not there", Check::landlock, ENOSYS, nothing, Cause::old_kernel},
    {"Landlock filtered", Check::landlock, ENOSYS, filtered, Cause::container_filter},
    {"no seccomp", Check::seccomp, EINVAL, nothing, Cause::old_kernel},
    {"a listener already", Check::listener, EBUSY, nothing, Cause::second_listener},
    {"no listeners", Check::listener, EINVAL, nothing, Cause::old_kernel},
    {"memfd", Check::memfd_exec, EACCES, [](Facts& f) { f.memfd_noexec = 2; },
     Cause::memfd_forbidden},
    {"memfd for another reason", Check::memfd_exec, EACCES, [](Facts& f) { f.memfd_noexec = 1; },
     Cause::unknown},
    {"cgroup of another", Check::cgroup, EACCES, nothing, Cause::no_delegation},
    {"cgroup read-only", Check::cgroup, EROFS, nothing, Cause::no_delegation},
    {"no cgroup", Check::cgroup, 0, nothing, Cause::no_cgroups},
    {"no nfnetlink", Check::redirect, EPROTONOSUPPORT, nothing, Cause::no_redirect},
    {"no nf_tables", Check::redirect, EOPNOTSUPP, nothing, Cause::no_redirect},
    {"no module for it", Check::redirect, ENOENT, nothing, Cause::no_redirect},
    {"redirect filtered", Check::redirect, EPERM, filtered, Cause::container_filter},
    {"route filtered", Check::any_address, EPERM, docker, Cause::container_filter},
    {"no broker", Check::broker, ENOENT, nothing, Cause::no_broker},
    {"no log", Check::audit, EROFS, nothing, Cause::audit_not_writable},
    {"no memory to lock", Check::locked_memory, ENOMEM, nothing, Cause::memory_not_locked},
    {"no broker for TLS", Check::tls_broker, ENOENT, nothing, Cause::no_tls_broker},
    {"no store", Check::store, ENOENT, nothing, Cause::no_store},
    {"it worked", Check::proc, 0, apparmor, Cause::none},
};

TEST(CauseOf, TellsWhatTheErrorAndTheHostMeanTogether) {
  for (const CauseCase& one : cause_cases) {
    Facts facts = healthy();
    one.change(facts);
    EXPECT_EQ(name_of(cause_of(one.check, one.err, facts)), name_of(one.expected)) << one.name;
  }
}

TEST(CauseOf, OnWsl1EveryFailureIsWsl1) {
  Facts facts = healthy();
  facts.wsl = Wsl::wsl1;
  facts.apparmor_restrict_userns = 1;
  for (const Check check : required) {
    EXPECT_EQ(cause_of(check, EINVAL, facts), Cause::wsl1);
    EXPECT_EQ(cause_of(check, ENOSYS, facts), Cause::wsl1);
  }
}

TEST(Findings, TheFailedOneCarriesCauseReasonAndRemedy) {
  Facts facts = failing(Check::namespaces, ENOSPC);
  facts.max_user_namespaces = 0;
  const Finding found = finding(Check::namespaces, facts);
  EXPECT_EQ(found.cause, Cause::user_limit);
  EXPECT_EQ(found.detail, "No space left on device: user.max_user_namespaces is 0");
  EXPECT_EQ(found.remedies, remedies(Cause::user_limit, facts));
}

TEST(Findings, OldLandlockLimitsBelowAbi3) {
  for (const auto& [abi, status] : {std::pair(1U, Status::limited),
                                    {2U, Status::limited},
                                    {3U, Status::ok},
                                    {7U, Status::ok},
                                    {99U, Status::ok}}) {
    Facts facts = healthy();
    facts.landlock_abi = abi;
    EXPECT_EQ(finding(Check::landlock, facts).status, status) << abi;
    EXPECT_TRUE(is_enforceable(findings(facts)));
  }
}

TEST(Findings, CgroupsLimitButNeverForbid) {
  Facts facts = healthy();
  facts.cgroups = {.kind = CgroupKind::v1, .directory = "/g", .missing = {"pids", "cpu"}};
  EXPECT_EQ(finding(Check::cgroup, facts).status, Status::limited);
  EXPECT_EQ(finding(Check::cgroup, facts).detail, "v1 in /g, without pids and cpu");
  EXPECT_EQ(finding(Check::cgroup, facts).cause, Cause::controllers_missing);
  facts.cgroups = {.err = EACCES, .directory = "/g"};
  facts.of(Check::cgroup) = Attempt::of(EACCES);
  EXPECT_EQ(finding(Check::cgroup, facts).cause, Cause::no_delegation);
  facts.cgroups = {.directory = "/g", .missing = {"memory"}};
  EXPECT_EQ(finding(Check::cgroup, facts).cause, Cause::controllers_missing);
  facts.cgroups = {};
  facts.of(Check::cgroup) = {.outcome = Outcome::failed};
  EXPECT_EQ(finding(Check::cgroup, facts).cause, Cause::no_cgroups);
  EXPECT_TRUE(is_enforceable(findings(facts)));
}

TEST(Findings, YamaLimitsTracingOnlyWhenItForbidsParents) {
  for (const std::uint64_t scope : {0U, 1U, 2U}) {
    Facts facts = healthy();
    facts.ptrace_scope = scope;
    EXPECT_EQ(finding(Check::listener, facts).status, Status::ok) << scope;
  }
  Facts facts = healthy();
  facts.ptrace_scope = 3;
  EXPECT_EQ(finding(Check::listener, facts).cause, Cause::ptrace_forbidden);
}

TEST(Findings, WhatTheNetworkLacksNamesTheCapabilitiesThatNeedIt) {
  Facts facts = failing(Check::redirect, ENOENT);
  EXPECT_EQ(finding(Check::redirect, facts).detail,
            "No such file or directory: this kernel has no nf_tables redirect; net:connect without "
            "a port (net:connect:*), and net:listen at a port that is also connected to, are "
            "refused");
  facts = failing(Check::audit, EROFS);
  EXPECT_EQ(finding(Check::audit, facts).detail,
            "Read-only file system: no log can be made in /home/me/.local/state/capgate/audit; "
            "net:connect and net:listen are refused without run --audit FILE");
  facts = failing(Check::broker, ENOENT);
  facts.broker.problem = "net capabilities need /opt/capgate-broker: No such file or directory";
  facts.broker.help = "install it there";
  const Finding found = finding(Check::broker, facts);
  EXPECT_EQ(found.detail, facts.broker.problem + "; net:connect and net:listen are refused");
  ASSERT_EQ(found.remedies.size(), 1U);
  EXPECT_EQ(found.remedies[0].what, "install it there");
}

TEST(Findings, WhatSecretsLackNamesWhatNeedsIt) {
  Facts facts = failing(Check::locked_memory, ENOMEM);
  EXPECT_EQ(finding(Check::locked_memory, facts).detail,
            "Cannot allocate memory: this user may lock too little memory (RLIMIT_MEMLOCK); "
            "env:inject is refused where values do not fit");
  ASSERT_EQ(finding(Check::locked_memory, facts).remedies.size(), 1U);
  EXPECT_EQ(finding(Check::locked_memory, facts).remedies[0].file->contents, "* - memlock 8192\n");
  facts = failing(Check::tls_broker, ENOENT);
  EXPECT_EQ(finding(Check::tls_broker, facts).detail,
            "capgate-broker-tls is not beside capgate; env:inject with to= is refused");
  facts = failing(Check::store, ENOENT);
  EXPECT_EQ(finding(Check::store, facts).detail,
            "capgate-store is not beside capgate; capgate secret and --secret NAME=store:... are "
            "refused");
}

TEST(Findings, AHostWithoutIpv6LacksNothing) {
  Facts facts = healthy();
  facts.has_ipv6 = false;
  EXPECT_EQ(finding(Check::any_address, facts).status, Status::ok);
  EXPECT_TRUE(finding(Check::any_address, facts).detail.contains("no IPv6"));
}

// ---- what the launcher says ---------------------------------------------------------------------

TEST(ExplainLaunchFailure, NamesStepReasonCauseAndRemedy) {
  Facts facts = healthy();
  facts.max_user_namespaces = 0;
  EXPECT_EQ(explain_launch_failure("clone3", ENOSPC, facts),
            "clone3 failed: No space left on device. user.max_user_namespaces is 0. To fix it: "
            "allow user namespaces; sudo sysctl -w user.max_user_namespaces=15000; echo "
            "'user.max_user_namespaces=15000' | sudo tee -a /etc/sysctl.d/90-capgate.conf.");
}

TEST(ExplainLaunchFailure, PointsToTheFileThatDoctorPrints) {
  Facts facts = healthy();
  facts.apparmor_restrict_userns = 1;
  for (const char* step : {"id_maps", "uid_map", "id-map", "loopback", "private_tree"}) {
    const std::string text = explain_launch_failure(step, EPERM, facts);
    EXPECT_TRUE(text.contains("create /etc/apparmor.d/capgate as `capgate doctor` prints it"))
        << text;
    EXPECT_FALSE(text.contains('\n'));
  }
}

TEST(ExplainLaunchFailure, AnUnknownStepStillGetsItsReason) {
  EXPECT_EQ(explain_launch_failure("moonwalk", EIO, healthy()),
            "moonwalk failed: Input/output error; `capgate doctor` shows what this machine can "
            "enforce");
}

// ---- printing -----------------------------------------------------------------------------------

TEST(DoctorText, ShowsTheFileToCreateLineByLine) {
  Facts facts = failing(Check::loopback, EPERM);
  facts.distribution = Distribution::ubuntu;
  facts.apparmor_restrict_userns = 1;
  const std::string text = doctor_text(facts);
  EXPECT_TRUE(text.contains("| profile capgate /usr/bin/capgate flags=(unconfined) {\n")) << text;
  EXPECT_TRUE(text.contains("No sandbox can be enforced here")) << text;
}

TEST(DoctorText, ForeignTextCannotSteerTheTerminal) {
  Facts facts = healthy();
  facts.pretty_name = "\x1b[2Jevil";
  facts.container = "\x1b]0;x";
  EXPECT_FALSE(doctor_text(facts).contains('\x1b'));
  EXPECT_FALSE(doctor_json(facts).contains('\x1b'));
}

// ---- the attempts themselves --------------------------------------------------------------------

TEST(InAChild, CollectsWhatTheChildTells) {
  const auto answers = in_a_child(
      [](const Reporter& reporter, const void*) {
        reporter.tell({.check = Check::proc, .err = EPERM});
        reporter.tell({.check = Check::pivot, .value = 7});
      },
      nullptr, 5000);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].err, EPERM);
  EXPECT_EQ(answers[1].value, 7U);
}

TEST(InAChild, EndsAChildThatHangsAndKeepsWhatItSaid) {
  const auto answers = in_a_child(
      [](const Reporter& reporter, const void*) {
        reporter.tell({.check = Check::id_map});
        while (true) ::pause();
      },
      nullptr, 50);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].check, Check::id_map);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
}

TEST(InAChild, AKilledChildIsNoSuccess) {
  EXPECT_TRUE(
      in_a_child([](const Reporter&, const void*) { ::raise(SIGKILL); }, nullptr, 5000).empty());
}

TEST(ProbeHost, AnswersEveryCheckAndLeavesNoChild) {
  const Facts facts = probe_host("/proc/nowhere/audit");
  EXPECT_FALSE(facts.kernel.empty());
  EXPECT_NE(facts.of(Check::namespaces).outcome, Outcome::not_tried);
  for (const Check check : {Check::landlock, Check::seccomp, Check::listener, Check::memfd_exec,
                            Check::cgroup, Check::any_address, Check::redirect, Check::broker,
                            Check::audit, Check::locked_memory, Check::tls_broker, Check::store}) {
    EXPECT_NE(facts.of(check).outcome, Outcome::not_tried) << name_of(check);
    EXPECT_NE(facts.of(check).outcome, Outcome::no_answer) << name_of(check);
  }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child was left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(TryAudit, ADirectoryThatIsNotThereYetIsJudgedByWhereItWouldBeMade) {
  const std::string place = ::testing::TempDir();
  const auto writable = try_audit(place + "/not/there/yet");
  ASSERT_EQ(writable.size(), 1U);
  EXPECT_EQ(writable[0].err, 0);
  EXPECT_NE(::access((place + "/not").c_str(), F_OK), 0) << "something was made";
  const auto impossible = try_audit("/proc/nowhere/audit");
  ASSERT_EQ(impossible.size(), 1U);
  EXPECT_NE(impossible[0].err, 0);
}

TEST(CarryOut, TellsTheKernelsError) {
  EXPECT_EQ(carry_out(-1, "x"), EPROTONOSUPPORT);
  const std::string unknown = {20, 0, 0, 0, 0x7f, 0x7f, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(carry_out(NETLINK_ROUTE, unknown), EOPNOTSUPP);
}

TEST(ProbeHost, DoesNotConfineTheCaller) {
  const int before = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
  (void)probe_host("/proc/nowhere/audit");
  EXPECT_EQ(::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), before);
  EXPECT_EQ(::access("/", R_OK), 0);
}

}  // namespace
}  // namespace capgate::sandbox
