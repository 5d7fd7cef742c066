#include "review/covers.h"

#include <algorithm>

#include "core/rights.h"
#include "core/sensitive.h"
#include "core/symbolic.h"

namespace capgate::review {
namespace {

using core::Capability;
using core::FsCapability;
using core::HostPattern;
using core::NetConnect;
using Shape = core::PathPattern::Shape;

// Lines with the same path or host, and other actions or refinements: more than this is no
// manifest that a person wrote, and what is not compared is not found redundant.
constexpr std::size_t most_alike = 64;

bool path_covers(const core::PathPattern& wide, const core::PathPattern& narrow) {
  if (wide.shape == Shape::entries) {
    return narrow.shape == Shape::entries && narrow.base == wide.base && narrow.glob == wide.glob;
  }
  // /tmp is the sandbox's own: granting it says nothing about host paths below it.
  if (wide.base == "/tmp") return narrow.base == "/tmp" && narrow.shape == wide.shape;
  return core::is_at_or_below(narrow.base, wide.base) &&
         (narrow.base != wide.base || wide.shape == narrow.shape || narrow.shape == Shape::entries);
}

bool fs_covers(const FsCapability& wide, const FsCapability& narrow, std::string_view home) {
  return core::rights_of(wide.actions).covers(core::rights_of(narrow.actions)) &&
         path_covers(wide.path, narrow.path) && wide.unsafe == narrow.unsafe &&
         !core::is_held_back(narrow.path.base, wide.path.base, home);
}

bool net_covers(const NetConnect& wide, const NetConnect& narrow) {
  if (!core::matches(wide.endpoint, narrow.endpoint)) return false;
  // Only a rule that names a private endpoint reaches it.
  const HostPattern& host = narrow.endpoint.host;
  if (core::may_be_private(host) && wide.endpoint.host != host) return false;
  const auto& a = wide.refinements;
  const auto& b = narrow.refinements;
  if (a.sni != b.sni || a.proto != b.proto || (b.private_network && !a.private_network)) {
    return false;
  }
  return (a.methods.empty() && a.paths.empty()) || (a.methods == b.methods && a.paths == b.paths);
}

std::string host_key(HostPattern::Kind kind, std::string_view text) {
  return (kind == HostPattern::Kind::subdomains ? "n*." : "n") + std::string(text);
}

// Where a line stands: under its own path or host.
std::string key_of(const Capability& capability) {
  if (const auto* fs = std::get_if<FsCapability>(&capability)) {
    return fs->path.shape == Shape::entries ? "g" + core::print(fs->path) : "f" + fs->path.base;
  }
  if (const auto* net = std::get_if<NetConnect>(&capability)) {
    const HostPattern& host = net->endpoint.host;
    return host.kind == HostPattern::Kind::any ? "n*" : host_key(host.kind, host.text);
  }
  return "o" + core::print(capability);
}

// Calls `use` with each key under which a line that covers the path may stand, until it is true.
template <typename Use>
bool any_parent_key(const std::string& base, Use use) {
  std::string_view path = base;
  for (;;) {
    if (use("f" + std::string(path))) return true;
    if (path == "/" || path.empty()) return false;
    const std::size_t slash = path.rfind('/');
    path = slash == 0 ? std::string_view("/") : path.substr(0, slash);
  }
}

template <typename Use>
bool any_suffix_key(std::string_view name, Use use) {
  if (use(std::string("n*"))) return true;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    if (use(host_key(HostPattern::Kind::subdomains, name.substr(dot + 1)))) return true;
  }
  return false;
}

}  // namespace

bool covers(const Capability& wide, const Capability& narrow, std::string_view home) {
  if (wide.index() != narrow.index()) return false;
  if (const auto* fs = std::get_if<FsCapability>(&wide)) {
    return fs_covers(*fs, std::get<FsCapability>(narrow), home);
  }
  if (const auto* net = std::get_if<NetConnect>(&wide)) {
    return net_covers(*net, std::get<NetConnect>(narrow));
  }
  return wide == narrow;
}

void CoverIndex::add(const Capability& capability, std::uint32_t line) {
  std::vector<Entry>& alike = entries_[key_of(capability)];
  if (alike.size() < most_alike) alike.push_back({.capability = &capability, .line = line});
}

std::optional<std::uint32_t> CoverIndex::find_at(std::string_view key, const Capability& capability,
                                                 std::uint32_t except) const {
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end()) return std::nullopt;
  for (const Entry& entry : found->second) {
    if (entry.line != except && covers(*entry.capability, capability, home_)) return entry.line;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> CoverIndex::find(const Capability& capability,
                                              std::uint32_t except) const {
  std::optional<std::uint32_t> out = find_at(key_of(capability), capability, except);
  if (out) return out;
  const auto look = [&](std::string_view key) {
    out = find_at(key, capability, except);
    return out.has_value();
  };
  if (const auto* fs = std::get_if<FsCapability>(&capability)) {
    (void)any_parent_key(fs->path.base, look);
  } else if (const auto* net = std::get_if<NetConnect>(&capability)) {
    (void)any_suffix_key(net->endpoint.host.text, look);
  }
  return out;
}

}  // namespace capgate::review
