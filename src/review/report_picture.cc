#include "review/report_picture.h"

#include <algorithm>

#include "base/format.h"
#include "review/markup.h"
#include "review/picture_text.h"
#include "review/report_words.h"

namespace capgate::review {
namespace {

constexpr int row_height = 17;
constexpr int verb_width = 62;
constexpr int gap = 14;
constexpr int pad = 12;
constexpr std::size_t most_rows = 7;
constexpr std::size_t most_tools = 9;

std::size_t columns_in(int width) { return static_cast<std::size_t>(std::max(1, width * 10 / 75)); }

// Writes elements; whatever is foreign is escaped here and nowhere else.
class Canvas {
 public:
  void text(int x, int y, std::string_view style, std::string_view words) {
    body_ += format("<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>\n", style, x, y,
                    escape_markup(words));
  }
  void line(int x, int y, int x2, int y2, std::string_view style) {
    body_ += format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", style, x, y, x2, y2);
  }
  struct Area {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0;
  };
  void area(const Area& at, int radius, std::string_view style) {
    body_ += format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>\n",
                    style, at.x, at.y, at.width, at.height, radius);
  }
  [[nodiscard]] const std::string& body() const { return body_; }

 private:
  std::string body_;
};

enum class Mark : unsigned char { none, open, wider };

Mark mark_of(const Line& line) {
  if (line.is_wider) return Mark::wider;
  return line.held == Held::enforced ? Mark::none : Mark::open;
}

std::string_view suffix(Mark mark) {
  constexpr std::string_view names[] = {"", " g-open", " g-wide"};
  return names[static_cast<std::size_t>(mark)];
}

// ---- what is in a card --------------------------------------------------------------------------

struct Row {
  std::string verb;
  std::vector<std::string> scope;
  std::vector<std::string> tags;  // a sign and a word for each mark
  Mark mark = Mark::none;

  [[nodiscard]] int height() const {
    return static_cast<int>(scope.size() + tags.size()) * row_height + 8;
  }
};

struct Card {
  std::string title;
  std::string count;
  std::vector<Row> rows;
  std::string more;  // "and 12 more", or what it means that the door is closed
  Mark mark = Mark::none;
  bool is_closed = false;

  [[nodiscard]] int height() const {
    int sum = 36 + (more.empty() ? 0 : row_height + 4);
    for (const Row& row : rows) sum += row.height();
    return is_closed ? 54 : sum + 4;
  }
};

Row row_of(const Line& line, int width) {
  Row row{.verb = line.verb,
          .scope = wrap_text(line.scope, columns_in(width - verb_width - 2 * pad), 3),
          .tags = {},
          .mark = mark_of(line)};
  if (line.is_wider) {
    const std::string was = line.before.empty() ? "" : format(", was {}", line.before);
    row.tags = wrap_text("+ wider than before" + was, columns_in(width - verb_width - 2 * pad), 2);
  }
  if (line.held == Held::partly) row.tags.emplace_back("! held in part only");
  if (line.held == Held::not_enforced) row.tags.emplace_back("! not enforced");
  return row;
}

// Those that a reader must see come first.
std::vector<const Line*> lines_at(const Report& report, Door door) {
  std::vector<const Line*> out;
  for (const Mark mark : {Mark::wider, Mark::open, Mark::none}) {
    for (const Line& line : report.lines) {
      if (line.door == door && mark_of(line) == mark) out.push_back(&line);
    }
  }
  return out;
}

Card card_of(const Report& report, Door door, int width) {
  const std::vector<const Line*> lines = lines_at(report, door);
  Card card{.title = std::string(door_title(door)), .count = {}, .rows = {}, .more = {}};
  card.is_closed = lines.empty();
  if (card.is_closed) {
    const bool guarded = report.is_guarded(door);
    card.more = guarded ? format("closed: {}", closed_words(door))
                        : format("! not closed by {}", report.target);
    if (!guarded) card.mark = Mark::open;
    return card;
  }
  card.mark = mark_of(*lines.front());
  // One more than the limit is shown rather than counted.
  const std::size_t shown = lines.size() <= most_rows + 1 ? lines.size() : most_rows;
  for (std::size_t i = 0; i < shown; ++i) card.rows.push_back(row_of(*lines[i], width));
  if (shown == lines.size()) return card;
  card.count = format("{}", lines.size());
  card.more = format("and {} more", lines.size() - shown);
  const auto marked = std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(shown), lines.end(),
                                    [](const Line* line) { return mark_of(*line) != Mark::none; });
  if (marked > 0) card.more += format(", {} of them marked", marked);
  return card;
}

void draw_row(Canvas& canvas, const Row& row, const Canvas::Area& at) {
  if (row.mark != Mark::none) {
    canvas.area({at.x + 5, at.y, at.width - 10, row.height() - 2}, 4,
                format("g-band{}", suffix(row.mark)));
    canvas.area({at.x + 5, at.y, 3, row.height() - 2}, 1, format("g-bar{}", suffix(row.mark)));
  }
  int y = at.y + 15;
  canvas.text(at.x + pad + 2, y, "g-verb", row.verb);
  for (const std::string& line : row.scope) {
    canvas.text(at.x + pad + verb_width, y, "g-code", line);
    y += row_height;
  }
  for (const std::string& tag : row.tags) {
    canvas.text(at.x + pad + verb_width, y, tag.starts_with('!') ? "g-tag g-open" : "g-tag g-wide",
                tag);
    y += row_height;
  }
}

void draw_card(Canvas& canvas, const Card& card, const Canvas::Area& at) {
  canvas.area(at, 8, card.is_closed ? "g-card g-shut" : "g-card");
  canvas.text(at.x + pad + 2, at.y + 23, card.is_closed ? "g-title g-soft" : "g-title", card.title);
  if (!card.count.empty()) {
    canvas.text(at.x + at.width - pad - 2, at.y + 23, "g-verb g-end", card.count);
  }
  int y = at.y + 34;
  for (const Row& row : card.rows) {
    draw_row(canvas, row, {at.x, y, at.width, row.height()});
    y += row.height();
  }
  if (!card.more.empty()) {
    canvas.text(at.x + pad + 2, card.is_closed ? at.y + 42 : y + 15,
                card.more.starts_with('!') ? "g-tag g-open" : "g-verb", card.more);
  }
}

// ---- the box ------------------------------------------------------------------------------------

// A line of text in the box, with the space above it.
struct Entry {
  std::string style;
  std::string words;
  int above = row_height;
  std::string value = {};  // at the right side
};

void add_wrapped(std::vector<Entry>& out, std::string_view words, std::size_t columns,
                 const Entry& like) {
  bool first = true;
  for (std::string& line : wrap_text(words, columns, 3)) {
    out.push_back({.style = like.style,
                   .words = std::move(line),
                   .above = first ? like.above : row_height + 2});
    first = false;
  }
}

void add_tools(std::vector<Entry>& out, const Report& report, int width) {
  std::vector<const ToolRow*> tools;
  for (const bool is_new : {true, false}) {
    for (const ToolRow& tool : report.tools) {
      if (!tool.name.empty() && tool.is_new == is_new) tools.push_back(&tool);
    }
  }
  out.push_back({.style = "g-title", .words = tools.size() == 1 ? "Tool" : "Tools", .above = 32});
  if (tools.empty()) out.push_back({.style = "g-verb", .words = "none declared", .above = 20});
  const std::size_t shown = tools.size() <= most_tools + 1 ? tools.size() : most_tools;
  for (std::size_t i = 0; i < shown; ++i) {
    const int room = width - (tools[i]->is_new ? 50 : 0);
    out.push_back({.style = "g-code",
                   .words = elide(tools[i]->name, columns_in(room)),
                   .above = i == 0 ? 20 : row_height,
                   .value = tools[i]->is_new ? "+ new" : ""});
  }
  if (shown < tools.size()) {
    out.push_back({.style = "g-verb", .words = format("and {} more", tools.size() - shown)});
  }
}

const Line* limit_line(const Report& report, std::string_view name) {
  for (const Line& line : report.lines) {
    if (line.door == Door::limits && line.verb == name) return &line;
  }
  return nullptr;
}

void add_limits(std::vector<Entry>& out, const Report& report) {
  out.push_back({.style = "g-title", .words = "Limits", .above = 34});
  if (!report.is_guarded(Door::limits)) {
    out.push_back(
        {.style = "g-tag g-open", .words = format("! not kept by {}", report.target), .above = 20});
    return;
  }
  int above = 20;
  for (const Limit& limit : report.limits) {
    out.push_back({.style = "g-verb",
                   .words = limit.is_default ? format("{} (default)", limit.name) : limit.name,
                   .above = above,
                   .value = limit.value});
    above = row_height;
    const Line* line = limit_line(report, limit.name);
    if (line == nullptr) continue;
    if (line->is_wider) out.push_back({.style = "g-tag g-wide", .words = "+ wider than before"});
    if (line->held != Held::enforced) {
      out.push_back(
          {.style = "g-tag g-open",
           .words = line->held == Held::partly ? "! held in part only" : "! not enforced"});
    }
  }
  for (const Change& change : report.changes) {
    if (!change.is_gone) continue;
    out.push_back(
        {.style = "g-tag g-wide", .words = format("+ gone: {}", elide(change.capability, 20))});
  }
}

void add_promises(std::vector<Entry>& out, const Report& report, int width) {
  const std::vector<const Line*> lines = lines_at(report, Door::promises);
  if (lines.empty()) return;
  out.push_back({.style = "g-title", .words = "Promises", .above = 34});
  const std::size_t shown = std::min<std::size_t>(lines.size(), 3);
  for (std::size_t i = 0; i < shown; ++i) {
    const Line& line = *lines[i];
    out.push_back({.style = "g-code", .words = elide(line.scope, columns_in(width)), .above = 20});
    if (line.is_wider) out.push_back({.style = "g-tag g-wide", .words = "+ wider than before"});
    if (line.held != Held::enforced) {
      out.push_back({.style = "g-tag g-open", .words = "! not enforced"});
    }
  }
  if (shown < lines.size()) {
    out.push_back({.style = "g-verb", .words = format("and {} more", lines.size() - shown)});
  }
}

std::vector<Entry> box_of(const Report& report, int width) {
  const int inner = width - 40;
  std::vector<Entry> out;
  out.push_back({.style = "g-over", .words = format("BOX: {}", engine_words(report)), .above = 30});
  // The name is larger: about nine units for a character.
  add_wrapped(out, report.name, static_cast<std::size_t>(inner * 10 / 92),
              {.style = "g-name", .words = {}, .above = 26});
  out.push_back({.style = "g-verb",
                 .words = elide(format("version {}", report.version), columns_in(inner)),
                 .above = 19});
  add_tools(out, report, inner);
  add_limits(out, report);
  add_promises(out, report, inner);
  return out;
}

int height_of(const std::vector<Entry>& entries) {
  int sum = 20;
  for (const Entry& entry : entries) sum += entry.above;
  return sum;
}

void draw_box(Canvas& canvas, const std::vector<Entry>& entries, const Canvas::Area& at) {
  canvas.area(at, 14, "g-box");
  int y = at.y;
  for (const Entry& entry : entries) {
    y += entry.above;
    canvas.text(at.x + 20, y, entry.style, entry.words);
    if (entry.value.empty()) continue;
    const bool is_new = entry.value.starts_with('+');
    canvas.text(at.x + at.width - 20, y, is_new ? "g-tag g-wide g-end" : "g-code g-end",
                entry.value);
  }
}

// ---- the whole ----------------------------------------------------------------------------------

// From a card to the wall: open where something is granted, and otherwise short of it.
void draw_door(Canvas& canvas, const Card& card, int from, int to, int y) {
  const std::string_view mark = suffix(card.mark);
  if (card.is_closed && card.mark == Mark::none) {
    canvas.line(from, y, from + (to - from) * 2 / 3, y, "g-way g-none");
    return;
  }
  canvas.line(from, y, to, y, format("g-way{}", mark));
  canvas.area({to - 5, y - 13, 10, 26}, 3, format("g-door{}", mark));
}

struct Drawing {
  int width = 0;
  int height = 0;
  std::string body;
};

constexpr Door picture_doors[] = {Door::files, Door::network, Door::programs, Door::secrets,
                                  Door::sockets};

// The walls of the box are vertical; a card goes to the side that is shorter so far.
Drawing draw_wide(const Report& report) {
  constexpr int card_width = 344;
  constexpr int box_x = 394;
  constexpr int box_width = 272;
  constexpr int right_x = 716;
  Canvas canvas;
  Canvas sides;
  int left = 4;
  int right = 4;
  for (const Door door : picture_doors) {
    const Card card = card_of(report, door, card_width);
    const bool is_left = left <= right;
    int& y = is_left ? left : right;
    draw_card(sides, card, {is_left ? 2 : right_x, y, card_width, card.height()});
    draw_door(sides, card, is_left ? 2 + card_width : right_x, is_left ? box_x : box_x + box_width,
              y + 24);
    y += card.height() + gap;
  }
  const std::vector<Entry> entries = box_of(report, box_width);
  const int height = std::max({left - gap + 4, right - gap + 4, height_of(entries) + 8});
  draw_box(canvas, entries, {box_x, 4, box_width, height - 8});
  return {
      .width = right_x + card_width + 2, .height = height, .body = canvas.body() + sides.body()};
}

Drawing draw_narrow(const Report& report) {
  constexpr int width = 340;
  constexpr int card_x = 30;
  Canvas canvas;
  Canvas rail;
  const std::vector<Entry> entries = box_of(report, width - 4);
  const int box_height = height_of(entries);
  draw_box(canvas, entries, {2, 4, width - 4, box_height});
  int y = box_height + 4 + gap + 4;
  int last = y;
  for (const Door door : picture_doors) {
    const Card card = card_of(report, door, width - card_x - 2);
    draw_card(canvas, card, {card_x, y, width - card_x - 2, card.height()});
    draw_door(canvas, card, card_x, 14, y + 24);
    last = y + 24;
    y += card.height() + gap;
  }
  rail.line(14, box_height + 4, 14, last, "g-way");
  return {.width = width, .height = y - gap + 4, .body = rail.body() + canvas.body()};
}

std::string described(const Report& report) {
  std::string out = plain(report.verdict);
  for (const Door door : all_doors) {
    const std::size_t number = lines_at(report, door).size();
    if (number == 0) {
      out += format(" {}: {}.", door_title(door), closed_words(door));
    } else {
      out += format(" {}: {} {}.", door_title(door), number, number == 1 ? "line" : "lines");
    }
  }
  return out;
}

std::string with_frame(const Report& report, const Drawing& drawing, std::string_view id,
                       std::string_view style) {
  return format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 {0} {1}\" "
      "width=\"{0}\" height=\"{1}\" role=\"img\" aria-labelledby=\"{2}-title\" "
      "aria-describedby=\"{2}-desc\">\n"
      "<title id=\"{2}-title\">{3} {4} in its box</title>\n<desc id=\"{2}-desc\">{5}</desc>\n"
      "{6}{7}</svg>",
      drawing.width, drawing.height, id, escape_markup(elide(report.name, 120)),
      escape_markup(elide(report.version, 40)), escape_markup(described(report)), style,
      drawing.body);
}

}  // namespace

std::string report_svg(const Report& report) {
  Drawing drawing = draw_wide(report);
  constexpr int margin = 20;
  drawing.body = format(
      "<rect class=\"g-back\" width=\"{}\" height=\"{}\"/>\n<g transform=\"translate({} {})\">\n"
      "{}</g>\n",
      drawing.width + 2 * margin, drawing.height + 2 * margin, margin, margin, drawing.body);
  drawing.width += 2 * margin;
  drawing.height += 2 * margin;
  const std::string style = format("<style>\n{}</style>\n", picture_style());
  return with_frame(report, drawing, "picture", style) + "\n";
}

std::string report_figure(const Report& report, Shape shape, std::string_view id) {
  return with_frame(report, shape == Shape::wide ? draw_wide(report) : draw_narrow(report), id, "");
}

}  // namespace capgate::review
