// A seccomp filter evaluated in the test, with no kernel: (architecture, call, arguments) ->
// answer.
//
//   const BpfProgram filter = assemble(Arch::x86_64, seccomp_rules({}));
//   ASSERT_EQ(find_defect(filter.code), "");
//   interpret(filter.code, {.nr = 435, .arch = bpf::audit_x86_64})  -> answer_errno | 38
//
// It knows the instructions that the kernel allows in a filter and that we or libseccomp write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "lower/bpf.h"

namespace capgate::test {

// struct seccomp_data, as the kernel hands it to the filter.
struct SeccompData {
  std::uint32_t nr = 0;
  std::uint32_t arch = 0;
  std::uint64_t instruction_pointer = 0;
  std::array<std::uint64_t, 6> args{};
};

using BpfCode = std::span<const lower::BpfInstruction>;

enum class BpfShape { load, alu, jump, branch, answer, unknown };

inline BpfShape shape_of(std::uint16_t code) {
  switch (code) {
    case 0x20: return BpfShape::load;    // ld [k]
    case 0x44:                           // or
    case 0x54:                           // and
    case 0x74: return BpfShape::alu;     // rsh
    case 0x05: return BpfShape::jump;    // ja
    case 0x15:                           // jeq
    case 0x25:                           // jgt
    case 0x35:                           // jge
    case 0x45: return BpfShape::branch;  // jset
    case 0x06: return BpfShape::answer;  // ret k
    default: return BpfShape::unknown;
  }
}

// What the kernel's checker (bpf_check_classic, seccomp_check_filter) would refuse: "" if nothing.
inline std::string find_defect(BpfCode code) {
  if (code.empty() || code.size() > lower::max_instructions) return "size out of bounds";
  if (shape_of(code.back().code) != BpfShape::answer) return "does not end with a return";
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto& [operation, jt, jf, k] = code[i];
    const std::size_t left = code.size() - i - 1;
    const std::string at = " at " + std::to_string(i);
    switch (shape_of(operation)) {
      case BpfShape::load:
        if (k % 4 != 0 || k >= 64) return "load outside of seccomp_data" + at;
        break;
      case BpfShape::jump:
        if (k >= left) return "jump out of the program" + at;
        break;
      case BpfShape::branch:
        if (jt >= left || jf >= left) return "branch out of the program" + at;
        break;
      case BpfShape::unknown: return "unknown instruction" + at;
      case BpfShape::alu:
      case BpfShape::answer: break;
    }
  }
  return "";
}

// `code` has no defect, so this ends: jumps only go forward, and no load leaves `data`. Tests run
// it hundreds of millions of times: it is one loop with no call, and sanitizers would double its
// time.
[[clang::no_sanitize("address", "undefined")]] inline std::uint32_t interpret(
    BpfCode code, const SeccompData& data) {
  std::uint32_t words[16];  // NOLINT: an operator of std::array would be a call
  static_assert(sizeof words == sizeof data);
  std::memcpy(&words, &data, sizeof words);
  std::uint32_t a = 0;
  for (const lower::BpfInstruction* next = code.data();; ++next) {
    const std::uint32_t k = next->k;
    bool is_taken = false;
    switch (next->code) {
      case 0x20: a = words[k / 4]; continue;  // NOLINT
      case 0x44: a |= k; continue;
      case 0x54: a &= k; continue;
      case 0x74: a >>= k; continue;
      case 0x05: next += k; continue;  // NOLINT
      case 0x06: return k;
      case 0x15: is_taken = a == k; break;
      case 0x25: is_taken = a > k; break;
      case 0x35: is_taken = a >= k; break;
      case 0x45: is_taken = (a & k) != 0; break;
      default: return 0;  // kill the thread: never an answer of ours
    }
    next += is_taken ? next->jt : next->jf;  // NOLINT
  }
}

}  // namespace capgate::test
