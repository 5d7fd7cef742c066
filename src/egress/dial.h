// Connects to the first of several addresses that answers (RFC 8305): the next one is tried when
// one fails, or beside it after a quarter of a second. Only addresses that the caller has checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "egress/address.h"
#include "egress/loop.h"
#include "egress/task.h"

namespace capgate::egress {

struct Dialled {
  SocketPtr socket;  // null: `why`
  Address address;
  std::string why;
};

[[nodiscard]] Async<Dialled> dial(Loop& loop, std::vector<Address> addresses, std::uint16_t port,
                                  Time deadline);

}  // namespace capgate::egress
