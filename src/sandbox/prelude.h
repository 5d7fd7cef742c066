// What comes before the sandbox, whichever engine makes it: the caller is looked at, its secrets
// are resolved, and nobody can look into this process any more.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "sandbox/bind.h"
#include "sandbox/host_path.h"
#include "sandbox/secrets.h"
#include "sandbox/session.h"
#include "sys/fd.h"

namespace capgate::sandbox {

// To the person at stderr, if somebody reads it.
void say(std::string_view text);
// Says why nothing was started, also to a client that waits for an answer. The exit code.
[[nodiscard]] int refuse_to_start(const Refusal& refusal);

// A file to write, or "-" for stderr.
[[nodiscard]] std::expected<sys::Fd, Refusal> open_output(const std::string& path);

struct Prepared {
  Launcher launcher;  // of the session's environment, which it takes over
  Secrets secrets;
};
[[nodiscard]] std::expected<Prepared, Refusal> prepare(Session& session);

}  // namespace capgate::sandbox
