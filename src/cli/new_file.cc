#include "cli/new_file.h"

#include <sys/stat.h>

#include "sys/put_file.h"

namespace capgate::cli {

std::string_view refuse_new_file(const std::string& file, Existing existing) {
  struct stat info{};
  if (file.empty() || ::lstat(file.c_str(), &info) != 0) return "";
  if (!S_ISREG(info.st_mode)) return "is no regular file";
  return existing == Existing::replaced ? "" : "exists";
}

sys::Sys<void> write_new_file(const std::string& file, std::string_view text, Existing existing) {
  return sys::put_file(file, text, {.mode = 0666, .replaces = existing == Existing::replaced});
}

}  // namespace capgate::cli
