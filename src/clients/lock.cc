// capgate.lock as text.
#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "clients/names.h"
#include "clients/store.h"
#include "text/json.h"
#include "text/json_write.h"

namespace capgate::clients {
namespace {

using text::Kind;
using text::Value;

constexpr std::string_view keys[] = {"registry",  "name", "range",   "version",
                                     "integrity", "tree", "runtime", "scripts"};

auto order_of(const LockedPackage& locked) {
  return std::tie(locked.package.registry, locked.package.name, locked.package.range);
}

std::unexpected<StoreProblem> unreadable(std::string_view why) {
  return refuse(format("capgate.lock cannot be read: {}", why),
                "move it away and install the packages again: capgate install");
}

// Empty where it is missing or no text: then a check below refuses it.
std::string text_at(Value object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is(Kind::string) ? std::string(value->text()) : std::string();
}

bool is_tree_hash(std::string_view text) {
  constexpr std::string_view prefix = "sha256:";
  return text.starts_with(prefix) && text.size() == prefix.size() + 64 &&
         std::ranges::all_of(text.substr(prefix.size()),
                             [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool is_integrity(std::string_view text) {
  return text.size() >= 8 && text.size() <= 1024 && text.starts_with("sha") &&
         std::ranges::all_of(text, is_printable_ascii);
}

bool is_runtime(std::string_view text) {
  return text.starts_with('/') && text.size() < 4096 && !std::ranges::any_of(text, is_control);
}

Stored<LockedPackage> read_entry(Value value) {
  if (!value.is(Kind::object)) return unreadable("an entry is no object");
  for (const auto member : value.members()) {
    if (!contains(keys, member.key.text())) {
      return unreadable(format("an entry has {}, which is not known", quoted(member.key.text())));
    }
  }
  const std::string registry = text_at(value, "registry");
  const auto scripts = value.find("scripts");
  LockedPackage out{
      .package = {.registry = registry == "pypi" ? Package::Registry::pypi : Package::Registry::npm,
                  .name = text_at(value, "name"),
                  .range = text_at(value, "range")},
      .version = text_at(value, "version"),
      .integrity = text_at(value, "integrity"),
      .tree = text_at(value, "tree"),
      .runtime = text_at(value, "runtime"),
      .scripts = scripts && scripts->text() == "true"};
  const bool good = (registry == "npm" || registry == "pypi") && is_name(out.package) &&
                    is_range(out.package.range) && is_version(out.version) &&
                    is_integrity(out.integrity) && is_tree_hash(out.tree) &&
                    is_runtime(out.runtime) && scripts && scripts->is(Kind::boolean);
  if (!good) return unreadable(format("the entry {} is not complete", quoted(out.package.name)));
  return out;
}

}  // namespace

Stored<Lock> parse_lock(std::string text) {
  const auto document = text::parse_json(std::move(text));
  if (!document) return unreadable(document.error().front().message);
  const Value root = document->root();
  if (!root.is(Kind::object)) return unreadable("it is no object");
  const auto version = root.find("schemaVersion");
  if (!version || !version->is(Kind::number) || version->text() != "1") {
    return unreadable("its schemaVersion is not 1");
  }
  const auto packages = root.find("packages");
  if (!packages || !packages->is(Kind::array) || root.count() != 2) {
    return unreadable("it must have schemaVersion and packages, and nothing else");
  }
  Lock lock;
  for (const Value value : packages->elements()) {
    auto entry = read_entry(value);
    if (!entry) return std::unexpected(std::move(entry).error());
    if (!lock.packages.empty() && !(order_of(lock.packages.back()) < order_of(*entry))) {
      return unreadable("its packages are not sorted, or one is there twice");
    }
    lock.packages.push_back(*std::move(entry));
  }
  return lock;
}

std::string print(const Lock& lock) {
  std::vector<LockedPackage> sorted = lock.packages;
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  text::JsonWriter json(text::JsonWriter::Style::pretty);
  json.begin_object().key("schemaVersion").number(1).key("packages").begin_array();
  for (const LockedPackage& locked : sorted) {
    json.begin_object();
    json.key("registry").string(locked.package.registry == Package::Registry::npm ? "npm" : "pypi");
    json.key("name").string(locked.package.name).key("range").string(locked.package.range);
    json.key("version").string(locked.version).key("integrity").string(locked.integrity);
    json.key("tree").string(locked.tree).key("runtime").string(locked.runtime);
    json.key("scripts").boolean(locked.scripts).end_object();
  }
  json.end_array().end_object();
  return std::move(json).take() + "\n";
}

}  // namespace capgate::clients
