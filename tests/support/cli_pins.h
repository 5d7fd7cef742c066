// Entries of a capgate.lock as `capgate approve` writes them, made by hand (docs/lock.md).
#pragma once

#include <string>

#include "base/digest.h"
#include "support/json.h"

namespace capgate::support {

[[nodiscard]] inline std::string digest(const Json& value) {
  return "sha256:" + sha256_hex(value.canonical());
}

// The description of a tool; `more` are further members of it.
[[nodiscard]] inline Json pinned_tool(std::string name = "search",
                                      std::string description = "Searches the notes.",
                                      std::initializer_list<Json::Member> more = {}) {
  Json out = Json::object(
      {{"name", std::move(name)}, {"title", ""}, {"description", std::move(description)}});
  for (const Json::Member& member : more) out[member.key] = member.value;
  out.insert(0, "hash", digest(out));
  return out;
}

[[nodiscard]] inline Json pinned_package() {
  return Json::object({{"registry", "npm"},
                       {"name", "notes-mcp"},
                       {"version", "1.2.3"},
                       {"integrity", "sha512-abc"},
                       {"tree", digest("1.2.3")}});
}

// The whole server has the policy; no tool has a grant of its own.
[[nodiscard]] inline Json pin(std::string server = "notes",
                              const std::vector<std::string>& policy = {"fs:read:/srv/notes/**"}) {
  return Json::object({{"server", std::move(server)},
                       {"command", std::vector<std::string>{"npx", "-y", "notes-mcp"}},
                       {"manifestHash", digest("manifest")},
                       {"policyHash", digest(policy)},
                       {"policy", policy},
                       {"serverCapabilities", policy},
                       {"grants", Json::array({})},
                       {"protocol", "2025-06-18"}});
}

[[nodiscard]] inline Json lock(std::initializer_list<Json> pins) {
  return Json::object({{"schemaVersion", 1}, {"servers", Json::array(pins)}});
}

}  // namespace capgate::support
