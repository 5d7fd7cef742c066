// The entries of a capgate.yaml as servers that `capgate diff` compares: each is the manifest that
// it stands for, and what runs it.
//
// Manifests that it names are read beside it: of a git revision from the same revision. ~ and the
// file's own directory stand for themselves (${HOME}, ${CONFIG_DIR}), so that a file is the same
// wherever it lies.
#pragma once

#include "cli/diff_sources.h"
#include "review/diff_shown.h"

namespace capgate::cli {

[[nodiscard]] std::expected<std::vector<DiffServer>, int> config_servers(
    const ReadSource& source, const text::Document& document, const Arguments& arguments,
    core::Symbols& symbols, Output& output);

// What runs with the permissions, and what is done for it outside of them: what starts a program
// out here or ends the confinement is wider, another program differs.
void add_entry_parts(const DiffServer* before, const DiffServer* after, review::ShownServer& out);

}  // namespace capgate::cli
