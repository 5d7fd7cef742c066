// HTTP/1.1 requests, read strictly: what two parties could read differently is not read at all.
//
//   const HeadReading reading = read_http_head(bytes, most);
//   reading.progress == Progress::done  ->  reading.head.host == "api.github.com:8080"
//
// Refused: bare CR or LF, folded lines, space before a colon, control characters, more than one
// Host, Content-Length or Transfer-Encoding, both of the latter, any coding but chunked, a CONNECT
// with a body, HTTP/1.0 and HTTP/2 prefaces, a target that is neither origin-form, absolute-form
// http, "*" nor (of CONNECT) an authority with its port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "egress/hello.h"

namespace capgate::egress {

struct HttpHead {
  enum class Body : unsigned char { none, length, chunked };
  std::string method;
  std::string target;     // as sent
  std::string path;       // of the target as sent, without query: see is_plain_path
  std::string authority;  // of an absolute target or of CONNECT, as sent, else empty
  bool has_host = false;
  std::string host;                 // as sent, with its port
  std::string proxy_authorization;  // as sent; of two neither counts
  Body body = Body::none;
  std::uint64_t length = 0;
  std::string override_field;    // the name of one of them as sent (overrides.h), else empty
  bool wants_upgrade = false;    // an Upgrade header
  bool wants_websocket = false;  // whose only token is "websocket"
  std::size_t size = 0;          // bytes, with the empty line
};

struct HeadReading {
  Progress progress = Progress::more;
  HttpHead head;
};

// `most` bounds the head: longer ones are malformed. "other" as soon as no server would take the
// first line for one of HTTP/1: programs speak other things on other ports ("GET key" to Redis).
// A line that only a lenient server takes (empty lines before it, bare LF, tabs, HTTP/1.0) is
// malformed: as "other" it would reach that server with a Host that nobody compared.
[[nodiscard]] HeadReading read_http_head(std::string_view bytes, std::size_t most);

// True if every server reads the same segments from it: no "." or "..", no empty segment but the
// last, no backslash, and nothing of these (nor "%" nor a control character) percent-encoded.
[[nodiscard]] bool is_plain_path(std::string_view path);

// The head as an origin server wants it from a proxy: origin-form, without the fields that are
// meant for the proxy (Proxy-Authorization, Proxy-Connection). `head` was read from `bytes`; its
// authority and its host must name the same endpoint, since only the host is left.
[[nodiscard]] std::string to_origin_form(std::string_view bytes, const HttpHead& head);

// Finds the end of a request's body in the bytes that follow its head. Small: one per connection.
class BodyReader {
 public:
  BodyReader() = default;  // no body
  explicit BodyReader(const HttpHead& head);

  // How many of `bytes` belong to the body; all of them while it goes on.
  [[nodiscard]] std::size_t take(std::string_view bytes);
  [[nodiscard]] bool is_done() const;
  [[nodiscard]] bool is_malformed() const;

 private:
  enum class State : unsigned char {
    done,
    data,        // `left_` bytes of a body with a length, or of a chunk
    size,        // hexadecimal digits of a chunk's size
    size_lf,     // after them
    data_cr,     // after a chunk's data
    data_lf,     //
    trailer_cr,  // after the last chunk: an empty line, trailers are refused
    trailer_lf,  //
    malformed,
  };
  [[nodiscard]] State after(char c);
  [[nodiscard]] State add_digit(unsigned digit);

  State state_ = State::done;
  bool chunked_ = false;
  std::uint8_t digits_ = 0;
  std::uint64_t left_ = 0;
};

// The status of a response from its first bytes: "HTTP/1.1 101 ...", "HTTP/1.0" too.
// Progress::other if it is no HTTP/1 response.
struct StatusReading {
  Progress progress = Progress::more;
  int status = 0;
};
[[nodiscard]] StatusReading read_http_status(std::string_view bytes);

}  // namespace capgate::egress
