// The option of `run` that says where secrets come from.
#pragma once

#include <expected>
#include <vector>

#include "cli/options.h"
#include "lower/plan.h"
#include "secrets/provider.h"

namespace capgate::cli {

inline constexpr Option secret_option{
    .name = "--secret",
    .value = "NAME=PROVIDER:REF",
    .help = "take the value of env:inject:NAME from there, not from the variable NAME",
    .repeatable = true};

// The `secrets` of an entry of capgate.yaml: the same, and --secret replaces single names.
struct ConfiguredSecrets {
  std::vector<std::string> bindings = {};  // NAME=PROVIDER:REF
  std::string file = {};                   // where they stand
  // The policy is not the entry's own: what it does not inject is left out.
  bool only_declared = false;
};

// On failure everything is said in `output`, and the exit code is the error. No text that may be a
// value is said.
[[nodiscard]] std::expected<std::vector<secrets::Binding>, int> read_secret_options(
    const Arguments& arguments, const ConfiguredSecrets& configured, const lower::Plan& plan,
    Output& output);

}  // namespace capgate::cli
