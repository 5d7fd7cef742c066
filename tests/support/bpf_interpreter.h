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

inline std::uint32_t load_word(const SeccompData& data, std::uint32_t offset) {
  if (offset == 0) return data.nr;
  if (offset == 4) return data.arch;
  const bool is_pointer = offset < 16;
  const std::uint64_t whole =
      is_pointer ? data.instruction_pointer : data.args.at((offset - 16) / 8);
  return static_cast<std::uint32_t>(offset % 8 == 0 ? whole : whole >> 32);
}

inline std::uint32_t compute(std::uint16_t code, std::uint32_t a, std::uint32_t k) {
  if (code == 0x44) return a | k;
  return code == 0x54 ? a & k : a >> k;
}

inline bool is_taken(std::uint16_t code, std::uint32_t a, std::uint32_t k) {
  switch (code) {
    case 0x15: return a == k;
    case 0x25: return a > k;
    case 0x35: return a >= k;
    default: return (a & k) != 0;
  }
}

// `code` has no defect, so this ends: jumps only go forward.
inline std::uint32_t interpret(BpfCode code, const SeccompData& data) {
  std::uint32_t a = 0;
  for (std::size_t i = 0;; ++i) {
    const auto& [operation, jt, jf, k] = code[i];
    switch (shape_of(operation)) {
      case BpfShape::load: a = load_word(data, k); break;
      case BpfShape::alu: a = compute(operation, a, k); break;
      case BpfShape::jump: i += k; break;
      case BpfShape::branch: i += is_taken(operation, a, k) ? jt : jf; break;
      case BpfShape::answer: return k;
      case BpfShape::unknown: return 0;  // kill the thread: never an answer of ours
    }
  }
}

}  // namespace capgate::test
