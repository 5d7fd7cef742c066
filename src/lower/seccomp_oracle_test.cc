// libseccomp as the oracle: it is given the same rules, and both programs must give the same
// answers for every call, every combination of needs, both architectures, and arguments chosen to
// hurt.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <set>
#include <span>

#include "lower/bpf.h"
#include "lower/seccomp.h"
#include "lower/seccomp_docker.h"
#include "lower/seccomp_shared.h"
#include "support/bpf_interpreter.h"

namespace capgate::lower {
namespace {

using Code = std::vector<BpfInstruction>;
using Context = std::unique_ptr<void, decltype([](void* context) { seccomp_release(context); })>;

std::uint32_t seccomp_arch(Arch arch) {
  return arch == Arch::x86_64 ? SCMP_ARCH_X86_64 : SCMP_ARCH_AARCH64;
}
std::uint32_t audit_arch(Arch arch) {
  return arch == Arch::x86_64 ? bpf::audit_x86_64 : bpf::audit_aarch64;
}

std::uint32_t seccomp_action(const Action& action) {
  switch (action.kind) {
    case ActionKind::allow: return SCMP_ACT_ALLOW;
    case ActionKind::error: return SCMP_ACT_ERRNO(static_cast<std::uint32_t>(action.error));
    case ActionKind::kill_process: return SCMP_ACT_KILL_PROCESS;
  }
  return SCMP_ACT_KILL_PROCESS;
}

int resolve(core::SyscallId call) {
  return seccomp_syscall_resolve_name(std::string(core::syscall_info(call).name).c_str());
}

scmp_arg_cmp comparison(const DockerArg& arg) {
  switch (arg.op) {
    case DockerOp::masked_equal:
      return {
          .arg = arg.index, .op = SCMP_CMP_MASKED_EQ, .datum_a = arg.mask, .datum_b = arg.value};
    case DockerOp::at_least:
      return {.arg = arg.index, .op = SCMP_CMP_GE, .datum_a = arg.value, .datum_b = 0};
  }
  return {};
}

// As runc does it: an entry that says the same as the default is left out.
void add_entry(void* context, const DockerEntry& entry, const Action& otherwise) {
  if (entry.action == otherwise) return;
  std::vector<scmp_arg_cmp> args;
  args.reserve(entry.args.size());
  for (const DockerArg& arg : entry.args) {
    args.push_back(comparison(arg));
  }
  // Numbers given to the library are the build machine's; it translates them.
  const auto count = static_cast<unsigned>(args.size());
  ASSERT_EQ(seccomp_rule_add_array(context, seccomp_action(entry.action), resolve(entry.call),
                                   count, args.data()),
            0)
      << core::syscall_info(entry.call).name;
}

Code export_code(void* context) {
  const int fd = memfd_create("filter", MFD_CLOEXEC);
  EXPECT_EQ(seccomp_export_bpf(context, fd), 0);
  const auto size = static_cast<std::size_t>(lseek(fd, 0, SEEK_END));
  static_assert(sizeof(BpfInstruction) == 8);
  Code code(size / sizeof(BpfInstruction));
  EXPECT_EQ(pread(fd, code.data(), size, 0), static_cast<ssize_t>(size));
  close(fd);
  return code;
}

Code oracle(Arch arch, const std::vector<DockerEntry>& entries,
            const Action& otherwise = not_there) {
  const Context context(seccomp_init(seccomp_action(otherwise)));
  EXPECT_EQ(seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
  if (arch != Arch::x86_64) {
    EXPECT_EQ(seccomp_arch_add(context.get(), seccomp_arch(arch)), 0);
    EXPECT_EQ(seccomp_arch_remove(context.get(), SCMP_ARCH_X86_64), 0);
  }
  for (const DockerEntry& entry : entries) {
    add_entry(context.get(), entry, otherwise);
  }
  return export_code(context.get());
}

bool is_exec(const Rule& rule) {
  return rule.call == core::syscall("execve") || rule.call == core::syscall("execveat");
}

// The exec token has no counterpart outside (bpf_test.cc tests it), and this libseccomp does not
// know the newest calls. All other rules.
std::vector<Rule> comparable_rules(const SeccompNeeds& needs) {
  std::vector<Rule> rules = seccomp_rules(needs);
  std::erase_if(rules, [&](const Rule& rule) {
    return (needs.exec_token && is_exec(rule)) || resolve(rule.call) == __NR_SCMP_ERROR;
  });
  return rules;
}

// All combinations but those with an exec token: SeccompOracle.AnExecTokenChangesFewRules.
std::vector<SeccompNeeds> all_needs() {
  std::vector<SeccompNeeds> all;
  all.reserve(32);
  for (unsigned bits = 0; bits < 32; ++bits) {
    all.push_back({.processes = (bits & 1) != 0,
                   .nested_sandbox = (bits & 2) != 0,
                   .unix_sockets = (bits & 4) != 0,
                   .netlink_route = (bits & 8) != 0,
                   .forwarder = (bits & 16) != 0});
  }
  return all;
}

// The values that the rules compare with, their neighbours, single bits, and junk in the upper
// half.
std::vector<std::uint64_t> interesting_values(const std::vector<Rule>& rules) {
  std::set<std::uint32_t> low{0, 1, 2, 3, 5, 10, 16, 0x7fffffff, 0xffffffff, 04755, 0644};
  for (unsigned bit = 0; bit < 32; ++bit) {
    low.insert(1U << bit);
  }
  for (const Rule& rule : rules) {
    for (const ArgTest& test : rule.when) {
      low.insert({test.value, test.value + 1, test.value | ~test.mask, test.mask});
    }
  }
  std::vector<std::uint64_t> values(low.begin(), low.end());
  for (const std::uint32_t value : low) {
    values.push_back(0xdeadbeef00000000 | value);
  }
  return values;
}

struct Mismatch {
  std::size_t count = 0;
  test::SeccompData first;

  void compare(const Code& ours, const Code& theirs, const test::SeccompData& data) {
    if (test::interpret(ours, data) == test::interpret(theirs, data)) return;
    if (count++ == 0) first = data;
  }
};

std::string describe(const Mismatch& mismatch) {
  std::string text = std::to_string(mismatch.count) + " differ, first nr " +
                     std::to_string(mismatch.first.nr) + " args";
  for (const std::uint64_t arg : mismatch.first.args) {
    text += " " + std::to_string(arg);
  }
  return text;
}

// Every number with each value in one argument at a time, and with random mixes of them.
Mismatch compare_everywhere(Arch arch, const std::vector<Rule>& rules, const Code& theirs) {
  const Code ours = assemble(arch, rules).code;
  const std::vector<std::uint64_t> values = interesting_values(rules);
  std::set<std::uint32_t> conditional;
  for (const Rule& rule : rules) {
    if (!is_always_true(rule.when[0])) {
      conditional.insert(static_cast<std::uint32_t>(syscall_number(arch, rule.call)));
    }
  }
  Mismatch mismatch;
  for (const std::uint32_t nr : {0x3fffffffU, 0x40000000U, 0x40000001U, 0x80000000U}) {
    mismatch.compare(ours, theirs, {.nr = nr, .arch = audit_arch(arch)});
    mismatch.compare(ours, theirs, {.nr = nr & 0xff, .arch = 0x40000003});  // i386
  }
  std::minstd_rand random(7);  // NOLINT: the same values in every run
  for (std::uint32_t nr = 0; nr <= 600; ++nr) {
    test::SeccompData data{.nr = nr, .arch = audit_arch(arch)};
    mismatch.compare(ours, theirs, data);
    const std::size_t mixes = conditional.contains(nr) ? 50 : 2;
    for (std::size_t i = 0; i < mixes; ++i) {
      for (std::uint64_t& arg : data.args) {
        arg = values[random() % values.size()];
      }
      mismatch.compare(ours, theirs, data);
    }
    if (!conditional.contains(nr)) continue;
    for (std::size_t arg = 0; arg < 4; ++arg) {
      for (const std::uint64_t value : values) {
        data.args = {};
        data.args[arg] = value;
        mismatch.compare(ours, theirs, data);
      }
    }
  }
  return mismatch;
}

TEST(SyscallTable, AgreesWithLibseccompOnBothArchitectures) {
  std::size_t known = 0;
  for (const core::Syscall& entry : core::syscalls()) {
    const std::string name(entry.name);
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const int number = seccomp_syscall_resolve_name_arch(seccomp_arch(arch), name.c_str());
      if (number == __NR_SCMP_ERROR) continue;
      const int ours = arch == Arch::x86_64 ? entry.x86_64 : entry.aarch64;
      EXPECT_EQ(ours, number < 0 ? int{core::absent} : number) << name;  // negative: not there
      ++known;
    }
  }
  EXPECT_GT(known, 700U);
}

TEST(SyscallTable, MissesNoCallThatLibseccompKnows) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    for (int number = 0; number <= 600; ++number) {
      char* const name = seccomp_syscall_resolve_num_arch(seccomp_arch(arch), number);
      if (name == nullptr) continue;
      EXPECT_TRUE(core::find_syscall(name)) << name;
      free(name);  // NOLINT(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory)
    }
  }
}

TEST(SeccompOracle, AnExecTokenChangesFewRules) {
  const auto may_differ = [](const Rule& rule) {
    return is_exec(rule) || rule.call == core::syscall("memfd_create");
  };
  for (SeccompNeeds needs : all_needs()) {
    std::vector<Rule> without = seccomp_rules(needs);
    needs.exec_token = true;
    std::vector<Rule> with = seccomp_rules(needs);
    std::erase_if(without, may_differ);
    std::erase_if(with, may_differ);
    EXPECT_EQ(with, without);
  }
}

TEST(SeccompOracle, LibseccompGivesTheSameAnswers) {
  std::vector<SeccompNeeds> compared = all_needs();
  compared.push_back({.exec_token = true});
  for (const SeccompNeeds& needs : compared) {
    const std::vector<Rule> rules = comparable_rules(needs);
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const Code theirs = oracle(arch, docker_entries(rules, Precision::exact));
      const Mismatch mismatch = compare_everywhere(arch, rules, theirs);
      EXPECT_EQ(mismatch.count, 0U) << describe(mismatch);
    }
  }
}

RC_GTEST_PROP(SeccompOracle, AgreesOnRandomArguments, ()) {
  struct Pair {
    Code ours;
    Code theirs;
  };
  static const Pair pair = [] {
    const std::vector<Rule> rules = comparable_rules({.processes = true, .unix_sockets = true});
    return Pair{assemble(Arch::x86_64, rules).code,
                oracle(Arch::x86_64, docker_entries(rules, Precision::exact))};
  }();
  const auto args = *rc::gen::arbitrary<std::array<std::uint64_t, 6>>();
  for (std::uint32_t nr = 0; nr <= 600; ++nr) {
    const test::SeccompData data{.nr = nr, .arch = bpf::audit_x86_64, .args = args};
    RC_ASSERT(test::interpret(pair.ours, data) == test::interpret(pair.theirs, data));
  }
}

// A brief profile may refuse with another errno, and refuse calls with junk in an upper half. It
// must allow everything else that the filter allows, and nothing that it does not.
bool is_faithful(std::uint32_t profile, std::uint32_t filter, const test::SeccompData& data) {
  if (profile == bpf::answer_allow) return filter == bpf::answer_allow;
  const bool has_junk =
      std::ranges::any_of(data.args, [](std::uint64_t arg) { return arg > 0xffffffff; });
  return filter != bpf::answer_allow || has_junk;
}

std::size_t count_unfaithful(const Code& filter, const Code& profile,
                             std::span<const test::SeccompData> calls) {
  return static_cast<std::size_t>(std::ranges::count_if(calls, [&](const test::SeccompData& data) {
    return !is_faithful(test::interpret(profile, data), test::interpret(filter, data), data);
  }));
}

std::vector<test::SeccompData> random_calls(Arch arch, const std::vector<Rule>& rules) {
  const std::vector<std::uint64_t> values = interesting_values(rules);
  std::minstd_rand random(11);  // NOLINT: the same values in every run
  std::vector<test::SeccompData> calls(3'000);
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    calls[i].nr = i % 600;
    calls[i].arch = audit_arch(arch);
    for (std::uint64_t& arg : calls[i].args) arg = values[random() % values.size()];
  }
  return calls;
}

// The grid in which libseccomp 2.5.4 was seen to go wrong: small numbers in all three arguments.
std::vector<test::SeccompData> socket_calls(Arch arch) {
  std::vector<test::SeccompData> calls;
  for (const core::SyscallId call : {core::syscall("socket"), core::syscall("socketpair")}) {
    const auto nr = static_cast<std::uint32_t>(syscall_number(arch, call));
    for (std::uint32_t grid = 0; grid < 20 * 20 * 20; ++grid) {
      calls.push_back(
          {.nr = nr, .arch = audit_arch(arch), .args = {grid % 20, grid / 20 % 20, grid / 400}});
    }
  }
  return calls;
}

// With the default of today's docker (ENOSYS) and of 20.10, which does not know defaultErrnoRet.
TEST(DockerProfile, IsNeverWiderThanTheFilterAndFitsTheKernel) {
  for (const SeccompNeeds& needs : all_needs()) {
    const std::vector<Rule> rules = comparable_rules(needs);
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const Code filter = assemble(arch, rules).code;
      const std::vector<test::SeccompData> random = random_calls(arch, rules);
      const std::vector<test::SeccompData> sockets = socket_calls(arch);
      for (const Action& otherwise : {not_there, not_permitted}) {
        const Code profile = oracle(arch, docker_entries(rules, Precision::brief), otherwise);
        EXPECT_LT(profile.size(), max_instructions);
        EXPECT_EQ(count_unfaithful(filter, profile, random), 0U);
        EXPECT_EQ(count_unfaithful(filter, profile, sockets), 0U);
      }
    }
  }
}

}  // namespace
}  // namespace capgate::lower
