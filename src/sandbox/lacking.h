// What a policy lacks that the catalog's manifest for the same server has. It is told where
// something fails and the cause has no name of its own: a child process is refused before its
// program is known, a question for a host has no port, and a missing variable is the server's own
// error. A hint only: nothing is decided by it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::sandbox {

struct Lacking {
  std::string entry;  // of the catalog
  std::vector<std::string> capabilities;
};

// Those that begin with `kind`, such as "exec:spawn:".
[[nodiscard]] std::vector<std::string> of_kind(const Lacking& lacking, std::string_view kind);

// `capability` in the words of the entry, where that has it with refinements or for all of a
// directory: a browser needs more than to be started, a database more than its file.
[[nodiscard]] std::string as_in_entry(const Lacking& lacking, std::string capability);

// For a server that ended with this status, not 0; empty where nothing is lacking.
[[nodiscard]] std::string explain_status(const Lacking& lacking, int status);

}  // namespace capgate::sandbox
