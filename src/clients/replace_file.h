// A file of the user's that is replaced as a whole: the old one or the new one, never a part, and
// never one that somebody else changed meanwhile.
//
//   const OpenedFile file = TRY(open_file(path, most));          what is there now
//   ... show, ask ...
//   const Replaced done = TRY(replace_file(file, {.text = new_text, .backup = file.text}));
//
// A symbolic link stays; what it leads to is replaced. Mode, owner, access list and attributes are
// kept. On failure nothing is left behind, and the file is as before.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::clients {

struct FileProblem {
  enum class Kind : std::uint8_t { unreadable, unwritable, changed };
  Kind kind = Kind::unreadable;
  std::string message;
  std::string help;
};

struct OpenedFile {
  std::string path;    // as it was named
  std::string target;  // the same without links: what is replaced
  std::string text;
  std::string hash;  // of the text
  struct stat info{};
};

[[nodiscard]] std::expected<OpenedFile, FileProblem> open_file(const std::string& path,
                                                               std::size_t most);

// Could it be replaced? What can be known before anybody is asked.
[[nodiscard]] std::expected<void, FileProblem> check_replaceable(const OpenedFile& file);

struct Replacement {
  std::string_view text;
  std::optional<std::string_view> backup = std::nullopt;  // what the backup holds; none: no backup
};

struct Replaced {
  std::string backup;  // the path of the backup, or empty
};

// The backup is TARGET.capgate-backup, or -2, -3 ... where there is one with another text; for its
// owner alone.
[[nodiscard]] std::expected<Replaced, FileProblem> replace_file(const OpenedFile& file,
                                                                const Replacement& replacement);

// Takes away the backups of this file that hold exactly `text`: the file itself has it again.
void remove_backups(const OpenedFile& file, std::string_view text);

// The backups of a file that are there, by the numbers that they are made with.
[[nodiscard]] std::vector<std::string> backups_of(const std::string& target);

// A file that must not be there yet, for this user alone, in a directory that is made.
[[nodiscard]] std::expected<void, FileProblem> create_file(const std::string& path,
                                                           std::string_view text);

}  // namespace capgate::clients
