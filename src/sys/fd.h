// Owns one file descriptor. Empty after a move; closes on destruction.
#pragma once

#include <unistd.h>

#include <utility>

namespace capgate::sys {

class [[nodiscard]] Fd {
 public:
  Fd() = default;
  explicit Fd(int raw) noexcept : raw_(raw) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  Fd(Fd&& other) noexcept : raw_(std::exchange(other.raw_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd taken(std::move(other));
    std::swap(raw_, taken.raw_);
    return *this;
  }
  ~Fd() {
    if (raw_ >= 0) ::close(raw_);
  }
  [[nodiscard]] int get() const noexcept { return raw_; }

 private:
  int raw_ = -1;
};

}  // namespace capgate::sys
