// How much the relays of one broker may hold back altogether: bodies whose reader is slow, heads
// that wait for an answer. Without it, each connection of HTTP/2 could fill a window for each of
// its streams.
//
//   BufferBudget budget;
//   BufferBudget::Room room(&budget);
//   if (!room.grow(16384, BufferBudget::Use::bodies)) ...   // wait until somebody reads
//   room.shrink(16384);                                     // and when it ends, all of it
#pragma once

#include <cstddef>
#include <utility>

namespace capgate::seal {

class BufferBudget {
 public:
  // Bytes as they are counted; strings that grow may take up twice as much memory. All streams of
  // one connection may wait without stopping another one.
  static constexpr std::size_t usual = 40U << 20U;
  // Bodies can wait, so they leave something for heads, which cannot.
  enum class Use : unsigned char { bodies, heads };

  explicit BufferBudget(std::size_t most = usual) : most_(most) {}
  [[nodiscard]] std::size_t used() const { return used_; }

  // A part of it, given back when it ends.
  class Room {
   public:
    Room() = default;
    // Without a budget there is no limit.
    explicit Room(BufferBudget* budget) : budget_(budget) {}
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    Room(Room&& other) noexcept : budget_(other.budget_), size_(std::exchange(other.size_, 0)) {}
    Room& operator=(Room&& other) noexcept {
      shrink(size_);
      budget_ = other.budget_;
      size_ = std::exchange(other.size_, 0);
      return *this;
    }
    ~Room() { shrink(size_); }

    [[nodiscard]] bool grow(std::size_t count, Use use) {
      if (budget_ != nullptr && !budget_->take(count, use)) return false;
      size_ += count;
      return true;
    }
    void shrink(std::size_t count) {
      if (budget_ != nullptr) budget_->used_ -= count;
      size_ -= count;
    }
    [[nodiscard]] std::size_t size() const { return size_; }

   private:
    BufferBudget* budget_ = nullptr;
    std::size_t size_ = 0;
  };

 private:
  [[nodiscard]] bool take(std::size_t count, Use use) {
    const std::size_t most = use == Use::heads ? most_ : most_ / 4 * 3;
    if (used_ + count > most) return false;
    used_ += count;
    return true;
  }

  std::size_t most_;
  std::size_t used_ = 0;
};

}  // namespace capgate::seal
