// Lowering to a firejail profile: `firejail --profile=capgate.profile COMMAND`, started by an
// ordinary user.
//
//   blacklist /*
//   whitelist /srv/data
//   read-only /srv/data
//
// A partial target. firejail has no network lists without root, keeps the caller's environment, and
// looks at no arguments of system calls. Tried with firejail 0.9.72 in tests/e2e.
#pragma once

#include "lower/artifact.h"
#include "lower/coverage.h"

namespace capgate::lower {

[[nodiscard]] Checked<Artifact> lower_to_firejail(const Input& input);

inline constexpr Coverage firejail_coverage{
    .fs = partly("whitelist; not below /etc, /run, /usr and /var/tmp, which it makes anew"),
    .connect = not_kept("the sandbox has no network"),
    .listen = not_kept("the sandbox has no network"),
    .exec = partly("with --program: private-bin; not which process starts what"),
    .env = not_kept("the caller's environment is kept"),
    .sealed = not_kept("only capgate's own broker keeps the value"),
    .ipc = partly("the server's own sockets and netlink; no socket of the host"),
    .clock = enforced("/etc/localtime in private-etc"),
    .limit = partly("files and time"),
    .assertion = enforced("carried as metadata"),
};

}  // namespace capgate::lower
