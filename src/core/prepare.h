// From a manifest as it was read to its policy: what every front end does, in this order.
//
//   const Manifest manifest = TRY(parse_manifest(document, bindings));
//   find_binding_mistake(bindings, manifest, "--set ")      a name that nothing uses
//   const Policy policy = TRY(make_policy(manifest, {.tool = "search_code", .seal = true}));
//   check_assertions(policy, manifest, validators)          core/validators.h
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/grammar.h"
#include "core/manifest.h"
#include "core/policy.h"

namespace capgate::core {

// A mistake in what the caller gave beside the manifest.
struct BindingMistake {
  std::string message;
  std::string help;
};

// The first binding that no capability uses, or that is not what capgate itself reads under its
// name: HOME and XDG_RUNTIME_DIR are one absolute path. `option` is how the caller spells it.
[[nodiscard]] std::optional<BindingMistake> find_binding_mistake(const Bindings& bindings,
                                                                 const Manifest& manifest,
                                                                 std::string_view option);

// Of HOME or XDG_RUNTIME_DIR; empty when it is not bound.
[[nodiscard]] std::string host_path(const Bindings& bindings, std::string_view name);

struct Choice {
  std::optional<std::string_view> tool = {};  // only serverCapabilities and this tool
  bool seal = false;                          // as if the manifest said so
};

// Seals what is asked for, checks what is sealed, and unites what is chosen.
[[nodiscard]] Checked<Policy> make_policy(Manifest& manifest, const Choice& choice);

}  // namespace capgate::core
