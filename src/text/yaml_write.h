// YAML out, in block style: for artifacts that people review and engines read.
//
//   YamlWriter yaml;
//   yaml.begin_map().key("ports").begin_list().string("443").end_list().end_map();
//   std::string text = std::move(yaml).take();   // ports:\n  - "443"\n
//
// A text is written plain only where every YAML reader, of 1.1 as of 1.2, takes it for that very
// text; else in double quotes with JSON's escapes. So no text can become another value or add a
// key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capgate::text {

class YamlWriter {
 public:
  YamlWriter& begin_map() { return open('{'); }
  YamlWriter& end_map() { return close("{}"); }
  YamlWriter& begin_list() { return open('['); }
  YamlWriter& end_list() { return close("[]"); }
  YamlWriter& key(std::string_view name);
  YamlWriter& string(std::string_view text);
  YamlWriter& number(std::uint64_t value);
  YamlWriter& boolean(bool value);
  // Lines that stay lines ("|"). Text that a block cannot hold is written in quotes.
  YamlWriter& block(std::string_view lines);
  // A line of its own before the next entry; what could end the line is replaced.
  YamlWriter& comment(std::string_view words);
  // "---": what follows is a document of its own.
  YamlWriter& next_document();

  [[nodiscard]] std::string take() && { return std::move(out_); }

 private:
  enum class After : unsigned char { nothing, key, dash };
  struct Open {
    char bracket;
    unsigned indent;
    After after;
    bool empty = true;
  };

  YamlWriter& open(char bracket);
  YamlWriter& close(std::string_view if_empty);
  YamlWriter& scalar(std::string_view written);
  void begin_value();  // in a list: its dash
  void begin_line();

  std::string out_;
  std::vector<Open> open_;
  After after_ = After::nothing;
};

}  // namespace capgate::text
