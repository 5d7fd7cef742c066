#include "lower/bpf.h"

#include <gtest/gtest.h>

#include "lower/seccomp_shared.h"
#include "support/bpf_interpreter.h"

namespace capgate::lower {
namespace {

using core::syscall;

std::vector<SeccompNeeds> all_needs() {
  std::vector<SeccompNeeds> all;
  all.reserve(64);
  for (unsigned bits = 0; bits < 64; ++bits) {
    all.push_back({.processes = (bits & 1) != 0,
                   .nested_sandbox = (bits & 2) != 0,
                   .unix_sockets = (bits & 4) != 0,
                   .netlink_route = (bits & 8) != 0,
                   .exec_token = (bits & 16) != 0,
                   .forwarder = (bits & 32) != 0});
  }
  return all;
}

std::uint32_t run(const BpfProgram& program, core::SyscallId call,
                  std::array<std::uint64_t, 6> args = {}) {
  const bool is_x86 = program.arch == Arch::x86_64;
  return test::interpret(program.code,
                         {.nr = static_cast<std::uint32_t>(syscall_number(program.arch, call)),
                          .arch = is_x86 ? bpf::audit_x86_64 : bpf::audit_aarch64,
                          .args = args});
}

TEST(BpfAssembler, WritesProgramsThatTheKernelAccepts) {
  for (const SeccompNeeds& needs : all_needs()) {
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const BpfProgram program = assemble(arch, seccomp_rules(needs));
      EXPECT_EQ(test::find_defect(program.code), "");
      EXPECT_LT(program.code.size(), 512U);
    }
  }
}

TEST(BpfAssembler, ChecksTheArchitectureFirst) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const BpfProgram program = assemble(arch, seccomp_rules({}));
    EXPECT_EQ(program.code[0], (BpfInstruction{.code = bpf::load, .k = bpf::offset_arch}));
    EXPECT_EQ(program.code[1].code, bpf::jump_if_equal);
  }
}

TEST(BpfAssembler, IsDeterministic) {
  for (const SeccompNeeds& needs : all_needs()) {
    EXPECT_EQ(assemble(Arch::x86_64, seccomp_rules(needs)),
              assemble(Arch::x86_64, seccomp_rules(needs)));
  }
}

TEST(BpfAssembler, AnswersEnosysWithoutAnyRule) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const BpfProgram program = assemble(arch, {});
    EXPECT_EQ(test::find_defect(program.code), "");
    EXPECT_EQ(run(program, syscall("read")), bpf::answer_errno | 38U);
  }
}

TEST(BpfAssembler, GivesTheFirstRuleThatAppliesTheWord) {
  const ArgTest small{.arg = 0, .mask = 0xfffffff0, .value = 0};
  const ArgTest odd{.arg = 0, .mask = 1, .value = 1};
  const BpfProgram program =
      assemble(Arch::x86_64, {
                                 {syscall("read"), kill_process, {small, odd}},
                                 {syscall("read"), not_permitted, {small}},
                                 {syscall("read"), allow, {odd}},
                             });
  EXPECT_EQ(run(program, syscall("read"), {3}), bpf::answer_kill_process);
  EXPECT_EQ(run(program, syscall("read"), {2}), bpf::answer_errno | 1U);
  EXPECT_EQ(run(program, syscall("read"), {17}), bpf::answer_allow);
  EXPECT_EQ(run(program, syscall("read"), {16}), bpf::answer_errno | 38U);
}

// Hundreds of comparisons in one call push everything else out of the reach of eight-bit jumps.
TEST(BpfAssembler, JumpsFurtherThanEightBits) {
  std::vector<Rule> rules;
  for (const core::SyscallId call : {syscall("read"), syscall("ioctl"), syscall("prctl")}) {
    for (std::uint32_t i = 0; i < 400; ++i) {
      const ArgTest first{.arg = static_cast<std::uint8_t>(i % 6), .mask = 0xffffffff, .value = i};
      rules.push_back({call, i % 2 == 0 ? allow : not_permitted, {first}});
    }
    rules.push_back({call, kill_process});
  }
  const BpfProgram program = assemble(Arch::x86_64, rules);
  ASSERT_EQ(test::find_defect(program.code), "");
  for (const core::SyscallId call : {syscall("read"), syscall("ioctl"), syscall("prctl")}) {
    for (std::uint32_t i = 0; i < 400; ++i) {
      std::array<std::uint64_t, 6> args{1000, 1000, 1000, 1000, 1000, 1000};
      EXPECT_EQ(run(program, call, args), bpf::answer_kill_process);
      args[i % 6] = i;
      EXPECT_EQ(run(program, call, args), i % 2 == 0 ? bpf::answer_allow : bpf::answer_errno | 1U);
    }
  }
}

TEST(BpfAssembler, SearchesInFewSteps) {
  const BpfProgram program = assemble(Arch::x86_64, seccomp_rules({}));
  std::size_t loads_of_arguments = 0;
  for (const BpfInstruction& instruction : program.code) {
    loads_of_arguments += instruction.code == bpf::load && instruction.k >= 16;
  }
  EXPECT_LT(program.code.size() - loads_of_arguments, 330U);
}

constexpr ExecToken token{0x11, 0x22, 0x33, 0x44, 0x55, 0x66};
constexpr std::uint64_t words_01 = 0x2200000011;
constexpr std::uint64_t words_23 = 0x4400000033;
constexpr std::uint64_t words_45 = 0x6600000055;

TEST(ExecToken, OpensExecveOnlyAsAWhole) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const BpfProgram program =
        bind_token(assemble(arch, seccomp_rules({.exec_token = true})), token);
    const core::SyscallId call = syscall("execve");
    EXPECT_EQ(run(program, call, {1, 2, 3, words_01, words_23, words_45}), bpf::answer_allow);
    for (std::size_t arg = 3; arg < 6; ++arg) {
      for (unsigned bit = 0; bit < 64; ++bit) {
        std::array<std::uint64_t, 6> args{1, 2, 3, words_01, words_23, words_45};
        args[arg] ^= std::uint64_t{1} << bit;
        EXPECT_EQ(run(program, call, args), bpf::answer_errno | 1U);
      }
    }
    EXPECT_EQ(run(program, call), bpf::answer_errno | 1U);
  }
}

TEST(ExecToken, OpensExecveatInItsOneFreeArgument) {
  const BpfProgram program =
      bind_token(assemble(Arch::aarch64, seccomp_rules({.exec_token = true})), token);
  const core::SyscallId call = syscall("execveat");
  EXPECT_EQ(run(program, call, {3, 0, 0, 0, 0x1000, words_45}), bpf::answer_allow);
  EXPECT_EQ(run(program, call, {3, 0, 0, 0, 0x1000, words_45 + 1}), bpf::answer_errno | 1U);
  EXPECT_EQ(run(program, call, {3, 0, 0, 0, 0x1000, 0x55}), bpf::answer_errno | 1U);
}

TEST(ExecToken, RefusesEveryExecUntilItIsFilledIn) {
  const BpfProgram program = assemble(Arch::x86_64, seccomp_rules({.exec_token = true}));
  EXPECT_EQ(program.token_patches.size(), 8U);
  EXPECT_EQ(run(program, syscall("execve")), bpf::answer_errno | 1U);
  EXPECT_EQ(run(program, syscall("execveat")), bpf::answer_errno | 1U);
}

TEST(ExecToken, LeavesOtherFiltersAlone) {
  for (const SeccompNeeds& needs :
       {SeccompNeeds{}, SeccompNeeds{.processes = true, .exec_token = true}}) {
    const BpfProgram program = assemble(Arch::x86_64, seccomp_rules(needs));
    EXPECT_TRUE(program.token_patches.empty());
    EXPECT_EQ(bind_token(program, token), program);
  }
}

TEST(BpfProgram, HasTheKernelsLayoutAsBytes) {
  const BpfProgram program{.arch = Arch::x86_64,
                           .code = {{0x20, 0, 0, 4}, {0x15, 1, 255, 0xc000003e}},
                           .token_patches = {}};
  using namespace std::string_literals;
  EXPECT_EQ(to_bytes(program), "\x20\0\0\0\x04\0\0\0\x15\0\x01\xff\x3e\0\0\xc0"s);
}

TEST(BpfProgram, ReadsAsOneLinePerInstruction) {
  const std::string text = dump(assemble(Arch::x86_64, {{syscall("write"), allow}}));
  EXPECT_EQ(text,
            "   0  load [4]                              ; architecture\n"
            "   1  if == 0xc000003e then 2 else 4        ; x86_64\n"
            "   2  load [0]                              ; call number\n"
            "   3  if >= 1073741824 then 4 else 5        ; x32 calls\n"
            "   4  return 0x80000000                     ; kill process\n"
            "   5  if >= 1 then 6 else 8                 ; write\n"
            "   6  if >= 2 then 8 else 7                 ; open\n"
            "   7  return 0x7fff0000                     ; allow\n"
            "   8  return 0x50026                        ; ENOSYS\n");
}

TEST(SharedFilter, IsBuiltOnceForEachQuestion) {
  for (const SeccompNeeds& needs : all_needs()) {
    for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
      const SharedFilter& filter = shared_filter(arch, needs);
      EXPECT_EQ(filter.program, assemble(arch, seccomp_rules(needs)));
      EXPECT_EQ(&filter, &shared_filter(arch, needs));
      EXPECT_EQ(filter.base64.size(), (filter.program.code.size() * 8 + 2) / 3 * 4);
    }
  }
}

}  // namespace
}  // namespace capgate::lower
