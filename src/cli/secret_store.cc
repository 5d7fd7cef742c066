#include "cli/secret_store.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "cli/exit.h"
#include "sandbox/beside.h"
#include "sys/child.h"
#include "sys/file.h"
#include "text/json.h"

namespace capgate::cli {
namespace {

constexpr std::size_t largest_value = 32768;  // of the store, and less than any pipe holds
constexpr std::size_t largest_answer = std::size_t{4} << 20;

int fail_call(std::string_view what, int error, Output& output) {
  output.err += format("capgate: {}: {}\n", what, std::strerror(error));
  return Exit::internal;
}

struct Pipe {
  sys::Fd from, to;
};

std::expected<Pipe, int> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(errno);
  return Pipe{.from = sys::Fd(ends[0]), .to = sys::Fd(ends[1])};
}

// The file actions of a spawn, destroyed with their owner.
class Actions {
 public:
  Actions(int input, int output) {
    is_made_ = ::posix_spawn_file_actions_init(&actions_) == 0;
    is_ready_ = is_made_ &&
                ::posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO) == 0 &&
                ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO) == 0;
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  Actions(Actions&&) = delete;
  Actions& operator=(Actions&&) = delete;
  ~Actions() {
    if (is_made_) ::posix_spawn_file_actions_destroy(&actions_);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const {
    return is_ready_ ? &actions_ : nullptr;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  bool is_made_ = false;
  bool is_ready_ = false;
};

std::string read_answer(int fd) {
  std::string out;
  char room[4096];
  while (out.size() <= largest_answer) {
    const ssize_t got = ::read(fd, room, sizeof(room));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(room, static_cast<std::size_t>(got));
  }
  return out;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Exit::internal;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : Exit::internal;
}

}  // namespace

std::expected<SecretStore, int> SecretStore::open(Output& output) {
  auto program = sandbox::find_beside({.name = "capgate-store", .needed_by = "secrets need"});
  if (program) return SecretStore(*std::move(program));
  output.err += format("capgate: {}\nhelp: {}\n", program.error().message, program.error().help);
  return std::unexpected(Exit::internal);
}

// The value is in the pipe before the program starts: nobody waits for anybody.
std::expected<std::string, int> SecretStore::call(std::vector<std::string> words,
                                                  std::string_view input, Output& output) const {
  auto in = make_pipe();
  auto out = make_pipe();
  if (!in || !out) return std::unexpected(fail_call("pipe", in ? out.error() : in.error(), output));
  if (const auto written = sys::write_all(in->to.get(), input); !written) {
    return std::unexpected(fail_call("pipe", written.error().err, output));
  }
  in->to = sys::Fd();
  const Actions actions(in->from.get(), out->to.get());
  if (actions.get() == nullptr) return std::unexpected(fail_call("capgate-store", ENOMEM, output));
  words.insert(words.begin(), "capgate-store");
  const std::vector<char*> pointers = sys::exec_words(words);
  const std::string program = format("/proc/self/fd/{}", program_.get());
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, program.c_str(), actions.get(), nullptr, pointers.data(), ::environ);
  if (error != 0) return std::unexpected(fail_call("capgate-store cannot be run", error, output));
  out->to = sys::Fd();
  std::string answer = read_answer(out->from.get());
  if (const int code = wait_for(child); code != 0) return std::unexpected(code);
  return answer;
}

std::expected<std::optional<std::string>, int> SecretStore::key(Output& output) const {
  const auto listed = call({"list", "--json"}, "", output);
  if (!listed) return std::unexpected(listed.error());
  const auto document = text::parse_json(*listed);
  const auto key = document ? document->root().find("key") : std::nullopt;
  if (!key) {
    output.err += "capgate: capgate-store does not answer as it should\n";
    return std::unexpected(Exit::internal);
  }
  if (!key->is(text::Kind::object)) return std::nullopt;
  const auto source = key->find("source");
  return std::optional<std::string>(source ? source->text() : "");
}

std::expected<void, int> SecretStore::set(const SecretPlace& place, std::string_view value,
                                          const std::optional<std::string>& key,
                                          Output& output) const {
  if (value.size() > largest_value) {
    output.err += format("capgate: {} is longer than the store takes\n", place.name);
    return std::unexpected(Exit::unreadable);
  }
  std::vector<std::string> words{"set", "--server", place.server, "--name", place.name};
  if (key) words.insert(words.end(), {"--key", *key});
  const auto done = call(std::move(words), value, output);
  if (!done) return std::unexpected(done.error());
  return {};
}

std::expected<std::string, int> SecretStore::get(const SecretPlace& place, Output& output) const {
  return call({"get", "--server", place.server, "--name", place.name}, "", output);
}

}  // namespace capgate::cli
