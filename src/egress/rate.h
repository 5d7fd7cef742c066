// A limit on how often something happens: new connections, requests.
//
//   Rate rate(100);
//   Time next;
//   while (!rate.take(loop.now(), next)) co_await loop.sleep_until(next);
#pragma once

#include <cstdint>

#include "egress/loop.h"

namespace capgate::egress {

// At most so many a second, saved up for two.
class Rate {
 public:
  explicit Rate(std::uint32_t per_second) : per_second_(per_second), left_(2.0 * per_second) {}
  // True if one more may come now; else `next` says when.
  [[nodiscard]] bool take(Time now, Time& next);
  // None came.
  void give_back() { left_ += 1; }

 private:
  std::uint32_t per_second_;  // 0: any number
  double left_;
  Time counted_{};
};

}  // namespace capgate::egress
