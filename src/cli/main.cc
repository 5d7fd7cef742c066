#include <cerrno>
#include <string>
#include <vector>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "sys/file.h"

int main(int argc, char** argv) {
  using namespace capgate;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  cli::Output output;
  const int code = cli::run_cli(words, output);
  const auto said = sys::write_all(2, output.err);
  const auto written = sys::write_all(1, output.out);
  // Whoever closes a pipe knows about it.
  if (!written && written.error().err != EPIPE) {
    (void)sys::write_all(
        2, format("capgate: cannot write to standard output: {}\n", sys::reason(written.error())))
        .has_value();
  }
  // A reader that went away, or a full disk, must not look like success.
  return said && written ? code : cli::Exit::internal;
}
