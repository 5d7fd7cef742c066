// Finds byte strings of which characters are escaped, or which are wrapped into lines: what a
// Matcher cannot see. For each character any escape of escape.h may stand, or none, so all subsets
// of characters that a library leaves alone are covered.
//
//   const Matcher plain({.patterns = {"a/b-token"}});
//   const EscapedMatcher escaped(plain, {Wrapping::none});
//   escaped.find("x a\\/b%2Dtoken", Ending::open, found)   -> found: {.at = 2, .size = 12}
//   escaped.find("x a\\/b%2", Ending::open, found)         -> returns 2: what begins there may
//                                                            become a match
//
// Each occurrence begins with characters as they are, up to its first escape or line break; so only
// those are looked at, and what stands before them is compared with the beginnings of patterns.
// Text without them is skipped as fast as it can be read.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

#include "seal/kept_memory.h"
#include "seal/matcher.h"

namespace capgate::seal {

// Whether line breaks (LF, CR, CRLF, each perhaps escaped, and the indentation of the next line)
// may stand inside of a pattern, after its third character: the ends of lines that merely end with
// its first letters are not held back. Meant for base64.
enum class Wrapping : unsigned char { none, lines };
// Whether more text follows.
enum class Ending : unsigned char { open, last };

class EscapedMatcher {
 public:
  // The patterns of `plain`, which outlives this, each with its wrapping.
  EscapedMatcher(const Matcher& plain, std::vector<Wrapping> wrappings);

  // Appends, in any order, all matches that hold an escape or a line break; several may begin at
  // the same place. Returns the first place from which on the text may become a match when it goes
  // on: the end of the text if there is none, or if nothing follows.
  std::size_t find(std::string_view text, Ending ending, std::vector<Matcher::Match>& found) const;

 private:
  class Search;
  // All of it could tell what the patterns are.
  struct Tables {
    std::bitset<256> letters;          // occur in a pattern
    std::bitset<256> firsts;           // begin one
    std::bitset<256> relevant;         // letters, line breaks, and what begins an escape
    std::bitset<256> after_backslash;  // may follow one in an escape that says a relevant one
    std::bitset<16384> pairs;          // hashes of two letters that follow each other in a pattern
    bool has_high = false;             // letters beyond ASCII
  };

  void add_pattern(std::string_view pattern);

  KeptMemory memory_;
  Tables* tables_;
  const Matcher& plain_;
  std::vector<Wrapping> wrappings_;
  bool has_spaces_ = false;  // which may be written '+'
};

}  // namespace capgate::seal
