// The bodies of HTTP/1.1 messages: taken out of their framing, and put into another one.
//
//   Unframer body(head.body);
//   while (!body.has_stopped() && !bytes.empty()) {
//     const auto piece = body.next(bytes);                  // piece.data is part of bytes
//     bytes.remove_prefix(piece.size);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "seal/http1_read.h"

namespace capgate::seal {

class Unframer {
 public:
  explicit Unframer(Framing framing);

  struct Piece {
    std::size_t size = 0;   // bytes that it took, framing and all
    std::string_view data;  // among them
  };
  // Up to the end of one run of data. Chunk extensions are dropped.
  [[nodiscard]] Piece next(std::string_view bytes);

  // Nothing more of it: done, before its trailers, or malformed.
  [[nodiscard]] bool has_stopped() const { return is_done() || is_at_trailers() || is_malformed(); }
  [[nodiscard]] bool is_done() const { return state_ == State::done; }
  // The last chunk has gone by. What follows is a block of fields, then it is over.
  [[nodiscard]] bool is_at_trailers() const { return state_ == State::trailers; }
  [[nodiscard]] bool is_malformed() const { return state_ == State::malformed; }
  // The end of the connection may be its end.
  [[nodiscard]] bool is_until_close() const { return state_ == State::until_close; }

 private:
  enum class State : unsigned char {
    done,
    until_close,
    length,     // `left_` bytes
    chunk,      // `left_` bytes
    size,       // hexadecimal digits of a chunk's size
    extension,  // after a semicolon
    size_lf,
    chunk_cr,
    chunk_lf,
    trailers,
    malformed,
  };
  [[nodiscard]] State after(char c);
  [[nodiscard]] State after_size(char c);

  State state_ = State::done;
  std::uint8_t digits_ = 0;
  std::uint16_t extension_size_ = 0;
  std::uint64_t left_ = 0;
};

// One chunk; nothing if there is no data, since an empty chunk is the last one.
void append_chunk(std::string& out, std::string_view data);
inline constexpr std::string_view last_chunk = "0\r\n";
inline constexpr std::size_t longest_chunk_frame = 20;  // around the data

}  // namespace capgate::seal
