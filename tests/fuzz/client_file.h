// What must hold for a client's file of any bytes at all: what is wrapped comes back byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "support/client_files.h"

namespace capgate::fuzz {

enum class Refusal : std::uint8_t { never, allowed };

inline void check_file(const std::string& text, const clients::Shape& shape, Refusal refusal) {
  const auto file = clients::read_client_file(text, shape);
  if (!file) {
    CAPGATE_ASSERT(!file.error().empty());
    return;
  }
  const auto changes = support::wrap_changes(*file);
  const auto wrapped = clients::apply(*file, changes);
  if (!wrapped) {
    CAPGATE_ASSERT(refusal == Refusal::allowed);
    return;
  }
  CAPGATE_ASSERT(changes.empty() == (*wrapped == text));
  const auto again = clients::read_client_file(*wrapped, shape);
  CAPGATE_ASSERT(again);
  for (const clients::Change& change : changes) {
    const clients::ServerEntry& server = again->servers.at(change.server);
    CAPGATE_ASSERT(server.profile == change.prefix.at(3));
    CAPGATE_ASSERT(server.command == file->servers.at(change.server).command);
  }
  CAPGATE_ASSERT(clients::apply(*again, changes) == wrapped);
  CAPGATE_ASSERT(clients::apply(*again, support::undone(changes)) == text);
}

}  // namespace capgate::fuzz
