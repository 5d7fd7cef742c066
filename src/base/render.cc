#include "base/render.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/text.h"

namespace capgate {
namespace {

// A minified manifest is one endless line: show only the neighbourhood of the mistake.
constexpr std::size_t widest_line = 100;
constexpr std::size_t context_before = 40;

// A column is counted from the start of a block, not of the line: with many places in one endless
// line the other way would cost the square of its length.
constexpr std::size_t block_size = 4096;

struct Excerpt {
  std::string text;
  std::size_t caret_column = 0;
  std::size_t caret_width = 1;
};

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// At most three bytes: the line may be invalid UTF-8, and nothing but continuation bytes.
std::size_t step_back_to_character(std::string_view text, std::size_t at) {
  const std::size_t stop = at - std::min<std::size_t>(at, 3);
  while (at > stop && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U) {
    --at;
  }
  return at;
}

Excerpt cut_excerpt(std::string_view line, std::size_t begin, std::size_t end) {
  std::size_t from = 0;
  std::size_t to = line.size();
  if (line.size() > widest_line) {
    from = step_back_to_character(line, begin > context_before ? begin - context_before : 0);
    to = step_back_to_character(line, std::min(line.size(), from + widest_line));
  }
  // A tab would move the caret line apart from the source line.
  std::string flat(line.substr(from, to - from));
  std::ranges::replace(flat, '\t', ' ');
  const std::string_view text = flat;
  const std::string_view before = text.substr(0, begin - from);
  const std::string_view marked = text.substr(begin - from, std::min(end, to) - begin);
  const std::string_view after = text.substr(before.size() + marked.size());

  Excerpt out;
  out.text = from > 0 ? "..." : "";
  out.text += escape_for_terminal(before);
  out.caret_column = count_characters(out.text);
  const std::string shown = escape_for_terminal(marked);
  out.caret_width = std::max<std::size_t>(1, count_characters(shown));
  out.text += shown;
  out.text += escape_for_terminal(after);
  if (to < line.size()) out.text += "...";
  return out;
}

std::string paint(std::string_view text, std::string_view sgr, Colour colour) {
  if (colour == Colour::off) return std::string(text);
  return format("\x1b[{}m{}\x1b[0m", sgr, text);
}

std::string_view sgr_of(std::string_view severity) {
  if (severity == "error") return "1;31";
  return severity == "warning" ? "1;33" : "1;34";
}

}  // namespace

Source::Source(std::string name, std::string_view text) : name_(std::move(name)), text_(text) {
  starts_.push_back(0);
  for (std::size_t at = text.find('\n'); at != std::string_view::npos;
       at = text.find('\n', at + 1)) {
    starts_.push_back(at + 1);
  }
  characters_.push_back(0);
  for (std::size_t at = block_size; at <= text.size(); at += block_size) {
    characters_.push_back(characters_.back() +
                          count_characters(text.substr(at - block_size, block_size)));
  }
}

Source::Position Source::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto next = std::ranges::upper_bound(starts_, offset);
  const auto number = static_cast<std::size_t>(next - starts_.begin());
  const std::size_t start = starts_[number - 1];
  return {.line = number, .column = characters_before(offset) - characters_before(start) + 1};
}

std::size_t Source::characters_before(std::size_t offset) const {
  const std::size_t block = offset / block_size;
  const std::size_t start = block * block_size;
  return characters_[block] + count_characters(text_.substr(start, offset - start));
}

std::string_view Source::line(std::size_t number) const {
  const std::size_t start = starts_[number - 1];
  const std::size_t end = number < starts_.size() ? starts_[number] - 1 : text_.size();
  std::string_view out = text_.substr(start, end - start);
  if (out.ends_with('\r')) out.remove_suffix(1);
  return out;
}

void sort_diagnostics(Diagnostics& diagnostics) {
  std::ranges::sort(diagnostics, {}, [](const Diagnostic& d) {
    return std::tuple(d.where.begin, d.where.end, d.code, std::string_view(d.message));
  });
}

std::string render(const Diagnostic& diagnostic, const Source& source, Colour colour) {
  return render(Remark{.severity = "error",
                       .code = code_name(diagnostic.code),
                       .where = diagnostic.where,
                       .message = diagnostic.message,
                       .help = diagnostic.help},
                source, colour);
}

std::string render(const Remark& remark, const Source& source, Colour colour) {
  const std::string name = escape_for_terminal(source.name());
  const std::string_view sgr = sgr_of(remark.severity);
  const std::string label = paint(format("{}[{}]", remark.severity, remark.code), sgr, colour);
  const std::string help = remark.help.empty()
                               ? std::string()
                               : format("{}: {}\n", paint("help", "1;36", colour), remark.help);
  if (remark.where == Span::nowhere()) {
    return format("{}: {}: {}\n{}", name, label, remark.message, help);
  }

  const auto [number, column] = source.position(remark.where.begin);
  const std::string_view line = source.line(number);
  const std::size_t start = source.line_start(number);
  const std::size_t begin = std::min<std::size_t>(remark.where.begin - start, line.size());
  const std::size_t end =
      std::clamp<std::size_t>(remark.where.end, start + begin, start + line.size()) - start;
  const Excerpt excerpt = cut_excerpt(line, begin, end);
  const std::string gutter = format("{:>5}", number);
  return format("{}:{}:{}: {}: {}\n", name, number, column, label, remark.message) +
         format("{} | {}\n", gutter, excerpt.text) +
         format("{} | {}{}\n", std::string(gutter.size(), ' '),
                std::string(excerpt.caret_column, ' '),
                paint(std::string(excerpt.caret_width, '^'), sgr, colour)) +
         help;
}

}  // namespace capgate
