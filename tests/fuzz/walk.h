// What must hold for whatever parse_json and parse_yaml return, for any bytes at all.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/render.h"
#include "base/text.h"
#include "text/document.h"

namespace capgate::fuzz {

inline std::string join_lines(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

inline bool is_inside(Span inner, Span outer) {
  return outer.begin <= inner.begin && inner.begin <= inner.end && inner.end <= outer.end;
}

inline void check_scalar(text::Value value) {
  const std::string_view text = value.text();
  CAPGATE_ASSERT(!find_invalid_utf8(text));
  const std::size_t middle = text.size() / 2;
  CAPGATE_ASSERT(is_inside(value.locate(0, text.size()), value.span()));
  CAPGATE_ASSERT(is_inside(value.locate(0, middle), value.span()));
  CAPGATE_ASSERT(is_inside(value.locate(middle, text.size()), value.span()));
  const text::Node& node = value.document().node(value.index());
  CAPGATE_ASSERT(!node.verbatim || is_inside(node.text, node.span));
}

inline void walk(text::Value value, Span parent, std::size_t depth) {
  CAPGATE_ASSERT(depth <= text::deepest_nesting);
  CAPGATE_ASSERT(is_inside(value.span(), parent));
  std::uint32_t count = 0;
  if (value.is(text::Kind::array)) {
    for (const text::Value element : value.elements()) {
      walk(element, value.span(), depth + 1);
      ++count;
    }
  } else if (value.is(text::Kind::object)) {
    for (const text::Member member : value.members()) {
      CAPGATE_ASSERT(member.key.is(text::Kind::string));
      CAPGATE_ASSERT(member.key.span().end <= member.value.span().begin);
      check_scalar(member.key);
      walk(member.key, value.span(), depth + 1);
      walk(member.value, value.span(), depth + 1);
      ++count;
    }
    CAPGATE_ASSERT(text::find_duplicate_keys(value).empty());
  } else {
    check_scalar(value);
  }
  CAPGATE_ASSERT(count == value.count());
}

inline void check(const Checked<text::Document>& result, std::string_view source) {
  const Span whole = Span::at(0, source.size());
  if (result) {
    CAPGATE_ASSERT(result->source() == source);
    CAPGATE_ASSERT(result->root().next() == result->size());
    walk(result->root(), whole, 0);
    return;
  }
  CAPGATE_ASSERT(!result.error().empty());
  CAPGATE_ASSERT(result.error().size() <= text::most_mistakes + 1);
  const Source named("fuzz", source);
  for (const Diagnostic& mistake : result.error()) {
    CAPGATE_ASSERT(is_inside(mistake.where, whole));
    CAPGATE_ASSERT(!mistake.message.empty() && !mistake.help.empty());
    // What is printed is safe to print, whatever the input was.
    const std::string shown = render(mistake, named, Colour::off);
    CAPGATE_ASSERT(escape_for_terminal(join_lines(shown)) == join_lines(shown));
  }
}

}  // namespace capgate::fuzz
