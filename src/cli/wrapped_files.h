// Which files `wrap` rewrote: inside a grant they are read-only, so that no server takes its own
// wrapper away. One note for each, in the user's state directory.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "clients/replace_file.h"

namespace capgate::cli {

// `target` is the file without links.
[[nodiscard]] std::expected<void, clients::FileProblem> note_wrapped(const std::string& target);
void forget_wrapped(const std::string& target);
[[nodiscard]] std::vector<std::string> wrapped_files();

// A file of a client that no wrapper stands in. One that cannot be read may have one.
[[nodiscard]] bool is_without_wrapper(const std::string& path);

}  // namespace capgate::cli
