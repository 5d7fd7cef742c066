#include "lower/landlock.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "lower/common.h"

namespace capgate::lower {
namespace {

using core::FsAction;
using Shape = core::PathPattern::Shape;

// landrun cuts every value at commas, without a way to say that a comma is meant.
bool survives_landrun(std::string_view path) { return path.find(',') == std::string_view::npos; }

// The program that the kernel starts first for a dynamically linked one.
std::string_view dynamic_loader(Arch arch) {
  return arch == Arch::x86_64 ? "/lib64/ld-linux-x86-64.so.2" : "/lib/ld-linux-aarch64.so.1";
}

class Landlock {
 public:
  explicit Landlock(const Input& input)
      : input_(input), policy_(input.policy), support_("landlock", input), argv_(artifact_) {
    artifact_.target = "landlock";
  }

  Checked<Artifact> lower() {
    artifact_.notes = policy_notes(input_);
    artifact_.env_injections = env_injections(policy_);
    open_base_system();
    for (const auto& grant : policy_.files) open_grant(grant);
    open_clock();
    open_ports();
    pass_environment();
    argv_.because("the command follows");
    argv_.add("--");
    add_notes();
    artifact_.unenforced = TRY(std::move(support_).finish());
    return std::move(artifact_);
  }

 private:
  // Only what every system has: landrun refuses to start for a path that is missing. /bin, /lib and
  // the like lead into /usr. No /proc: it shows the environments of the user's other processes.
  void open_base_system() {
    argv_.because("base system, read-only");
    const bool names_programs = !input_.options.programs.empty();
    argv_.add(names_programs ? "--ro" : "--rox", "/usr");
    for (const std::string_view device : {"/dev/full", "/dev/null", "/dev/zero"}) {
      argv_.add("--rw", device);
    }
    for (const std::string_view device : {"/dev/random", "/dev/urandom"}) argv_.add("--ro", device);
    if (!names_programs) {
      for (const auto& grant : policy_.programs) list(grant.capability);
      return;
    }
    argv_.because("programs: the server's own, declared ones, and the loader that starts them");
    argv_.add("--rox", dynamic_loader(input_.options.arch));
    for (const std::string& path : input_.options.programs) open_program(path);
    for (const auto& grant : policy_.programs) {
      argv_.because(grant.origins);
      open_program("/usr/bin/" + grant.capability.program);
      list(grant.capability);
    }
  }

  // A declared program that --program names elsewhere is not looked for in /usr/bin.
  void open_program(const std::string& path) {
    const std::string suffix = path.substr(path.rfind('/'));
    const bool named_elsewhere =
        !contains(input_.options.programs, path) &&
        std::ranges::any_of(input_.options.programs,
                            [&](const std::string& own) { return own.ends_with(suffix); });
    if (!named_elsewhere && opened_.insert(path).second) argv_.add("--rox", path);
  }

  void open_grant(const core::Granted<core::FsCapability>& grant) {
    const core::FsCapability& fs = grant.capability;
    if (is_private_tmp(fs)) {
      artifact_.notes.emplace_back(
          "fs: landrun makes no private /tmp, and the host's is not opened");
      return list(fs);
    }
    if (fs.path.shape == Shape::entries) {
      support_.unsupported(fs, grant.origins,
                           "which entries match is only known at launch, so none is opened",
                           "grant the directory, or use the native engine");
      return;
    }
    if (fs.actions.has(FsAction::create) || fs.actions.has(FsAction::remove)) {
      support_.unsupported(fs, grant.origins, "landrun has one flag for adding and removing",
                           "write fs:write if both are meant, or use the native engine");
    }
    if (!survives_landrun(fs.path.base)) {
      return support_.impossible(fs, grant.origins, "landrun cuts its values at commas",
                                 "grant the directory above it, or rename it");
    }
    const auto hidden = core::credentials_below(fs.path.base, input_.options.home);
    if (!hidden.empty()) {
      support_.unsupported(fs, grant.origins,
                           format("it cannot hide {} inside the grant", hidden.front().path),
                           "grant what is needed below it, or use the native engine");
    }
    argv_.because(grant.origins);
    argv_.add(fs.actions.has(FsAction::read) ? "--ro" : "--rw", fs.path.base);
  }

  void open_clock() {
    for (const auto& grant : policy_.clocks) {
      if (grant.capability.source != core::ClockCapability::Source::tzdata) continue;
      argv_.because(grant.origins);
      argv_.add("--ro", "/etc/localtime");
    }
  }

  // Without one of these flags landrun forbids all TCP.
  void open_ports() {
    for (const auto& grant : policy_.connect) {
      const auto port = grant.capability.endpoint.port;
      if (!port) {
        support_.unsupported(grant.capability, grant.origins,
                             "a rule names one port, so none is opened",
                             "name the ports, or use the native engine");
        continue;
      }
      list(grant.capability);
      argv_.because(grant.origins);
      if (ports_.insert(*port).second) argv_.add("--connect-tcp", std::to_string(*port));
    }
    for (const auto& grant : policy_.listen) {
      list(grant.capability);
      argv_.because(grant.origins);
      argv_.add("--bind-tcp", std::to_string(grant.capability.port));
    }
  }

  void pass_environment() {
    argv_.because("environment: nothing but this");
    argv_.add("--env", format("PATH={}", sandbox_path));
    argv_.add("--env", "LANG=C.UTF-8");
    if (!input_.options.home.empty() && survives_landrun(input_.options.home)) {
      argv_.add("--env", format("HOME={}", input_.options.home));
    }
    for (const auto& grant : policy_.variables) {
      if (!grant.capability.to.empty()) continue;
      argv_.because(grant.origins);
      argv_.add("--env", grant.capability.name);
    }
  }

  void list(const core::Capability& capability) {
    artifact_.not_covered.push_back(print(capability));
  }

  void add_notes() {
    artifact_.notes.emplace_back(
        "landlock: the process stays on the host: its other processes, Unix sockets, UDP and "
        "whatever needs no open file are not restricted");
    if (!ports_.empty()) {
      artifact_.notes.emplace_back("net: the ports of declared endpoints are open to every host");
    }
    if (input_.options.programs.empty()) {
      artifact_.notes.emplace_back("exec: every program below /usr can be started");
    }
  }

  const Input& input_;
  const core::Policy& policy_;
  Support support_;
  Artifact artifact_;
  ArgvBuilder argv_;
  std::set<std::uint16_t> ports_;
  std::set<std::string> opened_;
};

}  // namespace

Checked<Artifact> lower_to_landlock(const Input& input) { return Landlock(input).lower(); }

}  // namespace capgate::lower
