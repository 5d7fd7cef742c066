#include "cli/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "sys/fd.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

bool is_same_file(const struct stat& one, const std::string& input) {
  struct stat other{};
  const int got = input == "-" ? ::fstat(STDIN_FILENO, &other) : ::stat(input.c_str(), &other);
  return got == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// Why nothing can be written there, or empty.
std::string_view refuse(const NewFile& place, const std::vector<std::string>& inputs) {
  if (place.file.ends_with('/')) return "is the name of a directory";
  struct stat info{};
  if (::lstat(place.file.c_str(), &info) != 0) return "";
  if (S_ISDIR(info.st_mode)) return "is a directory";
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  for (const std::string& input : inputs) {
    if (is_same_file(info, input)) return "is the file that is read";
  }
  return place.existing == Existing::replaced ? "" : "exists";
}

sys::Sys<void> write(const std::string& file, std::string_view text, Existing existing) {
  const std::string beside = format("{}.new-{}", file, ::getpid());
  {
    const sys::Fd made(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (made.get() < 0) return std::unexpected(sys::SysError{"open", errno, beside});
    auto written = sys::write_all(made.get(), text);
    if (written && ::fsync(made.get()) != 0) {
      written = std::unexpected(sys::SysError{"fsync", errno, beside});
    }
    if (!written) {
      (void)::unlink(beside.c_str());
      return written;
    }
  }
  // A link is not made over a file that exists by now.
  const bool replaces = existing == Existing::replaced;
  const int failed =
      replaces ? ::rename(beside.c_str(), file.c_str()) : ::link(beside.c_str(), file.c_str());
  const int error = errno;
  if (failed != 0 || !replaces) (void)::unlink(beside.c_str());
  if (failed != 0) return std::unexpected(sys::SysError{"write", error, file});
  return {};
}

}  // namespace

std::expected<NewFile, int> read_new_file(const Arguments& arguments, const NewFileUse& use,
                                          Output& output) {
  NewFile place{.file = std::string(arguments.value("--output").value_or("")),
                .existing = arguments.has("--force") ? Existing::replaced : Existing::kept};
  if (arguments.has("--output") && place.file.empty()) {
    return std::unexpected(
        usage_error("--output needs a name", format("write --output {}", use.example), output));
  }
  if (place.file == "-") place.file.clear();
  if (place.file.empty()) return place;
  if (const auto refusal = refuse(place, use.inputs); !refusal.empty()) {
    return std::unexpected(usage_error(format("{} {}", quoted(place.file), refusal),
                                       refusal == "exists"
                                           ? "name another file, or replace this one with --force"
                                           : format("name a file: --output {}", use.example),
                                       output));
  }
  return place;
}

std::expected<void, int> write_new_file(const NewFile& place, std::string_view text,
                                        Output& output) {
  const auto written = write(place.file, text, place.existing);
  if (written) return {};
  output.err += format("capgate: cannot write {}: {}\n", escape_for_terminal(place.file),
                       sys::reason(written.error()));
  return std::unexpected(static_cast<int>(Exit::internal));
}

}  // namespace capgate::cli
