// What a server would be allowed, for `wrap` to show and to decide what can be sealed.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "clients/catalog.h"
#include "clients/config_files.h"

namespace capgate::cli {

struct PolicyView {
  std::vector<std::string> lines;     // one capability each, with the variables filled in
  std::vector<std::string> injected;  // names of env:inject
  bool is_sealable = false;           // every one of them can be sealed
};

struct PolicyContext {
  std::string home;
  std::vector<std::string> environment;  // NAME=VALUE of the client's configuration
};

// The error says why it is none, in one line.
[[nodiscard]] std::expected<PolicyView, std::string> view_catalog_policy(
    const clients::CatalogEntry& entry, const core::Bindings& bindings,
    const PolicyContext& context);

[[nodiscard]] std::expected<PolicyView, std::string> view_policy(const clients::FoundServer& found,
                                                                 const PolicyContext& context);

}  // namespace capgate::cli
