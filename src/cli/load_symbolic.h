// Like cli/load.h, for commands that compare or explain and never run: variables that nobody bound
// stand for themselves (core/symbolic.h), and --set still binds.
//
//   core::Symbols symbols;
//   const auto loaded = load_symbolic(arguments, {.manifest = "github.json"}, symbols, output);
//   symbols.show(print(capability))
#pragma once

#include "cli/load.h"
#include "core/symbolic.h"

namespace capgate::cli {

// A --set that this manifest does not use is no mistake here: another one may.
// See check_bindings.
[[nodiscard]] std::expected<Loaded, int> load_symbolic(const Arguments& arguments,
                                                       const Wanted& wanted, core::Symbols& symbols,
                                                       Output& output);

// A --set that none of the manifests uses, said in `output` as a usage error.
[[nodiscard]] std::expected<void, int> check_bindings(
    const Arguments& arguments, const std::vector<std::string>& used_variables, Output& output);

}  // namespace capgate::cli
