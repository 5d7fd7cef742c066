#include "lower/seatbelt.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"
#include "lower/seatbelt_paths.h"
#include "lower/seatbelt_profile.h"
#include "lower/seatbelt_script.h"
#include "lower/seatbelt_text.h"

namespace capgate::lower {
namespace {

using core::IpcCapability;
using core::LimitCapability;
using core::PathPattern;

// A shell does not let these be set, or sets them itself.
constexpr std::string_view shell_variables[] = {"BASHOPTS", "BASH_VERSINFO", "EUID",
                                                "PPID",     "SHELLOPTS",     "UID"};

// Only the kernel's other name for the files of this disk: no rule about it ever matches.
constexpr std::string_view data_volume = "/System/Volumes/Data";

class Seatbelt {
 public:
  explicit Seatbelt(const Input& input)
      : input_(input),
        policy_(input.policy),
        support_("seatbelt", input),
        argv_(artifact_),
        programs_(seatbelt::programs_of(input)) {
    artifact_.target = "seatbelt";
  }

  Checked<Artifact> lower() {
    refuse_files();
    refuse_programs_and_limits();
    refuse_variables();
    const std::vector<seatbelt::Socket> sockets = open_sockets();
    seatbelt::Profile profile = seatbelt::make_profile(input_, programs_, sockets);
    for (const auto& grant : policy_.variables) {
      artifact_.env_injections.push_back(grant.capability.name);
    }
    sort_and_deduplicate(artifact_.env_injections);
    if (input_.options.script) {
      artifact_.files.push_back(
          seatbelt::make_script(input_, {.environment = environment(),
                                         .parameters = profile.parameters.items(),
                                         .variables = artifact_.env_injections,
                                         .private_home = input_.options.home.empty()}));
    } else {
      write_argv(profile);
    }
    artifact_.files.push_back(std::move(profile.file));
    note();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  void refuse_files() {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      const std::string canonical = seatbelt::canonical_path(fs.path.base);
      if (core::is_at_or_below(canonical, data_volume)) {
        support_.impossible(fs, grant.origins, "macOS shows these files under their names below /",
                            format("write the path without {}", data_volume));
        continue;
      }
      const std::string_view spelled = seatbelt::short_spelling(canonical);
      const auto reason = canonical == "/private"
                              ? std::optional<std::string>("/private holds /etc, /tmp and /var")
                              : core::refused_scope(spelled, input_.options.home);
      if (reason && fs.path.shape != PathPattern::Shape::entries) {
        support_.impossible(fs, grant.origins, *reason, "grant what is needed below it");
      }
    }
  }

  void refuse_programs_and_limits() {
    for (const auto& grant : policy_.programs) {
      if (!input_.options.programs.empty()) break;
      support_.unsupported(grant.capability, grant.origins,
                           "without the server's own program every program of the system may start",
                           "name it with --program, for example --program /usr/local/bin/node");
    }
    for (const auto& grant : policy_.limits) {
      if (grant.capability.kind == LimitCapability::Kind::files) continue;
      support_.unsupported(grant.capability, grant.origins,
                           "macOS has no such limit for one sandbox",
                           "use docker or the native engine");
    }
  }

  void refuse_variables() {
    for (const auto& grant : policy_.variables) {
      const core::EnvCapability& env = grant.capability;
      if (contains(shell_variables, env.name) || env.name == seatbelt::token_variable) {
        support_.impossible(env, grant.origins, "the shell that starts the server keeps that name",
                            "use another name");
      }
      if (env.to.empty()) continue;
      support_.unsupported(
          env, grant.origins,
          "only capgate's own broker keeps the value from the server, which would hold it here",
          format("use capgate run, or write env:inject:{} if the server may hold it", env.name));
    }
  }

  std::vector<seatbelt::Socket> open_sockets() {
    std::vector<seatbelt::Socket> out;
    for (const auto& grant : policy_.sockets) {
      switch (grant.capability.kind) {
        case IpcCapability::Kind::self:
        case IpcCapability::Kind::netlink_route: break;
        case IpcCapability::Kind::unix_path:
          out.push_back(
              {.path = seatbelt::canonical_path(grant.capability.path), .origins = &grant.origins});
          break;
        case IpcCapability::Kind::dbus_session:
        case IpcCapability::Kind::dbus_system:
          support_.unsupported(grant.capability, grant.origins, "macOS has no such bus",
                               "leave it out for macOS");
          break;
        case IpcCapability::Kind::x11:
          support_.unsupported(grant.capability, grant.origins,
                               "the X server's socket has another name at each login",
                               "name it as ipc:connect:\"unix:PATH\"");
          break;
      }
    }
    return out;
  }

  std::vector<std::string> environment() const {
    std::string path;
    for (const std::string& directory : programs_.directories) {
      if (directory.contains(':')) continue;
      path += format("{}{}", path.empty() ? "" : ":", directory);
    }
    std::vector<std::string> out{format("PATH={}", path), "LANG=en_US.UTF-8"};
    if (!input_.options.home.empty()) out.push_back(format("HOME={}", input_.options.home));
    return out;
  }

  void write_argv(const seatbelt::Profile& profile) {
    argv_.because("environment: cleared");
    argv_.add("/usr/bin/env", "-i");
    for (const std::string& setting : environment()) argv_.add(setting);
    if (input_.options.home.empty()) argv_.add("HOME=/var/empty");
    const std::string entry = seatbelt::entry_script(input_);
    if (!entry.empty()) {
      argv_.because("declared variables from the descriptor, the broker's token, limits");
      argv_.add("/bin/sh", "-c", entry, "capgate");
      name_descriptor();
    }
    argv_.because("the sandbox");
    argv_.add("/usr/bin/sandbox-exec", "-f", seatbelt::profile_name);
    for (const auto& [key, value] : profile.parameters.items()) {
      argv_.add(format("-D{}={}", key, value));
    }
    argv_.because("the command follows");
    argv_.add("--");
  }

  void name_descriptor() {
    std::vector<std::string> names = artifact_.env_injections;
    if (!policy_.connect.empty()) names.emplace_back(seatbelt::token_variable);
    if (names.empty()) return;
    artifact_.fds.push_back({.fd = seatbelt::environment_fd,
                             .purpose = "environment",
                             .base64 = {},
                             .names = std::move(names)});
  }

  void note() {
    artifact_.notes = policy_notes(input_);
    // Here a pattern is a rule, not a list of what there is at the start.
    std::erase_if(artifact_.notes,
                  [](const std::string& text) { return text.contains("when the sandbox starts"); });
    const auto add = [&](std::string text) { artifact_.notes.push_back(std::move(text)); };
    add("macos: paths are compared as the kernel knows them; a grant or --program that leads "
        "through a link opens nothing");
    note_files(add);
    if (!input_.options.programs.empty()) {
      add("exec: --program also opens the program's own prefix, to read and to start from");
    } else {
      add("exec: programs of /bin and /usr/bin can become the server; name its own with --program");
    }
    if (!policy_.programs.empty()) {
      add("exec: a program that outlives the server stays in the sandbox, but is not ended with "
          "it");
    }
    if (!policy_.connect.empty()) {
      add(
          format("net: only the broker is reached: capgate egress --listen tcp:127.0.0.1:{} with "
                 "its token in {}/token; a server that ignores the proxy variables reaches nothing",
                 input_.options.egress_port, input_.options.egress_dir));
    }
    if (!policy_.listen.empty()) {
      add("net: the server must listen on 127.0.0.1 or ::1; other addresses are refused");
    }
    if (!input_.options.script) {
      add(format("fs: no temporary directory; --script makes one. Start argv where {} lies",
                 seatbelt::profile_name));
    }
  }

  template <typename Add>
  void note_files(const Add& add) {
    for (const auto& grant : policy_.files) {
      const core::FsCapability& fs = grant.capability;
      const std::string shown = escape_for_terminal(print(fs.path));
      if (is_private_tmp(fs)) {
        add(format("fs: {} is TMPDIR here: /tmp itself stays closed", shown));
      } else if (fs.path.shape == PathPattern::Shape::entries) {
        add(format("fs: {} covers later entries too; the directory cannot be listed", shown));
      }
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  ArgvBuilder argv_;
  seatbelt::Programs programs_;
};

}  // namespace

Checked<Artifact> lower_to_seatbelt(const Input& input) { return Seatbelt(input).lower(); }

}  // namespace capgate::lower
