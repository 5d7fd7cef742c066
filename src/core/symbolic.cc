#include "core/symbolic.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/path.h"

namespace capgate::core {
namespace {

// Of one case and without a separator, so that each is one component of a path, one label of a host
// name, one word. The number that follows ends with an "x", so that no text after it joins it.
struct Spelling {
  std::string_view before;
  std::string_view after;
};
constexpr std::array<Spelling, 4> spellings = {{
    {.before = "/cgunboundroot0x", .after = "x0"},
    {.before = "cgunboundword0x", .after = "x0"},
    {.before = "cgunboundzone0x", .after = "x0.cgunbound"},
    {.before = "CGUNBOUNDNAME0X", .after = "X0"},
}};
constexpr std::string_view common = "cgunbound";
constexpr std::string_view common_upper = "CGUNBOUND";

// What follows HOME, which is measured by its own.
std::string_view without_home(std::string_view path, std::string_view home) {
  return !home.empty() && is_at_or_below(path, home) ? path.substr(home.size()) : path;
}

bool starts_field(std::string_view text, std::string_view name) {
  const std::string variable = format("${{{}}}", name);
  const std::size_t at = text.find(variable);
  return at != 0 && at != std::string_view::npos &&
         std::string_view(":=,\"").contains(text[at - 1]);
}

}  // namespace

bool has_stand_in(std::string_view text) {
  return text.contains(common) || text.contains(common_upper);
}

bool may_be_private(const HostPattern& host) {
  if (names_private_endpoint(host)) return true;
  return has_stand_in(std::string_view(host.text).substr(host.text.rfind('.') + 1));
}

bool may_be_held_back(std::string_view path, std::string_view above, std::string_view home) {
  return path != above && has_stand_in(without_home(path, home));
}

bool may_be_held_back(const PathPattern& entries, std::string_view home) {
  return entries.shape == PathPattern::Shape::entries &&
         (has_stand_in(entries.glob) || has_stand_in(without_home(entries.base, home)));
}

std::string Symbols::stand_in(std::string_view name, Form form) {
  const auto [entry, is_new] = indices_.try_emplace(std::string(name), names_.size());
  if (is_new) names_.emplace_back(name);
  const Spelling& spelling = spellings[static_cast<std::size_t>(form)];
  return format("{}{}{}", spelling.before, entry->second, spelling.after);
}

std::string Symbols::directory(std::string_view name) { return stand_in(name, Form::directory); }

Result<std::vector<Capability>> Symbols::parse(std::string_view text, const Bindings& bindings) {
  if (to_lower(text).contains(common)) {
    return fail(Code::cap_variable, Span::at(0, text.size()),
                format("{} is kept for variables that are not bound", quoted(common)),
                "write another name");
  }
  std::vector<std::string_view> unbound;
  for (const std::string_view name : variables_in(text)) {
    if (first_value(bindings, name).empty() && !contains(unbound, name)) unbound.push_back(name);
  }
  auto plain = parse_capability(text, bindings);
  if (unbound.empty() || plain) return plain;

  // A directory where a field begins with it, else a word; or all words, or domains, or names of
  // variables.
  const auto attempt = [&](Form at_start, Form elsewhere) {
    Bindings all = bindings;
    for (const std::string_view name : unbound) {
      const Form form = starts_field(text, name) ? at_start : elsewhere;
      all.push_back({.name = std::string(name), .values = {stand_in(name, form)}});
    }
    return parse_capability(text, all);
  };
  for (const auto& [at_start, elsewhere] :
       {std::pair(Form::directory, Form::word), std::pair(Form::word, Form::word),
        std::pair(Form::zone, Form::zone), std::pair(Form::name, Form::name)}) {
    if (auto parsed = attempt(at_start, elsewhere)) return parsed;
  }
  return plain;
}

std::vector<std::string> Symbols::names_among(std::span<const std::string> used) const {
  std::vector<std::string> out;
  for (const std::string& name : used) {
    if (indices_.contains(name)) out.push_back(name);
  }
  sort_and_deduplicate(out);
  return out;
}

std::string Symbols::show(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(
        spellings, [&](const Spelling& each) { return text.starts_with(each.before); });
    if (found != spellings.end()) {
      const std::string_view rest = text.substr(found->before.size());
      const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
      const auto index = parse_decimal(rest.substr(0, digits));
      if (index && *index < names_.size() && rest.substr(digits).starts_with(found->after)) {
        out += format("${{{}}}", names_[*index]);
        text = rest.substr(digits + found->after.size());
        continue;
      }
    }
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace capgate::core
