// Which assertions the host verifies, and how: --validators FILE.
//
//   {"validators": {"postgres.read_only_txn": "the database role has no write grants"}}
//
// With such a file, an assertion that it does not list is an error: a promise that nobody keeps.
// Those that capgate itself keeps (core/built_in.h) need no entry.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/manifest.h"
#include "core/policy.h"
#include "text/document.h"

namespace capgate::core {

// Assertion id -> how it is verified. None: no file was given, assertions are metadata.
using Validators = std::optional<std::map<std::string, std::string, std::less<>>>;

[[nodiscard]] Checked<Validators> parse_validators(const text::Document& document);

// How the assertion is verified, by capgate or by the host; empty if nothing says so.
[[nodiscard]] std::string_view validator_of(const AssertCapability& assertion,
                                            const Validators& validators);

// One ASSERT_UNRECOGNIZED for each assertion that no validator covers.
[[nodiscard]] Diagnostics check_assertions(const Policy& policy, const Manifest& manifest,
                                           const Validators& validators);

}  // namespace capgate::core
