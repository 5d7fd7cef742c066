// What one side of a connection said, message by message, without its framing.
//
//   read_requests(bytes)  -> head as written again, body, trailers; cut: what is not whole
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seal/http1_body.h"
#include "seal/http1_read.h"

namespace capgate::support {

struct Message {
  std::string head;
  std::string body;
  std::string trailers;
  bool is_whole = false;
  friend bool operator==(const Message&, const Message&) = default;
};

// Takes the body that `bytes` start with.
inline void read_body(Message& message, std::string_view& bytes, seal::Framing framing) {
  seal::Unframer unframer(framing);
  while (!bytes.empty() && !unframer.has_stopped()) {
    const auto piece = unframer.next(bytes);
    message.body += piece.data;
    bytes.remove_prefix(piece.size);
  }
  message.is_whole = unframer.is_done() || unframer.is_until_close();
  if (!unframer.is_at_trailers()) return;
  const std::size_t size = seal::find_head_end(bytes, 0);
  if (size == 0) return;
  const auto trailers = seal::read_trailers(bytes.substr(0, size));
  if (!trailers) return;
  message.trailers = seal::write_trailers(*trailers);
  message.is_whole = true;
  bytes.remove_prefix(size);
}

// Up to what is malformed, or not whole.
[[nodiscard]] inline std::vector<Message> read_requests(std::string_view bytes) {
  std::vector<Message> messages;
  while (const std::size_t size = seal::find_head_end(bytes, 0)) {
    const auto head = seal::read_request_head(bytes.substr(0, size));
    if (!head) break;
    bytes.remove_prefix(size);
    Message& message = messages.emplace_back();
    message.head = seal::write_request_head(head->request, head->request.fields, head->spacing);
    read_body(message, bytes, head->body);
    if (!message.is_whole) break;
  }
  return messages;
}

}  // namespace capgate::support
