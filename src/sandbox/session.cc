#include "sandbox/session.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "core/path.h"
#include "lower/seccomp_shared.h"
#include "sandbox/landlock.h"
#include "sandbox/report.h"
#include "sandbox/stderr_copy.h"
#include "sandbox/stdio.h"
#include "sandbox/steps.h"
#include "sandbox/supervise.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

void say(std::string_view text) { (void)write_if_read(STDERR_FILENO, text); }

int refuse(const Refusal& refusal) {
  std::string text = format("capgate: {}\n", refusal.message);
  if (!refusal.help.empty()) text += format("help: {}\n", refusal.help);
  say(text);
  answer_requests(refusal);
  return refusal.exit_code;
}

std::string current_directory() {
  char* found = ::getcwd(nullptr, 0);
  std::string out = found == nullptr ? "/" : found;
  ::free(found);
  return out;
}

// Words 0 and 4 must not be zero: an unbound filter compares with zero.
std::expected<lower::ExecToken, Refusal> random_token() {
  lower::ExecToken token{};
  if (::getrandom(token.data(), sizeof(token), 0) != sizeof(token)) {
    return std::unexpected(Refusal{.message = "no random numbers", .help = "see capgate doctor"});
  }
  token[0] |= 1U;
  token[4] |= 1U;
  return token;
}

// 1, not 0: the kernel ignores 0 where cores are piped to a program.
void forbid_core_dumps() {
  rlimit core{};
  (void)::getrlimit(RLIMIT_CORE, &core);
  core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
  core.rlim_cur = core.rlim_max;
  (void)::setrlimit(RLIMIT_CORE, &core);
}

// A caller that may do less than the default gives what it has.
std::vector<BoundLimit> within_own(std::vector<BoundLimit> limits) {
  for (BoundLimit& limit : limits) {
    rlimit own{};
    const auto resource = static_cast<__rlimit_resource_t>(limit.resource);
    if (::getrlimit(resource, &own) == 0)
      limit.value = std::min<std::uint64_t>(limit.value, own.rlim_max);
  }
  return limits;
}

// Protected paths that did not exist at the start: the server may have made them.
void tell_appeared(const Bound& bound) {
  for (const std::string& path : bound.not_held) {
    if (identify(path)) {
      say(
          format("capgate: {} appeared while the server ran; look at it before a program of yours "
                 "does\n",
                 escape_for_terminal(path)));
    }
  }
}

std::expected<sys::Fd, Refusal> open_output(const std::string& path) {
  // Without waiting: a server could have put a pipe there that nobody reads.
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  sys::Fd file(path == "-" ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                           : ::open(path.c_str(), flags, 0600));
  if (file.get() < 0) {
    return std::unexpected(Refusal{
        .message = format("cannot write {}: {}", escape_for_terminal(path), std::strerror(errno)),
        .help = "name a file in a directory that you can write"});
  }
  return file;
}

std::expected<int, Refusal> start_and_wait(const Session& session) {
  const lower::Plan& plan = *session.artifact.plan;
  if (auto checked = check_stdio(); !checked) return std::unexpected(std::move(checked).error());
  forbid_core_dumps();

  const Launcher launcher{
      .caller = {.path = session.path, .directory = current_directory(), .home = session.home},
      .environment = session.environment,
      .uid = ::getuid(),
      .landlock_abi = probe_landlock_abi(),
      .makes_missing_files = !session.dry_run,
      .state = session.state};
  Bound bound = TRY(bind(plan, launcher, session.command));
  if (session.dry_run) {
    (void)sys::write_all(STDOUT_FILENO, print_bound(session.artifact, session.input, bound));
    return 0;
  }
  sys::Fd report;
  if (!session.report.empty()) report = TRY(open_output(session.report));

  Limits limits = TRY(set_up_limits(plan.limits, session.accepted_limits));
  HostUser user = choose_host_user();
  user.inside = bound.uid;
  const Trees trees = TRY(make_trees(bound, user));
  const bool traces = !session.trace.empty();
  Launch launch_orders{.filter = {},
                       .token = TRY(random_token()),
                       .limits = within_own(limits.rlimits()),
                       .listen = traces,
                       .fail_step = injected_fault(),
                       .trees = trees.numbers};
  std::optional<Tracer> tracer;
  if (traces) {
    sys::Fd output = TRY(open_output(session.trace));
    const auto rules = lower::seccomp_rules(plan.seccomp);
    tracer.emplace(plan.arch, rules, launch_orders.token, bound, std::move(output));
    launch_orders.filter = traced_filter(plan.arch, rules);
  } else {
    launch_orders.filter = lower::bind_token(lower::shared_filter(plan.arch, plan.seccomp).program,
                                             launch_orders.token);
  }

  MaskWatch masks(bound.masked, bound.ways);
  const sys::Fd signals = take_signals();
  if (signals.get() < 0) {
    return std::unexpected(Refusal{.message = format("no signals: {}", std::strerror(errno)),
                                   .help = "capgate could not be told to end; see capgate doctor"});
  }
  Sandbox sandbox = TRY(launch(write_orders(bound, launch_orders), user, trees, limits.placement(),
                               launch_orders.fail_step));
  const Watch watch{.grace = session.grace, .masks = masks};
  const Outcome outcome = supervise(sandbox, signals, watch, limits, tracer ? &*tracer : nullptr);
  if (outcome.failure) return std::unexpected(explain_failure(*outcome.failure, bound));
  if (!outcome.explanation.empty()) say(format("capgate: {}\n", outcome.explanation));
  tell_appeared(bound);
  if (report.get() >= 0) {
    const std::string text =
        print_report(session.artifact, session.input, bound, limits, launcher, user, outcome);
    if (!sys::write_all(report.get(), text)) say("capgate: the report could not be written\n");
  }
  return outcome.exit_code;
}

}  // namespace

int run(const Session& session) {
  const auto status = start_and_wait(session);
  return status ? *status : refuse(status.error());
}

}  // namespace capgate::sandbox
