#include "sys/put_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::sys {
namespace {

Sys<void> write_beside(const std::string& beside, std::string_view text, mode_t mode) {
  const Fd made(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (made.get() < 0) return std::unexpected(SysError{"open", errno, beside});
  if (auto written = write_all(made.get(), text); !written) {
    return std::unexpected(SysError{"write", written.error().err, beside});
  }
  if (::fsync(made.get()) != 0) return std::unexpected(SysError{"fsync", errno, beside});
  return {};
}

}  // namespace

Sys<void> put_file(const std::string& file, std::string_view text, PutFile how) {
  const std::string beside = file + ".new-" + std::to_string(::getpid());
  if (::unlink(beside.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(SysError{"unlink", errno, beside});
  }
  auto done = write_beside(beside, text, how.mode);
  if (done) {
    // A link is not made over a file that exists by now.
    const int failed = how.replaces ? ::rename(beside.c_str(), file.c_str())
                                    : ::link(beside.c_str(), file.c_str());
    if (failed != 0) done = std::unexpected(SysError{"write", errno, file});
  }
  if (!done || !how.replaces) (void)::unlink(beside.c_str());
  return done;
}

}  // namespace capgate::sys
