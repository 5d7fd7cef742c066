// Header fields by which servers replace the method or the target of the request that they stand
// in.
//
//   is_override_field("X-HTTP-Method-Override")  ->  true
//   is_override_field("x_original_url")          ->  true: to many servers - and _ are the same
//
// Where a rule has methods= or paths=, a request with one is refused: what the broker compared is
// not what the server would act on.
#pragma once

#include <string_view>

namespace capgate::egress {

[[nodiscard]] bool is_override_field(std::string_view name);

}  // namespace capgate::egress
