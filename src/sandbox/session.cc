#include "sandbox/session.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ranges>
#include <utility>

#include "base/format.h"
#include "base/kept.h"
#include "base/text.h"
#include "lower/seccomp_shared.h"
#include "sandbox/network.h"
#include "sandbox/prelude.h"
#include "sandbox/report.h"
#include "sandbox/sealed_place.h"
#include "sandbox/sealing.h"
#include "sandbox/secrets.h"
#include "sandbox/steps.h"
#include "sandbox/supervise.h"
#include "sandbox/trust.h"
#include "sys/file.h"

namespace capgate::sandbox {
namespace {

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

// Once more at the end, where it is seen.
void tell_set_aside(const Outcome& outcome) {
  const std::size_t count = outcome.set_aside.size();
  if (count == 0) return;
  constexpr std::size_t most = 20;
  say(format("capgate: {} set aside while the server ran:\n", count));
  for (const Kept& kept : outcome.set_aside | std::views::take(most)) {
    const std::string path = escape_for_terminal(kept.path);
    say(format("  {} is now {}\n", path, escape_for_terminal(kept.name)));
  }
  if (count > most) say(format("  and {} more\n", count - most));
}

// The filter of this launch; a traced one asks the tracer.
std::expected<void, Refusal> add_filter(const Session& session, const Bound& bound, Launch& orders,
                                        std::optional<Tracer>& tracer) {
  const lower::Plan& plan = *session.artifact.plan;
  lower::SeccompNeeds needs = plan.seccomp;
  needs.memory_is_mapped = orders.bound_buffers;  // both: no cgroup counts memory
  if (session.trace.empty()) {
    const auto& filter = lower::shared_filter(plan.arch, needs).program;
    orders.filter = lower::bind_token(filter, orders.token);
    return {};
  }
  const sys::Fd output = TRY(open_output(session.trace));
  const auto rules = lower::seccomp_rules(needs);
  const TraceWriter::Known known{.bound = bound, .lacking = session.lacking};
  TraceWriter writer;
  if (const auto started = writer.start(known, output); !started) {
    return std::unexpected(
        Refusal{.message = format("cannot start a process: {}", std::strerror(started.error())),
                .help = "raise the limit of processes of this user"});
  }
  tracer.emplace(plan.arch, rules, orders.token, known, std::move(writer));
  orders.filter = traced_filter(plan.arch, rules);
  orders.listen = true;
  return {};
}

void write_report(const sys::Fd& file, const Run& run) {
  if (file.get() < 0) return;
  if (!sys::write_all(file.get(), print_report(run))) {
    say("capgate: the report could not be written\n");
  }
}

// Started first: the broker gets ready while the sandbox is made. Null where nothing is declared.
std::expected<std::unique_ptr<Network>, Refusal> start_network(const Session& session,
                                                               const Bound& bound,
                                                               NetworkSecrets secrets) {
  if (!session.artifact.plan->network.is_declared()) return nullptr;
  return open_network({.plan = *session.artifact.plan,
                       .policy_hash = session.input.policy.hash,
                       .limits = session.net_limits,
                       .audit = session.audit,
                       .audit_directory = session.audit_directory,
                       .secrets = std::move(secrets),
                       .lacking = session.lacking},
                      bound);
}

// A dry run shows where the files would be, and makes no key.
std::expected<Trust, Refusal> trust_for(const Session& session, const Launcher& launcher) {
  if (session.dry_run) return Trust{};
  return make_trust(session.artifact.plan->seals, launcher.environment);
}

// In place of what the caller's variables of these names say.
void set_proxy_variables(Bound& bound) {
  if (bound.capture.proxy_port == 0) return;
  for (std::string& variable : proxy_variables(bound.capture.proxy_port)) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(bound.environment,
                  [&](const std::string& entry) { return entry.starts_with(name); });
    std::erase_if(bound.injected,
                  [&](const std::string& injected) { return name == injected + "="; });
    bound.environment.push_back(std::move(variable));
  }
}

Refusal cannot_watch(const std::string& problem) {
  return {.message = problem,
          .help =
              "raise fs.inotify.max_user_instances or fs.inotify.max_user_watches, or end programs "
              "that watch many files"};
}

void finish_keeper(Keeper& keeper, Outcome& outcome) {
  auto last = keeper.finish();
  if (!last) {
    say(format("capgate: {}\n", escape_for_terminal(last.error())));
    return;
  }
  for (Kept& kept : *last) {
    if (kept.kind != Kept::Kind::set_aside) continue;
    say(format("capgate: {}\n", print(kept)));
    outcome.set_aside.push_back(std::move(kept));
  }
}

// Everything about the end of a run that is not its exit status.
void tell_end(const Session& session, const Outcome& outcome) {
  if (!outcome.explanation.empty()) {
    say(format("capgate: {}\n", outcome.explanation));
  } else if (outcome.exit_code != 0 && !outcome.was_told_to_end) {
    say(explain_status(session.lacking, outcome.exit_code));
  }
  tell_set_aside(outcome);
}

std::expected<sys::Fd, Refusal> signals_to_pass() {
  sys::Fd signals = take_signals();
  if (signals.get() >= 0) return signals;
  return std::unexpected(Refusal{.message = format("no signals: {}", std::strerror(errno)),
                                 .help = "capgate could not be told to end; see capgate doctor"});
}

std::expected<Stdio, Refusal> stdio_for(const Session& session) {
  auto stdio = make_stdio(session.grace.has_value());
  if (stdio) return *std::move(stdio);
  return std::unexpected(
      Refusal{.message = format("cannot make a pipe: {}", std::strerror(stdio.error())),
              .help = "see capgate doctor"});
}

std::expected<int, Refusal> start_and_wait(const Session& session, const Launcher& launcher,
                                           Bound& bound, Secrets& secrets, Trust* trust) {
  const lower::Plan& plan = *session.artifact.plan;
  sys::Fd report;
  if (!session.report.empty()) report = TRY(open_output(session.report));
  NetworkSecrets handed = TRY(network_secrets(plan, secrets, trust, launcher));
  const std::unique_ptr<Network> network = TRY(start_network(session, bound, std::move(handed)));
  const Limits limits = TRY(set_up_limits(plan.limits, session.accepted_limits));
  HostUser user = choose_host_user();
  user.inside = bound.uid;
  const Trees trees = TRY(make_trees(bound, user));
  Launch orders{.filter = {},
                .token = TRY(random_token()),
                .limits = within_own(limits.rlimits()),
                .bound_buffers = limits.watched_memory().has_value(),
                .fail_step = injected_fault(),
                .trees = trees.numbers,
                .injected = secrets.injected};
  std::optional<Tracer> tracer;
  if (auto added = add_filter(session, bound, orders, tracer); !added) {
    return std::unexpected(std::move(added).error());
  }

  if (!bound.watched.problem.empty()) return std::unexpected(cannot_watch(bound.watched.problem));
  Keeper keeper(bound.watched, user);
  const sys::Fd signals = TRY(signals_to_pass());
  Stdio stdio = TRY(stdio_for(session));
  std::string block = write_orders(bound, orders);
  auto launched = launch(block, user, trees, limits.placement(),
                         {.fail_step = orders.fail_step,
                          .inner_sockets = network ? network->inner.get() : -1,
                          .input = stdio.input.inner(),
                          .output = stdio.output.inner()});
  stdio.input.release_inner();
  stdio.output.release_inner();
  // What the server holds is from here on its alone.
  secrets::wipe(block);
  secrets.injected.clear();
  if (!launched) return std::unexpected(std::move(launched).error());
  Sandbox& sandbox = *launched;
  if (network) network->inner = sys::Fd();
  const Watch watch{.grace = session.grace,
                    .keeper = keeper,
                    .stdio = stdio,
                    .broker = network ? &network->broker : nullptr,
                    .capture = &bound.capture};
  Outcome outcome = supervise(sandbox, signals, watch, limits, tracer ? &*tracer : nullptr);
  finish_keeper(keeper, outcome);
  if (network) network->broker.end();
  if (outcome.failure) return std::unexpected(explain_failure(*outcome.failure, bound));
  if (outcome.refusal) return std::unexpected(*outcome.refusal);
  tell_end(session, outcome);
  write_report(report, {.artifact = session.artifact,
                        .input = session.input,
                        .bound = bound,
                        .limits = limits,
                        .launcher = launcher,
                        .user = user,
                        .outcome = outcome,
                        .audit = network ? network->audit_path : std::string()});
  return outcome.exit_code;
}

std::expected<int, Refusal> bind_and_start(Session& session) {
  const lower::Plan& plan = *session.artifact.plan;
  auto [launcher, secrets] = TRY(prepare(session));
  std::optional<Trust> trust;
  if (!plan.seals.empty()) trust = TRY(trust_for(session, launcher));
  if (trust) launcher.trust = &*trust;
  Bound& bound = kept(TRY(sandbox::bind(plan, launcher, session.command)));
  if (auto checked = check_sealed_files(session.sealed_files, bound, launcher); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  name_secrets(bound, secrets);
  bound.capture = make_capture(plan.network, session.proxy_env ? WithProxy::yes : WithProxy::no);
  set_proxy_variables(bound);
  if (!session.dry_run) {
    return start_and_wait(session, launcher, bound, secrets, trust ? &*trust : nullptr);
  }
  const std::string text = print_bound(session.artifact, session.input, bound);
  return sys::write_all(STDOUT_FILENO, text) ? 0 : 1;
}

}  // namespace

int run(Session session) {
  const auto status = bind_and_start(session);
  return status ? *status : refuse_to_start(status.error());
}

}  // namespace capgate::sandbox
