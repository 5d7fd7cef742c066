#include "clients/schema_texts.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "clients/pin_diff.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::clients {
namespace {

using text::JsonWriter;
using text::Kind;
using text::Value;

constexpr std::size_t most_collected = 8000;  // bytes; shown_text() cuts them once more
constexpr std::size_t longest_plain_word = 64;

bool is_plain_word(std::string_view text) {
  return !text.empty() && text.size() <= longest_plain_word &&
         std::ranges::all_of(
             text, [](char c) { return is_alnum(c) || c == '_' || c == '-' || c == '$'; });
}

bool is_type(std::string_view text) {
  constexpr std::string_view types[] = {"null",   "boolean", "object", "array",
                                        "number", "string",  "integer"};
  return std::ranges::find(types, text) != std::end(types);
}

bool is_known_schema(std::string_view text) {
  return text == "http://json-schema.org/draft-07/schema#" ||
         text == "https://json-schema.org/draft/2020-12/schema";
}

std::string json_string(std::string_view text) {
  JsonWriter json(JsonWriter::Style::compact);
  json.string(text);
  return std::move(json).take();
}

class Texts {
 public:
  // As deep as a document may nest, which has a limit.
  void add(Value value, std::string_view key) {  // NOLINT(misc-no-recursion)
    switch (value.kind()) {
      case Kind::string: return add_string(value.text(), key);
      case Kind::object: return add_object(value, key);
      case Kind::array: break;
      case Kind::null:
      case Kind::boolean:
      case Kind::number: return;
    }
    std::size_t i = 0;
    for (const Value element : value.elements()) {
      const std::size_t before = go_to(format("[{}]", i++));
      add(element, key);
      place_.resize(before);
    }
  }

  [[nodiscard]] std::string take(std::string_view indent) && {
    if (text_.empty()) return "";
    text_.pop_back();
    std::string out = shown_text(text_, indent);
    if (left_out_ > 0) {
      out += format("{}... and {} text{} more, which {} not shown here: see --json\n", indent,
                    left_out_, left_out_ == 1 ? "" : "s", left_out_ == 1 ? "is" : "are");
    }
    return out;
  }

 private:
  std::size_t go_to(std::string_view part) {
    const std::size_t before = place_.size();
    if (!place_.empty() && !part.starts_with('[')) place_ += '.';
    place_ += part;
    return before;
  }

  void add_string(std::string_view text, std::string_view key) {
    const bool says_nothing = (key == "type" && is_type(text)) ||
                              (key == "required" && is_plain_word(text)) ||
                              (key == "$schema" && is_known_schema(text));
    if (!says_nothing) add_line(text, true);
  }

  void add_object(Value object, std::string_view key) {  // NOLINT(misc-no-recursion)
    for (const text::Member member : object.members()) {
      const std::string_view name = member.key.text();
      const bool is_plain = is_plain_word(name);
      const std::size_t lines = lines_;
      const std::size_t before = go_to(is_plain ? std::string(name) : quoted(name));
      // quoted() cuts.
      if (!is_plain && name.size() > longest_plain_word) add_line(name, true);
      add(member.value, name);
      if (lines == lines_ && (key == "properties" || !is_plain)) add_line({}, false);
      place_.resize(before);
    }
  }

  void add_line(std::string_view text, bool has_text) {
    ++lines_;
    if (text_.size() >= most_collected) {
      ++left_out_;
      return;
    }
    text_ += place_;
    if (has_text) text_ += format("{}{}", place_.empty() ? "" : ": ", json_string(text));
    text_ += '\n';
  }

  std::string place_;
  std::string text_;
  std::size_t lines_ = 0;  // with those that are left out
  std::size_t left_out_ = 0;
};

}  // namespace

std::string schema_texts(std::string_view json, std::string_view indent) {
  const auto document = text::parse_json(std::string(json));
  if (!document) return "";
  Texts texts;
  texts.add(document->root(), "");
  return std::move(texts).take(indent);
}

}  // namespace capgate::clients
