// Notices a secret in memory that is given back to the heap without being wiped. The sanitizers
// call a hook before each free().
//
//   const FreedMemory freed(value);    // a text that nothing else in the test frees
//   { handle(value); }
//   EXPECT_EQ(freed.unwiped(), 0U);
//
// Short texts lie inside a std::string and never reach the heap: take more than 15 bytes.
#pragma once

#include <gtest/gtest.h>
#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstddef>
#include <string_view>

namespace capgate::support {

class FreedMemory {
 public:
  explicit FreedMemory(std::string_view secret) : secret_(secret) {
    static const bool is_installed =
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free) > 0;
    EXPECT_TRUE(is_installed) << "this test needs a build with sanitizers";
    EXPECT_GT(secret.size(), 15U);
    EXPECT_EQ(watching.exchange(this), nullptr) << "one at a time";
  }
  ~FreedMemory() { watching = nullptr; }
  FreedMemory(const FreedMemory&) = delete;
  FreedMemory& operator=(const FreedMemory&) = delete;
  FreedMemory(FreedMemory&&) = delete;
  FreedMemory& operator=(FreedMemory&&) = delete;

  // Blocks that held the secret when they were freed.
  [[nodiscard]] std::size_t unwiped() const { return unwiped_; }

 private:
  static void on_malloc(const volatile void* /*block*/, std::size_t /*size*/) {}
  static void on_free(const volatile void* block) {
    FreedMemory* const self = watching;
    if (self == nullptr || block == nullptr) return;
    const auto* bytes = static_cast<const char*>(const_cast<const void*>(block));
    const std::string_view freed(bytes, __sanitizer_get_allocated_size(block));
    if (freed.find(self->secret_) != std::string_view::npos) ++self->unwiped_;
  }

  static inline std::atomic<FreedMemory*> watching = nullptr;
  const std::string_view secret_;
  std::atomic<std::size_t> unwiped_ = 0;
};

}  // namespace capgate::support
