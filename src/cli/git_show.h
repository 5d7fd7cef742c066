// A file as a revision of git has it. git runs as a child without a shell, and only reads its
// database: no filter, no hook, no pager, no other program and no network, whatever the
// repository's own configuration says, since the repository may be somebody else's.
#pragma once

#include <expected>
#include <string>

namespace capgate::cli {

// `object` is "REV:path", from the top of the repository, "REV:./path" from here, ":path" for what
// is staged. The error is in words.
[[nodiscard]] std::expected<std::string, std::string> git_show(const std::string& object);

}  // namespace capgate::cli
