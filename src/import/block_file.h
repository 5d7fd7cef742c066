// What the files of Gatekit and Rampart share: a server with a command and a block `sandbox`.
#pragma once

#include <string>
#include <string_view>

#include "import/rules.h"
#include "text/document.h"

namespace capgate::imports {

// The capabilities of `server.sandbox`, and its notes; without a block, or with one that is not
// enabled, nothing is granted, and the report says what that means. True if there is a block.
bool read_block_of(Rules& in, text::Value server);

// A variable with a value: the caller's own only where the value says so, as ${NAME} or $NAME.
void read_variable(Rules& in, text::Member member);

// A list of words, or one text that is cut at its spaces.
void read_command_of(Rules& in, text::Value server, std::string_view key);

}  // namespace capgate::imports
