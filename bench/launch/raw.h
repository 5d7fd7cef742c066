// System calls without a C library. What the benchmark starts must not spend time on its own
// start-up: glibc's costs more than the exec itself.
#pragma once

#include <asm/unistd.h>

#if defined(__x86_64__)
#define ENTRY_CODE "mov %rsp, %rdi\nand $-16, %rsp\ncall run\n"
static inline long raw_call(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
#define ENTRY_CODE "mov x0, sp\nbl run\n"
static inline long raw_call(long number, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
#else
#error "write raw_call for this processor"
#endif

// The kernel enters a program with the stack pointing at argc, argv, a null, the environment.
void run(long* stack);
__asm__(".globl _start\n_start:\n" ENTRY_CODE);

[[noreturn]] static inline void leave(int status) {
  for (;;) raw_call(__NR_exit_group, status, 0, 0, 0);
}
