#include "cli/secret_places.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/text.h"
#include "cli/caller.h"
#include "cli/program_places.h"
#include "sandbox/host_path.h"

namespace capgate::cli {
namespace {

using sandbox::PolicyPlace;

std::string credential_file(const secrets::Binding& binding) {
  return format("{}/{}", variable("CREDENTIALS_DIRECTORY"), binding.reference);
}

class Collector {
 public:
  explicit Collector(const sandbox::Caller& caller) : caller_(caller) {}

  void add(const secrets::Binding& binding) {
    using enum secrets::Binding::Provider;
    switch (binding.provider) {
      case file: put(binding.reference, format("holds the secret {}", binding.name)); break;
      case cmd: add_command(binding); break;
      case systemd_credential:
        put(credential_file(binding), format("holds the secret {}", binding.name));
        break;
      case env:
      case keyring:
      case store: break;  // no file, or one of policy_places.h
    }
  }

  std::vector<PolicyPlace> take() && { return std::move(places_); }

 private:
  void put(std::string path, std::string role) {
    places_.push_back({.path = std::move(path), .role = std::move(role)});
  }

  void add_command(const secrets::Binding& binding) {
    const std::string runs = format("runs outside, for the secret {}", binding.name);
    std::ranges::move(program_places(binding.command, caller_, runs), std::back_inserter(places_));
    add_prefixes(binding.command, runs);
    for (std::size_t i = 1; i < binding.command.size(); ++i) {
      add_argument(binding.command[i],
                   format("is an argument of what runs outside, for the secret {}", binding.name));
    }
  }

  // The libraries around an interpreter: what is in them runs outside as well.
  void add_prefixes(const std::vector<std::string>& command, const std::string& role) {
    const auto program = sandbox::find_program(command, caller_, sandbox::Shebang::any);
    if (!program) return;
    for (const std::string& path : program->prefixes) put(path, role);
  }

  // "path", "--option=path", "@path", and what looks like one in the text of a `sh -c`.
  void add_argument(std::string_view argument, const std::string& role) {
    constexpr std::string_view separators = " \t\n;|&<>()$`\"'=@,:";
    if (is_path(argument)) put(std::string(argument), role);
    while (!argument.empty()) {
      const std::size_t end = argument.find_first_of(separators);
      const std::string_view part = argument.substr(0, end);
      if (is_path(part)) put(std::string(part), role);
      argument = end == std::string_view::npos ? "" : argument.substr(end + 1);
    }
  }

  // A word that only looks like a relative path, such as the `github/token` of `pass show`, is one
  // if something of that name is there.
  [[nodiscard]] bool is_path(std::string_view word) const {
    if (word.empty() || word == "/") return false;
    if (word.starts_with('/') || word.starts_with("./") || word.starts_with("../")) return true;
    return sandbox::identify(format("{}/{}", caller_.directory, word)).has_value();
  }

  const sandbox::Caller& caller_;
  std::vector<PolicyPlace> places_;
};

}  // namespace

std::vector<PolicyPlace> secret_places(const std::vector<secrets::Binding>& bindings,
                                       const sandbox::Caller& caller) {
  Collector collector(caller);
  for (const secrets::Binding& each : bindings) collector.add(each);
  return std::move(collector).take();
}

std::vector<PolicyPlace> sealed_files(const std::vector<secrets::Binding>& bindings,
                                      const lower::Plan& plan) {
  std::vector<PolicyPlace> out;
  using enum secrets::Binding::Provider;
  for (const lower::PlanSeal& seal : plan.seals) {
    const auto binding = std::ranges::find(bindings, seal.env.name, &secrets::Binding::name);
    if (binding == bindings.end()) continue;
    const std::string holds = format("holds the sealed secret {}", binding->name);
    if (binding->provider == file) out.push_back({.path = binding->reference, .role = holds});
    if (binding->provider == systemd_credential) {
      out.push_back({.path = credential_file(*binding), .role = holds});
    }
    if (binding->provider == store) {
      const std::string opens = format("opens the store that {}", holds);
      out.push_back({.path = data_base() + "/secrets.json", .role = holds});
      out.push_back({.path = config_base() + "/store.key", .role = opens});
    }
  }
  return out;
}

}  // namespace capgate::cli
