// What reading and applying the rules of a catalog entry have in common. Only for catalog*.cc.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/format.h"
#include "base/text.h"
#include "clients/catalog.h"
#include "text/document.h"

namespace capgate::clients {

[[nodiscard]] inline bool is_variable_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name, [](char c) { return is_alnum(c) || c == '_'; });
}

// What capgate itself binds, whatever the entry says.
[[nodiscard]] inline bool is_host_variable(std::string_view name) {
  return name == "HOME" || name == "XDG_RUNTIME_DIR";
}

[[nodiscard]] inline bool binds(const BindingRule& rule, std::string_view variable) {
  if (rule.variable.empty()) return false;
  if (rule.kind != BindingRule::Kind::url) return rule.variable == variable;
  return variable == format("{}_HOST", rule.variable) ||
         variable == format("{}_PORT", rule.variable);
}

template <typename Use>
void for_each_in_list(text::Value object, std::string_view key, Use use) {
  const auto list = object.is(text::Kind::object) ? object.find(key) : std::nullopt;
  if (!list || !list->is(text::Kind::array)) return;
  for (const text::Value item : list->elements()) use(item);
}

// Calls `use` with each capability string of a manifest. What has another shape is left to the
// manifest's own reader.
template <typename Use>
void for_each_capability(text::Value manifest, Use use) {
  const auto use_text = [&](text::Value item) {
    if (item.is(text::Kind::string)) use(item);
  };
  for_each_in_list(manifest, "serverCapabilities", use_text);
  for_each_in_list(manifest, "tools",
                   [&](text::Value tool) { for_each_in_list(tool, "capabilities", use_text); });
}

}  // namespace capgate::clients
