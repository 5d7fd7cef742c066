// The end of the import: denies against what is allowed, and the manifest.
#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/sensitive.h"
#include "import/rules.h"

namespace capgate::imports {
namespace {

using core::Capability;
using core::PathPattern;

bool writes(Access access) { return access != Access::read; }

bool overlap(const core::HostPattern& a, const core::HostPattern& b) {
  return matches(a, b) || matches(b, a);
}

bool overlap(const core::Endpoint& a, const core::Endpoint& b) {
  return overlap(a.host, b.host) && (!a.port || !b.port || a.port == b.port);
}

bool is_address(const core::HostPattern& host) {
  return host.kind == core::HostPattern::Kind::ipv4 || host.kind == core::HostPattern::Kind::ipv6;
}

}  // namespace

bool Rules::holds_a_rule(const PathRule& deny) const {
  return std::ranges::any_of(paths_, [&](const PathRule& rule) {
    return rule.variable == deny.variable && core::is_at_or_below(rule.path.base, deny.path.base);
  });
}

// Every sandbox does that inside of what is granted, unless a grant names it: credentials and, at
// the root of a grant, files of secrets are hidden; what the host runs later is not writable. This
// is what it does whatever directories the variables stand for.
bool Rules::is_kept_everywhere(const PathRule& deny) const {
  if (deny.is_vague || !deny.variable.empty()) return false;
  const std::string& path = deny.path.base;
  const auto* entry = core::credential_at(path, place_.home);
  if (entry != nullptr && std::ranges::find(paths_, entry, &PathRule::credential) == paths_.end()) {
    return true;
  }
  if (!writes(deny.access) || core::startup_at(path, place_.home) == nullptr) return false;
  return std::ranges::none_of(
      paths_, [](const PathRule& rule) { return writes(rule.access) && rule.is_startup; });
}

bool Rules::is_kept_anyway(const PathRule& deny) const {
  if (is_kept_everywhere(deny)) return true;
  if (deny.is_vague) return false;
  const std::string& path = deny.path.base;
  const auto keeps = [&](const PathRule& rule) {
    if (!rule.is_root || rule.is_base || rule.variable != deny.variable) return false;
    if (rule.path.shape == PathPattern::Shape::entries) return false;
    if (writes(deny.access) && !writes(rule.access)) return false;
    if (path == rule.path.base || !core::is_at_or_below(path, rule.path.base)) return false;
    const std::string_view below = std::string_view(path).substr(rule.path.base.size());
    return writes(deny.access) ? core::is_held_name(below)
                               : contains(core::workspace_secret_names(), below.substr(1));
  };
  return std::ranges::any_of(paths_, keeps) && !holds_a_rule(deny);
}

// A grant inside of another one that allows as much is no root: the two become one. Inside a place
// of credentials it is, since the outer one does not hold that.
void Rules::prepare_paths() {
  for (PathRule& rule : paths_) {
    rule.readable = readable_around(rule);
    rule.is_startup = core::startup_at(rule.path.base, place_.home) != nullptr;
    if (rule.variable.empty()) rule.credential = core::credential_at(rule.path.base, place_.home);
  }
  for (PathRule& rule : paths_) {
    rule.is_root = std::ranges::none_of(paths_, [&](const PathRule& other) {
      return !other.is_base && other.variable == rule.variable &&
             other.credential == rule.credential && other.path.base != rule.path.base &&
             (writes(other.access) || !writes(rule.access)) &&
             core::is_at_or_below(rule.path.base, other.path.base);
    });
  }
}

// All of them are around the same path, so if one lies inside of a deny, the innermost does.
std::string Rules::readable_around(const PathRule& rule) const {
  const std::string* innermost = nullptr;
  if (!allowed_reads_win_) return {};
  for (const PathRule& read : paths_) {
    // A pattern opens what it matches, not all that lies in the directory.
    if (read.path.shape == PathPattern::Shape::entries && &read != &rule) continue;
    if (read.access == Access::read && read.variable == rule.variable &&
        (innermost == nullptr || read.path.base.size() > innermost->size()) &&
        core::is_at_or_below(rule.path.base, read.path.base)) {
      innermost = &read.path.base;
    }
  }
  return innermost == nullptr ? "" : *innermost;
}

// No grant has it strictly inside: what is around it is never granted.
bool Rules::is_never_inside(const PathRule& deny) const {
  if (!deny.variable.empty()) return false;
  std::string_view around = deny.path.base;
  while (around.size() > 1) {
    around = around.substr(0, std::max<std::size_t>(around.find_last_of('/'), 1));
    if (!core::refused_scope(around, place_.home)) return false;
  }
  return true;
}

// A deny with another variable may be inside of the one that is allowed, which wins around only.
bool Rules::is_readable_again(const PathRule& deny, const PathRule& allow) const {
  if (!allowed_reads_win_ || writes(deny.access) || deny.is_vague || deny.is_final) return false;
  if (allow.variable != deny.variable && !is_never_inside(deny)) return false;
  return !allow.readable.empty() &&
         (allow.variable != deny.variable || core::is_at_or_below(allow.readable, deny.path.base));
}

void Rules::apply(const PathRule& deny) {
  if (mistakes_.size() >= text::most_mistakes) return;
  const auto inside = [&](const PathRule& allow, std::string_view how) {
    refuse(deny.where,
           format("{} denies a part of {}, which {} allows{}", deny.subject, quoted(allow.text),
                  allow.subject, how),
           "a manifest cannot say \"all of it but that\": allow the directories that are needed, "
           "each by its name, instead of the one around them");
  };
  const bool is_kept = is_kept_anyway(deny);
  const bool is_kept_of_any = is_kept_everywhere(deny);
  std::erase_if(paths_, [&](PathRule& allow) {
    if (writes(deny.access) && !writes(allow.access)) return false;
    if (allow.variable != deny.variable) {
      if (is_kept_of_any || is_readable_again(deny, allow)) return false;
      const bool is_relative = !program_.empty() && (deny.variable == working_directory ||
                                                     allow.variable == working_directory);
      inside(allow, is_relative
                        ? format(", perhaps: a relative path starts where {} is started", program_)
                        : ", perhaps: a variable stands for some directory");
      return false;
    }
    const std::string& denied = deny.path.base;
    const std::string& allowed = allow.path.base;
    if (deny.is_vague) {
      if (core::is_at_or_below(allowed, denied) || core::is_at_or_below(denied, allowed)) {
        inside(allow, ", perhaps");
      }
      return false;
    }
    if (core::is_at_or_below(allowed, denied)) {
      if (is_readable_again(deny, allow)) return false;
      out_.assumed(deny.subject,
                   format("{} is allowed and denied: the deny holds, and the manifest "
                          "does not grant it",
                          quoted(allow.text)));
      if (!writes(deny.access) || !allowed_reads_win_) return true;
      allow.access = Access::read;  // where reading is everyone's, only writing falls
      return false;
    }
    if (!core::is_at_or_below(denied, allowed)) return false;
    if (allow.path.shape == PathPattern::Shape::entries) {
      const std::string_view below =
          std::string_view(denied).substr(allowed == "/" ? 1 : allowed.size() + 1);
      if (!core::matches_glob(below.substr(0, below.find('/')), allow.path.glob)) return false;
    }
    if (!is_kept) inside(allow, "");
    return false;
  });
}

void Rules::apply(const HostRule& deny) {
  if (mistakes_.size() >= text::most_mistakes) return;
  std::erase_if(hosts_, [&](const HostRule& allow) {
    if (matches(deny.endpoint, allow.endpoint)) {
      out_.assumed(deny.subject,
                   format("{} is allowed and denied: the deny holds, and the manifest "
                          "does not grant it",
                          quoted(allow.text)));
      return true;
    }
    // Private endpoints stay closed unless a rule names them.
    if (core::names_private_endpoint(deny.endpoint.host) &&
        !core::names_private_endpoint(allow.endpoint.host)) {
      return false;
    }
    // A name may lead to an address that is denied.
    const bool leads_there =
        is_address(deny.endpoint.host) && !is_address(allow.endpoint.host) &&
        (!deny.endpoint.port || !allow.endpoint.port || deny.endpoint.port == allow.endpoint.port);
    if (leads_there || overlap(deny.endpoint, allow.endpoint)) {
      refuse(deny.where,
             format("{} denies a part of {}, which {} allows", deny.subject, quoted(allow.text),
                    allow.subject),
             "a manifest cannot say \"all of it but that\": allow the hosts that are needed, each "
             "by its name and port");
    }
    return false;
  });
}

void Rules::grant(const PathRule& rule) {
  if (rule.is_base) return;
  const core::FsCapability fs{.actions = actions_of(rule.access), .path = rule.path};
  std::string text = print(Capability(fs));
  if (!rule.variable.empty()) {
    const std::size_t at = text.find(stand_in);
    text.replace(at, stand_in.size(), format("${{{}}}", rule.variable));
  } else if (rule.path.base == "/tmp" && rule.path.shape != PathPattern::Shape::entries) {
    out_.assumed(rule.subject,
                 "/tmp is the sandbox's own, empty at its start; a directory below it "
                 "would be the host's");
  }
  if (!program_.empty() && rule.variable == working_directory) {
    out_.assumed(rule.subject,
                 format("a relative path starts where {} is started, which the file does not say: "
                        "bind {} to that directory, with --set {}=DIRECTORY",
                        program_, working_directory, working_directory));
  }
  if (!out_.grant(text, rule.subject)) {
    complain(rule.where, format("{} cannot be granted", quoted(rule.text)),
             "name a directory that the server needs");
  }
}

void Rules::grant(const HostRule& rule) {
  const core::HostPattern& host = rule.endpoint.host;
  const bool is_name = host.kind == core::HostPattern::Kind::name ||
                       host.kind == core::HostPattern::Kind::subdomains;
  core::NetConnect net{.endpoint = rule.endpoint, .refinements = {}};
  net.refinements.private_network =
      opens_private_ && is_name && !core::names_private_endpoint(host);
  const Capability capability = std::move(net);
  out_.grant(capability, rule.subject);
  const core::Endpoint& endpoint = rule.endpoint;
  if (endpoint.host.kind == core::HostPattern::Kind::any) {
    out_.assumed(rule.subject,
                 format("{} is every public host; private addresses stay closed. Better name the "
                        "hosts that the server needs",
                        print(capability)));
  } else if (!endpoint.port) {
    out_.assumed(rule.subject, format("{} has no port, so every port of it may be reached; write "
                                      "{}:443 if that is all",
                                      quoted(rule.text), print(capability)));
  }
}

Checked<Imported> Rules::finish() && {
  prepare_paths();
  for (const PathRule& deny : denied_paths_) apply(deny);
  for (const HostRule& deny : denied_hosts_) apply(deny);
  if (mistakes_.empty()) {
    for (const PathRule& rule : paths_) grant(rule);
    for (const HostRule& rule : hosts_) grant(rule);
  }
  if (mistakes_.empty()) return std::move(out_).take();
  sort_diagnostics(mistakes_);
  return std::unexpected(std::move(mistakes_));
}

}  // namespace capgate::imports
