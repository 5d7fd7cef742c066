// The secrets of one run: resolved once, before anything is bound, outside the sandbox.
//
//   Secrets secrets = TRY(resolve_secrets(plan, {.bindings = bindings}, launcher));
//   name_secrets(bound, secrets);       placeholders, and the names of what the server holds
//   write_orders(bound, {.injected = secrets.injected});
//   secrets.injected.clear();           once the server's process has them
//
// Values are nowhere but here: not in the Plan, not in the bound plan, not in a report.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lower/plan.h"
#include "sandbox/bind.h"
#include "secrets/provider.h"
#include "secrets/secret.h"

namespace capgate::sandbox {

// Goes into the server's environment.
struct InjectedSecret {
  std::string name;
  secrets::Secret value;
};

// Goes to the broker; the server's environment holds the placeholder.
struct SealedSecret {
  std::string name;
  std::string placeholder;
  secrets::Secret value;
  std::int64_t expires = 0;  // Unix seconds; 0: never
};

struct Secrets {
  std::vector<InjectedSecret> injected;   // in the order of plan.env_inject
  std::vector<SealedSecret> sealed;       // in the order of plan.seals
  std::vector<secrets::Binding> renewed;  // of sealed ones that expire
  std::vector<std::string> notes;         // what the user should know
};

struct SecretsWanted {
  std::vector<secrets::Binding>
      bindings;  // --secret; a name without one is the launcher's variable
  // Nothing is started or read but the launcher's variables; what is missing stays empty.
  bool dry_run = false;
};

// Whether the plan has any: then this process must not be looked into from here on.
[[nodiscard]] bool has_secrets(const lower::Plan& plan);

// What was taken from the launcher's environment is wiped there and in this process's own, unless
// something else is declared to have it, too.
[[nodiscard]] std::expected<Secrets, Refusal> resolve_secrets(const lower::Plan& plan,
                                                              const SecretsWanted& wanted,
                                                              Launcher& launcher);

// What every provider is asked with; it refers to the launcher's environment.
[[nodiscard]] secrets::Context secrets_context(const lower::Plan& plan, const Launcher& launcher);

// In place of what the caller's variables of these names say.
void name_secrets(Bound& bound, const Secrets& secrets);

}  // namespace capgate::sandbox
