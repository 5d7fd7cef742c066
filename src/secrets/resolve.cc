// The providers themselves.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/text.h"
#include "secrets/command.h"
#include "secrets/provider.h"
#include "secrets/read.h"
#include "secrets/token_json.h"

namespace capgate::secrets {
namespace {

using Provider = Binding::Provider;
using Read = std::expected<Secret, Problem>;

constexpr std::size_t longest_json = 65536;

std::unexpected<Problem> refuse(std::string message, std::string help) {
  return std::unexpected(Problem{.message = std::move(message), .help = std::move(help)});
}

std::unexpected<Problem> refuse_read(std::string_view what, int error) {
  if (error == EFBIG) {
    return refuse(format("{} has more than {} bytes", what, longest_value),
                  "is it the right one? It must hold the secret and nothing else");
  }
  return refuse(format("cannot read {}: {}", what, std::strerror(error)),
                error == ENOMEM || error == EAGAIN
                    ? "secrets are kept in locked memory: raise the limit (ulimit -l)"
                : what.starts_with('~') || what.starts_with('$')
                    ? "write the whole path: no shell has put in your home"
                    : "check the name, and that you can read it");
}

void drop_newline(Secret& value) {
  const std::string_view text = value.view();
  if (text.ends_with('\n')) value.shrink(text.size() - 1);
}

Read from_environment(const Binding& binding, const Context& context) {
  const char* const value = find_variable(binding.reference, context.environment);
  const std::string name = escape_for_terminal(binding.reference);
  if (value == nullptr) {
    return refuse(
        format("the variable {} is not set", name),
        format(
            "set {} for capgate, bind it with --secret {}=PROVIDER:REF, or remove the capability",
            name, binding.name));
  }
  const std::string_view text(value);
  if (text.size() > longest_value) return refuse_read(format("the variable {}", name), EFBIG);
  auto out = Secret::make(text);
  if (!out) return refuse_read(format("the variable {}", name), errno);
  return *std::move(out);
}

// `open_to`: bits of the mode that a file must not have. What was opened decides, not its path.
Read from_file(const std::string& path, mode_t open_to) {
  const std::string shown = escape_for_terminal(path);
  const sys::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return refuse_read(shown, errno);
  if (!S_ISREG(info.st_mode)) {
    return refuse(format("{} is no regular file", shown), "use cmd: for what a program gives");
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return refuse(format("{} belongs to user {}, not to you or root", shown, info.st_uid),
                  "copy it to a file of your own, with mode 600");
  }
  if ((info.st_mode & open_to) != 0) {
    return refuse(format("others than the owner of {} can read or write it (mode {:o})", shown,
                         info.st_mode & 07777U),
                  format("chmod 600 {}", shown));
  }
  auto reader = SecretReader::make(longest_value + 1);  // and a newline
  if (!reader) return refuse_read(shown, reader.error());
  if (auto read = reader->read_to_end(file); !read) return refuse_read(shown, read.error());
  auto out = std::move(*reader).take();
  if (!out) return refuse_read(shown, out.error());
  drop_newline(*out);
  return *std::move(out);
}

Read from_systemd(const Binding& binding, const Context& context) {
  const char* const directory = find_variable("CREDENTIALS_DIRECTORY", context.environment);
  if (directory == nullptr || *directory != '/') {
    return refuse("CREDENTIALS_DIRECTORY is not set: capgate was not given credentials by systemd",
                  format("start capgate from a unit with LoadCredential={}:...",
                         escape_for_terminal(binding.reference)));
  }
  // systemd lets the service's user in by an access list, which shows as the group's bit.
  return from_file(format("{}/{}", directory, binding.reference), S_IWGRP | S_IRWXO);
}

long keyctl(int operation, unsigned long a, unsigned long b, unsigned long c, unsigned long d = 0) {
  return ::syscall(SYS_keyctl, operation, a, b, c, d);
}
template <typename T>
unsigned long word(T* pointer) {
  return reinterpret_cast<unsigned long>(pointer);
}

// A key that is held for a moment in this process's own keyring: only what one possesses can be
// read, and the user's keyring is not part of every session.
Read from_keyring(const Binding& binding) {
  const std::string shown = format("the key {}", quoted(binding.reference));
  const auto own = static_cast<unsigned long>(KEY_SPEC_PROCESS_KEYRING);
  long key = -1;
  for (const long ring : {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING}) {
    key = keyctl(KEYCTL_SEARCH, static_cast<unsigned long>(ring), word("user"),
                 word(binding.reference.c_str()), own);
    if (key >= 0) break;
  }
  if (key < 0) {
    return refuse(format("{} is not in the kernel's session or user keyring: {}", shown,
                         std::strerror(errno)),
                  format("add it: keyctl padd user {} @u", escape_for_terminal(binding.reference)));
  }
  auto room = Secret::room(longest_value + 1);
  if (!room) return refuse_read(shown, errno);
  const auto id = static_cast<unsigned long>(key);
  const long size = keyctl(KEYCTL_READ, id, word(room->bytes().data()), room->bytes().size());
  const int error = errno;
  (void)keyctl(KEYCTL_UNLINK, id, own, 0);
  if (size < 0) return refuse_read(shown, error);
  if (static_cast<std::size_t>(size) > longest_value) return refuse_read(shown, EFBIG);
  auto out = Secret::make(room->view().substr(0, static_cast<std::size_t>(size)));
  if (!out) return refuse_read(shown, errno);
  return *std::move(out);
}

Read from_command(const std::vector<std::string>& words, const Context& context) {
  Secret out = TRY(run_command(words, context, longest_value + 1));
  drop_newline(out);
  return out;
}

std::expected<Resolved, Problem> from_json_command(const Binding& binding, const Context& context) {
  Secret printed = TRY(run_command(binding.command, context, longest_json));
  auto token = read_token(std::move(printed), ::time(nullptr));
  if (!token) {
    return refuse(format("what {} prints cannot be used", quoted(binding.command.front())),
                  token.error());
  }
  return Resolved{.value = std::move(token->value), .expires = token->expires};
}

Read read_value(const Binding& binding, const Context& context) {
  switch (binding.provider) {
    case Provider::env: return from_environment(binding, context);
    case Provider::file: return from_file(binding.reference, S_IRWXG | S_IRWXO);
    case Provider::cmd: return from_command(binding.command, context);
    case Provider::systemd_credential: return from_systemd(binding, context);
    case Provider::keyring: return from_keyring(binding);
    case Provider::store:
      return from_command(
          {context.store_program, "get", "--server", context.server, "--name", binding.reference},
          context);
  }
  return refuse("there is no such provider", "");
}

std::expected<Resolved, Problem> read(const Binding& binding, const Context& context) {
  if (binding.is_json) return from_json_command(binding, context);
  Resolved out{.value = TRY(read_value(binding, context))};
  if (binding.ttl != 0) out.expires = ::time(nullptr) + binding.ttl;
  return out;
}

}  // namespace

std::expected<Resolved, Problem> resolve(const Binding& binding, const Context& context) {
  Resolved out = TRY(read(binding, context));
  const std::string_view value = out.value.view();
  if (value.empty()) {
    return refuse(format("the secret {} is empty", binding.name),
                  "an empty value is no secret: check where it comes from");
  }
  if (value.size() > longest_value)
    return refuse_read(format("the secret {}", binding.name), EFBIG);
  if (value.contains('\0')) {
    return refuse(format("the secret {} holds a NUL byte, which no variable can", binding.name),
                  "bind a text: encode the value, for example with base64");
  }
  if (out.expires != 0 && out.expires <= ::time(nullptr)) {
    return refuse(format("the secret {} has expired already", binding.name),
                  "compare the clock of this host with that of the service");
  }
  return out;
}

}  // namespace capgate::secrets
