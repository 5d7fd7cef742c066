// A tree of installed files: made safe, hashed, removed. Nothing here follows a link out of it.
//
//   TRY(settle_tree(staging));          refuses what must not be in the store, and fixes the modes
//   hash_tree(staging)                  store.h
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/store.h"

namespace capgate::clients {

// Directories become 0700 and files 0600 or 0700. Refused: links that lead out of the tree, set-id
// bits, devices, sockets and pipes, names with control characters, trees without end.
[[nodiscard]] Stored<void> settle_tree(const std::string& directory);

// A file below the tree, by a path that the package wrote: empty if it leads out of the tree or is
// no regular file. "./dist/../index.js" is "index.js".
[[nodiscard]] std::string file_inside(const std::string& directory, std::string_view path);

// The text of a file below the tree, by a path as above.
[[nodiscard]] Stored<std::string> read_inside(const std::string& directory, std::string_view path,
                                              std::size_t most);

// Its first bytes, where a `#!` line is.
[[nodiscard]] Stored<std::string> read_start(const std::string& directory, std::string_view path);

// Names in a directory below the tree, sorted; none if it is no directory.
[[nodiscard]] std::vector<std::string> names_inside(const std::string& directory,
                                                    std::string_view path);

// A tree as the kernel's own records show it, without reading a file: names, inodes, sizes, modes
// and the times of the last change of each, which nobody but root can set. Equal to an earlier one:
// the bytes are the same as then. Empty while the newest change is so young that another one could
// have the same time.
[[nodiscard]] Stored<std::string> mark_tree(const std::string& directory);

// As much as can be removed; false if something is left.
bool remove_tree(const std::string& directory);

}  // namespace capgate::clients
