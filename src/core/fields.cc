#include "core/fields.h"

#include <algorithm>

#include "base/assert.h"
#include "base/text.h"

namespace capgate::core {
namespace {

std::unexpected<Diagnostic> malformed(std::size_t begin, std::size_t end, std::string message,
                                      std::string help) {
  return fail(Code::cap_malformed, Span::at(begin, end), std::move(message), std::move(help));
}

// Offset of the quote that closes the one at `begin`.
Result<std::size_t> closing_quote(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    if (text[at] == '"') return at;
    if (text[at] == '\\') ++at;
  }
  return malformed(begin, text.size(), "the quote is not closed",
                   "close it with a double quote; a quote inside is written \\\"");
}

// Where the field that starts at `begin` ends: at a stop character outside quotes and brackets.
Result<std::size_t> field_end(std::string_view text, std::size_t begin, std::string_view stops) {
  std::size_t from = begin;
  if (begin < text.size() && text[begin] == '"') {
    from = TRY(closing_quote(text, begin)) + 1;
    if (from < text.size() && !stops.contains(text[from])) {
      return malformed(from, text.size(), "text after a closing quote",
                       "put the whole field into the quotes");
    }
  } else if (begin < text.size() && text[begin] == '[') {
    from = std::min(text.find(']', begin), text.size());
  }
  const std::size_t end = std::min(find_any(text, stops, from), text.size());
  // Only up to the end of this field: of a string with many fields each byte is looked at once.
  const std::size_t quote = text.substr(0, end).find('"', from);
  if (from == begin && quote != std::string_view::npos) {
    return malformed(quote, quote + 1, "a quote inside a field",
                     "put the whole field into quotes; a quote inside is written \\\"");
  }
  return end;
}

Result<void> cut_refinements(std::string_view text, std::size_t begin, Fields& out,
                             TextStorage& storage) {
  while (true) {
    const std::size_t equals = std::min(find_any(text, "=&", begin), text.size());
    if (equals == begin || equals == text.size() || text[equals] != '=') {
      return std::unexpected(
          Diagnostic{.code = Code::cap_refinement,
                     .where = Span::at(begin == text.size() ? begin - 1 : begin, equals),
                     .message = "a refinement is written key=value",
                     .help = "write ?key=value&key=value, or put a '?' of the scope into quotes"});
    }
    const std::size_t end = TRY(field_end(text, equals + 1, "&"));
    out.refinements.push_back(
        {.key = {.text = text.substr(begin, equals - begin), .where = Span::at(begin, equals)},
         .value = TRY(unquote(text.substr(equals + 1, end - equals - 1), equals + 1, storage))});
    if (end == text.size()) return {};
    begin = end + 1;
  }
}

}  // namespace

Span Field::locate(Span inside) const {
  if (!verbatim) return where;
  return Span::at(where.begin + inside.begin, where.begin + inside.end);
}

Result<Field> unquote(std::string_view raw, std::size_t offset, TextStorage& storage) {
  const Span where = Span::at(offset, offset + raw.size());
  if (!raw.starts_with('"')) return Field{.text = raw, .where = where};
  const std::string_view inner = raw.substr(1, raw.size() - 2);
  if (find_any(inner, "\"\\") == std::string_view::npos) {
    return Field{.text = inner, .where = Span::at(offset + 1, offset + raw.size() - 1)};
  }
  std::string text;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] == '"') {
      return malformed(offset + i + 1, offset + i + 2, "a quote inside quotes",
                       "a quote inside is written \\\"");
    }
    if (inner[i] == '\\') {
      ++i;
      if (i == inner.size() || (inner[i] != '"' && inner[i] != '\\')) {
        return malformed(offset + i, offset + i + 2, "unknown escape in quotes",
                         "only \\\" and \\\\ are escapes");
      }
    }
    text += inner[i];
  }
  storage.push_front(std::move(text));
  return Field{.text = storage.front(), .where = where, .verbatim = false};
}

Result<Fields> cut_fields(std::string_view text, TextStorage& storage) {
  Fields out;
  const std::size_t colon = text.find(':');
  CAPGATE_ASSERT(colon != std::string_view::npos);
  out.kind = {.text = text.substr(0, colon), .where = Span::at(0, colon)};
  out.rest = {.text = text.substr(colon + 1), .where = Span::at(colon + 1, text.size())};
  if (out.kind.text == "assert") return out;

  std::size_t begin = colon + 1;
  while (true) {
    const std::size_t end = TRY(field_end(text, begin, ":?"));
    if (out.count < Fields::most) {
      out.items[out.count] = TRY(unquote(text.substr(begin, end - begin), begin, storage));
    }
    ++out.count;
    if (end == text.size()) return out;
    begin = end + 1;
    if (text[end] == '?') break;
  }
  TRY(cut_refinements(text, begin, out, storage));
  return out;
}

}  // namespace capgate::core
