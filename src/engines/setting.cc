#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/text.h"
#include "core/path.h"
#include "engines/engine.h"
#include "engines/process.h"
#include "lower/common.h"
#include "lower/forwarder.h"
#include "sandbox/network.h"

namespace capgate::engines {
namespace {

using core::LimitCapability;
using sandbox::Program;
using sandbox::Refusal;

// The directory by its real name, the last name as it is: a program may look at how it is called.
std::string inside_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = sandbox::real_path(path.substr(0, std::max<std::size_t>(slash, 1)));
  return format("{}/{}", directory == "/" ? "" : directory, path.substr(slash + 1));
}

// Below /usr everything is seen but the programs.
bool is_seen_anyway(std::string_view path) {
  if (core::is_at_or_below(path, "/nix/store")) return true;
  if (!core::is_at_or_below(path, "/usr")) return false;
  const std::string_view directory = sandbox::parent_of(path);
  const std::string_view name = directory.substr(directory.rfind('/') + 1);
  return name != "bin" && name != "sbin" && name != "games";
}

// What the command line brings along without being declared, as natively.
void add_program(const Program& program, std::vector<std::string>& out) {
  std::vector<std::string> prefixes;
  prefixes.reserve(program.prefixes.size());
  for (const std::string& prefix : program.prefixes) prefixes.push_back(sandbox::real_path(prefix));
  std::vector<std::string> wanted{inside_path(program.file)};
  for (const auto& list : {program.executables, program.readable}) {
    wanted.insert(wanted.end(), list.begin(), list.end());
  }
  for (const auto& [place, target] : program.links) {
    const auto identity = sandbox::identify(sandbox::real_path(place));
    if (identity && !identity->is_directory()) wanted.push_back(inside_path(place));
  }
  for (std::string& path : wanted) {
    const bool is_below = std::ranges::any_of(
        prefixes, [&](const std::string& prefix) { return core::is_at_or_below(path, prefix); });
    if (!is_below && !is_seen_anyway(path)) out.push_back(std::move(path));
  }
  std::ranges::move(prefixes, std::back_inserter(out));
}

// A script by its real name: what is beside it is found from there, and inside no link leads on.
std::vector<std::string> inside_command(const Program& program) {
  std::vector<std::string> out = program.arguments;
  out.front() = inside_path(program.file);
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (!out[i].starts_with('/')) continue;
    std::string real = sandbox::real_path(out[i]);
    if (contains(program.readable, real)) out[i] = std::move(real);
  }
  return out;
}

std::string choose_directory(const core::Policy& policy, const Wanted& wanted,
                             const lower::Options& options) {
  const std::string& own = wanted.caller.directory;
  const bool is_granted = std::ranges::any_of(policy.files, [&](const auto& grant) {
    const core::PathPattern& path = grant.capability.path;
    return path.shape != core::PathPattern::Shape::entries && core::is_at_or_below(own, path.base);
  });
  if (is_granted) return own;
  return options.home.empty() ? std::string(lower::default_home) : options.home;
}

std::expected<void, Refusal> set_bwrap(const Wanted& wanted, const core::Policy& policy,
                                       lower::Options& options, Setting& out) {
  const Program program = TRY(sandbox::find_program(wanted.command, wanted.caller));
  add_program(program, options.programs);
  for (const auto& grant : policy.programs) {
    const Program spawned = TRY(sandbox::find_spawned(grant.capability.program, wanted.caller));
    add_program(spawned, options.programs);
  }
  sort_and_deduplicate(options.programs);
  out.command = inside_command(program);
  out.executables = program.executables;
  out.directory = choose_directory(policy, wanted, options);
  return {};
}

// Inside a container the caller is the user whose files are granted; root is nobody's.
void set_container(const Wanted& wanted, lower::Options& options, Setting& out) {
  options.rootful = ::getuid() == 0;
  if (wanted.kind == Kind::docker && ::getuid() != 0) {
    options.user = format("{}:{}", ::getuid(), ::getgid());
  }
  out.image = wanted.image;
  out.command = wanted.command;
}

// Limits of a policy that the engine leaves to capgate. Lowering takes them as accepted, because
// capgate holds them or refuses to start.
bool is_kept_by_capgate(Kind kind, LimitCapability::Kind limit) {
  if (limit == LimitCapability::Kind::time) return true;
  return kind == Kind::bwrap && limit != LimitCapability::Kind::disk;
}

bool runs_programs(const std::string& directory) {
  struct statvfs system{};
  return ::access(directory.c_str(), W_OK | X_OK) == 0 &&
         ::statvfs(directory.c_str(), &system) == 0 && (system.f_flag & ST_NOEXEC) == 0;
}

// Where the forwarder can be run from, and no grant leads to.
std::expected<std::string, Refusal> choose_place(const core::Policy& policy) {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const auto is_open = [&](const std::string& directory) {
    return std::ranges::any_of(policy.files, [&](const auto& grant) {
      return !lower::is_private_tmp(grant.capability) &&
             core::is_at_or_below(directory, grant.capability.path.base);
    });
  };
  for (const std::string& directory : {std::string(runtime == nullptr ? "" : runtime),
                                       std::string("/tmp"), std::string("/var/tmp")}) {
    if (!directory.starts_with('/') || is_open(directory) || !runs_programs(directory)) continue;
    return format("{}/capgate-{}", sandbox::real_path(directory), TRY(sandbox::random_run_name()));
  }
  return std::unexpected(Refusal{
      .message = "there is no place for the socket of the declared network",
      .help = "set XDG_RUNTIME_DIR to a directory of yours that no grant holds, and that is not "
              "mounted noexec"});
}

}  // namespace

std::optional<Kind> kind_of(std::string_view name) {
  for (const Kind kind : {Kind::bwrap, Kind::docker, Kind::podman}) {
    if (name_of(kind) == name) return kind;
  }
  return std::nullopt;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::bwrap: return "bwrap";
    case Kind::docker: return "docker";
    case Kind::podman: return "podman";
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> installed() {
  constexpr std::chrono::milliseconds longest{5000};
  std::vector<std::pair<std::string, std::string>> out;
  for (const Kind kind : {Kind::bwrap, Kind::docker, Kind::podman}) {
    const std::string name(name_of(kind));
    const auto program = find_engine(name);
    if (!program) continue;
    const auto told = run_command(
        {.program = *program, .arguments = {name, "--version"}, .environment = {"HOME=/"}},
        longest);
    if (told && told->status == 0) out.emplace_back(name, trim(told->output));
  }
  return out;
}

std::expected<Setting, Refusal> find_setting(const Wanted& wanted, const core::Policy& policy,
                                             lower::Options& options) {
  Setting out{.kind = wanted.kind, .program = TRY(find_engine(name_of(wanted.kind)))};
  if (wanted.kind == Kind::bwrap) {
    if (auto set = set_bwrap(wanted, policy, options, out); !set) {
      return std::unexpected(std::move(set).error());
    }
  } else {
    set_container(wanted, options, out);
  }
  for (const auto& grant : policy.limits) {
    if (!is_kept_by_capgate(wanted.kind, grant.capability.kind)) continue;
    out.kept_limits.push_back(print(core::Capability(grant.capability)));
  }
  options.accepted.insert(options.accepted.end(), out.kept_limits.begin(), out.kept_limits.end());
  if (!lower::uses_forwarder(policy)) return out;
  out.place = TRY(choose_place(policy));
  options.egress_dir = out.place + "/egress";
  return out;
}

void take_over(const Setting& setting, lower::Artifact& artifact) {
  std::erase_if(artifact.unenforced,
                [&](const std::string& text) { return contains(setting.kept_limits, text); });
  std::erase_if(artifact.notes,
                [](const std::string& note) { return note.contains("capgate egress"); });
  for (const std::string& limit : setting.kept_limits) {
    artifact.notes.push_back(format("limit: capgate run holds {} itself", limit));
  }
}

}  // namespace capgate::engines
