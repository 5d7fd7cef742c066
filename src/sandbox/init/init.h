// capgate-init: the only trusted code inside the sandbox, as one list of steps (init.cc).
//
// A static program without a library: it starts in a tenth of a millisecond, and nothing runs in it
// that is not written here. It is pid 1: it builds the mounts, forks the server's process, reaps,
// and ends when the supervisor goes away.
#pragma once

#include "sandbox/init/raw.h"
#include "sandbox/orders.h"

namespace capgate::sandbox::init {

using orders::Header;
using orders::List;
using orders::Step;
using orders::Text;

// The block, mapped read-only.
extern const Header* header;

template <typename T>
const T* items(const List& list) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(header) + list.offset);
}
inline const char* text(const Text& value) {
  return reinterpret_cast<const char*>(header) + value.offset;
}

// Tells the supervisor which step failed, on what, and ends this process: the server never runs.
[[noreturn]] void fail(Step step, long error, std::uint32_t index = 0);

// The result of a system call that must not fail.
inline long must(Step step, long result, std::uint32_t index = 0) {
  if (result < 0) fail(step, -result, index);
  return result;
}

// Says that a step begins. Tests make one fail here.
void begin(Step step);

// Memory that init shares with the server's process: the server must not run before init has
// dropped everything that it could be robbed of.
extern volatile std::uint32_t* init_is_ready;

// Made before the mounts, which add their own rules; the server's process adds the rest and is the
// only one that it restricts.
extern int landlock_ruleset;
void make_landlock_ruleset();                     // server.cc
long allow_below(long fd, std::uint64_t access);  // server.cc

long fork();  // init.cc

// One message with one descriptor; negative is an errno.
struct Bytes {
  const void* data;
  std::size_t size;
};
long send_descriptor(int to, Bytes bytes, long descriptor, long flags);

void bound_buffers();               // network.cc
void make_network();                // network.cc
void answer_inner_request();        // network.cc
void build_mounts();                // mounts.cc
[[noreturn]] void become_server();  // server.cc

}  // namespace capgate::sandbox::init
