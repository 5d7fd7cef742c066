#include "review/report_page.h"

#include <algorithm>

#include "base/digest.h"
#include "base/format.h"
#include "base/text.h"
#include "review/markup.h"
#include "review/report_picture.h"
#include "review/report_words.h"

namespace capgate::review {
namespace {

using Kind = core::GrantChange::Kind;

constexpr std::size_t most_origins = 5;

std::string esc(std::string_view text) { return escape_markup(text); }

std::string code(std::string_view text) { return format("<code>{}</code>", esc(text)); }

std::string capitalised(std::string text) {
  if (!text.empty() && is_lower(text[0])) text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string plural(std::size_t number, std::string_view one, std::string_view many) {
  return format("{} {}", number, number == 1 ? one : many);
}

std::string html_of(const Sentence& sentence) {
  std::string out;
  for (const Piece& piece : sentence) out += piece.is_code ? code(piece.text) : esc(piece.text);
  return out;
}

// 'sha256-...' of the style: no other style counts, and nothing at all is run or loaded.
std::string content_policy(std::string_view style) {
  std::string digest;
  const std::string hex = sha256_hex(style);
  const auto value = [](char c) { return is_digit(c) ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    digest += static_cast<char>(value(hex[i]) * 16 + value(hex[i + 1]));
  }
  return format("default-src 'none'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
                base64(digest));
}

std::string tag(std::string_view style, std::string_view words) {
  return format("<span class=\"tag {}\">{}</span>", style, esc(words));
}

// ---- the top ------------------------------------------------------------------------------------

struct Chapter {
  std::string_view id;
  std::string_view title;
};

std::vector<Chapter> chapters_of(const Report& report) {
  std::vector<Chapter> out;
  if (!report.against.empty()) out.push_back({.id = "changes", .title = "What changed"});
  out.push_back({.id = "picture", .title = "Picture"});
  out.push_back({.id = "tools", .title = "Tools"});
  out.push_back({.id = "lines", .title = "Every line"});
  out.push_back({.id = "beyond", .title = "What the box does not stop"});
  if (!report.notes.empty()) out.push_back({.id = "notes", .title = "Notes"});
  return out;
}

std::string chips_of(const Report& report) {
  std::string out = "<ul class=\"chips\">\n";
  const auto chip = [&](std::string_view style, const std::string& words) {
    out += style.empty() ? format("<li>{}</li>\n", esc(words))
                         : format("<li class=\"{}\">{}</li>\n", style, esc(words));
  };
  chip("", plural(report.lines.size(), "line", "lines"));
  const auto tools =
      std::ranges::count_if(report.tools, [](const ToolRow& t) { return !t.name.empty(); });
  chip("", plural(static_cast<std::size_t>(tools), "tool", "tools"));
  if (!report.tool.empty()) chip("", format("only {}", elide(report.tool, 60)));
  if (!report.against.empty()) {
    const auto wider = static_cast<std::size_t>(std::ranges::count_if(
        report.changes, [](const Change& c) { return c.kind == Kind::widened && c.tool.empty(); }));
    if (wider > 0) {
      chip("wide", format("+ {} than {}", plural(wider, "line wider", "lines wider"),
                          elide(report.against, 60)));
    } else {
      chip("good", format("= nothing wider than {}", elide(report.against, 60)));
    }
  }
  if (const std::size_t open = report.open_lines(); open > 0) {
    chip("open", format("! {} not fully enforced by {}", plural(open, "line", "lines"),
                        engine_words(report)));
  } else if (!report.problems.empty()) {
    chip("open", format("! refused by {}", engine_words(report)));
  } else {
    chip("good", format("✓ enforced by {}", engine_words(report)));
  }
  return out + "</ul>\n";
}

std::string header_of(const Report& report) {
  std::string out = format(
      "<header>\n<p class=\"over\">capgate report: what this server may do</p>\n"
      "<h1>{} <span class=\"version\">{}</span></h1>\n",
      esc(elide(report.name, 120)), esc(elide(report.version, 60)));
  const std::string_view mood = report.wider_lines() > 0  ? " wide"
                                : report.open_lines() > 0 ? " open"
                                                          : "";
  out +=
      format("<p class=\"verdict{}\">{}</p>\n{}", mood, html_of(report.verdict), chips_of(report));
  out += "<nav aria-label=\"Sections\">\n<ul>\n";
  for (const Chapter& chapter : chapters_of(report)) {
    out += format("<li><a href=\"#{}\">{}</a></li>\n", chapter.id, chapter.title);
  }
  return out + "</ul>\n</nav>\n</header>\n";
}

std::string open_section(std::string_view id, std::string_view title) {
  return format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n", id,
      title);
}

// ---- what changed -------------------------------------------------------------------------------

std::string change_tag(const Change& change) {
  if (change.is_gone) return tag("wide", "+ bound is gone");
  switch (change.kind) {
    case Kind::widened: return tag("wide", "+ wider");
    case Kind::narrowed: return tag("less", "− narrower");
    case Kind::moved: return tag("less", "→ moved");
  }
  return {};
}

std::string change_row(const Change& change) {
  std::string out = format("<tr{}><th scope=\"row\"><span class=\"say\">{}</span>{}</th>",
                           change.kind == Kind::widened ? " class=\"wide\"" : "",
                           esc(capitalised(change.meaning)), code(change.capability));
  out += format("<td data-label=\"Change\">{}", change_tag(change));
  if (!change.before.empty()) out += format(" was {}", code(change.before));
  return out + format("</td><td data-label=\"Where\">{}</td></tr>\n",
                      change.tool.empty() ? "the whole server" : code(change.tool));
}

std::string changes_of(const Report& report) {
  if (report.against.empty()) return {};
  std::string out = open_section("changes", "What changed");
  if (report.changes.empty() && report.removed_tools.empty()) {
    return out +
           format("<p class=\"lead\">Nothing that it may do differs from {}.</p>\n</section>\n",
                  code(report.against));
  }
  out += format(
      "<p class=\"lead\">Compared with {}. Reordering and another spelling are no change; "
      "a line that moved is one that another tool had before.</p>\n",
      code(report.against));
  if (!report.changes.empty()) {
    out +=
        "<table class=\"lines\">\n<caption>Changes, the widest first</caption>\n<thead><tr>"
        "<th scope=\"col\">What it may do</th><th scope=\"col\">Change</th>"
        "<th scope=\"col\">Where</th></tr></thead>\n<tbody>\n";
    for (const Change& change : report.changes) out += change_row(change);
    out += "</tbody>\n</table>\n";
  }
  for (const std::string& tool : report.removed_tools) {
    out += format("<p>The tool {} is gone.</p>\n", code(tool));
  }
  return out + "</section>\n";
}

// ---- the picture --------------------------------------------------------------------------------

// Only of what the picture shows.
std::string legend_of(const Report& report) {
  std::string out;
  if (report.wider_lines() > 0) {
    out += format("{} grants more than {} did. ", tag("wide", "+ wider than before"),
                  code(report.against));
  }
  if (report.open_lines() > 0) {
    out += format("{} is not fully kept by {}. ", tag("open", "! not enforced"),
                  esc(engine_words(report)));
  }
  return out + "Long texts and long lists are shortened here, and whole in the tables.";
}

std::string figure_of(const Report& report) {
  std::string out = open_section("picture", "The server in its box");
  out += format(
      "<p class=\"lead\">It starts with nothing. Each open door is a line of its manifest, held by "
      "{}; a dashed door is closed.</p>\n",
      esc(engine_words(report)));
  if (report.is_partial_target) {
    out += format(
        "<div class=\"box\"><p>{} ({}) is one part of a sandbox. It never encloses a "
        "server alone.</p></div>\n",
        esc(capitalised(report.target)), esc(report.target_summary));
  }
  for (const std::string& problem : report.problems) {
    out += format("<div class=\"box\"><p>! {}</p></div>\n", esc(problem));
  }
  out += format(
      "<figure>\n<div class=\"picture-wide\">\n{}\n</div>\n<div class=\"picture-narrow\">\n{}\n"
      "</div>\n<figcaption>{}</figcaption>\n</figure>\n</section>\n",
      report_figure(report, Shape::wide, "wide"), report_figure(report, Shape::narrow, "narrow"),
      legend_of(report));
  return out;
}

// ---- the tools ----------------------------------------------------------------------------------

// The columns of the table: doors that some tool uses; the rare ones share one.
struct Column {
  std::string_view title;
  std::vector<Door> doors;
};

std::vector<Column> columns_for(const Report& report) {
  std::vector<Column> all{{"Files", {Door::files}},
                          {"Network", {Door::network}},
                          {"Programs", {Door::programs}},
                          {"Secrets and variables", {Door::secrets}},
                          {"Other", {Door::sockets, Door::limits, Door::promises}}};
  std::erase_if(all, [&](const Column& column) {
    return std::ranges::none_of(report.tools, [&](const ToolRow& tool) {
      return std::ranges::any_of(tool.lines, [&](const ToolLine& line) {
        return std::ranges::find(column.doors, line.door) != column.doors.end();
      });
    });
  });
  return all;
}

std::string tool_cell(const ToolRow& tool, const Column& column) {
  std::string items;
  for (const ToolLine& line : tool.lines) {
    if (std::ranges::find(column.doors, line.door) == column.doors.end()) continue;
    items += format("<li>{}{}</li>\n", code(line.capability),
                    line.is_wider ? " " + tag("wide", "+ wider") : "");
  }
  if (items.empty()) return "<td class=\"empty\"><span class=\"none\">nothing</span></td>\n";
  return format("<td data-label=\"{}\"><ul class=\"plain\">\n{}</ul></td>\n", column.title, items);
}

std::string tool_row(const ToolRow& tool, const std::vector<Column>& columns) {
  const bool is_wider = tool.is_new || std::ranges::any_of(tool.lines, &ToolLine::is_wider);
  std::string out = is_wider ? "<tr class=\"wide\">" : "<tr>";
  out += format("<th scope=\"row\">{}", tool.name.empty() ? "The whole server" : code(tool.name));
  if (tool.is_new) out += " " + tag("wide", "+ new");
  if (!tool.place.empty() && !tool.name.empty()) {
    out += format("<br><span class=\"place\">{}</span>", esc(tool.place));
  }
  out += "</th>\n";
  for (const Column& column : columns) out += tool_cell(tool, column);
  if (columns.empty())
    out += "<td data-label=\"May do\"><span class=\"none\">nothing</span></td>\n";
  return out + "</tr>\n";
}

std::string tools_of(const Report& report) {
  std::string out = open_section("tools", "Tools");
  if (report.tools.empty()) {
    return out +
           "<p class=\"lead\">The manifest declares no tool, and nothing for the whole "
           "server.</p>\n</section>\n";
  }
  out +=
      "<p class=\"lead\">What each tool asks for. All of them run in one process, so each of them "
      "can use what any of them is granted.</p>\n";
  const std::vector<Column> columns = columns_for(report);
  out +=
      "<table class=\"tools\">\n<caption class=\"unseen\">What each tool asks "
      "for</caption>\n<thead><tr>"
      "<th scope=\"col\">Tool</th>";
  for (const Column& column : columns) out += format("<th scope=\"col\">{}</th>", column.title);
  if (columns.empty()) out += "<th scope=\"col\">May do</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const ToolRow& tool : report.tools) out += tool_row(tool, columns);
  return out + "</tbody>\n</table>\n</section>\n";
}

// ---- every line ---------------------------------------------------------------------------------

std::string origin_item(const Origin& origin) {
  std::string out = origin.tool.empty() ? "the whole server" : code(origin.tool);
  if (origin.only_reads) out += ", only to read";
  if (!origin.place.empty()) out += format(" <span class=\"place\">{}</span>", esc(origin.place));
  return format("<li>{}</li>\n", out);
}

std::string origins_of(const Line& line) {
  std::string items;
  std::string rest;
  // One that is left would take as much room as the words that announce it.
  const std::size_t shown =
      line.origins.size() <= most_origins + 1 ? line.origins.size() : most_origins;
  for (std::size_t i = 0; i < line.origins.size(); ++i) {
    (i < shown ? items : rest) += origin_item(line.origins[i]);
  }
  std::string out = format("<ul class=\"plain\">\n{}</ul>", items);
  if (rest.empty()) return out;
  return out + format(
                   "<details><summary>and {} more</summary>\n<ul class=\"plain\">\n{}</ul>"
                   "</details>",
                   line.origins.size() - shown, rest);
}

std::string line_tags(const Line& line) {
  std::string out;
  if (line.is_wider) out += tag("wide", "+ wider than before");
  if (!line.before.empty()) out += format("<span>was {}</span>", code(line.before));
  if (line.held == Held::partly) out += tag("open", "! held in part only");
  if (line.held == Held::not_enforced) out += tag("open", "! not enforced");
  return out.empty() ? out : format("<div class=\"tags\">{}</div>", out);
}

std::string line_row(const Line& line) {
  const std::string_view style = line.is_wider                 ? " class=\"wide\""
                                 : line.held != Held::enforced ? " class=\"open\""
                                                               : "";
  std::string out =
      format("<tr{}><th scope=\"row\"><span class=\"say\">{}</span>{}{}</th>\n", style,
             esc(capitalised(line.meaning)), code(line.capability), line_tags(line));
  const std::string_view label = line.held == Held::not_enforced ? "Why not" : "Enforced by";
  const std::string by = line.held == Held::not_enforced && !line.by.starts_with("nothing")
                             ? format("nothing: {}", line.by)
                             : line.by;
  out += format("<td data-label=\"{}\">{}</td>\n", label, esc(by));
  return out + format("<td data-label=\"Asked for by\">{}</td></tr>\n", origins_of(line));
}

std::string door_rows(const Report& report, Door door) {
  std::string rows;
  std::size_t number = 0;
  for (const Line& line : report.lines) {
    if (line.door != door) continue;
    rows += line_row(line);
    ++number;
  }
  if (number == 0) return {};
  return format(
      "<tbody>\n<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"3\">{} "
      "<span class=\"number\">{}</span></th></tr>\n{}</tbody>\n",
      door_title(door), plural(number, "line", "lines"), rows);
}

std::string closed_doors(const Report& report) {
  std::string out;
  for (const Door door : all_doors) {
    if (door == Door::limits || door == Door::promises) continue;
    if (std::ranges::find(report.lines, door, &Line::door) != report.lines.end()) continue;
    const std::string words = report.is_guarded(door)
                                  ? std::string(closed_words(door))
                                  : tag("open", format("! not closed by {}", report.target));
    out += format("<li><strong>{}:</strong> {}</li>\n", door_title(door), words);
  }
  if (out.empty()) return out;
  return format("<p>Nothing is granted here:</p>\n<ul class=\"prose\">\n{}</ul>\n", out);
}

std::string lines_of(const Report& report) {
  std::string out = open_section("lines", "Every line");
  out +=
      "<p class=\"lead\">The policy, all tools together: what a line means, what keeps the server "
      "to it, and where it was asked for.</p>\n";
  if (!report.lines.empty()) {
    out +=
        "<table class=\"lines\">\n<caption class=\"unseen\">Every line of the policy</caption>\n"
        "<thead><tr><th scope=\"col\">What it may do</th><th scope=\"col\">Enforced by</th>"
        "<th scope=\"col\">Asked for by</th></tr></thead>\n";
    for (const Door door : all_doors) out += door_rows(report, door);
    out += "</table>\n";
  }
  return out + closed_doors(report) + "</section>\n";
}

// ---- the end ------------------------------------------------------------------------------------

std::string list_section(std::string_view id, std::string_view title,
                         const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string out = open_section(id, title) + "<ul class=\"prose\">\n";
  for (const std::string& item : items) out += format("<li>{}</li>\n", esc(capitalised(item)));
  return out + "</ul>\n</section>\n";
}

std::string footer_of(const Report& report) {
  std::string out = "<footer>\n<dl>\n";
  const auto fact = [&](std::string_view name, const std::string& value) {
    out += format("<dt>{}</dt><dd>{}</dd>\n", name, value);
  };
  fact("Server", format("{} {}", esc(report.name), esc(report.version)));
  fact("Manifest", code(report.file));
  fact("Target", format("{}, {}", code(report.target), esc(report.target_summary)));
  if (!report.against.empty()) fact("Compared with", code(report.against));
  if (!report.tool.empty()) fact("Only the tool", code(report.tool));
  if (report.is_sealed) fact("Secrets", "sealed: every injected value stays out of the server");
  fact("Manifest hash", code(report.manifest_hash));
  fact("Policy hash", code(report.policy_hash));
  return out + "</dl>\n</footer>\n";
}

}  // namespace

std::string report_page(const Report& report) {
  const std::string style = format("{}{}", page_style(), picture_style());
  std::string out = format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<title>{} {}: what it may do</title>\n<style>{}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#main\">Skip to the report</a>\n",
      content_policy(style), esc(elide(report.name, 36)), esc(elide(report.version, 12)), style);
  out += header_of(report);
  out += "<main id=\"main\" tabindex=\"-1\">\n";
  out += changes_of(report) + figure_of(report) + tools_of(report) + lines_of(report);
  out += list_section("beyond", "What the box does not stop", report.not_stopped);
  out += list_section("notes", "Notes", report.notes);
  out += "</main>\n" + footer_of(report) + "</body>\n</html>\n";
  return out;
}

}  // namespace capgate::review
