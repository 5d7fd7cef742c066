// The bytes of a value from a descriptor, directly into locked memory.
#pragma once

#include <cstddef>
#include <expected>

#include "secrets/secret.h"
#include "sys/fd.h"

namespace capgate::secrets {

// At most `most` bytes; the error is an errno, EFBIG when there are more.
class SecretReader {
 public:
  // The error is an errno: no memory can be locked.
  [[nodiscard]] static std::expected<SecretReader, int> make(std::size_t most);

  // What is there now: false at the end. A descriptor that would wait gives EAGAIN.
  [[nodiscard]] std::expected<bool, int> read(const sys::Fd& from);
  [[nodiscard]] std::expected<void, int> read_to_end(const sys::Fd& from);

  // No more locked pages than the value needs.
  [[nodiscard]] std::expected<Secret, int> take() &&;

 private:
  explicit SecretReader(Secret room) : room_(std::move(room)) {}
  Secret room_;
  std::size_t size_ = 0;
};

}  // namespace capgate::secrets
