// capgate-unpack: reads manifest.json out of the bundle that is its standard input, and writes it
// to its standard output (unpack/wire.h). capgate starts it; nobody else does. The bytes of a
// bundle are foreign, so it is confined before it reads the first one.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sys/file.h"
#include "unpack/confine.h"
#include "unpack/wire.h"
#include "unpack/zip.h"

namespace {

using namespace capgate;

bool read_at(std::uint64_t offset, std::span<char> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(STDIN_FILENO, into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

std::string answer() {
  // The C library asks for it with a call that could ask about other files, too.
  struct stat info{};
  if (::fstat(STDIN_FILENO, &info) != 0 || !S_ISREG(info.st_mode)) {
    return unpack::answer_refused + std::string("is no regular file");
  }
  if (const std::string why = unpack::confine(); !why.empty()) {
    return unpack::answer_unconfined + why;
  }
  const auto found =
      unpack::read_bundle_manifest(static_cast<std::uint64_t>(info.st_size), read_at);
  if (!found) return unpack::answer_refused + found.error();
  return (found->is_signed ? unpack::answer_signed_manifest : unpack::answer_manifest) +
         found->manifest;
}

}  // namespace

int main() {
  const auto written = sys::write_all(STDOUT_FILENO, answer());
  // Not by way of the C library, whose own end may need calls that are given up.
  return static_cast<int>(::syscall(SYS_exit_group, written ? 0 : 1));
}
