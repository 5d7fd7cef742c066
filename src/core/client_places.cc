#include "core/client_places.h"

#include <algorithm>

#include "core/client_places_table.h"

namespace capgate::core {

std::span<const ClientConfig> client_configs() { return client_tables::all; }

std::span<const std::string_view> places_of_client(std::string_view client) {
  const auto found = std::ranges::find(client_tables::all, client, &ClientConfig::client);
  if (found == std::ranges::end(client_tables::all)) return {};
  return found->places;
}

}  // namespace capgate::core
