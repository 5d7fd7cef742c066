// System calls without a library. Every result is the kernel's: negative is an errno.
#pragma once

#include <cstddef>
#include <cstdint>

namespace capgate::sandbox::init {

// The registers of a system call: seven parameters, and variables that only the instruction
// changes. NOLINTBEGIN(readability-function-size, misc-const-correctness)
#if defined(__x86_64__)
inline long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                long f = 0) {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long raw(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                long f = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
}
#else
#error "capgate-init knows x86-64 and aarch64"
#endif
// NOLINTEND(readability-function-size, misc-const-correctness)

// Pointers and integers alike, so that a call reads as it does in C.
template <typename T>
long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline long word(std::nullptr_t) { return 0; }
template <typename T>
  requires(!__is_pointer(T))
long word(T value) {
  return static_cast<long>(value);
}

template <typename... Args>
long call(long number, Args... args) {
  return raw(number, word(args)...);
}

}  // namespace capgate::sandbox::init
