// What the keeper's process does (keeper.h): waits for events and acts on them, in the sandbox's
// mount namespace. A path is looked up anew for each act, without links, since the server and the
// host change what lies below a grant.
//
//   Keeping(descriptors, watched).run(parent)     ends with the process
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "sandbox/keeper.h"
#include "sandbox/watched.h"
#include "sys/fd.h"

namespace capgate::sandbox {

class Keeping {
 public:
  struct Descriptors {
    int events = -1;
    int reports = -1;
    std::array<int, 2> covers = {-1, -1};  // an empty directory, an empty file
  };

  Keeping(const Descriptors& descriptors, Watched& watched);

  // As long as `parent` is there.
  [[noreturn]] void run(pid_t parent);

  // Tells why and ends the process.
  [[noreturn]] static void fail(int reports, std::string_view why,
                                Kept::Kind kind = Kept::Kind::failed);
  [[nodiscard]] static Kept read_report(std::string_view message);

 private:
  using Clock = std::chrono::steady_clock;

  // Outside of the sandbox, when it has ended, names are all that is left to look after.
  [[nodiscard]] bool mounts() const { return descriptors_.covers[0] >= 0; }
  [[nodiscard]] sys::Fd open(const std::string& path) const;
  void tell(Kept::Kind kind, const std::string& path, const std::string& name = {},
            const std::string& why = {}) const;
  [[noreturn]] void give_up(std::string_view what, const std::string& path) const;

  void look_at_everything();
  bool handle_events();
  void handle(int watch, std::uint32_t what, std::string_view name);
  void look_at(const WatchedDirectory& directory, const std::string& name);
  void look_into(const std::string& path, WatchedDirectory what);
  [[nodiscard]] bool is_left(const std::string& path, int fd);
  void appeared(const WatchedDirectory& directory, const std::string& name,
                const HeldNames::Child& child, int fd);

  void restore(const std::string& path, const HeldEntry& entry);
  void mount_ancestors(const std::string& path, const std::string& root) const;
  void pin(const std::string& path, std::uint64_t attributes) const;
  void cover(const std::string& path, const std::string& root) const;
  void attach(int source, int target, std::uint64_t attributes, const std::string& path) const;
  void check_gone(int target, const std::string& path) const;
  void set_aside(const WatchedDirectory& directory, const std::string& name,
                 const std::string& why) const;

  Descriptors descriptors_;
  Watched& watched_;
  sys::Fd root_;
  bool is_full_ = false;                              // no further directory is watched
  std::map<std::string, Clock::time_point> missing_;  // held entries that are gone, and since when
};

}  // namespace capgate::sandbox
