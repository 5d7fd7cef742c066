// What capgate-store does with a request.
#pragma once

#include <string>

#include "secrets/secret.h"
#include "store/request.h"

namespace capgate::store {

struct Answer {
  std::string out;        // for standard output
  secrets::Secret value;  // the same, of `get`
  std::string note;       // for standard error
};

[[nodiscard]] Outcome<Answer> carry_out(const Request& request);

}  // namespace capgate::store
