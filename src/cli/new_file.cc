#include "cli/new_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/load.h"
#include "sys/file.h"
#include "sys/put_file.h"

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
  const auto written = sys::put_file(
      place.file, text, {.mode = 0666, .replaces = place.existing == Existing::replaced});
  if (written) return {};
  output.err += format("capgate: cannot write {}: {}\n", escape_for_terminal(place.file),
                       sys::reason(written.error()));
  return std::unexpected(static_cast<int>(Exit::internal));
}

}  // namespace capgate::cli
