// What capgate-broker and capgate-broker-tls have in common: everything but TLS.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "broker/confine.h"
#include "egress/broker.h"

namespace capgate::broker {

// What a broker has beyond the common part.
struct Extras {
  std::shared_ptr<void> kept;   // lives as long as the broker
  std::function<void()> begin;  // called when the loop is about to run
  Needs needs;
};

// Called before the broker confines itself. The error is told to the supervisor.
using Setup = std::function<std::expected<Extras, std::string>(egress::Broker& broker)>;

// The whole program: its exit status.
[[nodiscard]] int main_of_broker(int count, char** arguments, const Setup& setup);

}  // namespace capgate::broker
