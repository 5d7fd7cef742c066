#include "cli/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/format.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::cli {

std::string_view refuse_file(const std::string& file, Replace replace) {
  struct stat info{};
  if (::lstat(file.c_str(), &info) != 0) return "";
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  return replace == Replace::files ? "" : "exists";
}

sys::Sys<void> write_new_file(const std::string& file, std::string_view text, Replace replace) {
  const std::string beside = format("{}.new-{}", file, ::getpid());
  {
    const sys::Fd opened(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (opened.get() < 0) return std::unexpected(sys::SysError{"open", errno, beside});
    auto written = sys::write_all(opened.get(), text);
    if (written && ::fsync(opened.get()) != 0) {
      written = std::unexpected(sys::SysError{"fsync", errno, beside});
    }
    if (!written) {
      (void)::unlink(beside.c_str());
      return written;
    }
  }
  // A link is not made over a file that exists by now.
  const int failed = replace == Replace::files ? ::rename(beside.c_str(), file.c_str())
                                               : ::link(beside.c_str(), file.c_str());
  const int error = errno;
  if (failed != 0 || replace == Replace::never) (void)::unlink(beside.c_str());
  if (failed != 0) return std::unexpected(sys::SysError{"write", error, file});
  return {};
}

}  // namespace capgate::cli
