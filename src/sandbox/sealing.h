// What is sealed, on its way from where it was resolved to the broker.
#pragma once

#include <expected>

#include "sandbox/network.h"
#include "sandbox/secrets.h"
#include "sandbox/trust.h"

namespace capgate::sandbox {

// Takes the sealed values and the authority; starts the renewer of those that expire. Nothing where
// nothing is sealed.
[[nodiscard]] std::expected<NetworkSecrets, Refusal> network_secrets(const lower::Plan& plan,
                                                                     Secrets& secrets, Trust* trust,
                                                                     const Launcher& launcher);

}  // namespace capgate::sandbox
