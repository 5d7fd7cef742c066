// The lines of a file that may be long, one after the other, in bounded memory.
//
//   LineReader lines(sys::Fd(fd), 16384);
//   while (const auto line = TRY(lines.next())) use(line->text);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sys/error.h"
#include "sys/fd.h"

namespace capgate::sys {

struct Line {
  std::string_view text;  // without its newline; valid until the next call
  bool is_ended = true;   // false: the file ends before the newline
  bool is_whole = true;   // false: longer than allowed; `text` is its beginning
};

class LineReader {
 public:
  LineReader(Fd file, std::size_t longest, std::uint64_t offset = 0)
      : file_(std::move(file)), longest_(longest), offset_(offset) {}

  // Nothing at the end of the file; a later call goes on with what was appended since. A line that
  // is not ended is given too, and read again by the next call: it may have been taken back.
  [[nodiscard]] Sys<std::optional<Line>> next();

  [[nodiscard]] const Fd& file() const { return file_; }

 private:
  [[nodiscard]] Sys<bool> fill();

  Fd file_;
  std::size_t longest_;
  std::uint64_t offset_;       // of the next byte to read
  std::string held_;           // what was read; given up to `at_`
  std::size_t at_ = 0;         // the next line begins here
  bool is_in_excess_ = false;  // the rest of a line that was too long comes first
};

// Visits the lines of the first `end` bytes from the last to the first, until `visit` says false.
// `end` is where a line ends, before its newline. False: a line was longer than allowed.
[[nodiscard]] Sys<bool> each_line_backwards(int file, std::uint64_t end, std::size_t longest,
                                            const std::function<bool(std::string_view)>& visit);

}  // namespace capgate::sys
