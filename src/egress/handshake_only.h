// What a client says before it says anything: the records of a TLS handshake, and none with data.
//
//   HandshakeOnly filter;
//   send(filter.pass(bytes));      // in pieces of any size
//   if (filter.is_over()) ...      // the first record with data has come
//
// In TLS 1.3 the client's last word of the handshake is such a record: it waits for no answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace capgate::egress {

class HandshakeOnly {
 public:
  // The beginning of `bytes` that may pass.
  [[nodiscard]] std::string_view pass(std::string_view bytes);
  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  std::size_t header_size_ = 0;  // read of the record's header
  std::size_t length_ = 0;       // as far as the header tells it
  std::size_t left_ = 0;         // of the record's contents
  bool is_over_ = false;
};

}  // namespace capgate::egress
