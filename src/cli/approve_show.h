// What a person sees before approving a server, and what a program gets.
#pragma once

#include <optional>
#include <string>

#include "cli/candidate.h"
#include "clients/pin_diff.h"

namespace capgate::cli {

struct Review {
  Candidate candidate;
  clients::Pin now;
  std::optional<clients::Pin> before = {};  // what was approved of it, or is in the lock
  std::string before_name = {};             // "what you approved on ..."
  clients::PinDiff change = {};             // between the two
  std::string lock = {};                    // the file of --lock, or empty
  bool is_own_record = false;               // `before` is the user's own: he saw the tools
};

// What the server may do, what changed, and its tools where they are seen for the first time.
[[nodiscard]] std::string shown(const Review& review);
[[nodiscard]] std::string review_json(const Review& review, bool is_approved);

}  // namespace capgate::cli
