// The picture of a report: the server in its box, and the doors in its walls.
//
//   report_svg(report)                          a file of its own
//   report_figure(report, Shape::wide, "p1")    inside a page that has picture_style()
//
// All numbers are whole and all widths are estimated, so that the same report is drawn with the
// same bytes everywhere. Doors with many lines show the first of them, the marked ones before the
// others; the tables of the page have all.
#pragma once

#include <string>
#include <string_view>

#include "review/report.h"

namespace capgate::review {

// narrow: one column, for a telephone or a big zoom.
enum class Shape : unsigned char { wide, narrow };

[[nodiscard]] std::string report_svg(const Report& report);
// `id` makes the ids of the drawing different from those of another one in the same page.
[[nodiscard]] std::string report_figure(const Report& report, Shape shape, std::string_view id);
[[nodiscard]] std::string_view picture_style();

}  // namespace capgate::review
