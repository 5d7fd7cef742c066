// The three descriptors that capgate was started with, which become the server's own.
#pragma once

#include <expected>
#include <string>

#include "sandbox/host_path.h"

namespace capgate::sandbox {

// Pipes, files, terminals, /dev/null and unnamed stream sockets pass; anything else is refused: a
// directory or a named socket would be a way out of the sandbox.
[[nodiscard]] std::expected<void, Refusal> check_stdio();

// When capgate refuses and a client waits on a pipe or socket: each JSON-RPC request that arrives
// within two seconds is answered with the reason, because MCP clients hide stderr.
void answer_requests(const Refusal& refusal);

// The two decisions above, for tests: whether the server may inherit a descriptor, and the answer
// to one line of input, which is empty if that is no request.
[[nodiscard]] bool may_pass(int fd);
[[nodiscard]] std::string answer_to(std::string line, const Refusal& refusal);

}  // namespace capgate::sandbox
