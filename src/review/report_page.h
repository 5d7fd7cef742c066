// The page of a report: one HTML file that needs nothing else, runs nothing and loads nothing.
#pragma once

#include <string>
#include <string_view>

#include "review/report.h"

namespace capgate::review {

[[nodiscard]] std::string report_page(const Report& report);
// Of the page without the picture's.
[[nodiscard]] std::string_view page_style();

}  // namespace capgate::review
