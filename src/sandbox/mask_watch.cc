#include "sandbox/mask_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace capgate::sandbox {
namespace {

bool is_same(const Identity& a, const Identity& b) {
  return a.device == b.device && a.inode == b.inode && a.type == b.type;
}

}  // namespace

// Every directory from the entry up to the root of its grant: any of them can be moved away.
MaskWatch::MaskWatch(const std::vector<Masked>& masked, const std::vector<Masked>& ways)
    : masked_(masked), ways_(ways) {
  if (masked.empty()) return;
  events_ = sys::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  is_blind_ = events_.get() < 0;
  for (const Masked& entry : masked) {
    std::string directory = entry.path;
    while (directory.size() > entry.root.size() && !is_blind_) {
      directory.resize(directory.rfind('/'));
      constexpr std::uint32_t events =
          IN_MOVED_TO | IN_CREATE | IN_MOVED_FROM | IN_DELETE | IN_MOVE_SELF | IN_ONLYDIR;
      is_blind_ = ::inotify_add_watch(events_.get(), directory.c_str(), events) < 0;
    }
  }
}

std::string MaskWatch::replaced() {
  alignas(inotify_event) char ignored[4096];
  while (events_.get() >= 0 && ::read(events_.get(), ignored, sizeof(ignored)) > 0) {
  }
  const auto changed = std::ranges::find_if(masked_, [](const Masked& entry) {
    const auto now = identify(entry.path);
    return now ? !is_same(*now, entry.identity) : now.error() != ENOENT;
  });
  if (changed != masked_.end()) return changed->path;
  // A directory on the way that went away can come back as another one, which nothing watches.
  const auto moved = std::ranges::find_if(ways_, [](const Masked& way) {
    const auto now = identify(way.path);
    return !now || !is_same(*now, way.identity);
  });
  if (moved != ways_.end()) return moved->path;
  return is_blind_ ? masked_.front().path : std::string();
}

}  // namespace capgate::sandbox
