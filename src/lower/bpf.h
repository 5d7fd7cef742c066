// Rules as a classic BPF program, the form in which the kernel takes a filter.
//
//   const BpfProgram filter = assemble(Arch::x86_64, seccomp_rules(needs));
//   to_bytes(filter)  -> what `bwrap --seccomp FD` reads: struct sock_filter, little-endian
//
// The first instructions kill the process on any other architecture (int 0x80 has its own call
// numbers) and on x32 numbers. Then a binary search over ranges of equal answers finds the call,
// and only calls whose answer depends on arguments look at them: about eight comparisons per call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lower/seccomp.h"

namespace capgate::lower {

// Layout and meaning of the kernel's struct sock_filter.
struct BpfInstruction {
  std::uint16_t code = 0;
  std::uint8_t jt = 0;
  std::uint8_t jf = 0;
  std::uint32_t k = 0;

  friend bool operator==(const BpfInstruction&, const BpfInstruction&) = default;
};

// The exec token as six words: execve must carry words 0 to 5 in its arguments 3, 4 and 5 (low half
// first), execveat, which has one argument left, words 4 and 5 in its argument 5.
using ExecToken = std::array<std::uint32_t, 6>;

// `k` of instruction `index` is word `word` of the token. Zero until a launcher fills it in.
struct TokenPatch {
  std::uint32_t index = 0;
  std::uint8_t word = 0;

  friend bool operator==(const TokenPatch&, const TokenPatch&) = default;
};

struct BpfProgram {
  Arch arch = Arch::x86_64;
  std::vector<BpfInstruction> code;
  std::vector<TokenPatch> token_patches;  // empty unless the rules ask for the token

  friend bool operator==(const BpfProgram&, const BpfProgram&) = default;
};

[[nodiscard]] BpfProgram assemble(Arch arch, const std::vector<Rule>& rules);

// The program for one launch. Words 0 and 4 must not be zero: an unfilled program refuses to exec,
// and so would this one.
[[nodiscard]] BpfProgram bind_token(BpfProgram program, const ExecToken& token);

[[nodiscard]] std::string to_bytes(const BpfProgram& program);

// One line per instruction, with absolute jump targets and what each number stands for.
[[nodiscard]] std::string dump(const BpfProgram& program);

// The kernel's limit (BPF_MAXINSNS).
inline constexpr std::size_t max_instructions = 4096;

// The few operations that a seccomp filter needs, and the offsets in struct seccomp_data.
namespace bpf {

inline constexpr std::uint16_t load = 0x20;              // A = word at k
inline constexpr std::uint16_t mask = 0x54;              // A &= k
inline constexpr std::uint16_t jump = 0x05;              // forward by k
inline constexpr std::uint16_t jump_if_equal = 0x15;     // A == k
inline constexpr std::uint16_t jump_if_at_least = 0x35;  // A >= k
inline constexpr std::uint16_t answer = 0x06;            // return k

inline constexpr std::uint32_t offset_number = 0;
inline constexpr std::uint32_t offset_arch = 4;
constexpr std::uint32_t offset_low(std::uint8_t arg) { return 16 + 8U * arg; }
constexpr std::uint32_t offset_high(std::uint8_t arg) { return offset_low(arg) + 4; }

inline constexpr std::uint32_t answer_allow = 0x7fff0000;
inline constexpr std::uint32_t answer_kill_process = 0x80000000;
inline constexpr std::uint32_t answer_errno = 0x00050000;

inline constexpr std::uint32_t audit_x86_64 = 0xc000003e;
inline constexpr std::uint32_t audit_aarch64 = 0xc00000b7;
inline constexpr std::uint32_t x32_bit = 0x40000000;

}  // namespace bpf

}  // namespace capgate::lower
