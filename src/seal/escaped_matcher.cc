#include "seal/escaped_matcher.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "seal/escape.h"
#include "seal/marks.h"

namespace capgate::seal {
namespace {

using State = Escape::State;

constexpr std::size_t shortest_before_break = 3;
constexpr std::size_t most_indentation = 64;
constexpr std::string_view introducers = "%\\&";  // see begins_escape()
constexpr std::size_t longest_simple_escape = 6;  // \u0041

// Places of the text at which a match may go on, each with the characters matched so far. More than
// a few at once occur only where a value consists of escape characters.
struct Place {
  std::size_t matched = 0;
  std::size_t at = 0;
};
constexpr std::size_t most_places = 16;

std::size_t index_of(char c) { return static_cast<unsigned char>(c); }

std::size_t hash_of(char first, char second) {
  const auto pair = static_cast<std::uint32_t>(index_of(first) << 8 | index_of(second));
  return (pair * 0x9E3779B1U) >> 18;
}

bool is_blank(char c) { return c == '\r' || c == '\n' || c == ' ' || c == '\t'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// One character of the text, escaped or not.
struct Read {
  State state = State::none;
  char value = 0;
  std::size_t size = 0;
};
Read read_blank(std::string_view text, std::size_t at, std::string_view blanks) {
  if (at >= text.size()) return {.state = State::incomplete};
  if (blanks.contains(text[at])) return {.state = State::whole, .value = text[at], .size = 1};
  if (!begins_escape(text[at])) return {};
  bool is_incomplete = false;
  for (const Layers layers : {Layers::one, Layers::two}) {
    const Escape escape = read_escape(text, at, layers);
    is_incomplete = is_incomplete || escape.state == State::incomplete;
    if (escape.state == State::whole && escape.count == 1 && blanks.contains(escape.text[0])) {
      return {.state = State::whole, .value = escape.text[0], .size = escape.size};
    }
  }
  return {.state = is_incomplete ? State::incomplete : State::none};
}

// One line break and the indentation behind it. Incomplete where it may go on.
Read read_break(std::string_view text, std::size_t at) {
  const Read first = read_blank(text, at, "\r\n");
  if (first.state != State::whole) return first;
  Read out = first;
  const auto add = [&](std::string_view blanks) {
    const Read more = read_blank(text, at + out.size, blanks);
    if (more.state == State::whole) out.size += more.size;
    if (more.state == State::incomplete) out.state = State::incomplete;
    return more.state == State::whole;
  };
  if (first.value == '\r') add("\n");
  for (std::size_t i = 0; i < most_indentation && out.state == State::whole && add(" \t"); ++i) {
  }
  return out;
}

}  // namespace

EscapedMatcher::EscapedMatcher(const Matcher& plain, std::vector<Wrapping> wrappings)
    : memory_(sizeof(Tables), KeptMemory::Kind::locked),
      tables_(std::construct_at(reinterpret_cast<Tables*>(memory_.data()))),
      plain_(plain),
      wrappings_(std::move(wrappings)) {
  for (std::size_t index = 0; index < wrappings_.size(); ++index) {
    if (plain_.is_searched(index)) add_pattern(plain_.pattern(index));
  }
  tables_->relevant = tables_->letters;
  for (const char c : std::string(introducers) + "\r\n") {
    tables_->relevant[index_of(c)] = true;
  }
  for (std::size_t c = 0; c < tables_->after_backslash.size(); ++c) {
    const std::array<char, 2> text = {'\\', static_cast<char>(c)};
    const Escape escape = read_escape({text.data(), text.size()}, 0, Layers::one);
    tables_->after_backslash[c] =
        escape.state == State::incomplete ||
        (escape.state == State::whole && tables_->relevant[index_of(escape.text[0])]);
  }
}

void EscapedMatcher::add_pattern(std::string_view pattern) {
  tables_->firsts[index_of(pattern.front())] = true;
  for (const char c : pattern) {
    tables_->letters[index_of(c)] = true;
    tables_->has_high = tables_->has_high || index_of(c) >= 0x80;
    has_spaces_ = has_spaces_ || c == ' ';
  }
  for (std::size_t i = 1; i < pattern.size(); ++i) {
    tables_->pairs[hash_of(pattern[i - 1], pattern[i])] = true;
  }
}

// One search in one text.
class EscapedMatcher::Search {
 public:
  Search(const EscapedMatcher& matcher, std::string_view text, std::vector<Matcher::Match>& found)
      : matcher_(matcher), text_(text), found_(found), open_from_(text.size()) {}

  void run();
  [[nodiscard]] std::size_t open_from() const { return open_from_; }

 private:
  template <typename AnyMarks>
  void look_at_all(AnyMarks marks);
  void look_at_escape(std::size_t at);
  void look_at_break(std::size_t at, std::size_t next);
  [[nodiscard]] bool is_line_break_of_json(std::size_t at) const;
  [[nodiscard]] bool may_name_matter(std::string_view text) const;
  [[nodiscard]] bool may_matter(std::size_t at) const;
  [[nodiscard]] bool is_other_joint(std::size_t before, std::size_t after) const;
  void look_at_introducer(std::size_t at);
  void look_at_letter(std::size_t at, char letter);
  void hold_beginnings(std::size_t at);
  [[nodiscard]] bool is_after(std::size_t at, std::string_view beginning) const {
    if (beginning.empty()) return true;
    return at >= beginning.size() && text_[at - 1] == beginning.back() &&
           text_.substr(at - beginning.size()).starts_with(beginning);
  }

  void follow(std::size_t index, std::size_t matched, std::size_t at);
  void go_on(std::string_view pattern, const Place& place);
  void go_on_by_escape(std::string_view pattern, const Place& place);
  void add_place(const Place& place);
  Place take_place();
  void hold(std::size_t from) { open_from_ = std::min(open_from_, from); }
  // Of the patterns that are searched: their index and text.
  template <typename Each>
  void for_each_pattern(const Each& each) const {
    for (std::size_t index = 0; index < matcher_.wrappings_.size(); ++index) {
      if (matcher_.plain_.is_searched(index)) each(index, matcher_.plain_.pattern(index));
    }
  }

  const EscapedMatcher& matcher_;
  std::string_view text_;
  std::vector<Matcher::Match>& found_;
  std::size_t open_from_;
  // Of follow():
  std::array<Place, most_places> places_{};
  std::size_t count_ = 0;
  bool is_open_ = false;
};

void EscapedMatcher::Search::run() {
  if (matcher_.has_spaces_) {
    look_at_all(Marks<'%', '\\', '&', '\n', '\r', '+'>(text_));
  } else {
    look_at_all(Marks<'%', '\\', '&', '\n', '\r'>(text_));
  }
}

template <typename AnyMarks>
void EscapedMatcher::Search::look_at_all(AnyMarks marks) {
  const Tables& tables = *matcher_.tables_;
  while (const auto at = marks.next()) {
    const char c = text_[*at];
    if (c == '\n' || c == '\r') {
      look_at_break(*at, *at + 1);
    } else if (c == '+') {
      look_at_letter(*at, ' ');
    } else if (tables.letters[index_of(c)]) {
      look_at_introducer(*at);
      look_at_escape(*at);
    } else if (is_line_break_of_json(*at)) {
      look_at_break(*at, *at + 2);
    } else if (may_matter(*at)) {
      look_at_escape(*at);
    }
  }
}

// `text` follows an ampersand.
bool EscapedMatcher::Search::may_name_matter(std::string_view text) const {
  const auto* const end = std::ranges::find_if_not(text, is_alpha);
  const auto size = static_cast<std::size_t>(end - text.begin());
  if (size + 1 >= text.size() || begins_escape(text[size])) return true;
  if (text[size] != ';') return false;
  const char c = named_character(text.substr(0, size));
  // Another ampersand matters as the beginning of a reference only.
  const char next = text[size + 1];
  if (c == '&' && !matcher_.tables_->letters['&'])
    return next == '#' || is_alpha(next) || begins_escape(next);
  return matcher_.tables_->relevant[index_of(c)];
}

// The most frequent of all escapes, apart from values that hold one.
bool EscapedMatcher::Search::is_line_break_of_json(std::size_t at) const {
  if (text_.size() - at < 2 || text_[at] != '\\') return false;
  const Tables& tables = *matcher_.tables_;
  const char c = text_[at + 1];
  return (c == 'n' && !tables.letters['\n']) || (c == 'r' && !tables.letters['\r']);
}

// Whether the escape may say something that occurs in a pattern, or more text is needed to know
// that: false for nearly all escapes of a text, at little cost.
bool EscapedMatcher::Search::may_matter(std::size_t at) const {
  const std::string_view rest = text_.substr(at);
  if (rest.size() < longest_simple_escape) return true;
  const Tables& tables = *matcher_.tables_;
  const auto is_relevant = [&](int byte) {
    return tables.relevant[static_cast<std::size_t>(byte)];
  };
  const char next = rest[1];
  if (begins_escape(next)) return true;
  if (rest[0] == '&') return next == '#' || may_name_matter(rest.substr(1));
  if (rest[0] == '%') {
    const int high = hex_value(next);
    const int low = hex_value(rest[2]);
    if (high < 0) return begins_escape(next);
    return low < 0 ? begins_escape(rest[2]) : is_relevant(high * 16 + low);
  }
  if (next != 'u') return tables.after_backslash[index_of(next)];
  // Of other characters of Unicode than ASCII, only what a pattern may hold matters.
  if (rest[2] != '0' || rest[3] != '0')
    return tables.has_high || begins_escape(rest[2]) || begins_escape(rest[3]);
  const int high = hex_value(rest[4]);
  const int low = hex_value(rest[5]);
  return high < 0 || low < 0 || is_relevant(high * 16 + low);
}

void EscapedMatcher::Search::look_at_escape(std::size_t at) {
  for (const Layers layers : {Layers::one, Layers::two}) {
    const Escape escape = read_escape(text_, at, layers);
    if (escape.state == State::incomplete) hold_beginnings(at);
    if (escape.state != State::whole) continue;
    const char c = escape.text[0];
    if (c == '\n' || c == '\r') look_at_break(at, at + escape.size);
    look_at_letter(at, c);
    if (escape.as_byte != 0) look_at_letter(at, escape.as_byte);
    if (!begins_escape(c)) return;  // the introducer of no other
  }
}

// What an escape that is cut off will say is not known yet.
void EscapedMatcher::Search::hold_beginnings(std::size_t at) {
  hold(at);
  for_each_pattern([&](std::size_t /*index*/, std::string_view pattern) {
    for (std::size_t size = 1; size < pattern.size() && size <= at; ++size) {
      if (is_after(at, pattern.substr(0, size))) hold(at - size);
    }
  });
}

// A pattern that holds what begins an escape is followed from there on, once for each beginning;
// see look_at_introducer().
void EscapedMatcher::Search::look_at_letter(std::size_t at, char letter) {
  const Tables& tables = *matcher_.tables_;
  const bool is_first = tables.firsts[index_of(letter)];
  if (!is_first && (at == 0 || !tables.pairs[hash_of(text_[at - 1], letter)])) return;
  for_each_pattern([&](std::size_t index, std::string_view pattern) {
    const std::size_t most = std::min({at, pattern.size(), pattern.find_first_of(introducers)});
    for (std::size_t i = pattern.find(letter); i <= most && i < pattern.size();
         i = pattern.find(letter, i + 1)) {
      if (is_after(at, pattern.substr(0, i))) follow(index, i, at);
    }
  });
}

void EscapedMatcher::Search::look_at_introducer(std::size_t at) {
  for_each_pattern([&](std::size_t index, std::string_view pattern) {
    const std::size_t i = pattern.find_first_of(introducers);
    if (i == std::string_view::npos || pattern[i] != text_[at]) return;
    if (is_after(at, pattern.substr(0, i))) follow(index, i, at);
  });
}

// `next`: behind the first character of the break.
void EscapedMatcher::Search::look_at_break(std::size_t at, std::size_t next) {
  if (at < shortest_before_break || is_other_joint(at - 1, next)) return;
  const Read line_break = read_break(text_, at);
  if (line_break.state == State::none) return;
  if (line_break.state == State::whole && is_other_joint(at - 1, at + line_break.size)) return;
  for_each_pattern([&](std::size_t index, std::string_view pattern) {
    if (matcher_.wrappings_[index] == Wrapping::none) return;
    for (std::size_t i = shortest_before_break; i < pattern.size() && i <= at; ++i) {
      if (is_after(at, pattern.substr(0, i))) follow(index, i, at);
    }
  });
}

// Whether a break between these two is in no pattern, as is that of most lines.
bool EscapedMatcher::Search::is_other_joint(std::size_t before, std::size_t after) const {
  const Tables& tables = *matcher_.tables_;
  if (!tables.letters[index_of(text_[before])]) return true;
  if (after >= text_.size()) return false;
  const char c = text_[after];
  if (begins_escape(c) || is_blank(c)) return false;
  return !tables.pairs[hash_of(text_[before], c)];
}

// The longest match whose first characters stand before `at`.
void EscapedMatcher::Search::follow(std::size_t index, std::size_t matched, std::size_t at) {
  const std::string_view pattern = matcher_.plain_.pattern(index);
  const std::size_t begin = at - matched;
  std::size_t end = 0;
  is_open_ = false;
  count_ = 0;
  add_place({.matched = matched, .at = at});
  while (count_ > 0) {
    const Place place = take_place();
    if (place.matched == pattern.size()) {
      end = std::max(end, place.at);
      continue;
    }
    go_on(pattern, place);
    if (matcher_.wrappings_[index] == Wrapping::none || place.matched < shortest_before_break) {
      continue;
    }
    const Read line_break = read_break(text_, place.at);
    is_open_ = is_open_ || line_break.state == State::incomplete;
    if (line_break.state == State::whole) {
      go_on(pattern, {.matched = place.matched, .at = place.at + line_break.size});
    }
  }
  if (is_open_) hold(begin);
  if (end > 0) found_.push_back({.at = begin, .size = end - begin, .pattern = index});
}

void EscapedMatcher::Search::go_on(std::string_view pattern, const Place& place) {
  if (place.at >= text_.size()) {
    is_open_ = true;
    return;
  }
  const char c = text_[place.at];
  const char wanted = pattern[place.matched];
  if (c == wanted || (c == '+' && wanted == ' ')) {
    add_place({.matched = place.matched + 1, .at = place.at + 1});
  }
  if (begins_escape(c)) go_on_by_escape(pattern, place);
}

void EscapedMatcher::Search::go_on_by_escape(std::string_view pattern, const Place& place) {
  const std::string_view wanted = pattern.substr(place.matched);
  for (const Layers layers : {Layers::one, Layers::two}) {
    const Escape escape = read_escape(text_, place.at, layers);
    is_open_ = is_open_ || escape.state == State::incomplete;
    if (escape.state != State::whole) continue;
    const std::size_t next = place.at + escape.size;
    if (wanted.starts_with(escape.view())) {
      add_place({.matched = place.matched + escape.count, .at = next});
    }
    if (escape.as_byte != 0 && wanted.front() == escape.as_byte) {
      add_place({.matched = place.matched + 1, .at = next});
    }
  }
}

// The one that has matched least: none that was taken is added again, so the work is bounded.
Place EscapedMatcher::Search::take_place() {
  const auto known = std::span(places_).first(count_);
  std::ranges::swap(*std::ranges::min_element(known, {}, &Place::matched), known.back());
  return places_[--count_];
}

void EscapedMatcher::Search::add_place(const Place& place) {
  const auto known = std::span(places_).first(count_);
  const bool is_known = std::ranges::any_of(known, [&](const Place& other) {
    return other.matched == place.matched && other.at == place.at;
  });
  if (!is_known && count_ < places_.size()) places_[count_++] = place;
}

std::size_t EscapedMatcher::find(std::string_view text, Ending ending,
                                 std::vector<Matcher::Match>& found) const {
  Search search(*this, text, found);
  search.run();
  return ending == Ending::last ? text.size() : search.open_from();
}

}  // namespace capgate::seal
