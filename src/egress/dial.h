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

// A socket that was made elsewhere, connected; null if that failed. It is watched only from then
// on: of one that is not connected the kernel says that its connection is over.
[[nodiscard]] Async<SocketPtr> connect(Loop& loop, sys::Fd fd, Address address, std::uint16_t port,
                                       Time deadline);

}  // namespace capgate::egress
