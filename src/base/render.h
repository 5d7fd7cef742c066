// Diagnostics as people and programs read them.
//
//   github.json:14:22: error[CAP_FS_RELATIVE]: path is not absolute
//      14 |   "fs:read:workspace/**"
//         |            ^^^^^^^^^^^^
//   help: write the path as the server sees it, for example fs:read:/workspace/**
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace capgate {

// A text with its name and the places where its lines start. Keeps a view: the text must outlive
// it.
class Source {
 public:
  Source(std::string name, std::string_view text);

  struct Position {
    std::size_t line = 1;    // from 1
    std::size_t column = 1;  // from 1, in characters
  };
  [[nodiscard]] Position position(std::size_t offset) const;
  [[nodiscard]] std::string_view line(std::size_t number) const;  // without its line break
  [[nodiscard]] std::size_t line_start(std::size_t number) const { return starts_[number - 1]; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  [[nodiscard]] std::size_t characters_before(std::size_t offset) const;

  std::string name_;
  std::string_view text_;
  std::vector<std::size_t> starts_;
  std::vector<std::size_t> characters_;  // before each block of the text
};

enum class Colour { off, on };

// Orders by position, then by code, so that the output does not depend on the order of the checks.
void sort_diagnostics(Diagnostics& diagnostics);

[[nodiscard]] std::string render(const Diagnostic& diagnostic, const Source& source, Colour colour);

// The same for what is no mistake: a warning or a note.
struct Remark {
  std::string_view severity;  // "error", "warning", "note"
  std::string_view code;
  Span where;
  std::string_view message;
  std::string_view help;
};
[[nodiscard]] std::string render(const Remark& remark, const Source& source, Colour colour);

}  // namespace capgate
