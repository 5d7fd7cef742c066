// A file as a revision of git has it. git runs as a child without a shell, and only reads its
// database: no filter, no hook, no pager, no other program and no network, whatever the
// repository's own configuration says, since the repository may be somebody else's.
//
// Links are followed as the file system would, inside of the revision alone: a link that leads out
// of the repository leads to no file.
#pragma once

#include <expected>
#include <string>

namespace capgate::cli {

struct GitProblem {
  std::string words;
  // The revision is here, and what the path leads to is no file: a directory, or nothing.
  bool is_no_file = false;
};

// `object` is "REV:path", from the top of the repository, "REV:./path" from here, ":path" for what
// is staged. Of a file that is larger than text::largest_document, one byte more than that.
[[nodiscard]] std::expected<std::string, GitProblem> git_show(const std::string& object);

}  // namespace capgate::cli
