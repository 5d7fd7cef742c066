#include "clients/spelling.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "text/json_write.h"
#include "text/yaml.h"

namespace capgate::clients {
namespace {

std::string in_double_quotes(std::string_view word) {
  text::JsonWriter json(text::JsonWriter::Style::compact);
  json.string(word);
  std::string token = std::move(json).take();
  // JSON takes DEL as it is, the other two do not.
  for (std::size_t at = 0; (at = token.find('\x7f', at)) != std::string::npos;) {
    token.replace(at, 1, "\\u007f");
  }
  return token;
}

bool has_control(std::string_view word) { return std::ranges::any_of(word, is_control); }

bool is_plain_in_brackets(std::string_view word) {
  if (word.empty() || has_control(word)) return false;
  const auto list = text::parse_yaml("[" + std::string(word) + "]");
  if (!list || !list->root().is(text::Kind::array) || list->root().count() != 1) return false;
  const text::Value element = *list->root().elements().begin();
  return element.is(text::Kind::string) && element.span() == Span::at(1, 1 + word.size()) &&
         element.text() == word;
}

// What readers of older YAML take for a boolean is never written without quotes.
bool is_old_boolean(std::string_view word) {
  constexpr std::array<std::string_view, 6> words = {"y", "n", "yes", "no", "on", "off"};
  return std::ranges::find(words, to_lower(word)) != words.end();
}

std::string in_single_quotes(std::string_view word) {
  std::string token = "'";
  for (const char c : word) {
    token += c;
    if (c == '\'') token += c;
  }
  return token + "'";
}

bool is_quoted(std::string_view token) { return token.starts_with('"') || token.starts_with('\''); }

}  // namespace

std::string spell(Syntax syntax, std::string_view word) {
  const bool plain = syntax == Syntax::yaml && is_plain_in_brackets(word) && !is_old_boolean(word);
  return plain ? std::string(word) : in_double_quotes(word);
}

std::string spell_like(Syntax syntax, std::string_view token, std::string_view word) {
  if (token.starts_with('\'') && !has_control(word)) {
    if (syntax == Syntax::yaml) return in_single_quotes(word);
    if (word.find('\'') == word.npos) return "'" + std::string(word) + "'";
  }
  return is_quoted(token) ? in_double_quotes(word) : spell(syntax, word);
}

bool fits_in_brackets(Syntax syntax, std::string_view token) {
  return syntax != Syntax::yaml || is_quoted(token) || is_plain_in_brackets(token);
}

}  // namespace capgate::clients
