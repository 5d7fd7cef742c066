// A file that is put in its place as a whole: the old one or the new one, never a part.
//
//   const Sys<void> done = put_file("capgate.lock", text, {.mode = 0666});
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "sys/error.h"

namespace capgate::sys {

struct PutFile {
  mode_t mode = 0600;    // less the umask
  bool replaces = true;  // false: a file that exists by now is an error (EEXIST) and stays
};

// It is written beside, FILE.new-PID, and then gets its name. What a killed process of this number
// left there is removed. A link at FILE is replaced, not followed.
[[nodiscard]] Sys<void> put_file(const std::string& file, std::string_view text, PutFile how);

}  // namespace capgate::sys
