// A path as a capability names it: absolute, canonical, with at most one glob, in its last
// component.
//
//   parse_path("/workspace//src/./**")  ->  {tree, "/workspace/src"}
//   parse_path("/notes/*.md")           ->  {entries, "/notes", "*.md"}
//   parse_path("/a/../etc")             ->  CAP_FS_PATH
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "base/result.h"

namespace capgate::core {

struct PathPattern {
  enum class Shape : unsigned char {
    node,     // /a/b: that file, or that directory with everything below
    tree,     // /a/b/**: that directory, which must be one, with everything below
    entries,  // /a/b/*.md: the direct entries that match when the sandbox starts
  };

  Shape shape = Shape::node;
  std::string base;  // canonical: no "//", ".", ".." or trailing slash; "/" is itself
  std::string glob;  // entries only: the last component, with its asterisks

  friend auto operator<=>(const PathPattern&, const PathPattern&) = default;
};

// Positions in the diagnostic count from the start of `text`.
[[nodiscard]] Result<PathPattern> parse_path(std::string_view text);

// A path without a glob, for sockets and the like.
[[nodiscard]] Result<std::string> parse_plain_path(std::string_view text);

[[nodiscard]] std::string print(const PathPattern& path);

// True if `path` is `ancestor` or lies below it. Compares components: /ab is not below /a.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view ancestor);

// Orders paths so that everything below a directory follows it immediately (bytewise order does
// not:
// "/a-b" stands between "/a" and "/a/b").
[[nodiscard]] std::strong_ordering compare_as_tree(std::string_view a, std::string_view b);

// True if a name matches a glob of one component, in which each '*' stands for any characters.
[[nodiscard]] bool matches_glob(std::string_view name, std::string_view glob);

// The same for the entries of a directory: as in a shell, no star stands for the dot at the start
// of a hidden file's name.
[[nodiscard]] bool matches_entry(std::string_view name, std::string_view glob);

}  // namespace capgate::core
