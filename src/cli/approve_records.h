// What `capgate approve` keeps: the user's records, shown and forgotten, and a project's lock.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "cli/options.h"
#include "clients/pin.h"

namespace capgate::cli {

// Says why, and returns the exit code.
int cannot(std::string_view message, Output& output);

int list_approvals(const Arguments& arguments, Output& output);   // --list
int revoke_approval(const Arguments& arguments, Output& output);  // --revoke NAME

// The other servers of the lock stay as they are. On failure everything is said.
[[nodiscard]] std::expected<void, int> keep_in_lock(const clients::Pin& pin,
                                                    const std::string& file, Output& output);

}  // namespace capgate::cli
