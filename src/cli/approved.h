// Is what is going to run what was approved? Nothing approved, nothing asked: then a run costs one
// look for a file.
#pragma once

#include <expected>

#include "cli/options.h"
#include "cli/profile.h"
#include "clients/store.h"

namespace capgate::cli {

inline constexpr Option require_approval_option{
    .name = "--require-approval", .help = "refuse also what you never approved (capgate approve)"};

// The user's own record, then --locked, then the capgate.lock beside a project's file. A difference
// is said with everything that changed. With -m or --allow the policy is the caller's own words,
// and only --locked and --require-approval have it compared.
[[nodiscard]] std::expected<void, int> check_approved(const Arguments& arguments,
                                                      ChosenPolicy& chosen, Output& output);

// Every byte of an installed package is as it was installed. What was read once and has not been
// touched since, by the kernel's own times, is not read again.
[[nodiscard]] clients::Stored<void> check_package_bytes(const clients::LockedPackage& locked);

}  // namespace capgate::cli
