#include "sandbox/session.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/kept.h"
#include "base/text.h"
#include "core/path.h"
#include "lower/seccomp_shared.h"
#include "sandbox/landlock.h"
#include "sandbox/network.h"
#include "sandbox/policy_place.h"
#include "sandbox/report.h"
#include "sandbox/sealing.h"
#include "sandbox/secrets.h"
#include "sandbox/stderr_copy.h"
#include "sandbox/stdio.h"
#include "sandbox/steps.h"
#include "sandbox/supervise.h"
#include "sandbox/trust.h"
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
  std::string out(4096, '\0');
  if (::getcwd(out.data(), out.size()) == nullptr) return "/";
  out.resize(std::strlen(out.c_str()));
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

// Every granted path is a descriptor until the sandbox has it. The server gets a limit of its own.
void allow_many_descriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
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

Launcher launcher_of(Session& session) {
  return {.caller = {.path = session.path, .directory = current_directory(), .home = session.home},
          .environment = std::move(session.environment),
          .uid = ::getuid(),
          .landlock_abi = probe_landlock_abi(),
          .makes_missing_files = !session.dry_run,
          .state = session.state,
          .package = session.package};
}

// The filter of this launch; a traced one asks the tracer.
std::expected<void, Refusal> add_filter(const Session& session, const Bound& bound, Launch& orders,
                                        std::optional<Tracer>& tracer) {
  const lower::Plan& plan = *session.artifact.plan;
  if (session.trace.empty()) {
    const auto& filter = lower::shared_filter(plan.arch, plan.seccomp).program;
    orders.filter = lower::bind_token(filter, orders.token);
    return {};
  }
  auto output = open_output(session.trace);
  if (!output) return std::unexpected(std::move(output).error());
  const auto rules = lower::seccomp_rules(plan.seccomp);
  tracer.emplace(plan.arch, rules, orders.token,
                 Tracer::Known{.bound = bound, .lacking = session.lacking}, *std::move(output));
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

// Everything about the end of a run that is not its exit status.
void tell_end(const Session& session, const Bound& bound, const Outcome& outcome) {
  if (!outcome.explanation.empty()) {
    say(format("capgate: {}\n", outcome.explanation));
  } else if (outcome.exit_code != 0 && !outcome.was_told_to_end) {
    say(explain_status(session.lacking, outcome.exit_code));
  }
  tell_appeared(bound);
}

std::expected<int, Refusal> start_and_wait(const Session& session, const Launcher& launcher,
                                           const Bound& bound, Secrets& secrets, Trust* trust) {
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
                .fail_step = injected_fault(),
                .trees = trees.numbers,
                .injected = secrets.injected};
  std::optional<Tracer> tracer;
  if (auto added = add_filter(session, bound, orders, tracer); !added) {
    return std::unexpected(std::move(added).error());
  }

  MaskWatch masks(bound.masked, bound.ways);
  const sys::Fd signals = take_signals();
  if (signals.get() < 0) {
    return std::unexpected(Refusal{.message = format("no signals: {}", std::strerror(errno)),
                                   .help = "capgate could not be told to end; see capgate doctor"});
  }
  std::string block = write_orders(bound, orders);
  auto launched =
      launch(block, user, trees, limits.placement(),
             {.fail_step = orders.fail_step, .inner_sockets = network ? network->inner.get() : -1});
  // What the server holds is from here on its alone.
  secrets::wipe(block);
  secrets.injected.clear();
  if (!launched) return std::unexpected(std::move(launched).error());
  Sandbox& sandbox = *launched;
  if (network) network->inner = sys::Fd();
  const Watch watch{.grace = session.grace,
                    .masks = masks,
                    .broker = network ? &network->broker : nullptr,
                    .capture = &bound.capture};
  const Outcome outcome = supervise(sandbox, signals, watch, limits, tracer ? &*tracer : nullptr);
  if (network) network->broker.end();
  if (outcome.failure) return std::unexpected(explain_failure(*outcome.failure, bound));
  if (outcome.refusal) return std::unexpected(*outcome.refusal);
  tell_end(session, bound, outcome);
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

// From before the first secret is read: no other process of this user looks into this one.
std::expected<void, Refusal> hide_memory() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0) return {};
  return std::unexpected(
      Refusal{.message = format("secrets cannot be kept from other programs: PR_SET_DUMPABLE: {}",
                                std::strerror(errno)),
              .help = "see capgate doctor"});
}

std::expected<int, Refusal> bind_and_start(Session& session) {
  if (auto checked = check_stdio(); !checked) return std::unexpected(std::move(checked).error());
  forbid_core_dumps();
  allow_many_descriptors();
  const lower::Plan& plan = *session.artifact.plan;
  Launcher launcher = launcher_of(session);
  // Before anything is done that a policy asks for: `cmd:` of a secret starts a program out here.
  if (auto checked = check_policy_places(session.policy_places, plan, launcher); !checked) {
    return std::unexpected(std::move(checked).error());
  }
  if (has_secrets(plan)) {
    if (auto hidden = hide_memory(); !hidden) return std::unexpected(std::move(hidden).error());
  }
  Secrets secrets = TRY(
      resolve_secrets(plan, {.bindings = session.secrets, .dry_run = session.dry_run}, launcher));
  std::optional<Trust> trust;
  if (!plan.seals.empty()) trust = TRY(trust_for(session, launcher));
  if (trust) launcher.trust = &*trust;
  Bound& bound = kept(TRY(sandbox::bind(plan, launcher, session.command)));
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
  return status ? *status : refuse(status.error());
}

}  // namespace capgate::sandbox
