#include "cli/artifact_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

// Beside its place and then renamed, so that a reader sees the old file or the new one.
sys::Sys<void> write_file(int directory, const lower::File& file, const std::string& name) {
  const std::string draft = ".capgate-" + name;
  if (::unlinkat(directory, draft.c_str(), 0) != 0 && errno != ENOENT) {
    return std::unexpected(sys::SysError{"unlink", errno, draft});
  }
  const mode_t mode = file.executable ? 0755 : 0644;
  const sys::Fd out(::openat(directory, draft.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (out.get() < 0) return std::unexpected(sys::SysError{"open", errno, draft});
  auto written = sys::write_all(out.get(), file.contents);
  if (written && ::renameat(directory, draft.c_str(), directory, name.c_str()) != 0) {
    written = std::unexpected(sys::SysError{"rename", errno, name});
  }
  if (!written) ::unlinkat(directory, draft.c_str(), 0);
  return written;
}

}  // namespace

sys::Sys<void> write_files(const lower::Artifact& artifact, const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
    return std::unexpected(sys::SysError{"mkdir", errno, directory});
  }
  const sys::Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) return std::unexpected(sys::SysError{"open", errno, directory});
  for (const lower::File& file : artifact.files) {
    TRY(write_file(opened.get(), file, std::string(file.name)));
  }
  return {};
}

}  // namespace capgate::cli
