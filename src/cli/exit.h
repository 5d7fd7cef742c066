// Exit codes. Programs rely on them: docs/cli.md lists them for users.
#pragma once

namespace capgate::cli {

enum Exit : int {
  ok = 0,
  internal = 1,
  usage = 2,
  unreadable = 3,     // the input cannot be read, or is not JSON or YAML
  compile_error = 4,  // the input says something that is refused
  widened = 5,        // diff: more is granted; check: findings
  unenforceable = 6,  // this machine cannot enforce it, or cannot test it
  denied = 7,         // why: the policy does not allow it
  integrity = 8,      // what was written is not what is there
};

}  // namespace capgate::cli
