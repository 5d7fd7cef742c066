// Renews secrets that expire, for a broker that can start no program any more: a small process of
// its own, forked by the supervisor before the broker starts, that lives as long as the sandbox.
//
//   Renewer renewer = TRY(start_renewer(bindings, context));    // in the supervisor
//   ... renewer.channel becomes descriptor wire::renewal_fd of each broker ...
//
//   broker                          renewer
//     Request{name}                 runs the command, without a shell, for at most 30 s
//                                   Reply{ok, expires, size} + the value; or ok = 0
//
// SOCK_SEQPACKET, one message each. The renewer runs only what was bound at launch: a message names
// one of the bindings or is ignored. It holds no value longer than its answer, is not dumpable, and
// ends when the last end of the channel is closed or the supervisor dies.
#pragma once

#include <cstdint>
#include <expected>
#include <vector>

#include "secrets/provider.h"
#include "sys/fd.h"

namespace capgate::secrets {

inline constexpr std::size_t longest_name = 255;

struct RenewalRequest {
  char name[longest_name + 1] = {};  // NUL-terminated
};

struct RenewalReply {
  char name[longest_name + 1] = {};
  std::uint32_t is_renewed = 0;
  std::uint32_t size = 0;
  std::int64_t expires = 0;  // Unix seconds
  // followed by `size` bytes of the value
};

struct Renewer {
  sys::Fd channel;  // the broker's end
  sys::Fd process;  // pidfd
  // Ends the process and reaps it.
  void end();
};

[[nodiscard]] std::expected<Renewer, Problem> start_renewer(const std::vector<Binding>& bindings,
                                                            const Context& context);

}  // namespace capgate::secrets
