// The tokens of TOML: keys, strings and the values that are written without quotes.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/document.h"

namespace capgate::text {

struct TomlToken {
  Kind kind = Kind::string;
  Span span{};
  bool verbatim = true;
  Span text{};            // verbatim: where it stands
  std::string decoded{};  // else: what it says

  [[nodiscard]] std::string_view value(std::string_view source) const {
    return verbatim ? source.substr(text.begin, text.end - text.begin) : decoded;
  }
};

class TomlScanner {
 public:
  explicit TomlScanner(std::string_view text) : text_(text) {}

  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  void step() { ++at_; }
  bool skip(std::string_view sign);
  void skip_spaces();
  // Spaces, comments and line ends, inside a list.
  Result<void> skip_lines();
  // A comment, if there is one, and the end of the line or of the text.
  Result<void> end_line();

  // One part of a key: bare or in quotes.
  Result<TomlToken> key_part();
  Result<TomlToken> string();
  // A boolean, a number, a date or a time.
  Result<TomlToken> bare_value();

  [[nodiscard]] std::unexpected<Diagnostic> unexpected(std::string message, std::string help) const;

 private:
  Result<void> skip_comment();
  bool skip_line_end();
  Result<TomlToken> one_line_string(char quote);
  Result<TomlToken> lines_string(char quote);
  Result<void> escape(std::string& decoded);
  Result<void> lines_character(char quote, std::string& decoded);
  bool skip_folded_lines();
  [[nodiscard]] bool is_refused_control() const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace capgate::text
