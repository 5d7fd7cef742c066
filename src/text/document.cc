#include "text/document.h"

#include <algorithm>

#include "base/format.h"
#include "base/text.h"
#include "text/json.h"

namespace capgate::text {
namespace {

// Almost all objects are so small that comparing each key with each is cheaper than sorting them.
constexpr std::uint32_t few_keys = 12;

bool has_equal_keys(Value object) {
  const auto members = object.members();
  for (auto a = members.begin(); a != members.end(); ++a) {
    const std::string_view key = (*a).key.text();
    auto b = a;
    for (++b; b != members.end(); ++b) {
      if ((*b).key.text() == key) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Value> Value::find(std::string_view key) const {
  for (const Member member : members()) {
    if (member.key.text() == key) return member.value;
  }
  return {};
}

Span Value::locate(std::size_t from, std::size_t to) const {
  const Node& self = node();
  if (self.verbatim) return Span::at(self.text.begin + from, self.text.begin + to);
  if (!self.json_escapes) return self.span;
  const std::string_view raw =
      document_->source().substr(self.span.begin, self.span.end - self.span.begin);
  const std::size_t begin = json_string_offset(raw, from);
  const std::size_t end = json_string_offset(raw, to);
  return Span::at(self.span.begin + begin, self.span.begin + std::max(begin, end));
}

std::vector<std::pair<Value, Value>> find_duplicate_keys(Value object) {
  std::vector<std::pair<Value, Value>> out;
  if (object.count() <= few_keys && !has_equal_keys(object)) return out;
  std::vector<Value> keys;
  keys.reserve(object.count());
  for (const Member member : object.members()) {
    keys.push_back(member.key);
  }
  std::ranges::sort(keys, {}, [](Value key) { return std::pair(key.text(), key.index()); });
  for (std::size_t i = 1; i < keys.size(); ++i) {
    if (keys[i - 1].text() == keys[i].text()) out.emplace_back(keys[i - 1], keys[i]);
  }
  std::ranges::sort(out, {}, [](const auto& pair) { return pair.second.index(); });
  return out;
}

void report_duplicate_keys(Value object, Diagnostics& mistakes) {
  for (const auto& [first, second] : find_duplicate_keys(object)) {
    if (mistakes.size() >= most_mistakes) return;
    mistakes.push_back({.code = Code::doc_duplicate_key,
                        .where = second.span(),
                        .message = format("key {} is given twice", quoted(second.text())),
                        .help = "keep one of them: which one counts would be a guess"});
  }
}

}  // namespace capgate::text
