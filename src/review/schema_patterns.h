// Regular expressions (ECMA-262) of the capability language, built from named pieces. They use
// what every engine knows: no look-around, no back-references, no classes such as \d, whose meaning
// differs. Each takes time in proportion to the text (tests/e2e/schema_test.py tries hostile ones).
//
// A pattern matches every string that core::parse_capability accepts for some value of its
// variables. What it matches beyond that, `mistakes` narrows: strings that match one of them are
// always refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capgate::review {

struct Mistake {
  std::string pattern;  // of strings that are wrong
  std::string_view message;
};

struct KindPattern {
  std::string_view name;    // of the definition
  std::string selector;     // which strings it is about,
  std::string except = {};  // without these
  std::string pattern;      // of strings that are right
  std::string_view form;    // "write ..."
  std::vector<Mistake> mistakes;
};

[[nodiscard]] std::vector<KindPattern> kind_patterns();

// What grammar 0.1 added.
[[nodiscard]] std::vector<Mistake> beyond_grammar_0_0();

// The pieces that capgate.yaml has as well.
namespace pattern {
[[nodiscard]] std::string text();                           // one line, not empty
[[nodiscard]] std::string variable_name();                  // of env and of ${NAME}
[[nodiscard]] std::string program();                        // NAME of exec:spawn
[[nodiscard]] std::string endpoint();                       // HOST:PORT
[[nodiscard]] std::string slips_of(std::string_view word);  // one letter off, or the word itself
}  // namespace pattern

}  // namespace capgate::review
