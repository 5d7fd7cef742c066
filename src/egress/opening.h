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
  std::string bytes;       // read so far; they belong to the origin once they are allowed
  std::size_t passed = 0;  // of these, what the origin has already (Heard::doubt)
  Speech speech = Speech::unknown;
  bool is_malformed = false;  // it began as `speech` and is not valid
  ClientHello hello;
  HttpHead head;
};

// Looks at the bytes again. True when the speech is known.
[[nodiscard]] bool recognise(Opening& opening, std::size_t most_bytes);

// Of bytes that are not recognised: true if they are hardly the start of a request, and name
// nothing yet. Where something else than TLS and HTTP may be spoken they are passed on, since their
// sender may wait for an answer; they are still looked at together with what follows.
[[nodiscard]] bool is_in_doubt(const Opening& opening);

enum class Heard : unsigned char {
  all,         // the speech is known
  doubt,       // not yet, and the client may wait for the origin (never with Doubt::wait)
  part,        // the client ended, or was silent too long, in the middle
  nothing,     // it ended without a word: a client that tried two addresses and took the other
  silent,      // it said nothing in time
  broken,      // the client broke it off
  taken_away,  // touch nothing
};

enum class Doubt : unsigned char {
  wait,
  tell,      // where the bytes name nothing yet
  tell_all,  // also within a hello or a request: anything may be spoken
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

// How many bytes of the start are what a PostgreSQL client asks before its TLS hello: "may we?",
// for TLS or GSSAPI. Passed on, then the rest is looked at anew. 0: none.
[[nodiscard]] std::size_t postgres_request_size(std::string_view bytes);

}  // namespace capgate::egress
