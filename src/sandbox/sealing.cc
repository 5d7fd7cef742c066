#include "sandbox/sealing.h"

#include <utility>

#include "base/assert.h"

namespace capgate::sandbox {
namespace {

std::string variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

secrets::Handed handed(std::string_view name, secrets::Secret value, std::int64_t expires = 0) {
  secrets::Handed out;
  out.name = name;
  out.value = std::move(value);
  out.expires = expires;
  return out;
}

}  // namespace

std::expected<NetworkSecrets, Refusal> network_secrets(const lower::Plan& plan, Secrets& secrets,
                                                       Trust* trust, const Launcher& launcher) {
  NetworkSecrets out;
  if (trust == nullptr) return out;
  CAPGATE_ASSERT(plan.seals.size() == secrets.sealed.size());
  for (std::size_t i = 0; i < plan.seals.size(); ++i) {
    SealedSecret& sealed = secrets.sealed[i];
    out.seals.push_back({.env = plan.seals[i].env,
                         .placeholder = sealed.placeholder,
                         .position = plan.seals[i].position});
    out.handed.push_back(handed(sealed.name, std::move(sealed.value), sealed.expires));
  }
  out.handed.push_back(handed(secrets::authority_key, std::move(trust->key)));
  out.handed.push_back(handed(secrets::authority_certificate, std::move(trust->certificate)));
  // Where they are, whatever the working directory and the links: the broker opens that and no
  // more.
  out.roots_file = real_path(variable(launcher.environment, "SSL_CERT_FILE"));
  out.roots_directory = real_path(variable(launcher.environment, "SSL_CERT_DIR"));
  if (secrets.renewed.empty()) return out;
  auto renewer = secrets::start_renewer(secrets.renewed, secrets_context(plan, launcher));
  if (!renewer) {
    return std::unexpected(Refusal{.message = std::move(renewer.error().message),
                                   .help = std::move(renewer.error().help)});
  }
  out.renewer = *std::move(renewer);
  return out;
}

}  // namespace capgate::sandbox
