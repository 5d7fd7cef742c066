// The servers of a client's file, taken apart into the tokens that an edit moves. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/client_file.h"
#include "clients/wrapper.h"
#include "text/document.h"

namespace capgate::clients {

inline constexpr std::string_view arguments_key = "args";

// One server. Its words are those of `command` and of `list`, or of `list` alone.
struct Entry {
  ServerEntry server;
  std::optional<text::Value> holder;       // the mapping that holds the command
  std::optional<text::Value> command_key;  // none where the command is a list
  std::optional<text::Value> command;
  std::optional<text::Value> list;  // args, or the command with its arguments
  std::vector<text::Value> words;
  std::vector<text::Value> environment;  // the values, as in server.environment
  std::optional<Wrapper> wrapper;
};

// The part of a file that is parsed: all but a byte order mark.
[[nodiscard]] std::string_view without_mark(std::string_view text);

// A text without any value reads as null.
[[nodiscard]] Checked<text::Document> parse_client_text(std::string_view text, Syntax syntax);

[[nodiscard]] std::vector<Entry> find_entries(const text::Document& document, const Shape& shape);

[[nodiscard]] inline std::string_view source_of(const text::Document& document, Span span) {
  return document.source().substr(span.begin, span.end - span.begin);
}
[[nodiscard]] inline std::string_view source_of(text::Value value) {
  return source_of(value.document(), value.span());
}

// From the start of its line to `at`.
[[nodiscard]] std::string_view line_before(std::string_view text, std::size_t at);

}  // namespace capgate::clients
