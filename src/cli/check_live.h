// check --live: the tools that a server lists now, held against what was approved and against its
// manifest.
#pragma once

#include <string>

#include "cli/options.h"

namespace capgate::cli {

inline constexpr Option live_option{
    .name = "--live", .help = "start the server and compare its tools with what was approved"};

// The operands are NAME of capgate.yaml, or FILE -- COMMAND. Exit code 8 where something differs
// from what was approved, 5 where only the manifest has other tools.
int check_live(const Arguments& arguments, Output& output);

// --locked without --live: the manifest of a file and its policy against the lock. Nothing is
// started, so neither its command nor its tools are compared. Exit code 8 where it differs.
int check_lock(const std::string& file, const Arguments& arguments, Output& output);

}  // namespace capgate::cli
