#include "review/markdown.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::review {
namespace {

using namespace std::string_view_literals;

// Longer is cut, in sight: a comment is read by a person, and has a greatest size.
constexpr std::size_t longest = 400;

std::string printable(std::string_view text) {
  std::size_t cut = std::min(text.size(), longest);
  while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0U) == 0x80U) {
    --cut;
  }
  return escape_for_terminal(text.substr(0, cut)) + (cut < text.size() ? "..." : "");
}

// A zero-width space. Mentions and references are looked for in the text that is shown, where no
// backslash is left.
constexpr std::string_view apart = "&#8203;";

bool starts_www(std::string_view text, std::size_t dot) {
  return dot >= 3 && to_lower(text.substr(dot - 3, 3)) == "www";
}

// "GH-12" is a reference, too.
bool starts_reference(std::string_view text, std::size_t dash) {
  if (dash < 2 || to_lower(text.substr(dash - 2, 2)) != "gh") return false;
  const bool is_word = dash == 2 || !is_alnum(text[dash - 3]);
  return is_word && dash + 1 < text.size() && is_digit(text[dash + 1]);
}

// ":tada:", of which a picture is made.
bool starts_picture(std::string_view text, std::size_t colon) {
  const auto is_inside = [](char c) { return is_alnum(c) || "_+-"sv.contains(c); };
  std::size_t end = colon + 1;
  while (end < text.size() && is_inside(text[end])) ++end;
  return end > colon + 1 && end < text.size() && text[end] == ':';
}

// Where hexadecimal digits are put apart: as many as these are the name of a commit, and a link.
class CommitBreaker {
 public:
  explicit CommitBreaker(std::string_view text) : text_(text) {}

  // True if the character at `i` must not follow the last one. Asked for each, in order.
  bool breaks_before(std::size_t i) {
    if (!is_hex(text_[i])) {
      run_ = 0;
      return false;
    }
    if (run_++ < shortest - 1) return false;
    run_ = 1;
    return true;
  }

 private:
  static constexpr std::size_t shortest = 7;
  static bool is_hex(char c) { return is_digit(c) || "abcdefABCDEF"sv.contains(c); }

  std::string_view text_;
  std::size_t run_ = 0;
};

}  // namespace

std::string markdown_text(std::string_view foreign) {
  const std::string text = printable(foreign);
  std::string out;
  CommitBreaker commits(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (commits.breaks_before(i)) out += apart;
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '@' || c == '#') {
      out += '\\';
      out += c;
      out += apart;
    } else if ((c == '-' && starts_reference(text, i)) || (c == ':' && starts_picture(text, i))) {
      out += c;
      out += apart;
    } else if (std::string_view("\\`*_[]{}|~$!^=").contains(c) ||
               (c == ':' && text.substr(i + 1).starts_with("/")) ||
               (c == '.' && starts_www(text, i))) {
      out += '\\';
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string markdown_code(std::string_view foreign) {
  const std::string text = printable(foreign);
  std::size_t run = 0;
  std::size_t most = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    most = std::max(most, run);
  }
  const std::string fence(most + 1, '`');
  // A blank at each end is taken off again, and keeps a backtick at an end apart from the fence.
  const bool apart_from_fence =
      text.empty() || text.front() == '`' || text.back() == '`' || text.front() == ' ';
  return apart_from_fence ? fence + " " + text + " " + fence : fence + text + fence;
}

}  // namespace capgate::review
