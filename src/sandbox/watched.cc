#include "sandbox/watched.h"

#include <sys/inotify.h>

#include <cerrno>

namespace capgate::sandbox {
namespace {

constexpr std::uint32_t names_change = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
// In git's directories the contents count, too.
constexpr std::uint32_t contents_change = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB;

}  // namespace

std::optional<int> Watched::watch(const char* directory, WatchedDirectory what) {
  if (events.get() < 0) events = sys::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (events.get() < 0) return errno;
  std::uint32_t wanted = names_change | IN_ONLYDIR;
  if (what.is_hooks || names.is_git(what.role)) wanted |= contents_change;
  const int watch = ::inotify_add_watch(events.get(), directory, wanted);
  if (watch < 0) return errno;
  directories.insert_or_assign(watch, std::move(what));
  return std::nullopt;
}

}  // namespace capgate::sandbox
