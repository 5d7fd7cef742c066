#include "store/key_material.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"
#include "store/keyring.h"
#include "store/terminal.h"
#include "sys/fd.h"

namespace capgate::store {
namespace {

using secrets::Secret;

constexpr std::size_t least_passphrase = 8;
constexpr std::size_t least_key = 32;
constexpr std::size_t largest_key_file = 65536;

std::unexpected<Problem> refuse_file(const std::string& path, std::string_view why) {
  const std::string shown = escape_for_terminal(path);
  return unavailable(format("the key file {}: {}", shown, why),
                     "make one that is yours alone: (umask 077; head -c 32 /dev/urandom > PATH)");
}

std::string_view fault_of(const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return "it is no regular file";
  if (info.st_uid != ::geteuid()) return "it belongs to another user";
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) return "others can use it; chmod 600 it";
  return {};
}

}  // namespace

Outcome<Secret> ask_passphrase(Passphrase kind) {
  if (kind == Passphrase::known) return ask("The passphrase of the store");
  Secret first = TRY(ask("A new passphrase for the store"));
  if (first.view().size() < least_passphrase) {
    return unavailable(format("the passphrase is shorter than {} bytes", least_passphrase),
                       "take several words");
  }
  const Secret second = TRY(ask("The same again"));
  if (first.view() != second.view()) {
    return unavailable("the two passphrases differ", "try it again");
  }
  return first;
}

Outcome<Secret> read_key_file(const std::string& path) {
  const sys::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  struct stat info{};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
    return refuse_file(path, std::strerror(errno));
  }
  if (const std::string_view fault = fault_of(info); !fault.empty())
    return refuse_file(path, fault);
  auto bytes = Secret::room(largest_key_file + 1);
  if (!bytes) return std::unexpected(problem_of(Failure::memory));
  std::size_t size = 0;
  for (;;) {
    const ssize_t got =
        ::read(file.get(), bytes->bytes().data() + size, bytes->bytes().size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse_file(path, std::strerror(errno));
    size += static_cast<std::size_t>(got);
    if (got == 0 || size > largest_key_file) break;
  }
  if (size > largest_key_file) return refuse_file(path, "it is too large for a key");
  if (size < least_key) return refuse_file(path, "it has fewer than 32 bytes");
  bytes->shrink(size);
  return *std::move(bytes);
}

Outcome<KernelKey> kernel_key(const std::string& name, Absent absent) {
  auto found = TRY(find_kernel_key(name));
  if (found && found->view().size() < least_key) {
    return unavailable(format("the kernel's key {} has fewer than 32 bytes", quoted(name)),
                       "take another name; capgate makes a key where there is none");
  }
  if (found) return KernelKey{.bytes = *std::move(found)};
  if (absent == Absent::is_refused) {
    return unavailable(format("the kernel has no key {}", quoted(name)),
                       "load it again (keyctl padd user NAME @u); the kernel forgets its keys when "
                       "it boots");
  }
  auto made = random_key();
  if (!made) return std::unexpected(problem_of(made.error()));
  TRY(add_kernel_key(name, *made));
  return KernelKey{.bytes = *std::move(made), .is_made = true};
}

}  // namespace capgate::store
