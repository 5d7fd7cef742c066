#include "sandbox/trust.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/format.h"
#include "base/ranges.h"
#include "base/result.h"
#include "base/text.h"
#include "sandbox/beside.h"
#include "sandbox/launch.h"
#include "secrets/handover.h"

namespace capgate::sandbox {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* program_name = "capgate-broker-tls";
constexpr std::chrono::seconds longest_run{10};
// As src/seal/authority_mode.h has them.
constexpr int first_unused_fd = 5;

std::unexpected<Refusal> refuse(std::string message, std::string help = {}) {
  if (help.empty()) help = "sealed secrets need it; see capgate doctor";
  return std::unexpected(Refusal{.message = std::move(message), .help = std::move(help)});
}

std::unexpected<Refusal> cannot_start(int error) {
  return refuse(format("cannot start {}: {}", program_name, std::strerror(error)));
}

// ---- in the child: only async-signal-safe calls -------------------------------------------------

struct Child {
  int program;
  int fds[first_unused_fd];  // -1: as it is
  char* const* arguments;
  HostUser user;
  pid_t parent;
};

// Away from the numbers that they get, first. The program's new number, or -1.
int place_descriptors(const Child& child) {
  constexpr int above = 16;
  int moved[first_unused_fd];
  for (int i = 0; i < first_unused_fd; ++i) {
    moved[i] = child.fds[i] < 0 ? -1 : ::fcntl(child.fds[i], F_DUPFD_CLOEXEC, above);
    if (child.fds[i] >= 0 && moved[i] < 0) return -1;
  }
  const int program = ::fcntl(child.program, F_DUPFD_CLOEXEC, above);
  for (int i = 0; i < first_unused_fd; ++i) {
    if (moved[i] >= 0 && ::dup2(moved[i], i) < 0) return -1;
  }
  if (::syscall(SYS_close_range, first_unused_fd, ~0U, CLOSE_RANGE_CLOEXEC) != 0) return -1;
  return program;
}

[[noreturn]] void run_child(const Child& child) {
  constexpr int failed = 125;
  if (child.user.leaves_root && !leave_root_for_good(child.user)) ::_exit(failed);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(failed);
  // A change of ids clears it, so it comes after them. The parent may be gone already.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) ::_exit(failed);
  if (::getppid() != child.parent) ::_exit(failed);
  const int program = place_descriptors(child);
  if (program < 0) ::_exit(failed);
  char* const environment[] = {nullptr};
  ::syscall(SYS_execveat, program, "", child.arguments, environment, AT_EMPTY_PATH);
  ::_exit(failed);
}

// ---- in capgate ---------------------------------------------------------------------------------

std::expected<sys::Fd, Refusal> open_host_bundle(const std::vector<std::string>& environment) {
  const std::string path = find_host_bundle(environment);
  // Without waiting, should it be a pipe.
  sys::Fd file(
      ::open(path.empty() ? "/dev/null" : path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  const bool is_open = file.get() >= 0 && ::fstat(file.get(), &info) == 0;
  if (!is_open || (!path.empty() && !S_ISREG(info.st_mode))) {
    return refuse(format("cannot read the certificates in {}: {}", escape_for_terminal(path),
                         is_open ? "it is no file" : std::strerror(errno)),
                  "let SSL_CERT_FILE name a file with certificates, or unset it");
  }
  return file;
}

struct Files {
  sys::Fd reader;
  sys::Fd writer;
  sys::Fd bundle;
  sys::Fd key_store;
};

std::expected<Files, Refusal> make_files() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start(errno);
  Files out{.reader = sys::Fd(ends[0]),
            .writer = sys::Fd(ends[1]),
            .bundle = sys::Fd(::memfd_create("capgate-ca", MFD_CLOEXEC)),
            .key_store = sys::Fd(::memfd_create("capgate-cacerts", MFD_CLOEXEC))};
  if (out.bundle.get() < 0 || out.key_store.get() < 0) return cannot_start(errno);
  return out;
}

std::expected<sys::Fd, Refusal> start(const Child& child) {
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD | CLONE_VFORK;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0) run_child(child);
  if (pid < 0) return cannot_start(errno);
  return sys::Fd(pidfd);
}

bool ends_in_time(const sys::Fd& process) {
  const auto last = Clock::now() + longest_run;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(last - Clock::now());
    if (left.count() <= 0) return false;
    pollfd ended{process.get(), POLLIN, 0};
    const int count = ::poll(&ended, 1, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

// What is handed over fits into the pipe, so nobody needs to read meanwhile.
std::expected<void, Refusal> wait_for(const sys::Fd& process) {
  const bool ended = ends_in_time(process);
  if (!ended) ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  siginfo_t info{};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.get()), &info,
                  WEXITED) != 0 &&
         errno == EINTR) {
  }
  if (!ended) return refuse(format("{} did not end in {} s", program_name, longest_run.count()));
  if (info.si_code == CLD_EXITED && info.si_status == 0) return {};
  return refuse(format("{} made no authority: {} {}", program_name,
                       info.si_code == CLD_EXITED ? "exit status" : "signal", info.si_status));
}

std::expected<std::string, Refusal> read_whole(const sys::Fd& file) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return cannot_start(errno);
  std::string out(static_cast<std::size_t>(info.st_size), '\0');
  for (std::size_t at = 0; at < out.size();) {
    const ssize_t got =
        ::pread(file.get(), out.data() + at, out.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return cannot_start(got < 0 ? errno : EIO);
    at += static_cast<std::size_t>(got);
  }
  return out;
}

std::expected<Trust, Refusal> collect(const Files& files) {
  Trust out{.key = {},
            .certificate = {},
            .bundle = TRY(read_whole(files.bundle)),
            .key_store = TRY(read_whole(files.key_store))};
  auto handed = secrets::read_handover(files.reader);
  if (!handed) return refuse(format("{}: {}", program_name, handed.error()));
  for (secrets::Handed& item : *handed) {
    if (item.name == secrets::authority_key) out.key = std::move(item.value);
    if (item.name == secrets::authority_certificate) out.certificate = std::move(item.value);
  }
  if (out.key.is_empty() || out.certificate.is_empty() || out.bundle.empty() ||
      out.key_store.empty()) {
    return refuse(format("{} handed over less than an authority", program_name));
  }
  return out;
}

}  // namespace

std::vector<std::string> well_known_bundles() {
  return {"/etc/ssl/certs/ca-certificates.crt",                 // Debian, Arch, Alpine
          "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, RHEL
          "/etc/ssl/ca-bundle.pem",                             // openSUSE
          "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL
          "/etc/ssl/cert.pem"};                                 // OpenSSL's own name
}

std::vector<std::string> sealed_hosts(const std::vector<lower::PlanSeal>& seals) {
  std::vector<std::string> out;
  for (const lower::PlanSeal& seal : seals) {
    for (const core::Endpoint& endpoint : seal.env.to) {
      if (!contains(out, endpoint.host.text)) out.push_back(endpoint.host.text);
    }
  }
  return out;
}

std::string find_host_bundle(const std::vector<std::string>& environment) {
  constexpr std::string_view variable = "SSL_CERT_FILE=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(variable) && entry.size() > variable.size()) {
      return entry.substr(variable.size());
    }
  }
  for (std::string& path : well_known_bundles()) {
    if (::access(path.c_str(), R_OK) == 0) return std::move(path);
  }
  return {};
}

std::expected<Trust, Refusal> make_trust(const std::vector<lower::PlanSeal>& seals,
                                         const std::vector<std::string>& environment) {
  const sys::Fd program =
      TRY(find_beside({.name = program_name, .needed_by = "sealed secrets need"}));
  const sys::Fd host_bundle = TRY(open_host_bundle(environment));
  Files files = TRY(make_files());
  std::vector<std::string> words{program_name, "--authority"};
  for (std::string& host : sealed_hosts(seals)) words.push_back(std::move(host));
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const sys::Fd process = TRY(start({.program = program.get(),
                                     .fds = {host_bundle.get(), files.writer.get(), -1,
                                             files.bundle.get(), files.key_store.get()},
                                     .arguments = arguments.data(),
                                     .user = choose_broker_user(),
                                     .parent = ::getpid()}));
  files.writer = sys::Fd();
  TRY(wait_for(process));
  return collect(files);
}

}  // namespace capgate::sandbox
