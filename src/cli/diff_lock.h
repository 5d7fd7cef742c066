// The entries of a capgate.lock as servers that `capgate diff` compares: what was approved of each,
// and beside the permissions its program, its package and what its tools say.
#pragma once

#include "cli/diff_sources.h"
#include "review/diff_shown.h"

namespace capgate::cli {

[[nodiscard]] bool is_lock(const text::Document& document);

// Strictly (clients::parse_pins): what no `approve` wrote is an error.
[[nodiscard]] std::expected<std::vector<DiffServer>, int> lock_servers(const ReadSource& source,
                                                                       const Arguments& arguments,
                                                                       core::Symbols& symbols,
                                                                       Output& output);

// What is pinned of it besides: no permission, but another program, or other words for a model.
void add_lock_parts(const DiffServer* before, const DiffServer* after, review::ShownServer& out);

}  // namespace capgate::cli
