#include "sandbox/holes.h"

#include <algorithm>

#include "base/format.h"
#include "lower/common.h"

namespace capgate::sandbox {
namespace {

// Fills ${NAME}. Only names of holes can stand in a Plan's texts.
std::string fill(std::string text, std::string_view name, std::string_view value) {
  const std::string hole = format("${{{}}}", name);
  for (std::size_t at = text.find(hole); at != std::string::npos;
       at = text.find(hole, at + value.size())) {
    text.replace(at, hole.size(), value);
  }
  return text;
}

std::string home_of(const lower::Plan& plan) {
  const auto home = std::ranges::find(
      plan.environment, "HOME", [](const auto& entry) { return std::string_view(entry.first); });
  return home == plan.environment.end() ? std::string(lower::default_home) : home->second;
}

}  // namespace

Holes::Holes(const lower::Plan& plan, const std::vector<std::string>& environment)
    : environment_(environment), home_(home_of(plan)) {}

const std::string* Holes::variable(std::string_view name) const {
  const auto found = std::ranges::find_if(environment_, [&](const std::string& entry) {
    return entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=';
  });
  return found == environment_.end() ? nullptr : &*found;
}

std::string Holes::filled(const std::string& text) const {
  if (!text.contains("${")) return text;
  std::string out = fill(text, "HOME", home_);
  if (out.contains("${DISPLAY}")) out = fill(out, "DISPLAY", display_number());
  if (out.contains("${XDG_RUNTIME_DIR}")) {
    out = fill(out, "XDG_RUNTIME_DIR", value_of("XDG_RUNTIME_DIR"));
  }
  return out;
}

std::string Holes::value_of(std::string_view name) const {
  const std::string* entry = variable(name);
  return entry == nullptr ? "" : entry->substr(name.size() + 1);
}

// ":1.0" and "unix:1" are display 1.
std::string Holes::display_number() const {
  const std::string display = value_of("DISPLAY");
  const std::size_t colon = display.rfind(':');
  if (colon == std::string::npos) return "";
  const std::size_t begin = colon + 1;
  return display.substr(begin, display.find('.', begin) - begin);
}

}  // namespace capgate::sandbox
