// The program that every variant starts. Without arguments it ends at once; with any it behaves as
// an idle MCP server does: it says one byte when it runs, and ends when its stdin does.
#include "raw.h"

void run(long* stack) {
  const long argument_count = stack[0];
  if (argument_count > 1) {
    char byte = '.';
    raw_call(__NR_write, 1, (long)&byte, 1, 0);
    while (raw_call(__NR_read, 0, (long)&byte, 1, 0) > 0) {
    }
  }
  leave(0);
}
