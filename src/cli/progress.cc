#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/format.h"
#include "base/text.h"
#include "sys/file.h"

namespace capgate::cli {
namespace {

std::size_t columns_of_terminal() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Nothing depends on whether it is seen.
void say(std::string_view text) { (void)sys::write_all(STDERR_FILENO, text).has_value(); }

}  // namespace

Progress::Progress()
    : start_(std::chrono::steady_clock::now()), on_terminal_(sys::is_terminal(STDERR_FILENO)) {}

std::string progress_line(std::string_view step, long seconds, unsigned turn, std::size_t columns) {
  constexpr std::string_view bar = "|/-\\";
  std::string out = format("{} {} {}s", bar[turn % bar.size()], escape_for_terminal(step), seconds);
  if (out.size() >= columns) out.resize(columns - 1);
  return out;
}

void Progress::show(std::string_view step) {
  if (!on_terminal_) return;
  const auto passed = std::chrono::steady_clock::now() - start_;
  const long seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
  // Back to the first column, and the rest of the line away.
  say(format("\r{}\x1b[K", progress_line(step, seconds, turn_++, columns_of_terminal())));
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  say("\r\x1b[K");
  shown_ = false;
}

}  // namespace capgate::cli
