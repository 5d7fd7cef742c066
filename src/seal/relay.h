// Carries the requests of one terminated connection to its origin and the answers back. Both sides
// speak the same version of HTTP: the client is offered what the origin chose.
//
// Bodies and server-sent events stream: a byte that has come leaves at once, and no more is read
// from one side than the other takes. Every request is judged before its first byte leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "egress/loop.h"
#include "egress/policy.h"
#include "egress/tunnel.h"
#include "seal/buffer_budget.h"
#include "seal/message.h"
#include "seal/stream.h"
#include "seal/swap.h"

namespace capgate::seal {

// What is answered instead of forwarding.
struct Refused {
  int status = 403;
  std::string text;  // for the body: which rule is missing, without any value
};

// What the audit log says of a request that was admitted.
struct Admission {
  const egress::Rule* rule = nullptr;
  std::vector<std::string> secrets;  // variables whose values were put in; the body may add some
  void add(const std::vector<std::string>& names);
};

// Judges and records requests. One per connection; `serve` in terminator.cc has the real one.
class Requests {
 public:
  Requests() = default;
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  Requests(Requests&&) = delete;
  Requests& operator=(Requests&&) = delete;
  virtual ~Requests() = default;

  // The endpoint's own Host, a rule for method and path, and the keys: `request` is ready to be
  // sent then (values put in). A refusal has been recorded. May wait for a secret to be renewed.
  virtual Async<std::expected<Admission, Refused>> admit(Request& request) = 0;
  // For bodies and responses; the values in it are those of the request that was admitted last.
  [[nodiscard]] virtual const Keyring& keys() const = 0;
  // A placeholder in the body, an unreadable response, a malformed message: recorded, and what is
  // said to the client if its answer has not begun.
  virtual Refused refuse(const Request& as_sent, std::string_view reason,
                         std::string_view text) = 0;
  // The answer's head has come (status 0: it never did). `as_sent` is the head before admit(), or
  // at least its method and target. False: it cannot be recorded, so the connection ends.
  [[nodiscard]] virtual bool record(const Request& as_sent, const Admission& admission,
                                    int status) = 0;
  // Something was scrubbed from an answer.
  virtual void tell_scrubbed(std::size_t count) = 0;
  // Bytes of either direction, for the limits and the audit log.
  virtual void count(egress::LaneName lane, std::size_t bytes) = 0;
};

struct Sides {
  egress::Loop& loop;
  Stream& client;
  Stream& origin;
  Requests& requests;
  std::size_t most_head_bytes = 65536;
  std::uint32_t head_seconds = 15;  // until a head that has begun is whole
  BufferBudget* buffers = nullptr;  // what HTTP/2 may hold back; null: without a limit
  // HTTP/1.1: a connection to the origin that another client could use is not ended with this one.
  bool keeps_origin = false;
};

enum class RelayEnd : unsigned char {
  closed,       // as HTTP knows it
  failed,       // one side broke off, or was malformed
  denied,       // a request was refused and the connection cannot go on
  taken_away,   // touch nothing of it
  origin_free,  // closed, by the client alone: the origin awaits a request (see keeps_origin)
};

[[nodiscard]] Async<RelayEnd> relay_http1(Sides sides);
[[nodiscard]] Async<RelayEnd> relay_http2(Sides sides);

}  // namespace capgate::seal
