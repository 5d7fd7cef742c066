// What the parts of the probe share. An attempt returns 0 when it got through, else the errno that
// stopped it, and may say more in `detail`.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int attempt_fn(const char* arg);

struct attempt {
  const char* name;
  attempt_fn* run;
};

extern char detail[4096];
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Each list ends with an entry without a name.
extern const struct attempt file_attempts[];
extern const struct attempt socket_attempts[];
extern const struct attempt call_attempts[];
extern const struct attempt process_attempts[];
extern const struct attempt limit_attempts[];
extern const struct attempt life_attempts[];
extern const struct attempt race_attempts[];

// From now on this call of this process and all that it starts answers with `error`.
void take_away(long number, int error);

// errno of a failed call, 0 of one that worked.
int failed(long result);
// Reads at most size - 1 bytes of a file and ends them with a NUL. Negative: -errno.
long slurp(const char* path, char* buffer, size_t size);
// A pid given as a number, "self", "parent", or "child": a new process that only sleeps. Negative:
// -errno. The caller ends a child with `release`.
int target(const char* arg);
void release(const char* arg, int pid);
