#include "secrets/read.h"

#include <unistd.h>

#include <cerrno>

namespace capgate::secrets {

std::expected<SecretReader, int> SecretReader::make(std::size_t most) {
  auto room = Secret::room(most + 1);
  if (!room) return std::unexpected(errno);
  return SecretReader(*std::move(room));
}

std::expected<bool, int> SecretReader::read(const sys::Fd& from) {
  for (;;) {
    const auto rest = room_.bytes().subspan(size_);
    const ssize_t got = ::read(from.get(), rest.data(), rest.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    size_ += static_cast<std::size_t>(got);
    if (size_ == room_.bytes().size()) return std::unexpected(EFBIG);
    return got != 0;
  }
}

std::expected<void, int> SecretReader::read_to_end(const sys::Fd& from) {
  for (;;) {
    const auto more = read(from);
    if (!more) return std::unexpected(more.error());
    if (!*more) return {};
  }
}

std::expected<Secret, int> SecretReader::take() && {
  auto out = Secret::make(room_.view().substr(0, size_));
  if (!out) return std::unexpected(errno);
  return *std::move(out);
}

}  // namespace capgate::secrets
