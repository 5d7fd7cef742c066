#include "egress/decide.h"

namespace capgate::egress {

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::allowed: return "allowed";
    case Reason::no_rule: return "no-rule";
    case Reason::no_name: return "no-name";
    case Reason::other_name: return "other-name";
    case Reason::inner_name_unknown: return "inner-name-unknown";
    case Reason::not_spoken_here: return "not-spoken-here";
    case Reason::other_method: return "other-method";
    case Reason::other_path: return "other-path";
    case Reason::private_address: return "private-address";
    case Reason::own_address: return "own-address";
  }
  return "";
}

}  // namespace capgate::egress
