#include "sys/lines.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/result.h"

namespace capgate::sys {
namespace {

constexpr std::size_t block = 65536;

// As pread, also where only read works: a pipe.
Sys<std::size_t> read_at(int file, std::span<char> to, std::uint64_t offset) {
  for (;;) {
    ssize_t got = ::pread(file, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == ESPIPE) got = ::read(file, to.data(), to.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return std::unexpected(SysError{"read", errno, ""});
  }
}

// All of it: a file that became shorter meanwhile is an error.
Sys<void> read_exactly(int file, std::span<char> to, std::uint64_t offset) {
  while (!to.empty()) {
    const std::size_t got = TRY(read_at(file, to, offset));
    if (got == 0) return std::unexpected(SysError{"read", EIO, ""});
    to = to.subspan(got);
    offset += got;
  }
  return {};
}

}  // namespace

Sys<bool> LineReader::fill() {
  held_.erase(0, at_);
  at_ = 0;
  const std::size_t size = held_.size();
  held_.resize(size + block);
  const auto got = read_at(file_.get(), std::span(held_).subspan(size), offset_);
  held_.resize(size + got.value_or(0));
  if (!got) return std::unexpected(got.error());
  offset_ += *got;
  return *got > 0;
}

Sys<std::optional<Line>> LineReader::next() {
  for (;;) {
    const std::size_t newline = held_.find('\n', at_);
    if (newline != std::string::npos) {
      const auto text = std::string_view(held_).substr(at_, newline - at_);
      at_ = newline + 1;
      if (std::exchange(is_in_excess_, false)) continue;
      return Line{.text = text.substr(0, longest_), .is_whole = text.size() <= longest_};
    }
    const auto rest = std::string_view(held_).substr(at_);
    if (is_in_excess_) {
      at_ = held_.size();
    } else if (rest.size() > longest_) {
      at_ = held_.size();
      is_in_excess_ = true;
      return Line{.text = rest.substr(0, longest_), .is_whole = false};
    }
    if (TRY(fill())) continue;
    if (held_.empty()) return std::nullopt;
    offset_ -= held_.size();
    at_ = held_.size();
    return Line{.text = held_, .is_ended = false};
  }
}

Sys<bool> each_line_backwards(int file, std::uint64_t end, std::size_t longest,
                              const std::function<bool(std::string_view)>& visit) {
  std::string held;  // ends where the next line to visit does
  for (std::uint64_t begin = end;;) {
    for (std::size_t newline = held.rfind('\n'); newline != std::string::npos;
         newline = held.rfind('\n')) {
      const auto line = std::string_view(held).substr(newline + 1);
      if (line.size() > longest) return false;
      if (!visit(line)) return true;
      held.resize(newline);
    }
    if (held.size() > longest) return false;
    if (begin == 0) {
      (void)visit(held);
      return true;
    }
    const std::size_t more = std::min<std::uint64_t>(block, begin);
    begin -= more;
    held.insert(0, more, '\0');
    TRY(read_exactly(file, std::span(held).first(more), begin));
  }
}

}  // namespace capgate::sys
