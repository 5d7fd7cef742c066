#include "import/reading.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"

namespace capgate::imports {
namespace {

using text::Kind;
using text::Value;

std::string_view words_for(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::number: return "a number";
    case Kind::string: return "a text";
    case Kind::array: return "a list";
    case Kind::object: return "an object";
  }
  return "";
}

}  // namespace

void Reading::complain(Code code, Span where, std::string message, std::string help) {
  mistakes_.push_back(
      {.code = code, .where = where, .message = std::move(message), .help = std::move(help)});
}

void Reading::add(Diagnostics mistakes) {
  std::ranges::move(mistakes, std::back_inserter(mistakes_));
}

std::optional<Value> Reading::find(Value object, std::string_view key, Kind kind, Need need) {
  const auto value = object.is(Kind::object) ? object.find(key) : std::nullopt;
  if (value && value->is(kind)) return value;
  if (value) {
    complain(value->span(), format("{} is {}", key, words_for(kind)),
             "see what the format says about it");
  } else if (need == Need::required) {
    complain(Span::at(object.span().begin, object.span().begin), format("{} is missing", key),
             "the format demands it: the file is not complete");
  }
  return std::nullopt;
}

std::string Reading::text(Value object, std::string_view key, Need need) {
  const auto value = find(object, key, Kind::string, need);
  if (!value) return {};
  if (need == Need::required && value->text().empty()) {
    complain(value->span(), format("{} is empty", key), "write something there");
    return {};
  }
  if (std::ranges::any_of(value->text(), is_control) && key != "description") {
    complain(value->span(), format("control character in {}", key), "write it without");
    return {};
  }
  return std::string(value->text());
}

bool Reading::flag(Value object, std::string_view key) {
  const auto value = find(object, key, Kind::boolean, Need::optional);
  return value && value->text() == "true";
}

std::optional<Value> Reading::list(Value object, std::string_view key) {
  return find(object, key, Kind::array, Need::optional);
}

std::optional<Value> Reading::object(Value object, std::string_view key, Need need) {
  return find(object, key, Kind::object, need);
}

void Reading::drop_unknown(Value object, std::span<const std::string_view> known,
                           std::string_view subject, Collector& out) {
  for (const text::Member member : object.members()) {
    const std::string_view key = member.key.text();
    if (contains(known, key)) continue;
    const std::string place = escape_for_terminal(key);
    out.dropped(subject.empty() ? place : format("{}.{}", subject, place),
                "this key is not known, so the manifest has nothing of it");
  }
}

Checked<Imported> Reading::finish(Collector&& out) && {
  if (mistakes_.empty()) return std::move(out).take();
  sort_diagnostics(mistakes_);
  if (mistakes_.size() > text::most_mistakes) mistakes_.resize(text::most_mistakes);
  return std::unexpected(std::move(mistakes_));
}

}  // namespace capgate::imports
