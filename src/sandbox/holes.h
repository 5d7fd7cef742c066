// The holes of a Plan that are filled from the caller's environment: HOME, DISPLAY and the like.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"

namespace capgate::sandbox {

class Holes {
 public:
  Holes(const lower::Plan& plan, const std::vector<std::string>& environment);

  // The text with its ${NAME}s filled.
  [[nodiscard]] std::string filled(const std::string& text) const;
  // "NAME=VALUE" of the caller, or null.
  [[nodiscard]] const std::string* variable(std::string_view name) const;
  // Where the Plan puts the private HOME.
  [[nodiscard]] const std::string& home() const { return home_; }

 private:
  [[nodiscard]] std::string value_of(std::string_view name) const;
  [[nodiscard]] std::string display_number() const;

  const std::vector<std::string>& environment_;
  std::string home_;
};

}  // namespace capgate::sandbox
