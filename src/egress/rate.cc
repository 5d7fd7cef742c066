#include "egress/rate.h"

#include <algorithm>
#include <chrono>

namespace capgate::egress {

bool Rate::take(Time now, Time& next) {
  if (per_second_ == 0) return true;
  if (counted_ != Time{}) {
    const std::chrono::duration<double> passed = now - counted_;
    left_ = std::min(left_ + passed.count() * per_second_, 2.0 * per_second_);
  }
  counted_ = now;
  if (left_ >= 1) {
    left_ -= 1;
    return true;
  }
  next = now + std::chrono::milliseconds(1 + 1000 / per_second_);
  return false;
}

}  // namespace capgate::egress
