// A system call filter of a few lines, built where it is installed: init has no library and no
// compiler of rules. Two use it: the command of `capgate-init forward` loses what the engine's own
// filter had to leave open (forward_command.cc), and the forwarder itself keeps what its loop calls
// (forward_confine.cc).
#pragma once

#include <asm/unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "sandbox/init/raw.h"

namespace capgate::sandbox::init {

constexpr std::uint32_t not_permitted_answer = SECCOMP_RET_ERRNO | 1U;
constexpr std::uint32_t not_there_answer = SECCOMP_RET_ERRNO | 38U;

// A call whose argument, masked, has this value gets this answer. No mask: whatever it is.
struct CallAnswer {
  std::uint32_t call;
  std::uint32_t argument = 0;
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
  std::uint32_t answer = not_permitted_answer;
};

class Filter {
 public:
  Filter() {
    constexpr std::uint32_t architecture = 4;
    add(BPF_LD | BPF_W | BPF_ABS, architecture);
    add(BPF_JMP | BPF_JEQ | BPF_K, own_architecture, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
    constexpr std::uint32_t x32_bit = 0x40000000;
    add(BPF_LD | BPF_W | BPF_ABS, number);
    add(BPF_JMP | BPF_JGE | BPF_K, x32_bit, 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
#endif
  }

  void answer(const CallAnswer& rule) {
    add(BPF_LD | BPF_W | BPF_ABS, number);
    add(BPF_JMP | BPF_JEQ | BPF_K, rule.call, 0, 4);
    add(BPF_LD | BPF_W | BPF_ABS, first_argument + 8 * rule.argument);
    add(BPF_ALU | BPF_AND | BPF_K, rule.mask);
    add(BPF_JMP | BPF_JEQ | BPF_K, rule.value, 0, 1);
    add(BPF_RET | BPF_K, rule.answer);
  }

  // With this answer to everything that no rule was about.
  long install(std::uint32_t otherwise) {
    add(BPF_RET | BPF_K, otherwise);
    const sock_fprog program{.len = size_, .filter = code_};
    return call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
  }

 private:
#if defined(__x86_64__)
  static constexpr std::uint32_t own_architecture = AUDIT_ARCH_X86_64;
#else
  static constexpr std::uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#endif
  static constexpr std::uint32_t number = 0;
  static constexpr std::uint32_t first_argument = 16;  // its low half

  void add(unsigned code, std::uint32_t k, std::uint8_t yes = 0, std::uint8_t no = 0) {
    code_[size_++] = {static_cast<std::uint16_t>(code), yes, no, k};
  }

  sock_filter code_[128] = {};  // six for each rule, and seven
  unsigned short size_ = 0;
};

}  // namespace capgate::sandbox::init
