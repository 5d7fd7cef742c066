// The attempts themselves, each in a throw-away process with a deadline. Nothing stays behind.
//
//   const std::vector<Answer> answers = try_sandbox({.uid = 65000, .gid = 65000});
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/doctor.h"
#include "sandbox/doctor_files.h"

namespace capgate::sandbox {

struct Answer {
  Check check = Check::namespaces;
  std::int32_t err = 0;
  std::uint32_t value = 0;  // landlock: the ABI; cgroup: the place; any_address: 1 with IPv6
};

// Whom root becomes before it tries anything; 0: stay who you are.
struct Ids {
  uid_t uid = 0;
  gid_t gid = 0;
};

// From `namespaces` to `pivot`: ends at the first failure, or where the child no longer answers.
// `any_address` and `redirect` come after `loopback`; their failure ends nothing.
[[nodiscard]] std::vector<Answer> try_sandbox(Ids leave_root_for);
[[nodiscard]] std::vector<Answer> try_landlock();
[[nodiscard]] std::vector<Answer> try_seccomp();
[[nodiscard]] std::vector<Answer> try_listener();
[[nodiscard]] std::vector<Answer> try_memfd_exec();
// Makes and removes one group at each place.
[[nodiscard]] std::vector<Answer> try_cgroups(const std::vector<CgroupPlace>& places);

// Makes and forgets a nameless file in the directory, or in the nearest one above it that exists.
[[nodiscard]] std::vector<Answer> try_audit(const std::string& directory);

// Locks what a run with a sealed secret locks in one process.
[[nodiscard]] std::vector<Answer> try_locked_memory(Ids leave_root_for);

// The kernel's error for a netlink message; 0: it was carried out. Safe after fork.
[[nodiscard]] int carry_out(int protocol, std::string_view bytes);

// A child that does `work` and answers by `tell`; what it said before the deadline.
class Reporter {
 public:
  explicit Reporter(int fd) : fd_(fd) {}
  void tell(Answer answer) const;

 private:
  int fd_;
};
using Work = void (*)(const Reporter& reporter, const void* argument);
[[nodiscard]] std::vector<Answer> in_a_child(Work work, const void* argument, int milliseconds);

}  // namespace capgate::sandbox
