// What single words of an artifact say about themselves: an option of a command line with its
// operands, a line of a file. Pure.
//
//   judge_option("bwrap", {"--ro-bind", "/srv", "/srv"})   -> grants, mount "/srv"
//   judge_option("bwrap", {"--ro-bind", "/srv"})           -> unknown: it swallows what follows
//
// The tables are short on purpose. What stands in none of them is unknown, and so is whatever does
// not have exactly the operands of its option: a word too many may be a program.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace capgate::review {

// What a part does to the server, as far as its words say it.
enum class Tendency : unsigned char {
  grants,     // with it the server may do more, wherever it stands
  restrains,  // with it the server may do less, wherever it stands
  unknown,
  words,  // it is for people and changes nothing
};

struct Judgement {
  Tendency tendency = Tendency::unknown;
  std::string mount = {};  // the path inside where it mounts something, or empty
  bool may_hide = false;   // a grant that may keep something else out of sight
};

// How many words from the first on are an option with its operands, for a target of `compile`.
// Nothing where the option is not known.
[[nodiscard]] std::optional<std::size_t> option_length(std::string_view target,
                                                       std::span<const std::string> words);

// All words are of one option.
[[nodiscard]] Judgement judge_option(std::string_view target, std::span<const std::string> words);

[[nodiscard]] Judgement judge_line(std::string_view file, std::string_view line);

// An absolute path without "//", "." and "..".
[[nodiscard]] bool is_plain_path(std::string_view path);

}  // namespace capgate::review
