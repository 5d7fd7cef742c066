#include "sandbox/prelude.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "base/text.h"
#include "sandbox/landlock.h"
#include "sandbox/policy_place.h"
#include "sandbox/stderr_copy.h"
#include "sandbox/stdio.h"

namespace capgate::sandbox {
namespace {

std::string current_directory() {
  std::string out(4096, '\0');
  if (::getcwd(out.data(), out.size()) == nullptr) return "/";
  out.resize(std::strlen(out.c_str()));
  return out;
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

Launcher launcher_of(Session& session) {
  return {.caller = {.path = session.path, .directory = current_directory(), .home = session.home},
          .environment = std::move(session.environment),
          .uid = ::getuid(),
          .landlock_abi = probe_landlock_abi(),
          .makes_missing_files = !session.dry_run,
          .state = session.state,
          .package = session.package};
}

// From before the first secret is read: no other process of this user looks into this one.
std::expected<void, Refusal> hide_memory() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0) return {};
  return std::unexpected(
      Refusal{.message = format("secrets cannot be kept from other programs: PR_SET_DUMPABLE: {}",
                                std::strerror(errno)),
              .help = "see capgate doctor"});
}

}  // namespace

void say(std::string_view text) { (void)write_if_read(STDERR_FILENO, text); }

int refuse_to_start(const Refusal& refusal) {
  std::string text = format("capgate: {}\n", refusal.message);
  if (!refusal.help.empty()) text += format("help: {}\n", refusal.help);
  say(text);
  answer_requests(refusal);
  return refusal.exit_code;
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

std::expected<Prepared, Refusal> prepare(Session& session) {
  if (auto checked = check_stdio(); !checked) return std::unexpected(std::move(checked).error());
  forbid_core_dumps();
  allow_many_descriptors();
  const lower::Plan& plan = *session.artifact.plan;
  Launcher launcher = launcher_of(session);
  // Before anything is done that a policy asks for: `cmd:` of a secret starts a program out here.
  launcher.kept = TRY(check_policy_places(session.policy_places, plan, launcher));
  if (has_secrets(plan)) {
    if (auto hidden = hide_memory(); !hidden) return std::unexpected(std::move(hidden).error());
  }
  Secrets secrets = TRY(
      resolve_secrets(plan, {.bindings = session.secrets, .dry_run = session.dry_run}, launcher));
  return Prepared{.launcher = std::move(launcher), .secrets = std::move(secrets)};
}

}  // namespace capgate::sandbox
