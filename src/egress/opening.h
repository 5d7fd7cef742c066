// What a client says first: enough of it to know the protocol and the name in it, and not a byte
// more than must be held back.
//
//   Opening opening;
//   co_await read_opening(loop, client, opening, limits)
//   opening.speech == Speech::tls, opening.hello.server_name == "api.github.com"
#pragma once

#include <string>
#include <string_view>

#include "egress/decide.h"
#include "egress/hello.h"
#include "egress/http.h"
#include "egress/loop.h"
#include "egress/policy.h"
#include "egress/task.h"

namespace capgate::egress {

struct Opening {
  std::string bytes;  // read so far; they belong to the origin once they are allowed
  Speech speech = Speech::unknown;
  bool is_malformed = false;  // it began as `speech` and is not valid
  ClientHello hello;
  HttpHead head;
};

// Where something else than TLS and HTTP may be spoken, what is only perhaps the start of a request
// is let go at once: its sender may wait for an answer before it goes on.
enum class Doubt : unsigned char { wait, let_go };

// Looks at the bytes again. True when the speech is known.
[[nodiscard]] bool recognise(Opening& opening, std::size_t most_bytes, Doubt doubt = Doubt::wait);

enum class Heard : unsigned char {
  all,         // the speech is known
  part,        // the client ended, or was silent too long, in the middle
  nothing,     // it ended without a word
  broken,      // the client broke it off
  taken_away,  // touch nothing
};

// How long to wait for the first byte (then the rest has the policy's hello_seconds), and for what.
struct Patience {
  bool is_limited = true;
  Doubt doubt = Doubt::wait;
};

[[nodiscard]] Async<Heard> read_opening(Loop& loop, Socket& client, Opening& opening,
                                        const EgressLimits& limits, Patience patience);

// Adds to a flow what its opening says.
void describe(Flow& flow, const Opening& opening);

// What an opening that stopped in the middle would have become, had it gone on: it is judged as
// that, without a name, since its rest would pass unread.
[[nodiscard]] Speech begun_speech(const Opening& opening);

// What a PostgreSQL client asks before its TLS hello: "may we?". Forwarded, then looked at anew.
inline constexpr std::string_view postgres_tls_request("\x00\x00\x00\x08\x04\xd2\x16\x2f", 8);

}  // namespace capgate::egress
