#include "sandbox/beside.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/format.h"
#include "base/text.h"

namespace capgate::sandbox {

std::expected<sys::Fd, Refusal> find_beside(const Beside& program) {
  const std::string self = read_link(AT_FDCWD, "/proc/self/exe");
  const std::string directory(parent_of(self));
  const std::string name(program.name);
  const sys::Fd place(
      ::open(directory.empty() ? "/" : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  sys::Fd file(
      place.get() < 0 ? -1 : ::openat(place.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const std::string shown = format("{}/{}", escape_for_terminal(directory), name);
  const std::string help = format("install {} in the directory of capgate, as the release does{}",
                                  name, program.otherwise);
  if (file.get() < 0) {
    return std::unexpected(
        Refusal{.message = format("{} {}: {}", program.needed_by, shown, std::strerror(errno)),
                .help = help});
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return std::unexpected(
        Refusal{.message = format("{} is no regular file", shown), .help = help});
  }
  // Whoever could change it could change capgate itself.
  struct stat own{};
  const bool is_as_trusted = ::stat("/proc/self/exe", &own) == 0 && own.st_uid == info.st_uid;
  if (!is_as_trusted || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return std::unexpected(
        Refusal{.message = format("others than capgate's owner can write {}", shown),
                .help = "give it the owner of capgate, and chmod go-w it"});
  }
  return file;
}

std::vector<std::string> own_programs() {
  constexpr std::string_view names[] = {"capgate-broker", "capgate-broker-tls", "capgate-store",
                                        "capgate-unpack"};
  std::vector<std::string> out{read_link(AT_FDCWD, "/proc/self/exe")};
  const std::string directory(parent_of(out.front()));
  for (const std::string_view name : names) out.push_back(format("{}/{}", directory, name));
  return out;
}

}  // namespace capgate::sandbox
