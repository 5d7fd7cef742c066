// The address of a registry, as npm's or pip's configuration writes it.
//
//   parse_registry("https://registry.example.com/npm/")
//     -> host registry.example.com, port 443: net:connect:registry.example.com:443?private=true
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clients/store.h"

namespace capgate::clients {

struct RegistryAddress {
  std::string url;   // as it was written
  std::string host;  // lower case; an IPv6 address has its brackets
  unsigned port = 0;
  bool encrypted = true;
};

// Strictly http:// or https://, a host, maybe a port and a path: no user, no password, no query.
[[nodiscard]] Stored<RegistryAddress> parse_registry(std::string_view url);

// The capability that lets an installer reach it. A registry inside of a company has a private
// address; one on this very machine is named localhost, or by its address.
[[nodiscard]] std::string capability_for(const RegistryAddress& registry);

}  // namespace capgate::clients
