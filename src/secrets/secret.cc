#include "secrets/secret.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace capgate::secrets {

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Secret::~Secret() {
  if (data_ == nullptr) return;
  wipe({data_, size_});
  (void)::munmap(data_, mapped_);
}

std::optional<Secret> Secret::room(std::size_t size) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (size / page + 1) * page;
  void* memory =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::nullopt;
  // A child gets none of it: what forks here runs a provider's program.
  // The call itself: sanitizers make the library's do nothing, and tests see that this is done.
  if (::syscall(SYS_mlock, memory, mapped) != 0 || ::madvise(memory, mapped, MADV_DONTDUMP) != 0 ||
      ::madvise(memory, mapped, MADV_WIPEONFORK) != 0) {
    const int error = errno;
    (void)::munmap(memory, mapped);
    errno = error;
    return std::nullopt;
  }
  Secret out;
  out.data_ = static_cast<char*>(memory);
  out.size_ = size;
  out.mapped_ = mapped;
  return out;
}

std::optional<Secret> Secret::make(std::string_view value) {
  auto out = room(value.size());
  if (out) value.copy(out->data_, value.size());
  return out;
}

void Secret::shrink(std::size_t size) {
  if (size >= size_) return;
  wipe(bytes().subspan(size));
  size_ = size;
}

void wipe(std::span<char> bytes) { ::explicit_bzero(bytes.data(), bytes.size()); }
void wipe(std::string& text) {
  wipe(std::span(text.data(), text.size()));
  text.clear();
}

}  // namespace capgate::secrets
