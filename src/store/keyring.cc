#include "store/keyring.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/text.h"

namespace capgate::store {
namespace {

using secrets::Secret;

constexpr std::size_t largest_key = 32767;  // of the kernel's "user" keys

std::unexpected<Problem> refuse(const std::string& name, int error) {
  return unavailable(format("the kernel's key {}: {}", quoted(name), std::strerror(error)),
                     "see keyctl show @u; where the kernel's keys are not allowed (as in "
                     "containers), use --key file:PATH");
}

bool is_absent(int error) {
  return error == ENOKEY || error == EKEYEXPIRED || error == EKEYREVOKED;
}

}  // namespace

Outcome<std::optional<Secret>> find_kernel_key(const std::string& name) {
  for (const int ring : {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_KEYRING}) {
    // Linked to this process's own keyring: only who possesses a key may read it.
    const long key =
        ::syscall(SYS_keyctl, KEYCTL_SEARCH, ring, "user", name.c_str(), KEY_SPEC_PROCESS_KEYRING);
    // A session that was begun by another user is no reason to give up.
    const bool is_session = ring == KEY_SPEC_SESSION_KEYRING;
    if (key < 0 && (is_absent(errno) || (is_session && errno == EACCES))) continue;
    if (key < 0) return refuse(name, errno);
    auto bytes = Secret::room(largest_key);
    if (!bytes) return refuse(name, ENOMEM);
    const long size =
        ::syscall(SYS_keyctl, KEYCTL_READ, key, bytes->bytes().data(), bytes->bytes().size());
    if (size < 0) return refuse(name, errno);
    if (static_cast<std::size_t>(size) > largest_key) return refuse(name, E2BIG);
    bytes->shrink(static_cast<std::size_t>(size));
    return bytes;
  }
  return std::optional<Secret>();
}

Outcome<void> add_kernel_key(const std::string& name, const Secret& bytes) {
  const std::string_view payload = bytes.view();
  const long key = ::syscall(SYS_add_key, "user", name.c_str(), payload.data(), payload.size(),
                             KEY_SPEC_USER_KEYRING);
  if (key < 0) return refuse(name, errno);
  return {};
}

}  // namespace capgate::store
