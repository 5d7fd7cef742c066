#include "sandbox/ways.h"

#include <fcntl.h>

#include <deque>
#include <utility>

#include "base/format.h"
#include "base/text.h"

namespace capgate::sandbox {
namespace {

constexpr int most_links = 40;

std::deque<std::string> parts_of(const std::string& path) {
  std::deque<std::string> out;
  for (const std::string_view part : EachPart(path, '/')) out.emplace_back(part);
  return out;
}

std::string joined(const std::deque<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty() && part != ".") out += format("/{}", part);
  }
  return out;
}

}  // namespace

std::vector<Way> Ways::to(const std::string& path) {
  std::vector<Way> ways;
  const std::optional<Identity> root = look("/");
  if (!root) return ways;
  std::deque<std::string> rest = parts_of(path);
  Way way;
  int links = 0;
  while (!rest.empty()) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (!way.empty()) way.pop_back();
      continue;
    }
    const std::string at = format("{}/{}", way.empty() ? "" : way.back().path, name);
    const std::optional<Identity> identity = look(at);
    way.push_back({.directory = way.empty() ? *root : way.back().identity.value_or(*root),
                   .name = name,
                   .path = at,
                   .identity = identity});
    if (!identity) {
      way.back().rest = joined(rest);
      break;
    }
    if (identity->type != S_IFLNK) continue;
    ways.push_back(way);
    way.pop_back();
    const std::string target = read_link(AT_FDCWD, at);
    if (++links > most_links || target.empty()) break;
    if (target.starts_with('/')) way.clear();
    const std::deque<std::string> more = parts_of(target);
    rest.insert(rest.begin(), more.begin(), more.end());
  }
  ways.push_back(std::move(way));
  return ways;
}

std::optional<Identity> Ways::look(const std::string& path) {
  const auto [known, is_new] = seen_.try_emplace(path);
  if (is_new) {
    if (const auto identity = identify(path)) known->second = *identity;
  }
  return known->second;
}

}  // namespace capgate::sandbox
