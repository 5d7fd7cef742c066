// Heads of HTTP/1.1, read strictly, and written again with every byte as it came.
//
//   const std::size_t size = find_head_end(bytes, 0);               // 0: it is not whole yet
//   auto head = read_request_head(bytes.substr(0, size));           // or what is wrong with it
//   write_request_head(head->request, head->request.fields, head->spacing)   == those bytes
//
// What two parties could read differently is refused: bare CR or LF, folded lines, space before a
// colon, control characters, more than one Host, Content-Length or Transfer-Encoding, both of the
// latter, any coding but chunked, HTTP/1.0 requests, a target that is neither origin-form, "*" nor
// an absolute https one whose authority is the Host. An absolute target becomes origin-form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "seal/message.h"

namespace capgate::seal {

struct Framing {
  enum class Kind : unsigned char { none, length, chunked, until_close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
  friend bool operator==(const Framing&, const Framing&) = default;
};

// Around the value of a field, where it is not one space before and nothing after it.
struct OddSpacing {
  std::size_t index = 0;  // of the field
  std::string before;
  std::string after;
};

struct FieldBlock {
  std::vector<Field> fields;
  std::vector<OddSpacing> spacing;
};

struct RequestHead {
  enum class Upgrade : unsigned char { none, websocket, other };
  Request request;
  std::vector<OddSpacing> spacing;
  Framing body;
  Upgrade upgrade = Upgrade::none;
  bool expects_continue = false;
  bool is_last = false;  // the client wants no further answer
};

struct ResponseHead {
  Response response;
  std::vector<OddSpacing> spacing;
  std::string line_begin;  // "HTTP/1.1 200 ", or without the last space
  Framing body;            // unless the request or the status say that there is none
  bool is_last = false;    // the connection ends with it
};

// One sentence's end: "has a folded line".
using Flaw = std::string_view;

// The size of the head (or of the trailers) that `bytes` start with, where the most lenient reader
// would end it; what it holds is judged then. `searched`: as many bytes were looked at before.
[[nodiscard]] std::size_t find_head_end(std::string_view bytes, std::size_t searched);

// `bytes` are a head to its end, as found above.
[[nodiscard]] std::expected<RequestHead, Flaw> read_request_head(std::string_view bytes);
[[nodiscard]] std::expected<ResponseHead, Flaw> read_response_head(std::string_view bytes);
[[nodiscard]] std::expected<FieldBlock, Flaw> read_trailers(std::string_view bytes);

// False if a value that was put in would be read as something else than a value.
[[nodiscard]] bool is_sendable(const Request& request);

// In as much room as they need at once, so that a value is nowhere else. `as_read` are the fields
// that `spacing` speaks of: some of them may be gone or changed meanwhile.
[[nodiscard]] std::string write_request_head(const Request& request,
                                             const std::vector<Field>& as_read,
                                             const std::vector<OddSpacing>& spacing);
[[nodiscard]] std::string write_response_head(const ResponseHead& head);
[[nodiscard]] std::string write_trailers(const FieldBlock& block);

}  // namespace capgate::seal
