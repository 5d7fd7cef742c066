// Two foreign texts, shown so that a person sees what changed in them.
#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/text.h"
#include "clients/pin_diff.h"

namespace capgate::clients {
namespace {

constexpr std::size_t most_shown = 4000;    // bytes of a text
constexpr std::size_t most_compared = 400;  // lines on each side; more are all taken as changed
constexpr std::size_t long_line = 200;
constexpr std::size_t context = 60;  // bytes around a change in a long line

using Lines = std::vector<std::string_view>;

// A line of the result.
struct Line {
  char mark = ' ';
  std::string_view text;
};

// By the longest common subsequence: what is on neither side alone is left out.
std::vector<Line> changed_lines(const Lines& before, const Lines& after) {
  std::vector<Line> out;
  const std::size_t rows = before.size();
  const std::size_t columns = after.size();
  if (rows > most_compared || columns > most_compared) {
    for (const std::string_view line : before) out.push_back({'-', line});
    for (const std::string_view line : after) out.push_back({'+', line});
    return out;
  }
  // length[i][j]: of what before[i..] and after[j..] have in common.
  std::vector<std::size_t> length((rows + 1) * (columns + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return length[i * (columns + 1) + j];
  };
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      at(i, j) =
          before[i] == after[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && before[i] == after[j]) {
      ++i;
      ++j;
    } else if (j == columns || (i < rows && at(i + 1, j) >= at(i, j + 1))) {
      out.push_back({'-', before[i++]});
    } else {
      out.push_back({'+', after[j++]});
    }
  }
  return out;
}

bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

// Of a line without its bytes before `from` and after `to`, but for some around them.
std::string window(std::string_view line, std::size_t from, std::size_t to) {
  std::size_t begin = from > context ? from - context : 0;
  std::size_t end = std::min(line.size(), to + context);
  while (begin > 0 && is_inside_character(line, begin)) --begin;
  while (is_inside_character(line, end)) ++end;
  return format("{}{}{}", begin > 0 ? "..." : "", line.substr(begin, end - begin),
                end < line.size() ? "..." : "");
}

struct Replaced {
  std::string before;
  std::string after;
};

// One line that took the place of another: the words around the change.
Replaced replaced_line(std::string_view before, std::string_view after) {
  const std::size_t shorter = std::min(before.size(), after.size());
  std::size_t same = 0;
  while (same < shorter && before[same] == after[same]) ++same;
  std::size_t end = 0;
  while (end < shorter - same && before[before.size() - 1 - end] == after[after.size() - 1 - end]) {
    ++end;
  }
  return {.before = window(before, same, before.size() - end),
          .after = window(after, same, after.size() - end)};
}

// Lines of foreign text up to a size. What is not shown is said: it may be what matters.
class Shown {
 public:
  explicit Shown(std::string_view indent) : indent_(indent) {}

  void add(std::string_view mark, std::string_view line, std::size_t& room) {
    std::string text = escape_for_terminal(line);
    std::size_t end = std::min(text.size(), room);
    while (end > 0 && is_inside_character(text, end)) --end;
    left_out_ += text.size() - end;
    const bool has_room = room > 0;
    room -= std::min(room, end + 1);
    text.resize(end);
    if (has_room) out_ += format("{}{}{}\n", indent_, mark, text);
  }

  [[nodiscard]] std::string take() && {
    if (left_out_ == 0) return std::move(out_);
    return out_ + format("{}... and {} bytes more, which are not shown here: see --json\n", indent_,
                         left_out_);
  }

 private:
  std::string_view indent_;
  std::string out_;
  std::size_t left_out_ = 0;
};

std::string print_lines(const std::vector<Line>& lines, std::string_view indent) {
  Shown out(indent);
  // Each side has its own, so that a long old text does not hide the new one.
  std::size_t room_before = most_shown;
  std::size_t room_after = most_shown;
  for (const Line& line : lines) {
    if (line.mark == '-') {
      out.add("- ", line.text, room_before);
    } else {
      out.add("+ ", line.text, room_after);
    }
  }
  return std::move(out).take();
}

}  // namespace

std::string shown_text(std::string_view text, std::string_view indent) {
  Shown out(indent);
  std::size_t room = most_shown;
  for (const std::string_view line : EachPart(text, '\n')) out.add("", line, room);
  return std::move(out).take();
}

std::string text_diff(std::string_view before, std::string_view after, std::string_view indent) {
  const std::vector<Line> changes = changed_lines(before.empty() ? Lines{} : split(before, '\n'),
                                                  after.empty() ? Lines{} : split(after, '\n'));
  const bool is_one_line = changes.size() == 2 && changes[0].mark != changes[1].mark &&
                           std::max(changes[0].text.size(), changes[1].text.size()) > long_line;
  if (is_one_line) {
    const bool is_first = changes[0].mark == '-';
    const Replaced parts =
        replaced_line(changes[is_first ? 0 : 1].text, changes[is_first ? 1 : 0].text);
    return print_lines({{'-', parts.before}, {'+', parts.after}}, indent);
  }
  return print_lines(changes, indent);
}

}  // namespace capgate::clients
