// One line on a terminal that says what is being done and for how long. Nothing without a terminal.
//
//   Progress progress;
//   progress.show("npm fetches time-mcp");    a few times a second
//   progress.clear();
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace capgate::cli {

class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress() { clear(); }

  void show(std::string_view step);
  void clear();

 private:
  std::chrono::steady_clock::time_point start_;
  bool on_terminal_;
  bool shown_ = false;
  unsigned turn_ = 0;
};

// The line for so many seconds, in a terminal of so many columns.
[[nodiscard]] std::string progress_line(std::string_view step, long seconds, unsigned turn,
                                        std::size_t columns);

}  // namespace capgate::cli
