#include "cli/wrap_diff.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace capgate::cli {
namespace {

using clients::Edit;

constexpr std::string_view hidden = "***";
// Of a line that is longer, only so much is shown around a change: some files are one line.
constexpr std::size_t longest_line = 400;
constexpr std::size_t shown_around = 60;

// A part of the text that is shown: whole lines, or a piece of a long one.
struct Window {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool is_cut_before = false;
  bool is_cut_after = false;
};

Window window_of(std::string_view text, const Edit& edit) {
  const std::size_t before =
      edit.where.begin == 0 ? std::string_view::npos : text.rfind('\n', edit.where.begin - 1);
  Window out{.begin = before == std::string_view::npos ? 0 : before + 1,
             .end = std::min(text.find('\n', edit.where.end), text.size())};
  if (edit.where.begin - out.begin > longest_line) {
    out.begin = edit.where.begin - shown_around;
    out.is_cut_before = true;
  }
  if (out.end - edit.where.end > longest_line) {
    out.end = edit.where.end + shown_around;
    out.is_cut_after = true;
  }
  return out;
}

// Windows of edits that are close to each other are one.
std::vector<Window> windows_of(std::string_view text, const std::vector<Edit>& edits) {
  std::vector<Window> out;
  for (const Edit& edit : edits) {
    const Window next = window_of(text, edit);
    if (out.empty() || next.begin > out.back().end + 1) {
      out.push_back(next);
    } else if (next.end >= out.back().end) {
      out.back().end = next.end;
      out.back().is_cut_after = next.is_cut_after;
    }
  }
  return out;
}

std::vector<Edit> masks_of(const clients::ClientFile& file) {
  std::vector<Edit> out;
  for (const clients::ServerEntry& server : file.servers) {
    if (server.transport == clients::Transport::http) {
      out.push_back({.where = server.where, .text = std::string(hidden)});
      continue;
    }
    for (const clients::EnvironmentEntry& variable : server.environment) {
      out.push_back({.where = variable.where, .text = std::string(hidden)});
    }
  }
  std::ranges::sort(out, {}, [](const Edit& edit) { return edit.where.begin; });
  return out;
}

bool overlap(const Edit& a, const Edit& b) {
  return a.where.begin < b.where.end && b.where.begin < a.where.end;
}

// A value that is put back is hidden like the one that was there; store:NAME is none.
std::vector<Edit> masked_edits(std::vector<Edit> edits, const std::vector<Edit>& masks) {
  for (Edit& edit : edits) {
    const bool is_value =
        std::ranges::any_of(masks, [&](const Edit& mask) { return mask.where == edit.where; });
    if (is_value && !edit.text.contains("store:")) edit.text = hidden;
  }
  for (const Edit& mask : masks) {
    const bool is_free =
        std::ranges::none_of(edits, [&](const Edit& edit) { return overlap(edit, mask); });
    if (is_free) edits.push_back(mask);
  }
  std::ranges::sort(edits, {},
                    [](const Edit& edit) { return std::pair(edit.where.begin, edit.where.end); });
  return edits;
}

// The window's text with these replacements; one that reaches out of it hides what it covers.
std::string text_in(std::string_view text, const Window& window, const std::vector<Edit>& edits) {
  std::string out = window.is_cut_before ? "..." : "";
  std::size_t at = window.begin;
  for (const Edit& edit : edits) {
    if (edit.where.end < window.begin || edit.where.begin > window.end) continue;
    const bool only_touches = edit.where.begin == window.end && edit.where.end > window.end;
    const bool only_ended = edit.where.end == window.begin && edit.where.begin < window.begin;
    if (only_touches || only_ended) continue;
    if (edit.where.begin > at) out += text.substr(at, edit.where.begin - at);
    out += edit.text;
    at = std::max<std::size_t>(at, edit.where.end);
  }
  if (at < window.end) out += text.substr(at, window.end - at);
  return out + (window.is_cut_after ? "..." : "");
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out = split(text, '\n');
  for (std::string_view& line : out) {
    if (line.ends_with('\r')) line.remove_suffix(1);
  }
  return out;
}

std::string shown_line(std::string_view line) {
  std::string out;
  for (const std::string_view part : EachPart(line, '\t')) {
    if (part.data() != line.data()) out += '\t';
    out += escape_for_terminal(part);
  }
  return out;
}

std::string painted(std::string_view text, std::string_view code, Colour colour) {
  if (colour == Colour::off) return format("{}\n", text);
  return format("\x1b[{}m{}\x1b[0m\n", code, text);
}

std::string_view name_at(const clients::ClientFile& file, const Edit& edit) {
  for (const clients::ServerEntry& server : file.servers) {
    if (server.where.begin <= edit.where.begin && edit.where.end <= server.where.end) {
      return server.name;
    }
  }
  return "";
}

// Lines that are the same at both ends are context.
std::string show_lines(const std::vector<std::string_view>& before,
                       const std::vector<std::string_view>& after, Colour colour) {
  const auto [old_end, new_end] = std::ranges::mismatch(before, after);
  const auto head = static_cast<std::size_t>(old_end - before.begin());
  std::size_t tail = 0;
  while (tail < before.size() - head && tail < after.size() - head &&
         before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::string out;
  for (std::size_t i = 0; i < head; ++i) out += format(" {}\n", shown_line(before[i]));
  for (std::size_t i = head; i < before.size() - tail; ++i) {
    out += painted("-" + shown_line(before[i]), "31", colour);
  }
  for (std::size_t i = head; i < after.size() - tail; ++i) {
    out += painted("+" + shown_line(after[i]), "32", colour);
  }
  for (std::size_t i = before.size() - tail; i < before.size(); ++i) {
    out += format(" {}\n", shown_line(before[i]));
  }
  return out;
}

}  // namespace

std::string show_diff(const clients::ClientFile& file, const std::vector<Edit>& edits,
                      std::string_view path, Colour colour) {
  if (edits.empty()) return "";
  const std::string_view text = file.text;
  const std::vector<Edit> masks = masks_of(file);
  const std::vector<Edit> changes = masked_edits(edits, masks);
  std::string out = painted(format("--- {}", escape_for_terminal(path)), "1", colour);
  out += painted(format("+++ {}", escape_for_terminal(path)), "1", colour);
  std::size_t line = 1;  // of `at`, in the old text
  std::size_t at = 0;
  std::ptrdiff_t shift = 0;  // how many lines more the new text has so far
  for (const Window& window : windows_of(text, edits)) {
    line += static_cast<std::size_t>(std::ranges::count(text.substr(at, window.begin - at), '\n'));
    at = window.begin;
    const std::string old_text = text_in(text, window, masks);
    const std::string new_text = text_in(text, window, changes);
    const auto before = lines_of(old_text);
    const auto after = lines_of(new_text);
    const auto first = std::ranges::find_if(
        edits, [&](const Edit& edit) { return edit.where.begin >= window.begin; });
    out += painted(format("@@ -{},{} +{},{} @@ {}", line, before.size(),
                          static_cast<std::ptrdiff_t>(line) + shift, after.size(),
                          escape_for_terminal(name_at(file, *first))),
                   "36", colour);
    out += show_lines(before, after, colour);
    shift += static_cast<std::ptrdiff_t>(after.size()) - static_cast<std::ptrdiff_t>(before.size());
  }
  return out;
}

}  // namespace capgate::cli
