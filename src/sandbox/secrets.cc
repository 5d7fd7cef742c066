#include "sandbox/secrets.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "secrets/placeholder.h"
#include "secrets/sealable.h"

namespace capgate::sandbox {
namespace {

using secrets::Binding;
using secrets::Resolved;
using secrets::Secret;

std::unexpected<Refusal> refuse(secrets::Problem problem) {
  return std::unexpected(
      Refusal{.message = std::move(problem.message), .help = std::move(problem.help)});
}

Binding binding_of(const std::string& name, const std::vector<Binding>& bindings) {
  const auto found = std::ranges::find(bindings, name, &Binding::name);
  if (found != bindings.end()) return *found;
  return {.name = name, .reference = name};
}

std::expected<std::string, Refusal> random_placeholder(std::string_view value) {
  std::vector<std::uint8_t> random(64 + value.size());
  std::size_t size = 0;
  while (size < random.size()) {
    const ssize_t got = ::getrandom(random.data() + size, random.size() - size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return std::unexpected(Refusal{.message = "no random numbers", .help = "see capgate doctor"});
    }
    size += static_cast<std::size_t>(got);
  }
  return secrets::make_placeholder(value, random);
}

class Resolver {
 public:
  Resolver(const lower::Plan& plan, const SecretsWanted& wanted, const Launcher& launcher)
      : wanted_(wanted), context_(secrets_context(plan, launcher)) {}

  std::expected<void, Refusal> inject(const std::string& name) {
    const Binding binding = binding_of(name, wanted_.bindings);
    std::optional<Resolved> value = TRY(resolve(binding));
    if (binding.expires()) {
      out.notes.push_back(
          format("{} expires and cannot be renewed: the server holds its value. Sealed "
                 "(env:inject:{}?to=HOST:PORT) it is renewed",
                 name, name));
    }
    out.injected.push_back({.name = name, .value = value ? std::move(value->value) : Secret()});
    return {};
  }

  std::expected<void, Refusal> seal(const std::string& name) {
    const Binding binding = binding_of(name, wanted_.bindings);
    std::optional<Resolved> value = TRY(resolve(binding));
    SealedSecret sealed{.name = name, .placeholder = {}, .value = {}};
    if (value) {
      if (auto problem = secrets::why_not_sealable(name, value->value.view())) {
        return refuse(*std::move(problem));
      }
      sealed.placeholder = TRY(random_placeholder(value->value.view()));
      sealed.value = std::move(value->value);
      sealed.expires = value->expires;
    }
    out.sealed.push_back(std::move(sealed));
    if (binding.expires()) out.renewed.push_back(binding);
    return {};
  }

  Secrets out;

 private:
  // None: a dry run does not ask.
  std::expected<std::optional<Resolved>, Refusal> resolve(const Binding& binding) {
    if (wanted_.dry_run && binding.provider != Binding::Provider::env) return std::nullopt;
    auto value = secrets::resolve(binding, context_);
    if (!value) return refuse(std::move(value).error());
    return *std::move(value);
  }

  const SecretsWanted& wanted_;
  secrets::Context context_;
};

// Where the Plan says something about this variable of the launcher, too.
bool is_used_otherwise(const std::string& name, const lower::Plan& plan) {
  return contains(plan.env_read, name) ||
         std::ranges::any_of(plan.holes, [&](const auto& hole) { return hole.name == name; });
}

void forget_variable(const std::string& name, Launcher& launcher) {
  const std::string start = name + "=";
  std::erase_if(launcher.environment, [&](std::string& entry) {
    if (!entry.starts_with(start)) return false;
    secrets::wipe(entry);
    return true;
  });
  // Where /proc shows it for as long as this process lives.
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(start)) continue;
    char* const value = *entry + start.size();
    secrets::wipe(std::span(value, std::strlen(value)));
  }
}

}  // namespace

bool has_secrets(const lower::Plan& plan) {
  return !plan.env_inject.empty() || !plan.seals.empty();
}

secrets::Context secrets_context(const lower::Plan& plan, const Launcher& launcher) {
  const std::string self = read_link(AT_FDCWD, "/proc/self/exe");
  return {.environment = launcher.environment,
          .server = plan.server,
          .store_program = format("{}/capgate-store", parent_of(self))};
}

std::expected<Secrets, Refusal> resolve_secrets(const lower::Plan& plan,
                                                const SecretsWanted& wanted, Launcher& launcher) {
  Resolver resolver(plan, wanted, launcher);
  std::vector<std::string> names = plan.env_inject;
  for (const std::string& name : plan.env_inject) {
    if (auto done = resolver.inject(name); !done) return std::unexpected(std::move(done).error());
  }
  for (const lower::PlanSeal& seal : plan.seals) {
    names.push_back(seal.env.name);
    if (auto done = resolver.seal(seal.env.name); !done) {
      return std::unexpected(std::move(done).error());
    }
  }
  for (const std::string& name : names) {
    const Binding binding = binding_of(name, wanted.bindings);
    const bool is_variable = binding.provider == Binding::Provider::env;
    if (is_variable && !is_used_otherwise(binding.reference, plan)) {
      forget_variable(binding.reference, launcher);
    }
  }
  return std::move(resolver.out);
}

void name_secrets(Bound& bound, const Secrets& secrets) {
  const auto forget = [&](const std::string& name) {
    std::erase_if(bound.environment,
                  [&](const std::string& entry) { return entry.starts_with(name + "="); });
  };
  for (const InjectedSecret& secret : secrets.injected) {
    forget(secret.name);
    bound.injected.push_back(secret.name);
  }
  for (const SealedSecret& secret : secrets.sealed) {
    forget(secret.name);
    bound.environment.push_back(format("{}={}", secret.name, secret.placeholder));
  }
  bound.notes.insert(bound.notes.end(), secrets.notes.begin(), secrets.notes.end());
}

}  // namespace capgate::sandbox
