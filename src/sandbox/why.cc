#include "sandbox/why.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/scope.h"
#include "core/sensitive.h"
#include "egress/decide.h"
#include "egress/loopback.h"
#include "egress/policy.h"
#include "sandbox/egress_policy.h"
#include "sandbox/holes.h"
#include "sandbox/landlock.h"
#include "sandbox/view.h"

namespace capgate::sandbox {
namespace {

using core::Capability;
using core::FsCapability;
using lower::PlanMount;
using orders::MountKind;

// The text, if a manifest may say it; else why not, as a note.
std::string proposed(const std::string& text, std::string_view home, Answer& answer) {
  const auto parsed = core::parse_capability(text, {});
  if (!parsed) {
    answer.notes.push_back(format("no capability can name it: {}", parsed.error().message));
    return "";
  }
  if (const auto allowed = core::check_scope(parsed->front(), home); !allowed) {
    answer.notes.push_back(escape_for_terminal(allowed.error().message));
    return "";
  }
  return print(parsed->front());
}

template <typename T>
void decided_by(const core::Granted<T>& grant, Answer& answer) {
  answer.grant = grant.capability;
  answer.origins = &grant.origins;
}

// ---- paths ----

std::string_view words_of(Access access) {
  return access == Access::read ? std::string_view("read") : std::string_view("write");
}

bool is_clock(std::string_view path) {
  return path == "/usr/share/zoneinfo" || path == "/etc/localtime";
}

bool may_modify(std::string_view rights) { return rights == "write" || rights == "create"; }

class PathAnswer {
 public:
  PathAnswer(const Asked& asked, const PathQuestion& question)
      : asked_(asked),
        question_(question),
        holes_(asked.plan, asked.launcher.environment),
        plan_(asked.plan) {}

  std::expected<Answer, Refusal> find() {
    leave_out_what_is_missing();
    Launcher launcher = asked_.launcher;
    launcher.makes_missing_files = false;
    const Bound bound = TRY(sandbox::bind(plan_, launcher, command()));
    const View view(bound);
    seen_ = view.look(question_.path);
    if (seen_.path != question_.path && !seen_.loops) {
      note(format("{} leads to {}", escape_for_terminal(question_.path),
                  escape_for_terminal(seen_.path)));
    }
    find_grant();
    if (const PlanMount* grant = missing_grant()) {
      answer_by_plan(*grant);
    } else {
      answer_by_view(bound, view);
    }
    finish();
    return std::move(answer_);
  }

 private:
  // Any program will do where the question is not about one.
  [[nodiscard]] std::vector<std::string> command() const {
    return asked_.command.empty() ? std::vector<std::string>{"true"} : asked_.command;
  }

  void note(std::string text) { answer_.notes.push_back(std::move(text)); }

  // What `run` would refuse, and the question does not depend on.
  void leave_out_what_is_missing() {
    plan_.env_read.clear();
    std::erase_if(plan_.programs, [&](const std::string& name) {
      return !find_spawned(name, asked_.launcher.caller);
    });
    std::erase_if(plan_.mounts, [&](const PlanMount& mount) {
      const bool is_grant = mount.origins != nullptr && mount.kind != PlanMount::Kind::mask;
      if (!is_grant || is_clock(mount.target)) return false;
      std::string path = holes_.filled(mount.target);
      if (mount.kind == PlanMount::Kind::entries) path = parent_of(path);
      const auto opened = open_host_path(path);
      if (opened && (!mount.directory || opened->identity.is_directory())) return false;
      missing_.push_back(mount);
      return true;
    });
    // Landlock's rules go with them.
    std::erase_if(plan_.landlock, [&](const lower::LandlockRule& rule) {
      return std::ranges::any_of(missing_, [&](const PlanMount& mount) {
        return rule.path == mount.target || rule.path == format("${{GLOB:{}}}", mount.target);
      });
    });
  }

  [[nodiscard]] bool covers(const PlanMount& mount, std::string_view path) const {
    const std::string target = holes_.filled(mount.target);
    if (mount.kind != PlanMount::Kind::entries) return core::is_at_or_below(path, target);
    const std::string_view directory = parent_of(target);
    if (!core::is_at_or_below(path, directory) || path == directory) return false;
    const std::string_view name = path.substr(directory.size() + 1);
    return core::matches_entry(name.substr(0, name.find('/')), target.substr(directory.size() + 1));
  }

  // The innermost one that this host does not have and that would be mounted on top of the rest.
  [[nodiscard]] const PlanMount* missing_grant() const {
    const PlanMount* best = nullptr;
    for (const PlanMount& mount : missing_) {
      if (!covers(mount, seen_.path)) continue;
      if (best == nullptr || mount.target.size() >= best->target.size()) best = &mount;
    }
    const bool is_inner = best != nullptr && (seen_.mount == nullptr ||
                                              best->target.size() > seen_.mount->target.size());
    return is_inner ? best : nullptr;
  }

  // The innermost grant of the policy that the path lies in.
  void find_grant() {
    const core::Granted<FsCapability>* best = nullptr;
    for (const auto& grant : asked_.policy.files) {
      const core::PathPattern& path = grant.capability.path;
      const PlanMount as_mount{
          .kind = path.shape == core::PathPattern::Shape::entries ? PlanMount::Kind::entries
                                                                  : PlanMount::Kind::bind,
          .target = path.shape == core::PathPattern::Shape::entries ? print(path) : path.base};
      if (!covers(as_mount, seen_.path) && !covers(as_mount, question_.path)) continue;
      if (best == nullptr || path.base.size() >= best->capability.path.base.size()) best = &grant;
    }
    if (best != nullptr) decided_by(*best, answer_);
  }

  // ---- a grant that this host does not have

  void answer_by_plan(const PlanMount& grant) {
    const std::string target = holes_.filled(grant.target);
    note(format("{} is not there on this machine, or not of that kind: run refuses until it is",
                escape_for_terminal(target)));
    if (grant.detail == "socket") {
      answer_.allowed = true;
      answer_.reason = "it is the socket of an ipc capability";
      return;
    }
    for (const PlanMount& mount : asked_.plan.mounts) {
      if (mount.kind == PlanMount::Kind::mask && mount.target.size() > target.size() &&
          covers(mount, seen_.path)) {
        deny(format("{} holds credentials: it stays hidden inside of a grant that does not name it",
                    escape_for_terminal(mount.target)));
        return;
      }
    }
    const bool is_pattern = grant.kind == PlanMount::Kind::entries;
    const std::size_t base = is_pattern ? parent_of(target).size() : target.size();
    const std::string_view below =
        std::string_view(seen_.path).substr(std::min(seen_.path.size(), base));
    if (!below.empty() && core::is_held_name(below)) {
      const bool is_hidden = std::ranges::any_of(
          asked_.plan.hidden_names,
          [&](const std::string& name) { return core::is_at_or_below(below, "/" + name); });
      if (is_hidden || question_.access == Access::write) {
        deny(is_hidden ? "files of this name usually hold secrets: it stays hidden"
                       : "a program of the host runs or trusts it later: it stays as it is");
        return;
      }
    }
    if (question_.access == Access::write && !may_modify(grant.detail)) {
      deny(format("{} would be mounted to be {}", escape_for_terminal(target),
                  grant.detail == "delete" ? "read and emptied, not changed" : "read only"));
      return;
    }
    answer_.allowed = true;
    answer_.reason = format("{} would be mounted {}", escape_for_terminal(target),
                            grant.detail == "read" ? "read-only" : "so");
  }

  // ---- what is mounted

  // Only what is the host's own counts: what the sandbox has in its place is another thing.
  void answer_by_view(const Bound& bound, const View& view) {
    if (seen_.loops) return deny("its links lead in a circle");
    if (in_program_directory() && (seen_.host.empty() || !seen_.exists))
      return undeclared_program();
    if (seen_.mount != nullptr && seen_.mount->kind == MountKind::cover) return hidden();
    if (seen_.host.empty()) return own_place();
    const std::uint64_t wanted = wanted_rights();
    if (question_.access == Access::write && seen_.is_read_only) {
      return deny(format("{} is mounted read-only", escape_for_terminal(seen_.mount->target)));
    }
    if ((view.access(seen_.path) & wanted) != wanted) {
      return deny(format("Landlock does not let the server {} there", words_of(question_.access)));
    }
    answer_.allowed = true;
    answer_.reason = format("{} is mounted {}", escape_for_terminal(seen_.mount->target),
                            seen_.is_read_only ? "read-only" : "with write access");
    tell_of_host(bound);
  }

  // A place of the sandbox: private directories, generated files, ways to what is mounted.
  void own_place() {
    const bool is_tmp = core::is_at_or_below(seen_.path, "/tmp");
    if (is_tmp && answer_.grant) {
      answer_.allowed = true;
      answer_.reason = "it is the sandbox's own /tmp, which is what this grant means";
      return;
    }
    if (seen_.mount != nullptr) {
      deny(format("{} is the sandbox's own; the host's is not shown",
                  escape_for_terminal(seen_.mount->target)));
      if (seen_.mount->kind == MountKind::tmpfs && !seen_.is_read_only) {
        note("the server may read and write there what is its own and ends with it");
      }
      return;
    }
    if (!seen_.exists) {
      return deny(answer_.grant
                      ? "what the grant stands for when the sandbox starts does not hold it"
                      : "nothing grants it, so it is not there");
    }
    deny(seen_.is_directory
             ? "a directory of the sandbox is there instead, which holds only what is mounted"
             : "a file that capgate makes for the sandbox is there instead");
  }

  [[nodiscard]] bool in_program_directory() const {
    return std::ranges::any_of(plan_.mounts, [&](const PlanMount& mount) {
      return mount.kind == PlanMount::Kind::programs && mount.target == parent_of(seen_.path);
    });
  }

  void undeclared_program() {
    deny(format("{} shows the server's own program and declared ones, and no other",
                parent_of(seen_.path)));
    const std::string name = seen_.path.substr(seen_.path.rfind('/') + 1);
    answer_.remedy = proposed("exec:spawn:" + name, home(), answer_);
  }

  [[nodiscard]] std::uint64_t wanted_rights() const {
    std::vector<std::string_view> names;
    if (question_.access == Access::read) {
      names.emplace_back(seen_.is_directory ? "read_dir" : "read_file");
    } else {
      names.emplace_back(seen_.exists && !seen_.is_directory ? "write_file" : "make_reg");
    }
    return landlock_access(names, asked_.launcher.landlock_abi);
  }

  void tell_of_host(const Bound& bound) {
    for (const std::string& path : bound.not_held) {
      if (core::is_at_or_below(seen_.path, path)) {
        note(
            format("{} lies too deep to be looked at: names below are neither hidden nor protected",
                   escape_for_terminal(path)));
      }
    }
    if (seen_.host.empty()) return;
    const int mode = question_.access == Access::read ? R_OK : W_OK;
    if (!seen_.exists) {
      note(format("{} does not exist on this machine", escape_for_terminal(seen_.host)));
    } else if (::geteuid() != 0 &&
               ::faccessat(AT_FDCWD, seen_.host.c_str(), mode, AT_EACCESS) != 0) {
      note(format("your own rights do not let you {} it, and the server has no more",
                  words_of(question_.access)));
    }
  }

  void deny(std::string reason) { answer_.reason = std::move(reason); }

  void hidden() {
    deny(format("{} usually holds secrets: it stays hidden inside of a grant that does not name it",
                escape_for_terminal(seen_.mount->target)));
  }

  // The capability that would do, of the path without links: a link is refused as a grant.
  void finish() {
    if (answer_.allowed || !answer_.remedy.empty()) return;
    if (is_socket()) {
      answer_.remedy = proposed("ipc:connect:unix:" + seen_.path, home(), answer_);
      return;
    }
    if (seen_.loops) return;
    answer_.remedy =
        proposed(format("fs:{}:{}", words_of(question_.access), seen_.path), home(), answer_);
  }

  [[nodiscard]] bool is_socket() const {
    const auto identity = identify(seen_.path);
    return identity && identity->type == S_IFSOCK;
  }

  [[nodiscard]] std::string_view home() const { return asked_.launcher.caller.home; }

  const Asked& asked_;
  const PathQuestion& question_;
  Holes holes_;
  lower::Plan plan_;
  std::vector<PlanMount> missing_;
  Seen seen_;
  Answer answer_;
};

// ---- the network -----------------------------------------------------------------------------

void tell_of_flow(const Asked& asked, const core::Endpoint& asked_for, const egress::Flow& flow,
                  const egress::Verdict& verdict, Answer& answer) {
  const core::Endpoint endpoint{.host = flow.host, .port = flow.port};
  for (const lower::PlanSeal& seal : asked.plan.seals) {
    const bool goes_there = std::ranges::any_of(
        seal.env.to, [&](const core::Endpoint& to) { return core::matches(to, endpoint); });
    if (goes_there) {
      answer.notes.push_back(
          format("the broker terminates TLS there and puts in the value of {}", seal.env.name));
    }
  }
  const core::HostPattern& host = flow.host;
  if (host != asked_for.host) {
    answer.notes.push_back(
        format("whoever connects to {} means {}: that is what HTTP and TLS must name",
               asked_for.host.text, host.text));
  } else if (egress::must_speak_first(verdict)) {
    answer.notes.push_back("what the connection says (the name in TLS or HTTP) must be this host");
  }
  using Kind = core::HostPattern::Kind;
  if (host.kind == Kind::name && !core::names_private_endpoint(host) &&
      !verdict.rule->connect.refinements.private_network) {
    answer.notes.push_back(
        "the name must not lead to a private address; private=true would let it");
  }
}

// A program looks localhost up itself and connects to one of its addresses, which may be allowed
// where the name is not.
std::optional<Answer> why_localhost(const Asked& asked, const core::Endpoint& endpoint) {
  if (endpoint.host.kind != core::HostPattern::Kind::name || endpoint.host.text != "localhost") {
    return {};
  }
  for (const std::string_view address : {"127.0.0.1", "::1"}) {
    const auto host = core::parse_host(address);
    if (!host) continue;
    Answer answer = why_host(asked, {.host = *host, .port = endpoint.port});
    if (!answer.allowed) continue;
    answer.notes.push_back(
        format("whoever looks localhost up connects to {}, which is allowed; a proxy that is asked "
               "for the name refuses it",
               address));
    return answer;
  }
  return {};
}

}  // namespace

std::expected<Answer, Refusal> why_path(const Asked& asked, const PathQuestion& question) {
  return PathAnswer(asked, question).find();
}

Answer why_host(const Asked& asked, const core::Endpoint& endpoint) {
  const egress::Policy policy = egress_policy(asked.plan, {.sandbox = "", .policy_hash = ""});
  egress::Flow flow{.host = egress::host_meant(policy, endpoint.host, *endpoint.port),
                    .port = *endpoint.port};
  using Kind = core::HostPattern::Kind;
  if (endpoint.host.kind == Kind::ipv4 || endpoint.host.kind == Kind::ipv6) {
    flow.address = endpoint.host;
  }
  const egress::Verdict verdict = egress::decide(policy, flow);
  Answer answer{.allowed = verdict.is_allowed()};
  if (verdict.rule != nullptr) {
    const auto grant = std::ranges::find(asked.policy.connect, verdict.rule->connect,
                                         &core::Granted<core::NetConnect>::capability);
    if (grant != asked.policy.connect.end()) decided_by(*grant, answer);
  }
  if (answer.allowed) {
    answer.reason = "the broker makes the connection";
    tell_of_flow(asked, endpoint, flow, verdict, answer);
    return answer;
  }
  if (auto looked_up = why_localhost(asked, endpoint)) return *std::move(looked_up);
  answer.reason = asked.plan.network.rules.empty() ? "the server has no network at all"
                                                   : egress::explain(verdict, flow);
  answer.remedy = egress::remedy(verdict, flow);
  return answer;
}

Answer why_exec(const Asked& asked, const std::string& program) {
  Answer answer;
  const std::string name = program.substr(program.rfind('/') + 1);
  const std::string file = program.starts_with('/') ? real_path(program) : "";
  for (const auto& grant : asked.policy.programs) {
    const auto found = find_spawned(grant.capability.program, asked.launcher.caller);
    const bool is_it = file.empty() ? grant.capability.program == program
                                    : found && contains(found->executables, file);
    if (!is_it) continue;
    decided_by(grant, answer);
    answer.allowed = true;
    answer.reason = "it is a declared program, with the files that it needs";
    if (!found) answer.notes.push_back(format("run refuses here: {}", found.error().message));
    return answer;
  }
  if (!asked.policy.programs.empty() && !asked.command.empty()) {
    const auto server = find_program(asked.command, asked.launcher.caller);
    const bool is_own = server && (file.empty() ? server->file.ends_with("/" + program)
                                                : contains(server->executables, file));
    if (is_own) {
      answer.allowed = true;
      answer.reason = "it is the server's own program, and the server may start programs";
      return answer;
    }
  }
  answer.reason = asked.policy.programs.empty()
                      ? "no program is declared, so no child process can run one at all"
                      : "it is not declared, so it is neither visible nor executable";
  answer.remedy = proposed(format("exec:spawn:{}", name), asked.launcher.caller.home, answer);
  return answer;
}

Answer why_variable(const Asked& asked, std::string_view name) {
  Answer answer;
  for (const auto& grant : asked.policy.variables) {
    const core::EnvCapability& env = grant.capability;
    if (env.name != name) continue;
    decided_by(grant, answer);
    answer.allowed = true;
    if (!env.to.empty()) {
      answer.reason =
          "the server gets a placeholder; the value stays outside, and goes into its "
          "requests";
    } else {
      answer.reason = env.action == core::EnvCapability::Action::read
                          ? "the server gets the launcher's value"
                          : "the server gets the value of its provider";
    }
    return answer;
  }
  for (const auto& [fixed, value] : asked.plan.environment) {
    if (fixed != name) continue;
    answer.allowed = true;
    answer.reason = format("every sandbox has it: {}", value);
    return answer;
  }
  answer.reason = "the environment is cleared, and nothing declares it";
  const std::string_view unsafe = core::is_loader_variable(name) ? "?unsafe=true" : "";
  answer.remedy =
      proposed(format("env:read:{}{}", name, unsafe), asked.launcher.caller.home, answer);
  return answer;
}

}  // namespace capgate::sandbox
