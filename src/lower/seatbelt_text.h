// The texts of a Seatbelt profile and of its launcher: paths as the macOS kernel compares them, and
// the quoting of strings, regular expressions and shell words. Nothing here decides a policy.
//
//   canonical_path("/tmp/x")          -> "/private/tmp/x"
//   quote("a\"b")                     -> "\"a\\\"b\""
//   escape_regex("/a.b")              -> "/a\\.b"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::lower::seatbelt {

// macOS has three links at its root; the kernel compares what is behind them, so that a rule about
// /tmp matches nothing.
[[nodiscard]] std::string canonical_path(std::string_view path);
// The other way round, for tables that know the short spelling: "/private/etc" -> "/etc".
[[nodiscard]] std::string_view short_spelling(std::string_view path);

// Every directory above a path but the root, outermost first.
[[nodiscard]] std::vector<std::string> ancestors_of(std::string_view path);

// A string of the profile. Paths hold no control characters, by the grammar.
[[nodiscard]] std::string quote(std::string_view text);

// Matches exactly this text.
[[nodiscard]] std::string escape_regex(std::string_view text);
// Matches this text in upper or lower case: macOS takes .GIT for .git.
[[nodiscard]] std::string escape_regex_any_case(std::string_view text);
// The entries of a directory that a glob names, each with what is below it.
[[nodiscard]] std::string entries_regex(std::string_view base, std::string_view glob);

// One word for a POSIX shell, whatever it holds.
[[nodiscard]] std::string shell_word(std::string_view text);

}  // namespace capgate::lower::seatbelt
