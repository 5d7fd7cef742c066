// Walks over those bytes of a text that are one of a few, and over the rest at the speed of memory.
//
//   Marks<'%', '&'> marks("a%b&c");
//   while (const auto at = marks.next()) ...   // 1, then 3
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace capgate::seal {

template <char... set>
class Marks {
 public:
  explicit Marks(std::string_view text) : text_(text) {}

  std::optional<std::size_t> next() {
    while (mask_ == 0) {
      if (text_.size() - read_ < block) return next_in_rest();
      mask_ = mask_of(text_.data() + read_);
      read_ += block;
    }
    const auto bit = static_cast<std::size_t>(std::countr_zero(mask_));
    mask_ &= mask_ - 1;
    return read_ - block + bit;
  }

 private:
  static constexpr std::size_t block = 16;

  [[nodiscard]] static bool is_mark(char c) { return ((c == set) || ...); }
  [[nodiscard]] static std::uint32_t mask_of(const char* bytes) {
#if defined(__SSE2__)
    const __m128i read = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
    __m128i hits = _mm_setzero_si128();
    ((hits = _mm_or_si128(hits, _mm_cmpeq_epi8(read, _mm_set1_epi8(set)))), ...);
    return static_cast<std::uint32_t>(_mm_movemask_epi8(hits));
#else
    std::uint32_t mask = 0;
    for (std::size_t i = 0; i < block; ++i) mask |= std::uint32_t{is_mark(bytes[i])} << i;
    return mask;
#endif
  }
  std::optional<std::size_t> next_in_rest() {
    for (; read_ < text_.size(); ++read_) {
      if (is_mark(text_[read_])) return read_++;
    }
    return std::nullopt;
  }

  std::string_view text_;
  std::size_t read_ = 0;
  std::uint32_t mask_ = 0;  // of the block that ends at `read_`
};

}  // namespace capgate::seal
