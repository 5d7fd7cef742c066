// What a person sees before approving a server, and what a program gets.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/candidate.h"
#include "clients/pin_diff.h"

namespace capgate::cli {

// What was approved of it, or is in the lock.
struct Before {
  std::string name;  // "what you approved on ..."
  clients::Pin pin;
  bool is_own_record = false;    // the user's, who saw the tools
  clients::PinDiff change = {};  // since then
};

struct Review {
  Candidate candidate;
  clients::Pin now;
  std::string lock = {};            // the file of --lock, or empty
  std::vector<Before> before = {};  // the user's record first

  void add_before(Before earlier) {
    earlier.change = diff(earlier.pin, now);
    before.push_back(std::move(earlier));
  }
};

// What the server may do, what changed, and its tools where they are seen for the first time.
[[nodiscard]] std::string shown(const Review& review);
[[nodiscard]] std::string review_json(const Review& review, bool is_approved);

}  // namespace capgate::cli
