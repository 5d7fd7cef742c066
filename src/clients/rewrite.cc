#include "clients/rewrite.h"

#include <algorithm>

#include "base/text.h"
#include "clients/spelling.h"

namespace capgate::clients {
namespace {

using text::Value;

bool is_blank(std::string_view text) { return std::ranges::all_of(text, is_space); }

std::string spaces(std::size_t count) { return std::string(count, ' '); }

// Lines end as the next one does, or the one before where there is none.
std::string_view line_end_near(std::string_view text, std::size_t at) {
  std::size_t found = text.find('\n', at);
  if (found == text.npos) found = text.rfind('\n');
  return found != text.npos && found > 0 && text[found - 1] == '\r' ? "\r\n" : "\n";
}

std::vector<std::string> words_of(std::span<const Value> values) {
  std::vector<std::string> words;
  for (const Value value : values) {
    words.emplace_back(value.text());
  }
  return words;
}

std::vector<std::string> tokens_of(std::span<const Value> values) {
  std::vector<std::string> tokens;
  for (const Value value : values) {
    tokens.emplace_back(source_of(value));
  }
  return tokens;
}

std::vector<std::string> spell_all(Syntax syntax, std::span<const std::string> words) {
  std::vector<std::string> tokens;
  for (const std::string& word : words) {
    tokens.push_back(spell(syntax, word));
  }
  return tokens;
}

// The list that wrap adds where there is no args. No space after its commas, which no other text of
// ours has: so unwrap knows that the whole of it is to go.
std::string added_list(const Entry& entry, Syntax syntax, std::span<const std::string> tokens) {
  const Value key = *entry.command_key;
  const std::string_view source = key.document().source();
  const std::string list = "[" + join(tokens, ",") + "]";
  const std::string_view before = line_before(source, key.span().begin);
  const std::string line(line_end_near(source, entry.command->span().end));
  switch (syntax) {
    case Syntax::json: return ", \"args\":" + list;
    case Syntax::yaml:
      if (source_of(*entry.holder).starts_with('{')) return ", args: " + list;
      return line + spaces(before.size()) + "args: " + list;
    case Syntax::toml: break;
  }
  // A dotted key, a.b.command, is followed by its neighbour a.b.args.
  const std::string_view whole = source_of(key);
  const std::string path(whole.substr(0, whole.size() - key.text().size()));
  if (is_blank(before)) return line + std::string(before) + path + "args = " + list;
  return ", " + path + "args = " + list;
}

bool is_added_list(const Entry& entry, Syntax syntax) {
  const Span command = entry.command->span();
  const Span list = entry.list->span();
  if (list.begin < command.end) return false;
  const auto elements = std::span(entry.words).subspan(1);
  return source_of(entry.list->document(), Span::at(command.end, list.end)) ==
         added_list(entry, syntax, tokens_of(elements));
}

// Before the first item where there is one. A list of several lines gets one line more.
Edit insert_in_brackets(Value list, std::span<const std::string> tokens) {
  const std::size_t open = list.span().begin + 1;
  if (list.count() == 0) return {.where = Span::at(open, open), .text = join(tokens, ", ")};
  const std::size_t first = (*list.elements().begin()).span().begin;
  const std::string_view gap = source_of(list.document(), Span::at(open, first));
  const bool has_lines = is_blank(gap) && gap.find('\n') != gap.npos;
  return {.where = Span::at(first, first),
          .text = join(tokens, ", ") + "," + (has_lines ? std::string(gap) : " ")};
}

// YAML's items on lines of their own: the list starts at the dash of the first one.
Edit insert_lines(Value list, std::span<const std::string> tokens) {
  const std::string_view source = list.document().source();
  const std::size_t begin = list.span().begin;
  const std::string_view indent = line_before(source, begin);
  const std::string_view line = line_end_near(source, begin - std::min(begin, indent.size() + 1));
  std::string text;
  for (const std::string& token : tokens) {
    text.append("- ").append(token).append(line).append(indent);
  }
  return {.where = Span::at(begin, begin), .text = std::move(text)};
}

Edit insert(Value list, std::span<const std::string> tokens) {
  return source_of(list).starts_with('[') ? insert_in_brackets(list, tokens)
                                          : insert_lines(list, tokens);
}

// The items of a list up to the one before `end`, and what separates them from the rest. A comment
// that someone wrote in between stays.
Edit remove_from_brackets(std::span<const Value> items, std::size_t end, std::string_view source) {
  const std::size_t begin = items[0].span().begin;
  std::size_t stop = items[end - 1].span().end;
  const std::size_t next = std::min(source.find_first_not_of(" \t\r\n", stop), source.size());
  const bool has_comma = source.substr(next).starts_with(',');
  if (has_comma) stop = next + 1;
  if (end < items.size()) {
    const std::size_t rest = items[end].span().begin;
    if (!has_comma || is_blank(source.substr(stop, rest - stop))) stop = rest;
  }
  return {.where = Span::at(begin, stop), .text = ""};
}

Edit remove_lines(Value list, std::span<const Value> items, std::size_t end) {
  const std::string_view source = list.document().source();
  const std::size_t begin = list.span().begin;
  std::size_t stop = items[end - 1].span().end;
  // Behind the column of the key, where the dashes need not be.
  if (end == items.size()) return {.where = Span::at(begin, stop), .text = " []"};
  const std::size_t dash = source.find_first_not_of(" \r\n", stop);
  if (dash != source.npos && source[dash] == '-') stop = dash;
  return {.where = Span::at(begin, stop), .text = ""};
}

Edit remove(Value list, std::span<const Value> items, std::size_t end) {
  return source_of(list).starts_with('[')
             ? remove_from_brackets(items, end, list.document().source())
             : remove_lines(list, items, end);
}

void update_wrapper(const Entry& entry, std::span<const std::string> prefix, const Wrapper& wanted,
                    Rewriting& out) {
  constexpr std::string_view joined_flag = "--profile=";
  if (entry.words[0].text() != prefix[0]) set_variable(entry.words[0], prefix[0], out);
  if (entry.wrapper->profile == wanted.profile) return;
  const Value named = entry.words[entry.wrapper->profile_word];
  const bool joined = named.text().starts_with(joined_flag);
  set_variable(named, (joined ? std::string(joined_flag) : "") + wanted.profile, out);
}

}  // namespace

Result<void> wrap_entry(const Entry& entry, std::span<const std::string> prefix, Rewriting& out) {
  const auto wanted = find_wrapper(prefix);
  if (!wanted || wanted->size != prefix.size()) {
    return fail(Code::doc_syntax, entry.server.where, "no wrapper that unwrap would know",
                "it is capgate run --profile NAME --");
  }
  if (entry.wrapper) return update_wrapper(entry, prefix, *wanted, out), Result<void>{};
  std::vector<std::string> words(prefix.begin(), prefix.end());
  std::vector<std::string> tokens = spell_all(out.syntax, prefix);
  std::ranges::copy(words_of(entry.words), std::back_inserter(words));
  if (!entry.command) {
    out.edits.push_back(insert(*entry.list, tokens));
    out.meaning.set_list(*entry.list, words);
    return {};
  }
  const Span where = entry.command->span();
  const std::string_view token = source_of(*entry.command);
  const std::string program = spell_like(out.syntax, token, words[0]);
  words.erase(words.begin());
  tokens.erase(tokens.begin());
  tokens.emplace_back(token);
  out.meaning.set(*entry.command, prefix[0]);
  if (entry.list) {
    out.edits.push_back({.where = where, .text = program});
    out.edits.push_back(insert(*entry.list, tokens));
    out.meaning.set_list(*entry.list, words);
  } else {
    out.edits.push_back({.where = where, .text = program + added_list(entry, out.syntax, tokens)});
    out.meaning.add_list_after(*entry.command, arguments_key, words);
  }
  return {};
}

void unwrap_entry(const Entry& entry, Rewriting& out) {
  const std::size_t size = entry.wrapper->size;
  const std::span<const Value> words = entry.words;
  if (!entry.command) {
    out.edits.push_back(remove(*entry.list, words, size));
    out.meaning.set_list(*entry.list, words_of(words.subspan(size)));
    return;
  }
  const Value program = words[size];
  out.meaning.set(*entry.command, program.text());
  const std::string token(source_of(program));
  if (words.size() == size + 1 && is_added_list(entry, out.syntax)) {
    out.meaning.drop(*entry.list);
    out.edits.push_back(
        {.where = Span::at(entry.command->span().begin, entry.list->span().end), .text = token});
    return;
  }
  out.meaning.set_list(*entry.list, words_of(words.subspan(size + 1)));
  out.edits.push_back({.where = entry.command->span(), .text = token});
  out.edits.push_back(remove(*entry.list, words.subspan(1), size));
}

void set_variable(Value value, std::string_view word, Rewriting& out) {
  out.edits.push_back(
      {.where = value.span(), .text = spell_like(out.syntax, source_of(value), word)});
  out.meaning.set(value, word);
}

}  // namespace capgate::clients
