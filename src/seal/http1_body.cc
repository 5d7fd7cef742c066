#include "seal/http1_body.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "egress/http_text.h"

namespace capgate::seal {
namespace {

constexpr std::uint8_t most_digits = 16;
constexpr std::uint16_t longest_extension = 256;
// A reader with signed numbers must come to the same size.
constexpr auto largest_chunk = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

}  // namespace

Unframer::Unframer(Framing framing) : left_(framing.length) {
  switch (framing.kind) {
    case Framing::Kind::none: break;
    case Framing::Kind::length: state_ = left_ > 0 ? State::length : State::done; break;
    case Framing::Kind::chunked: state_ = State::size; break;
    case Framing::Kind::until_close: state_ = State::until_close; break;
  }
}

Unframer::Piece Unframer::next(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && !has_stopped()) {
    if (state_ == State::until_close) return {.size = bytes.size(), .data = bytes};
    if (state_ != State::length && state_ != State::chunk) {
      state_ = after(bytes[at++]);
      continue;
    }
    const std::size_t size = std::min<std::uint64_t>(left_, bytes.size() - at);
    left_ -= size;
    if (left_ == 0) state_ = state_ == State::chunk ? State::chunk_cr : State::done;
    return {.size = at + size, .data = bytes.substr(at, size)};
  }
  return {.size = at, .data = {}};
}

Unframer::State Unframer::after(char c) {
  const auto expect = [c](char wanted, State next) {
    return c == wanted ? next : State::malformed;
  };
  switch (state_) {
    case State::size: return after_size(c);
    case State::extension:
      if (c == '\r') return State::size_lf;
      if ((is_control(c) && c != '\t') || ++extension_size_ > longest_extension) {
        return State::malformed;
      }
      return State::extension;
    case State::size_lf:
      digits_ = 0;
      extension_size_ = 0;
      return expect('\n', left_ == 0 ? State::trailers : State::chunk);
    case State::chunk_cr: return expect('\r', State::chunk_lf);
    case State::chunk_lf: return expect('\n', State::size);
    case State::done:
    case State::until_close:
    case State::length:
    case State::chunk:
    case State::trailers:
    case State::malformed: break;
  }
  return state_;
}

Unframer::State Unframer::after_size(char c) {
  if (const auto digit = egress::hex_digit(c)) {
    if (digits_ == most_digits || left_ > largest_chunk >> 4U) return State::malformed;
    left_ = left_ << 4U | *digit;
    ++digits_;
    return State::size;
  }
  if (digits_ == 0) return State::malformed;
  if (c == ';') return State::extension;
  return c == '\r' ? State::size_lf : State::malformed;
}

void append_chunk(std::string& out, std::string_view data) {
  if (data.empty()) return;
  std::array<char, 16> digits;
  const auto [end, error] = std::to_chars(digits.begin(), digits.end(), data.size(), 16);
  out.append(digits.begin(), end).append("\r\n").append(data).append("\r\n");
}

}  // namespace capgate::seal
