// Reading and writing that waits, for coroutines.
#pragma once

#include <sys/types.h>

#include <span>
#include <string_view>

#include "egress/loop.h"
#include "egress/task.h"

namespace capgate::egress {

inline constexpr ssize_t ended = 0;
inline constexpr ssize_t failed = -1;
inline constexpr ssize_t taken_away = -2;  // cancelled: the socket may be gone, touch nothing

// What is there, at most `into`: a count, or one of the three.
[[nodiscard]] Async<ssize_t> read_some(Loop& loop, Socket& socket, std::span<char> into,
                                       Time deadline);

// Everything: its size, `failed` or `taken_away`.
[[nodiscard]] Async<ssize_t> write_all(Loop& loop, Socket& socket, std::string_view bytes,
                                       Time deadline);

// Closes with a reset instead of a FIN: the peer sees that this was no ordinary end.
void reset_on_close(const Socket& socket);

}  // namespace capgate::egress
