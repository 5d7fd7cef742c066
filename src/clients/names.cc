#include "clients/names.h"

#include <algorithm>

#include "base/text.h"

namespace capgate::clients {
namespace {

constexpr std::size_t longest = 214;  // of a name of npm

bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= longest &&
         (is_alnum(part.front()) || part.front() == '_') && std::ranges::all_of(part, [](char c) {
           return is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~';
         });
}

std::size_t digits_at(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

}  // namespace

bool is_name(const Package& package) {
  std::string_view name = package.name;
  if (package.registry == Package::Registry::npm && name.starts_with('@')) {
    const std::size_t slash = name.find('/');
    if (slash == std::string_view::npos || !is_part(name.substr(1, slash - 1))) return false;
    name = name.substr(slash + 1);
  }
  return is_part(name);
}

bool is_range(std::string_view range) {
  return range.size() <= 256 && !range.starts_with('-') && std::ranges::all_of(range, [](char c) {
           return is_alnum(c) || std::string_view(" .-+^~<>=!|*,_").contains(c);
         });
}

bool is_version(std::string_view version) {
  return !version.empty() && version.size() <= 128 && is_alnum(version.front()) &&
         std::ranges::all_of(
             version, [](char c) { return is_alnum(c) || std::string_view(".-+_!").contains(c); });
}

std::string as_component(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '/', '+');
  return out;
}

bool is_older(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::size_t a_size = digits_at(a);
      const std::size_t b_size = digits_at(b);
      if (a_size != b_size) return a_size < b_size;
      const int order = a.substr(0, a_size).compare(b.substr(0, b_size));
      if (order != 0) return order < 0;
      a.remove_prefix(a_size);
      b.remove_prefix(b_size);
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  // 1.0.0-beta comes before 1.0.0.
  if (a.empty() != b.empty()) return a.empty() ? !b.starts_with('-') : a.starts_with('-');
  return false;
}

bool is_any(std::string_view range) { return range.empty() || range == "latest" || range == "*"; }

}  // namespace capgate::clients
