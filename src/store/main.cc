// capgate-store: the encrypted store of secrets. Started by `capgate secret` and, for store:NAME of
// `run --secret`, as `capgate-store get --server SERVER --name NAME`. A program of its own, so that
// nothing else holds OpenSSL or a value (docs/adr/0018).
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/format.h"
#include "core/version.h"
#include "store/commands.h"
#include "sys/file.h"

namespace capgate::store {
namespace {

int exit_code(Problem::Kind kind) {
  switch (kind) {
    case Problem::Kind::internal: return 1;
    case Problem::Kind::usage: return 2;
    case Problem::Kind::unavailable: return 3;
    case Problem::Kind::damaged: return 8;
  }
  return 1;
}

int report(const Problem& problem) {
  const std::string text = format("capgate: {}\nhelp: {}\n", problem.message, problem.help);
  return sys::write_all(STDERR_FILENO, text) ? exit_code(problem.kind) : 1;
}

// A file that is opened must not get the number of a stream that is missing.
bool has_standard_streams() {
  return ::fcntl(STDIN_FILENO, F_GETFD) >= 0 && ::fcntl(STDOUT_FILENO, F_GETFD) >= 0 &&
         ::fcntl(STDERR_FILENO, F_GETFD) >= 0;
}

// No core file, no debugger, no /proc/PID/mem for other programs of this user.
bool hide_memory() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && ::setrlimit(RLIMIT_CORE, &none) == 0;
}

int run(std::span<const std::string_view> words) {
  const auto request = parse_request(words);
  if (!request) return report(request.error());
  const auto answer = carry_out(*request);
  if (!answer) return report(answer.error());
  const bool is_said = sys::write_all(STDERR_FILENO, answer->note).has_value();
  const bool is_written = sys::write_all(STDOUT_FILENO, answer->out) &&
                          sys::write_all(STDOUT_FILENO, answer->value.view());
  const bool needs_line = request->reveals && sys::is_terminal(STDOUT_FILENO);
  const bool is_ended = !needs_line || sys::write_all(STDOUT_FILENO, "\n");
  return is_said && is_written && is_ended ? 0 : 1;
}

}  // namespace
}  // namespace capgate::store

int main(int count, char** arguments) {
  using namespace capgate;
  if (!store::has_standard_streams() || !store::hide_memory() || !store::start_crypto()) return 1;
  const std::vector<std::string_view> words(arguments + (count > 0 ? 1 : 0), arguments + count);
  if (words.size() == 1 && words.front() == "--version") {
    return sys::write_all(STDOUT_FILENO, format("{}\n", core::compiler_id)) ? 0 : 1;
  }
  return store::run(words);
}
