// Memory that runs out: the n-th allocation from now on fails, and all after it. For one test
// program, which includes this in one file.
//
//   for (std::size_t n = 0; with_scarce_memory(n, [&] { use(); }); ++n) {}   until it is enough
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace capgate::support {

inline thread_local bool is_scarce = false;
inline thread_local std::size_t left = 0;
inline thread_local bool ran_out = false;

// True if the memory ran out.
template <typename Use>
bool with_scarce_memory(std::size_t allocations, Use use) {
  left = allocations;
  ran_out = false;
  is_scarce = true;
  use();
  is_scarce = false;
  return ran_out;
}

inline void* allocate(std::size_t size) {
  if (is_scarce) {
    if (left == 0) {
      ran_out = true;
      throw std::bad_alloc();
    }
    --left;
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace capgate::support

void* operator new(std::size_t size) { return capgate::support::allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
