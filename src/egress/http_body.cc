#include <algorithm>
#include <limits>

#include "egress/http.h"
#include "egress/http_text.h"

namespace capgate::egress {
namespace {

constexpr std::uint8_t most_digits = 16;
// A reader with signed numbers must come to the same size.
constexpr auto largest_chunk = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

}  // namespace

BodyReader::BodyReader(const HttpHead& head) {
  chunked_ = head.body == HttpHead::Body::chunked;
  if (chunked_) {
    state_ = State::size;
  } else if (head.body == HttpHead::Body::length && head.length > 0) {
    state_ = State::data;
    left_ = head.length;
  }
}

std::size_t BodyReader::take(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::done && state_ != State::malformed) {
    if (state_ == State::data) {
      const std::uint64_t taken = std::min<std::uint64_t>(left_, bytes.size() - at);
      at += taken;
      left_ -= taken;
      if (left_ == 0) state_ = chunked_ ? State::data_cr : State::done;
      continue;
    }
    state_ = after(bytes[at]);
    if (state_ != State::malformed) ++at;
  }
  return at;
}

BodyReader::State BodyReader::after(char c) {
  const auto expect = [c](char wanted, State next) {
    return c == wanted ? next : State::malformed;
  };
  switch (state_) {
    case State::size:
      if (const auto digit = hex_digit(c)) return add_digit(*digit);
      return digits_ == 0 ? State::malformed : expect('\r', State::size_lf);
    case State::size_lf:
      digits_ = 0;
      return expect('\n', left_ == 0 ? State::trailer_cr : State::data);
    case State::data_cr: return expect('\r', State::data_lf);
    case State::data_lf: return expect('\n', State::size);
    case State::trailer_cr: return expect('\r', State::trailer_lf);
    case State::trailer_lf: return expect('\n', State::done);
    case State::data:
    case State::done:
    case State::malformed: break;
  }
  return state_;
}

BodyReader::State BodyReader::add_digit(unsigned digit) {
  if (digits_ == most_digits || left_ > largest_chunk >> 4U) return State::malformed;
  left_ = left_ << 4U | digit;
  ++digits_;
  return State::size;
}

bool BodyReader::is_done() const { return state_ == State::done; }

bool BodyReader::is_malformed() const { return state_ == State::malformed; }

StatusReading read_http_status(std::string_view bytes) {
  constexpr std::string_view shape = "HTTP/1.v sss";  // v: 0 or 1, s: a digit of the status
  int status = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == bytes.size()) return {};
    const char c = bytes[i];
    const bool fits = shape[i] == 'v'   ? c == '0' || c == '1'
                      : shape[i] == 's' ? is_digit(c)
                                        : c == shape[i];
    if (!fits) return {.progress = Progress::other};
    if (shape[i] == 's') status = status * 10 + (c - '0');
  }
  if (status < 100) return {.progress = Progress::other};
  if (bytes.size() == shape.size()) return {};
  const char next = bytes[shape.size()];
  if (next != ' ' && next != '\r') return {.progress = Progress::other};
  return {.progress = Progress::done, .status = status};
}

}  // namespace capgate::egress
