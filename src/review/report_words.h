// Sentences of a report: the worst that can happen, and what the box does not stop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/manifest.h"
#include "core/policy.h"
#include "review/report.h"

namespace capgate::review {

// "At worst it can send everything below /workspace to api.github.com:443, and nothing else."
[[nodiscard]] Sentence verdict_of(const core::Policy& policy, const Report& report);

[[nodiscard]] std::vector<std::string> what_is_not_stopped(const core::Manifest& manifest,
                                                           const core::Policy& policy);

// What carries the policy out: "capgate’s own engine", "docker". A view of the report.
[[nodiscard]] std::string_view engine_words(const Report& report);

// At most `most` characters, the middle replaced by one "…": both ends of a path or a host tell
// more than its middle. Never inside a character.
[[nodiscard]] std::string elide(std::string_view text, std::size_t most);

}  // namespace capgate::review
