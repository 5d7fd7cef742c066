#include "engines/engine.h"

#include <linux/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/text.h"
#include "engines/container.h"
#include "engines/report.h"
#include "engines/server.h"
#include "engines/supervise.h"
#include "lower/common.h"
#include "sandbox/egress_policy.h"
#include "sandbox/egress_service.h"
#include "sandbox/prelude.h"
#include "sys/file.h"

namespace capgate::engines {
namespace {

using sandbox::Limits;
using sandbox::Refusal;
using sandbox::say;

std::unexpected<Refusal> refuse(std::string message, std::string help) {
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

// What the native engine has and no artifact can say.
std::expected<void, Refusal> refuse_native_options(const EngineRun& run) {
  const std::string_view name = name_of(run.setting.kind);
  const auto wrong = [&](std::string_view what) {
    return refuse(format("--engine {} {}", name, what),
                  "leave --engine out: the native engine does that");
  };
  if (!run.session.trace.empty()) return wrong("cannot --trace");
  if (!run.session.state.empty()) return wrong("keeps no HOME, which --profile asks for");
  if (!run.session.package.empty()) return wrong("cannot run a package from the store");
  return {};
}

// As natively: what is not there, or lies behind a link that others could turn, is refused. What
// the server can write is returned, for the audit log must not lie there.
std::expected<sandbox::Bound, Refusal> open_grants(const core::Policy& policy) {
  sandbox::Bound reach;
  for (const auto& grant : policy.files) {
    const core::FsCapability& fs = grant.capability;
    if (lower::is_private_tmp(fs) || fs.path.shape == core::PathPattern::Shape::entries) continue;
    auto opened = TRY(sandbox::open_host_path(fs.path.base));
    const bool reads = fs.actions.has(core::FsAction::read);
    reach.mounts.push_back({.kind = sandbox::orders::MountKind::bind,
                            .target = fs.path.base,
                            .identity = opened.identity,
                            .attributes = reads ? std::uint64_t{MOUNT_ATTR_RDONLY} : 0});
    reach.kept.push_back(std::move(opened.fd));
  }
  return reach;
}

// ---- the declared network -----------------------------------------------------------------------

// A directory for the caller alone, removed at the end. What lies in it is gone by then.
class PrivatePlace {
 public:
  PrivatePlace() = default;
  PrivatePlace(const PrivatePlace&) = delete;
  PrivatePlace& operator=(const PrivatePlace&) = delete;
  PrivatePlace(PrivatePlace&&) = delete;
  PrivatePlace& operator=(PrivatePlace&&) = delete;
  ~PrivatePlace() {
    if (!path_.empty()) (void)::rmdir(path_.c_str());
  }

  std::expected<void, Refusal> make(const std::string& path) {
    if (::mkdir(path.c_str(), 0700) == 0) {
      path_ = path;
      return {};
    }
    return refuse(format("cannot make {}: {}", escape_for_terminal(path), std::strerror(errno)),
                  "set XDG_RUNTIME_DIR to a directory of yours");
  }

 private:
  std::string path_;
};

// In a container of root the server is another user. The directory above is the caller's alone.
mode_t socket_mode(Kind kind) { return kind != Kind::bwrap && ::getuid() == 0 ? 0666 : 0600; }

std::expected<std::unique_ptr<sandbox::EgressBroker>, Refusal> start_network(
    const EngineRun& run, const sandbox::Bound& reach, PrivatePlace& place) {
  if (run.setting.place.empty()) return nullptr;
  if (auto made = place.make(run.setting.place); !made) {
    return std::unexpected(std::move(made).error());
  }
  const sandbox::Session& session = run.session;
  sandbox::EgressService service{
      .policy = sandbox::egress_policy(*session.artifact.plan,
                                       {.sandbox = {}, .policy_hash = run.input.policy.hash}),
      .where = {.path = run.input.options.egress_dir + "/egress.sock",
                .mode = socket_mode(run.setting.kind)},
      .token_file = {},
      .audit = session.audit,
      .audit_directory = session.audit_directory};
  service.policy.limits = session.net_limits;
  service.policy.lacking = sandbox::connects_of(session.lacking);
  return sandbox::start_egress(service, reach);
}

// ---- limits -------------------------------------------------------------------------------------

std::expected<Limits, Refusal> hold_limits(const EngineRun& run) {
  const auto& limits = run.session.artifact.plan->limits;
  const bool forwards = !run.setting.place.empty();
  if (run.setting.kind == Kind::bwrap) {
    return sandbox::set_up_limits(limits, run.session.accepted_limits,
                                  {.inside = forwards ? std::uint64_t{1} : 0,
                                   .beside = 1,  // bwrap, which waits for the server
                                   .by_root = ::getuid() == 0});
  }
  std::vector<lower::PlanLimit> own;
  std::ranges::copy_if(limits, std::back_inserter(own),
                       [](const lower::PlanLimit& limit) { return limit.name == "time"; });
  return sandbox::set_up_limits(own, run.session.accepted_limits);
}

// ---- one run ------------------------------------------------------------------------------------

void tell_end(const sandbox::Session& session, const sandbox::Outcome& outcome) {
  if (!outcome.explanation.empty()) {
    say(format("capgate: {}\n", outcome.explanation));
  } else if (outcome.exit_code != 0 && !outcome.was_told_to_end) {
    say(sandbox::explain_status(session.lacking, outcome.exit_code));
  }
}

std::expected<int, Refusal> start_and_wait(const EngineRun& run, sandbox::Prepared& prepared) {
  sys::Fd report;
  if (!run.session.report.empty()) report = TRY(sandbox::open_output(run.session.report));
  const sandbox::Bound reach = TRY(open_grants(run.input.policy));
  const Limits limits = TRY(hold_limits(run));
  std::vector<sandbox::HeldLimit> held = limits.held();
  Container container;
  if (run.setting.kind != Kind::bwrap) {
    container = TRY(look_at_engine(run, prepared));
    std::ranges::move(container.limits, std::back_inserter(held));
  }
  const sys::Fd signals = sandbox::take_signals();
  if (signals.get() < 0) {
    return refuse(format("no signals: {}", std::strerror(errno)),
                  "capgate could not be told to end; see capgate doctor");
  }
  PrivatePlace place;
  const auto network = TRY(start_network(run, reach, place));
  const Parts parts{.run = run, .prepared = prepared, .limits = limits, .container = container};
  const auto start = [&] {
    auto server = run.setting.kind == Kind::bwrap ? start_bwrap(parts) : start_container(parts);
    prepared.secrets.injected.clear();  // the server's alone from here on
    return server;
  };
  const sandbox::Outcome outcome = supervise({.signals = signals,
                                              .limits = limits,
                                              .grace = run.session.grace,
                                              .broker = network ? &network->broker : nullptr},
                                             start);
  if (network) network->broker.end();
  if (outcome.refusal) return std::unexpected(*outcome.refusal);
  tell_end(run.session, outcome);
  if (report.get() >= 0 &&
      !sys::write_all(report.get(),
                      print_report({.run = run,
                                    .limits = held,
                                    .memory_is_watched = limits.watched_memory().has_value(),
                                    .outcome = outcome,
                                    .audit = network ? network->audit_path : std::string()}))) {
    say("capgate: the report could not be written\n");
  }
  return outcome.exit_code;
}

// The artifact is carried out as it was reviewed: it has no mount for what is found at the start.
std::expected<void, Refusal> refuse_kept_places(const sandbox::KeptPlaces& kept) {
  if (kept.read_only.empty()) return {};
  return refuse(format("{} decides what runs outside of the sandbox, and the server could write it",
                       escape_for_terminal(kept.read_only.front())),
                "leave --engine out: the native engine keeps it read-only; or grant less");
}

std::expected<int, Refusal> prepare_and_start(EngineRun& run) {
  if (auto refused = refuse_native_options(run); !refused) {
    return std::unexpected(std::move(refused).error());
  }
  sandbox::Prepared prepared = TRY(sandbox::prepare(run.session));
  if (auto refused = refuse_kept_places(prepared.launcher.kept); !refused) {
    return std::unexpected(std::move(refused).error());
  }
  if (!run.session.dry_run) return start_and_wait(run, prepared);
  const std::string text =
      print_json(run.artifact, run.input, text::JsonWriter::Style::pretty) + "\n";
  return sys::write_all(STDOUT_FILENO, text) ? 0 : 1;
}

}  // namespace

std::expected<std::string, Refusal> declared_variable(const std::string& name,
                                                      const sandbox::Prepared& prepared) {
  for (const sandbox::InjectedSecret& secret : prepared.secrets.injected) {
    if (secret.name == name) return format("{}={}", name, secret.value.view());
  }
  const std::string begin = name + "=";
  for (const std::string& entry : prepared.launcher.environment) {
    if (entry.starts_with(begin)) return entry;
  }
  return refuse(format("the variable {} is not set", name),
                format("set {} for capgate, or remove the capability", name));
}

std::expected<sys::Fd, Refusal> artifact_file(std::string_view contents) {
  auto file = sandbox::sealed_file("capgate-artifact", contents, false);
  if (!file || ::lseek(file->get(), 0, SEEK_SET) != 0) {
    return refuse(
        format("cannot make a file in memory: {}", std::strerror(file ? errno : file.error())),
        "see capgate doctor");
  }
  return *std::move(file);
}

int run(EngineRun run) {
  const auto status = prepare_and_start(run);
  return status ? *status : sandbox::refuse_to_start(status.error());
}

}  // namespace capgate::engines
