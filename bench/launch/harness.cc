// Starts programs and measures them; the driver beside it decides which ones.
//
//   harness launch ROUNDS [--json] ::: NAME PROGRAM ARG... ::: NAME PROGRAM ARG...
//     from spawn to exit, one at a time
//   harness burst ROUNDS COUNT [--json] ::: NAME PROGRAM ARG... ::: ...
//     COUNT copies started at once, until the last one has exited
//   harness alive COUNT ::: NAME PROGRAM ARG...
//     COUNT copies, each of which says one byte and waits for the end of its stdin. Prints their
//     process ids once all have spoken, and lets them end when its own stdin ends.
//
// Each round runs every variant once, in a new order, so that all see the same noise of the machine
// and what one leaves for the kernel to clean up falls on each other one alike. Ratios are against
// the first variant. Any exit status but 0 ends the run.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Variant {
  std::string name;
  std::vector<char*> command;  // ends with a null pointer
};

struct Options {
  std::string_view mode;
  std::vector<std::size_t> numbers;
  bool json = false;
  std::vector<Variant> variants;
};

template <class... Args>
[[noreturn]] void stop(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print(stderr, "harness: {}\n", fmt::format(text, std::forward<Args>(args)...));
  std::exit(1);
}

// ---- starting and waiting --------------------------------------------------------------------

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) stop("pipe: {}", strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& end) {
    if (end >= 0) close(std::exchange(end, -1));
  }
  int read_end = -1;
  int write_end = -1;
};

// What the programs get as stdin and stdout: pipes, as an MCP client gives them.
class Spawner {
 public:
  Spawner() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input.read_end, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output.write_end, STDOUT_FILENO);
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner() { posix_spawn_file_actions_destroy(&actions_); }

  [[nodiscard]] pid_t start(const Variant& variant) const {
    pid_t pid = -1;
    const int error =
        posix_spawn(&pid, variant.command[0], &actions_, nullptr, variant.command.data(), environ);
    if (error != 0) stop("{}: {}: {}", variant.name, variant.command[0], strerror(error));
    return pid;
  }

  Pipe input;
  Pipe output;

 private:
  posix_spawn_file_actions_t actions_{};
};

bool wait_for_success(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) stop("waitpid: {}", strerror(errno));
  }
  return status == 0;
}

// What hangs ends the harness by SIGALRM; the pipes' ends close with it, and what was started ends.
constexpr unsigned most_seconds = 60;

double seconds_of(const Spawner& spawner, const Variant& variant, std::size_t copies) {
  std::vector<pid_t> started;
  started.reserve(copies);
  alarm(most_seconds);
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < copies; ++i) started.push_back(spawner.start(variant));
  const auto failures =
      std::ranges::count_if(started, [](pid_t pid) { return !wait_for_success(pid); });
  const std::chrono::duration<double> taken = Clock::now() - begin;
  if (failures != 0) stop("{}: {} of {} did not exit with 0", variant.name, failures, copies);
  return taken.count();
}

// ---- rounds ----------------------------------------------------------------------------------

using Times = std::vector<std::vector<double>>;  // by variant, sorted

Times measure(const std::vector<Variant>& variants, std::size_t rounds, std::size_t copies) {
  const Spawner spawner;
  std::vector<std::size_t> order(variants.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (const std::size_t i : order) seconds_of(spawner, variants[i], copies);  // warms up

  Times times(variants.size());
  std::minstd_rand shuffle_source(1);  // the same orders in every run
  for (std::size_t round = 0; round < rounds; ++round) {
    std::ranges::shuffle(order, shuffle_source);
    for (const std::size_t i : order) {
      times[i].push_back(seconds_of(spawner, variants[i], copies));
    }
  }
  for (auto& taken : times) std::ranges::sort(taken);
  return times;
}

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void print_rows(const Options& options, const Times& times) {
  const double first = quantile(times[0], 0.5);
  const char* separator = "[";
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double p50 = quantile(times[i], 0.5);
    const double p90 = quantile(times[i], 0.9);
    const std::string& name = options.variants[i].name;
    if (options.json) {
      fmt::print("{}{{\"name\":\"{}\",\"p50\":{:.6f},\"p90\":{:.6f},\"ratio\":{:.4f}}}",
                 std::exchange(separator, ",\n "), name, p50, p90, p50 / first);
    } else {
      fmt::print("{:36}{:9.3f} ms  p90 {:9.3f} ms  ratio {:.2f}\n", name, p50 * 1e3, p90 * 1e3,
                 p50 / first);
    }
  }
  if (options.json) fmt::print("]\n");
}

// ---- alive at once ---------------------------------------------------------------------------

void end_all(Spawner& spawner, const Variant& variant, std::span<const pid_t> started) {
  Pipe::close_end(spawner.input.write_end);
  const auto failures =
      std::ranges::count_if(started, [](pid_t pid) { return !wait_for_success(pid); });
  if (failures != 0)
    stop("{}: {} of {} did not exit with 0", variant.name, failures, started.size());
}

// None may end before its stdin does: one that has would be waited for in vain.
bool any_has_ended() {
  siginfo_t found{};
  return waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0 && found.si_pid != 0;
}

void wait_until_all_spoke(Spawner& spawner, const Variant& variant,
                          std::span<const pid_t> started) {
  constexpr int look_again_ms = 1000;
  std::size_t spoken = 0;
  while (spoken < started.size()) {
    pollfd waited{.fd = spawner.output.read_end, .events = POLLIN, .revents = 0};
    char bytes[256];
    if (poll(&waited, 1, look_again_ms) > 0) {
      const ssize_t got = read(spawner.output.read_end, bytes, sizeof(bytes));
      if (got > 0) spoken += static_cast<std::size_t>(got);
    } else if (any_has_ended()) {
      Pipe::close_end(spawner.input.write_end);
      for (const pid_t pid : started) wait_for_success(pid);
      stop("{}: only {} of {} were alive at once", variant.name, spoken, started.size());
    }
  }
}

void keep_alive(const Variant& variant, std::size_t copies) {
  Spawner spawner;
  std::vector<pid_t> started;
  started.reserve(copies);
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < copies; ++i) started.push_back(spawner.start(variant));
  wait_until_all_spoke(spawner, variant, started);
  const std::chrono::duration<double> taken = Clock::now() - begin;
  fmt::print("{:.6f}", taken.count());
  for (const pid_t pid : started) fmt::print(" {}", pid);
  fmt::print("\n");
  std::fflush(stdout);

  char ignored = 0;
  while (read(STDIN_FILENO, &ignored, 1) > 0) {
  }
  end_all(spawner, variant, started);
}

// ---- command line ----------------------------------------------------------------------------

[[noreturn]] void usage() {
  stop(
      "usage: harness launch ROUNDS | burst ROUNDS COUNT | alive COUNT [--json] ::: NAME PROGRAM "
      "ARG... "
      "[::: ...]");
}

std::vector<Variant> parse_variants(std::span<char*> words) {
  std::vector<Variant> variants;
  bool expects_name = false;
  for (char* word : words) {
    if (strcmp(word, ":::") == 0) {
      expects_name = true;
    } else if (std::exchange(expects_name, false)) {
      variants.push_back({.name = word, .command = {}});
    } else {
      variants.back().command.push_back(word);
    }
  }
  for (Variant& variant : variants) {
    if (variant.command.empty()) usage();
    variant.command.push_back(nullptr);
  }
  return variants;
}

Options parse(std::span<char*> words) {
  const auto separator =
      std::ranges::find_if(words, [](char* word) { return strcmp(word, ":::") == 0; });
  if (words.size() < 2 || separator == words.end()) usage();
  Options options{.mode = words[1]};
  for (char* word : std::span(words.begin() + 2, separator)) {
    if (strcmp(word, "--json") == 0) {
      options.json = true;
    } else {
      options.numbers.push_back(std::strtoul(word, nullptr, 10));
    }
  }
  options.variants = parse_variants({separator, words.end()});
  if (options.variants.empty() || std::ranges::count(options.numbers, 0U) != 0) usage();
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(std::span(argv, static_cast<std::size_t>(argc)));
  const auto& numbers = options.numbers;
  if (options.mode == "launch" && numbers.size() == 1) {
    print_rows(options, measure(options.variants, numbers[0], 1));
  } else if (options.mode == "burst" && numbers.size() == 2) {
    print_rows(options, measure(options.variants, numbers[0], numbers[1]));
  } else if (options.mode == "alive" && numbers.size() == 1 && options.variants.size() == 1) {
    keep_alive(options.variants[0], numbers[0]);
  } else {
    usage();
  }
  return 0;
}
