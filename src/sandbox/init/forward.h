// capgate-init forward: the way out of a sandbox that another engine made (docs/egress.md).
//
//   capgate-init forward [--socket PATH] [--port N] [--unix-sockets] [--no-processes] -- COMMAND
//
// It listens at the sandbox's loopback, runs COMMAND with variables that name this port as its
// proxy, and copies bytes between it and the socket of `capgate egress`, which decides. It looks at
// none of them. It may be pid 1.
#pragma once

#include <initializer_list>

#include "sandbox/init/raw.h"

namespace capgate::sandbox::init {

struct Forward {
  const char* socket = nullptr;
  const char* port = "3128";
  bool allows_unix_sockets = false;
  bool allows_processes = true;
  char** command = nullptr;
  char** environment = nullptr;
};

// Everything from the words of the command line on; `stack` is what the kernel left there.
[[noreturn]] void forward(long* stack);

// The child: variables, the filter, COMMAND (forward_command.cc).
[[noreturn]] void run_command(const Forward& orders);

// The parent: never returns before the child has ended, and passes its status on (forward_loop.cc).
struct Carried {
  const Forward& orders;
  long listener;
  long command;  // its process
};
[[noreturn]] void carry(const Carried& carried);

// Leaves this process what its loop calls, and `command` to signal (forward_confine.cc).
long confine_forwarder(long command);

// A new connection to the broker; negative is an errno.
long connect_to_broker(const char* path);

// For people, on stderr. Only before the command runs: stderr is its own.
[[noreturn]] void give_up(long status, std::initializer_list<const char*> words);
const char* describe_error(long error);  // of a negative result

inline std::size_t length_of(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}
// True if `text` begins with `start`; `rest` is what follows.
inline bool begins(const char* text, const char* start, const char** rest) {
  for (; *start != '\0'; ++start, ++text) {
    if (*text != *start) return false;
  }
  *rest = text;
  return true;
}
inline bool is_same(const char* text, const char* other) {
  const char* rest = nullptr;
  return begins(text, other, &rest) && *rest == '\0';
}
// Returns the end of the copy, where a NUL is.
inline char* append(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  *to = '\0';
  return to;
}

}  // namespace capgate::sandbox::init
