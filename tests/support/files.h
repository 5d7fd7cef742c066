// Files of this repository, for tests. Nothing outside it is read.
//
//   read_text("tests/vectors/endpoints.tsv")
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "support/source_directory.h"

namespace capgate::support {

// `path` counts from the root of the repository.
[[nodiscard]] inline std::string read_text(std::string_view path) {
  const std::string full = std::string(source_directory()) + "/" + std::string(path);
  std::ifstream file(full, std::ios::binary);
  if (!file) ADD_FAILURE() << "cannot read " << full;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The lines of a file, without empty ones and those that start with '#'.
[[nodiscard]] inline std::vector<std::string> read_lines(std::string_view path) {
  const std::string text = read_text(path);
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty() && !line.starts_with('#')) lines.emplace_back(line);
  }
  return lines;
}

}  // namespace capgate::support
