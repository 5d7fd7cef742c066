// tests/vectors/endpoints.tsv, read. Whatever matches hosts is tested with all of it.
//
//   for (const EndpointVector& vector : endpoint_vectors()) ...
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "support/files.h"

namespace capgate::support {

struct EndpointVector {
  enum class Verdict : unsigned char { yes, no, invalid_rule, invalid_destination };
  std::string rule;
  std::string destination;
  Verdict verdict = Verdict::no;
  std::string line;  // as written, for messages
};

namespace detail {

[[nodiscard]] inline std::string undo_escapes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.starts_with("\\x") && text.size() >= 4) {
      out += static_cast<char>(std::stoi(std::string(text.substr(2, 2)), nullptr, 16));
      text.remove_prefix(4);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

[[nodiscard]] inline EndpointVector::Verdict read_verdict(std::string_view text) {
  using enum EndpointVector::Verdict;
  if (text == "yes") return yes;
  if (text == "no") return no;
  if (text == "invalid-rule") return invalid_rule;
  if (text == "invalid-destination") return invalid_destination;
  ADD_FAILURE() << "unknown verdict " << text;
  return no;
}

}  // namespace detail

[[nodiscard]] inline std::vector<EndpointVector> endpoint_vectors() {
  std::vector<EndpointVector> out;
  for (const std::string& line : read_lines("tests/vectors/endpoints.tsv")) {
    const auto columns = split(line, '\t');
    if (columns.size() != 3) {
      ADD_FAILURE() << "not three columns: " << line;
      continue;
    }
    out.push_back({.rule = detail::undo_escapes(columns[0]),
                   .destination = detail::undo_escapes(columns[1]),
                   .verdict = detail::read_verdict(columns[2]),
                   .line = line});
  }
  return out;
}

}  // namespace capgate::support
