// Any bytes at all: a lock is read and comes back the same from its own print, or is refused with a
// reason that can be shown.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "base/text.h"
#include "clients/store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace capgate;
  const auto lock = clients::parse_lock(std::string(reinterpret_cast<const char*>(data), size));
  if (!lock) {
    CAPGATE_ASSERT(!lock.error().message.empty() && !lock.error().help.empty());
    CAPGATE_ASSERT(escape_for_terminal(lock.error().message) == lock.error().message);
    return 0;
  }
  const auto again = clients::parse_lock(clients::print(*lock));
  CAPGATE_ASSERT(again.has_value() && *again == *lock);
  const clients::Store store{.base = "/store"};
  for (const clients::LockedPackage& locked : lock->packages) {
    const std::string place = store.directory_of(locked);
    CAPGATE_ASSERT(place.starts_with("/store/packages/") && !place.contains("/../"));
    CAPGATE_ASSERT(clients::find_locked(*lock, locked.package) == &locked);
  }
  return 0;
}
