// The least that an init can be: it starts its arguments as a child, waits, and passes the status
// on. `floor --init` puts it where a real launch has its own, to show what a second exec costs.
#include "raw.h"

enum { sigchld = 17, status_not_started = 127 };

void run(long* stack) {
  char** const arguments = (char**)(stack + 2);  // after argc and argv[0]
  char** const environment = (char**)(stack + 1 + stack[0] + 1);

  // Neither processor differs where only flags are given.
  const long child = raw_call(__NR_clone, sigchld, 0, 0, 0);
  if (child == 0) {
    raw_call(__NR_execve, (long)arguments[0], (long)arguments, (long)environment, 0);
    leave(status_not_started);
  }

  int status = 0;
  if (child < 0 || raw_call(__NR_wait4, child, (long)&status, 0, 0) != child) leave(1);
  leave((status & 0x7f) != 0 ? 128 + (status & 0x7f) : (status >> 8) & 0xff);
}
