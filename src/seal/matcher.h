// Finds any of several byte strings, at the speed of memory where none of them occurs.
//
//   const Matcher tokens({.patterns = {"ghp_1234", "sk-ant-56"}});
//   tokens.find("Bearer sk-ant-56", 0)  -> {.at = 7, .size = 9, .pattern = 1}
//   tokens.tail("Bearer sk-a", 0)       -> 7: what begins there may become a match
//
// After Wu and Manber: a window as long as the shortest pattern moves over the text, and the last
// three bytes of it say how far it can move at once. Text in which nothing occurs is mostly skipped
// without being looked at.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "seal/kept_memory.h"

namespace capgate::seal {

class Matcher {
 public:
  // Where patterns and what is derived from them lie: `locked` if they are secret.
  using Memory = KeptMemory::Kind;
  struct Options {
    std::vector<std::string_view> patterns;  // copied
    Memory memory = Memory::ordinary;
    std::size_t shortest = 4;  // shorter ones are kept, not searched; at least 3
  };
  struct Match {
    std::size_t at = 0;
    std::size_t size = 0;
    std::size_t pattern = 0;  // its index
    friend bool operator==(const Match&, const Match&) = default;
  };

  explicit Matcher(const Options& options);
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  Matcher(Matcher&&) = delete;
  Matcher& operator=(Matcher&&) = delete;
  ~Matcher() = default;

  // The first match that begins at `from` or later; the longest of those that begin there.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;
  // The first place, at `from` or later, from which on all text is a proper prefix of a pattern;
  // the end of the text if there is none.
  [[nodiscard]] std::size_t tail(std::string_view text, std::size_t from) const;
  [[nodiscard]] std::string_view pattern(std::size_t index) const;
  // Whether it is long enough to be searched.
  [[nodiscard]] bool is_searched(std::size_t index) const {
    return all_[index].size >= shortest_searched_;
  }
  // Of the patterns that are searched; the largest number if there are none.
  [[nodiscard]] std::size_t shortest() const { return shortest_; }

 private:
  static constexpr std::size_t hashes = 4096;
  static constexpr std::size_t block = 3;
  struct Entry {
    std::uint32_t offset = 0;  // in texts_
    std::uint32_t size = 0;
    std::uint32_t index = 0;
    std::uint32_t hash = 0;  // of the block at the end of its window
  };
  // All of it could tell what the patterns are.
  struct Tables {
    std::array<std::uint8_t, hashes> shifts;
    std::bitset<hashes> begins;  // a pattern begins with a block of that hash
  };

  [[nodiscard]] static std::size_t hash_before(const char* end);
  [[nodiscard]] static std::size_t memory_of(const Options& options);
  void divide_memory(const Options& options);
  void fill(const Options& options);
  [[nodiscard]] std::string_view text_of(const Entry& entry) const;
  [[nodiscard]] const Entry* longest_at(std::string_view rest, std::size_t hash) const;

  KeptMemory memory_;
  Tables* tables_ = nullptr;   // these four lie in the memory above
  std::span<Entry> searched_;  // sorted by hash
  std::span<Entry> all_;       // by index
  char* texts_ = nullptr;
  std::size_t shortest_searched_;
  std::size_t window_ = 0;
  std::size_t shortest_ = SIZE_MAX;
  std::size_t longest_ = 0;
};

}  // namespace capgate::seal
