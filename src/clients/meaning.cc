#include "clients/meaning.h"

#include "base/format.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Value;

// With its length, so that no text can pass for two.
void write_word(std::string_view word, std::string& out) {
  out += format("s{}:", word.size());
  out += word;
}

std::string list_of(std::span<const std::string> words) {
  std::string out = "[";
  for (const std::string& word : words) {
    write_word(word, out);
  }
  return out + "]";
}

}  // namespace

void Meaning::set(Value value, std::string_view word) {
  std::string& text = instead_[value.index()];
  text.clear();
  write_word(word, text);
}

void Meaning::set_list(Value list, std::span<const std::string> words) {
  instead_[list.index()] = list_of(words);
}

void Meaning::drop(Value value) { instead_[value.index()].clear(); }

void Meaning::add_list_after(Value value, std::string_view key,
                             std::span<const std::string> words) {
  std::string& text = after_[value.index()];
  text.clear();
  write_word(key, text);
  text += list_of(words);
}

std::string Meaning::of(const text::Document& document) const {
  std::string out;
  write(document.root(), out);
  return out;
}

void Meaning::write(Value value, std::string& out) const {
  if (const auto found = instead_.find(value.index()); found != instead_.end()) {
    out += found->second;
    return;
  }
  switch (value.kind()) {
    case Kind::string: return write_word(value.text(), out);
    case Kind::null:
    case Kind::boolean:
    case Kind::number:
      out += format("{}:{};", static_cast<int>(value.kind()), value.text());
      return;
    case Kind::array:
      out += '[';
      for (const Value element : value.elements()) {
        write(element, out);
      }
      out += ']';
      return;
    case Kind::object:
      out += '{';
      for (const auto [key, member] : value.members()) {
        const auto changed = instead_.find(member.index());
        if (changed != instead_.end() && changed->second.empty()) continue;
        write_word(key.text(), out);
        write(member, out);
        if (const auto added = after_.find(member.index()); added != after_.end()) {
          out += added->second;
        }
      }
      out += '}';
      return;
  }
}

}  // namespace capgate::clients
