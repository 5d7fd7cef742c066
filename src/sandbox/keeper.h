// The keeper: a process of ours that keeps hidden and read-only entries of granted directories as
// they are while the server runs.
//
// A cover or a read-only mount lies on an entry of the host's. When the host puts another file
// there (git and editors replace files by renaming), the mount falls off, in every namespace. The
// keeper waits for that and mounts it again. What appears under a name that was not there is
// hidden, or set aside: renamed, never deleted, to a name that nothing runs.
//
//   Keeper keeper(bound.watched, user);
//   keeper.take_cover(0, fd); keeper.take_cover(1, fd);    from init, when the mounts are made
//   poll(keeper.fd()) ... keeper.step(init)                what it did, or why the sandbox must
//   stop
//
// It is in the sandbox's user and mount namespaces, so that it can mount there, and outside of its
// pid namespace, so that the server can neither see nor signal it. It has the sandbox's user id and
// CAP_SYS_ADMIN there, no other capability and no descriptor but those that it needs. It starts
// with the sandbox where something is held from the start, otherwise with the first event.
#pragma once

#include <sys/types.h>

#include <array>
#include <expected>
#include <string>
#include <vector>

#include "sandbox/launch.h"
#include "sandbox/watched.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// What the keeper did, as it tells it.
struct Kept {
  enum class Kind : unsigned char {
    hidden_again,
    read_only_again,
    hidden,      // something that appeared
    set_aside,   // `name` is what it is called now, `why` what is wrong with its contents
    unwatched,   // a new directory that is one too many
    not_inside,  // `why`; the keeper has ended before it did anything
    failed,      // `why`; the keeper has ended
  };
  Kind kind = Kind::failed;
  std::string path;
  std::string name;
  std::string why;
};

class Keeper {
 public:
  Keeper(Watched& watched, const HostUser& user) : watched_(watched), user_(user) {}
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  Keeper(Keeper&&) = delete;
  Keeper& operator=(Keeper&&) = delete;
  ~Keeper() { kill(); }

  // What a cover is made of: 0 an empty directory, 1 an empty file, both in the sandbox.
  void take_cover(std::size_t index, sys::Fd cover);

  // To be polled for input; -1: nothing to wait for, or not yet.
  [[nodiscard]] int fd() const;

  // Something is held from the start, and the keeper can be started.
  [[nodiscard]] bool is_due() const { return pid_ < 0 && is_ready() && !watched_.held.empty(); }

  // Starts the keeper if it does not run yet. `init` is the pidfd of the sandbox's init. An error
  // is why the sandbox cannot go on.
  [[nodiscard]] std::expected<std::vector<Kept>, std::string> step(int init);

  // When the sandbox has ended: what appeared last is still set aside. Also without a keeper, which
  // is started outside then.
  [[nodiscard]] std::expected<std::vector<Kept>, std::string> finish();

 private:
  [[nodiscard]] bool is_ready() const;
  // Without an `init` it stays outside, where it mounts nothing.
  [[nodiscard]] std::expected<void, std::string> start(int init);
  [[nodiscard]] std::expected<std::vector<Kept>, std::string> read_reports();
  [[nodiscard]] std::expected<void, std::string> finish_process(std::vector<Kept>& out);
  void kill();

  Watched& watched_;
  const HostUser& user_;
  std::array<sys::Fd, 2> covers_;
  sys::Fd reports_;
  pid_t pid_ = -1;
  bool is_outside_ = false;  // it could not enter the sandbox
};

// One line for the user.
[[nodiscard]] std::string print(const Kept& kept);

}  // namespace capgate::sandbox
