// JSON Schemas of what people write by hand, for editors: they complete capability strings, explain
// them and flag mistakes while typing.
//
//   print_schema(Subject::manifest, Draft::draft_2020_12)
//
// The schema never flags what capgate accepts. What it cannot see (keys given twice, lines that
// contradict each other, scopes that depend on the home directory) only capgate says.
#pragma once

#include <string>

namespace capgate::review {

enum class Subject : unsigned char { manifest, config };
enum class Draft : unsigned char { draft_2020_12, draft_07 };

[[nodiscard]] std::string print_schema(Subject subject, Draft draft);

}  // namespace capgate::review
