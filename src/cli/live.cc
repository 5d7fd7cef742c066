#include "cli/live.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "cli/exit.h"
#include "cli/load.h"

namespace capgate::cli {
namespace {

constexpr std::size_t most_lines_shown = 20;
constexpr std::size_t longest_line_shown = 300;
constexpr std::uint64_t longest_timeout = 3600;
// What stands for every secret: a variable of ours, so that no provider is asked.
constexpr const char* placeholder_name = "CAPGATE_NO_SECRET";
constexpr const char* placeholder = "capgate-placeholder";

// Signals are as before when it ends: a person can be asked, and can leave.
class BlockedSignals {
 public:
  BlockedSignals() {
    is_known_ = ::sigprocmask(SIG_BLOCK, nullptr, &before_) == 0;
    signals_ = take_ending_signals();
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  BlockedSignals(BlockedSignals&&) = delete;
  BlockedSignals& operator=(BlockedSignals&&) = delete;
  ~BlockedSignals() {
    if (is_known_) (void)::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  [[nodiscard]] const sys::Fd& fd() const { return signals_; }

 private:
  sigset_t before_{};
  bool is_known_ = false;
  sys::Fd signals_;
};

struct HarmlessPart {
  std::optional<core::Capability> operator()(core::FsCapability files) const {
    files.actions = {core::FsAction::read};
    files.unsafe = false;
    return files;
  }
  std::optional<core::Capability> operator()(core::EnvCapability variable) const {
    variable.to.clear();
    variable.as = {};
    return variable;
  }
  std::optional<core::Capability> operator()(const core::ExecCapability& program) const {
    return program;
  }
  std::optional<core::Capability> operator()(const core::ClockCapability& clock) const {
    if (clock.source == core::ClockCapability::Source::system) return {};
    return clock;
  }
  std::optional<core::Capability> operator()(const core::LimitCapability& limit) const {
    if (limit.kind == core::LimitCapability::Kind::time) return {};
    return limit;
  }
  std::optional<core::Capability> operator()(const core::IpcCapability& socket) const {
    if (socket.kind != core::IpcCapability::Kind::self) return {};
    return socket;
  }
  std::optional<core::Capability> operator()(const core::NetConnect&) const { return {}; }
  std::optional<core::Capability> operator()(const core::NetListen&) const { return {}; }
  std::optional<core::Capability> operator()(const core::AssertCapability&) const { return {}; }
};

std::vector<std::string> secret_names(const LiveWish& wish) {
  std::vector<std::string> out;
  for (const auto& granted : wish.policy.variables) {
    if (granted.capability.action == core::EnvCapability::Action::inject) {
      out.push_back(granted.capability.name);
    }
  }
  constexpr std::string_view inject = "env:inject:";
  for (const std::string& word : wish.allow) {
    if (!word.starts_with(inject)) continue;
    const std::string name = word.substr(inject.size());
    out.push_back(name.substr(0, name.find('?')));
  }
  sort_and_deduplicate(out);
  return out;
}

// `capgate run` keeps it in, with nothing of the entry but these words.
mcp::AskedCommand command_for(const LiveWish& wish, int cancel) {
  mcp::AskedCommand out{.program = "/proc/self/exe", .words = {"capgate", "run"}, .cancel = cancel};
  out.limits.twice = true;
  if (wish.timeout) {
    out.limits.whole = out.limits.start = std::chrono::seconds(*wish.timeout);
    out.limits.probe = std::min(out.limits.probe, out.limits.whole / 2);
  }
  // It ends by itself should nobody be left to end it.
  const auto life = std::chrono::ceil<std::chrono::seconds>(out.limits.whole + 4 * out.grace);
  out.words.insert(out.words.end(), {"--allow", format("limit:time:{}s", life.count())});
  for (const std::string& line : harmless_part(wish.policy)) {
    out.words.insert(out.words.end(), {"--allow", line});
  }
  for (const std::string& line : wish.allow) {
    out.words.insert(out.words.end(), {"--allow", line});
  }
  for (const std::string& name : secret_names(wish)) {
    out.words.insert(out.words.end(), {"--secret", format("{}=env:{}", name, placeholder_name)});
  }
  out.words.emplace_back("--");
  out.words.insert(out.words.end(), wish.command.begin(), wish.command.end());
  return out;
}

int report_problem(const LiveWish& wish, const mcp::CommandProblem& problem, Output& output) {
  const bool is_refused = is_refused_by_run(problem);
  std::string message =
      is_refused ? format("{} cannot be started without network and secrets", wish.server)
                 : format("{} did not list its tools: {}", wish.server, problem.asked.message);
  if (!is_refused && has_ended(problem)) message += format(" (exit status {})", problem.status);
  output.err += format("capgate: {}\n", message);
  const std::vector<std::string> lines = shown_lines(problem.errors);
  if (!lines.empty()) output.err += "its stderr:\n";
  for (const std::string& line : lines) output.err += format("  | {}\n", line);
  output.err +=
      "help: it is asked without network, without secrets and with nothing to write; what it needs "
      "besides it gets with --allow CAP. capgate approve --no-tools records the rest without its "
      "tools\n";
  return Exit::unreadable;
}

}  // namespace

// Ctrl-C and the like end the server in order, and then this program.
sys::Fd take_ending_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&signals, signal);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return sys::Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

int exit_after_signal(const sys::Fd& signals) {
  signalfd_siginfo info{};
  const bool is_read = ::read(signals.get(), &info, sizeof(info)) == sizeof(info);
  return 128 + (is_read ? static_cast<int>(info.ssi_signo) : SIGTERM);
}

bool has_ended(const mcp::CommandProblem& problem) {
  return problem.asked.cause == mcp::AskProblem::Cause::closed ||
         problem.asked.cause == mcp::AskProblem::Cause::closed_at_probe;
}

// The codes of capgate run, which then answers every request with its reason.
bool is_refused_by_run(const mcp::CommandProblem& problem) {
  return (has_ended(problem) || problem.asked.cause == mcp::AskProblem::Cause::refused) &&
         problem.status >= 125 && problem.status <= 127 && !problem.errors.empty();
}

// The last lines, as text that cannot do anything to a terminal.
std::vector<std::string> shown_lines(std::string_view errors) {
  std::vector<std::string> out;
  for (const std::string_view line : EachPart(trim(errors), '\n')) {
    if (trim(line).empty()) continue;
    const std::string_view start = line.substr(0, longest_line_shown);
    out.push_back(
        escape_for_terminal(start.ends_with('\r') ? start.substr(0, start.size() - 1) : start));
    if (start.size() < line.size()) out.back() += "...";
  }
  if (out.size() > most_lines_shown) {
    out.erase(out.begin(), out.end() - static_cast<std::ptrdiff_t>(most_lines_shown));
  }
  return out;
}

std::vector<std::string> harmless_part(const core::Policy& policy) {
  std::vector<std::string> out;
  core::for_each_grant(policy, [&](const core::Capability& capability, const core::Origins&) {
    if (const auto part = std::visit(HarmlessPart{}, capability)) out.push_back(print(*part));
  });
  return out;
}

std::expected<mcp::ServerTools, int> ask_live(const LiveWish& wish, Output& output) {
  const BlockedSignals signals;
  if (signals.fd().get() < 0 || ::setenv(placeholder_name, placeholder, 1) != 0) {
    output.err += format("capgate: {}\n", std::strerror(errno));
    return std::unexpected(Exit::internal);
  }
  auto answer = mcp::ask_command(command_for(wish, signals.fd().get()));
  if (answer) return *std::move(answer);
  if (answer.error().asked.cause == mcp::AskProblem::Cause::cancelled) {
    return std::unexpected(exit_after_signal(signals.fd()));
  }
  return std::unexpected(report_problem(wish, answer.error(), output));
}

std::expected<void, int> read_live_options(const Arguments& arguments, LiveWish& wish,
                                           Output& output) {
  wish.allow = arguments.values("--allow");
  const auto text = arguments.value("--timeout");
  if (!text) return {};
  wish.timeout = parse_decimal(*text);
  if (wish.timeout && *wish.timeout > 0 && *wish.timeout <= longest_timeout) return {};
  return std::unexpected(usage_error(format("--timeout cannot be {}", quoted(*text)),
                                     "write seconds: --timeout 120", output));
}

}  // namespace capgate::cli
