#include "lower/seatbelt_profile.h"

#include <algorithm>

#include "base/format.h"
#include "base/ranges.h"
#include "lower/common.h"
#include "lower/seatbelt_base.h"
#include "lower/seatbelt_text.h"

namespace capgate::lower::seatbelt {
namespace {

using core::FileRights;
using core::IpcCapability;

constexpr std::string_view read_operations = "file-read* file-test-existence";
constexpr std::string_view metadata_operations = "file-read-metadata file-test-existence";
// By name and not as file-write*: no set-user-id bits, owners, flags or access lists. A hard link
// is an operation of its own, which is nowhere allowed: it would make a read-only file writable.
constexpr std::string_view modify_operations =
    "file-write-create file-write-data file-write-mode file-write-times file-write-xattr";
constexpr std::string_view remove_operations = "file-write-unlink";

std::string literal(std::string_view text) { return format("(literal {})", text); }
std::string subpath(std::string_view text) { return format("(subpath {})", text); }
std::string regex(std::string_view text) { return format("(regex {})", quote(text)); }

// The path and everything below it, in any case.
std::string held_regex(const HeldPath& held) {
  return format("^{}{}(/.*)?$", escape_regex(held.root), escape_regex_any_case(held.tail));
}

class ProfileWriter {
 public:
  ProfileWriter(const Input& input, const Programs& programs, const std::vector<Socket>& sockets)
      : input_(input),
        policy_(input.policy),
        programs_(programs),
        sockets_(sockets),
        grants_(file_grants(input.policy)) {
    const std::string& home = input.options.home;
    if (!home.empty()) parameters_.define("HOME", canonical_path(home));
    for (const FileGrant& grant : grants_) {
      for (HeldPath& held : held_paths(grant, home)) held_.push_back(std::move(held));
    }
    in_tree_.reserve(held_.size());
    for (std::size_t i = 0; i < held_.size(); ++i) in_tree_.emplace_back(held_[i].path(), i);
    std::ranges::sort(in_tree_, [](const auto& a, const auto& b) {
      const auto order = core::compare_as_tree(a.first, b.first);
      return order != 0 ? order < 0 : a.second < b.second;
    });
  }

  Profile write() && {
    open_base();
    open_ancestors();
    start_programs();
    open_grants();
    open_private_directory();
    connect();
    close_what_is_held();
    open_what_is_named();
    return {.file = std::move(file_).take(), .parameters = std::move(parameters_)};
  }

 private:
  using Filters = std::vector<std::string>;

  void rule(std::string_view decision, std::string_view operations, const Filters& filters) {
    if (filters.empty()) return;
    std::string text = format("({} {}", decision, operations);
    const char* separator = filters.size() == 1 ? " " : "\n  ";
    for (const std::string& filter : filters) {
      text += separator;
      text += filter;
    }
    file_.add(text + ')');
  }

  void open_base() {
    file_.because("the last matching rule wins, and the first one denies everything");
    file_.add("(version 1)\n(deny default)");
    for (const BaseRules& base : base_rules()) {
      file_.because(base.reason);
      for (const std::string_view text : base.rules) file_.add(text);
    }
  }

  // Programs that resolve a path look at every directory on the way: names, not contents.
  void open_ancestors() {
    std::vector<std::string> all;
    const auto add = [&](std::string_view path) {
      for (std::string& above : ancestors_of(path)) all.push_back(std::move(above));
    };
    for (const FileGrant& grant : grants_) {
      add(grant.base);
      if (grant.is_entries()) all.push_back(grant.base);
    }
    for (const auto* paths :
         {&programs_.files, &programs_.trees, &programs_.libraries, &programs_.links}) {
      for (const std::string& path : *paths) add(path);
    }
    for (const Socket& socket : sockets_) add(socket.path);
    sort_and_deduplicate(all);
    Filters filters;
    for (const std::string& path : all) filters.push_back(literal(directory(path)));
    file_.because("the directories above what is granted: their names, not their contents");
    rule("allow", metadata_operations, filters);
  }

  std::string directory(std::string_view path) { return parameters_.reference("DIR", path); }

  void start_programs() {
    file_.because("programs: the server's own and declared ones, by path");
    Filters start;
    Filters read;
    for (const std::string& path : programs_.files) {
      start.push_back(literal(parameters_.reference("PROGRAM", path)));
    }
    read = start;
    for (const std::string& path : programs_.trees) {
      start.push_back(subpath(parameters_.reference("PREFIX", path)));
      read.push_back(start.back());
    }
    for (const std::string& path : programs_.libraries) {
      read.push_back(subpath(parameters_.reference("LIB", path)));
    }
    for (const std::string& expression : programs_.library_regexes) {
      read.push_back(regex(expression));
    }
    rule("allow", "process-exec*", start);
    if (!policy_.programs.empty()) file_.add("(allow process-fork)");
    rule("allow", format("{} file-map-executable", read_operations), read);
    Filters links;
    for (const std::string& path : programs_.links) {
      links.push_back(subpath(parameters_.reference("LINKS", path)));
    }
    rule("allow", metadata_operations, links);
  }

  std::string filter_of(const FileGrant& grant) {
    if (grant.is_entries()) {
      return regex(entries_regex(grant.base, grant.granted->capability.path.glob));
    }
    return subpath(parameters_.reference("FS", grant.base));
  }

  void open_grant(const FileGrant& grant) {
    file_.because(grant.granted->origins);
    const std::string filter = filter_of(grant);
    std::string operations(read_operations);
    // Libraries load from what the server cannot write.
    if (!grant.writes()) operations += " file-map-executable";
    if (grant.rights.has(FileRights::modify)) operations += format("\n  {}", modify_operations);
    if (grant.rights.has(FileRights::remove)) operations += format("\n  {}", remove_operations);
    rule("allow", operations, {filter});
  }

  void open_grants() {
    for (const FileGrant& grant : grants_) open_grant(grant);
  }

  void open_private_directory() {
    if (!input_.options.script) return;
    file_.because("one private directory for each start: TMPDIR");
    rule("allow", format("{}\n  {}\n  {}", read_operations, modify_operations, remove_operations),
         {subpath("(param \"TMPDIR\")")});
  }

  void connect() {
    if (!policy_.connect.empty()) {
      file_.because("network: the egress broker's port, which asks for this start's token");
      rule("allow", "network-outbound",
           {format("(remote ip \"localhost:{}\")", input_.options.egress_port)});
    }
    for (const auto& grant : policy_.listen) {
      file_.because(grant.origins);
      rule("allow", "network-bind network-inbound",
           {format("(local ip \"localhost:{}\")", grant.capability.port)});
    }
    if (seccomp_needs(policy_).unix_sockets || !policy_.programs.empty()) {
      file_.because("sockets between the server and its own programs");
      rule("allow", "system-socket", {"(socket-domain AF_UNIX)"});
      if (input_.options.script) {
        rule("allow", "network-bind", {"(local unix-socket (subpath (param \"TMPDIR\")))"});
        rule("allow", "network-outbound", {"(remote unix-socket (subpath (param \"TMPDIR\")))"});
      }
    }
    for (const auto& grant : policy_.sockets) {
      if (grant.capability.kind != IpcCapability::Kind::netlink_route) continue;
      file_.because(grant.origins);
      rule("allow", "sysctl-read", {"(sysctl-name \"net.routetable\")"});
    }
    for (const Socket& socket : sockets_) {
      file_.because(*socket.origins);
      const std::string path = parameters_.reference("SOCKET", socket.path);
      rule("allow", "network-outbound", {format("(remote unix-socket {})", literal(path))});
      rule("allow", metadata_operations, {literal(path)});
    }
  }

  // Calls `use(path, index)` for each of held_ at or below the directory, in the order of a tree.
  template <typename Use>
  void for_each_held(std::string_view directory, Use use) const {
    auto at = std::ranges::lower_bound(
        in_tree_, directory,
        [](std::string_view a, std::string_view b) { return core::compare_as_tree(a, b) < 0; },
        &std::pair<std::string, std::size_t>::first);
    for (; at != in_tree_.end() && core::is_at_or_below(at->first, directory); ++at) {
      use(at->first, at->second);
    }
  }

  void close(const std::vector<const HeldPath*>& held) {
    for (const HeldPath* path : held) {
      file_.because(*path->origins);
      const bool closed = path->kind == HeldPath::Kind::closed;
      rule("deny", closed ? format("{} file-write*", read_operations) : "file-write*",
           {regex(held_regex(*path))});
    }
  }

  // Whoever could move a directory away, or put another one in its place, would move what is
  // protected below it out of its rule's sight.
  void pin(const FileGrant& grant) {
    if (!grant.writes()) return;
    file_.because("what is protected cannot be moved away, nor can what lies above it");
    if (!grant.is_entries()) {
      rule("deny", remove_operations, {literal(parameters_.reference("FS", grant.base))});
    }
    std::vector<std::string> above;
    for_each_held(grant.base, [&](const std::string& path, std::size_t) {
      for (std::string& tail : ancestors_of(path.substr(grant.base.size()))) {
        above.push_back(std::move(tail));
      }
    });
    sort_and_deduplicate(above);
    Filters filters;
    for (const std::string& tail : above) {
      filters.push_back(
          regex(format("^{}{}$", escape_regex(grant.base), escape_regex_any_case(tail))));
    }
    rule("deny", format("file-write-create {}", remove_operations), filters);
  }

  void close_what_is_held() {
    file_.because("credentials, whatever is granted above them");
    Filters filters;
    const CredentialList list = credential_list(input_.options.home);
    for (const std::string& path : list.absolute) {
      filters.push_back(format("(literal {0}) (subpath {0})", quote(path)));
    }
    for (const std::string& tail : list.below_home) {
      filters.push_back(format("(literal {0}) (subpath {0})",
                               format("(string-append (param \"HOME\") {})", quote(tail))));
    }
    rule("deny", format("{} file-write*", read_operations), filters);
    std::vector<const HeldPath*> all;
    all.reserve(held_.size());
    for (const HeldPath& held : held_) all.push_back(&held);
    close(all);
    for (const FileGrant& grant : grants_) pin(grant);
    if (!input_.options.script) return;
    rule("deny", remove_operations, {literal("(param \"TMPDIR\")")});
  }

  // Only a grant that lies at or below something closed comes after it, parents first, each
  // followed by what stays closed inside.
  void open_what_is_named() {
    const CredentialList list = credential_list(input_.options.home);
    std::vector<std::string> closed = list.absolute;
    for (const std::string& tail : list.below_home) {
      closed.push_back(canonical_path(input_.options.home) + tail);
    }
    for (const HeldPath& held : held_) closed.push_back(held.path());
    sort_and_deduplicate(closed);
    const auto is_closed = [&](std::string_view path) {
      for (; !path.empty(); path = path.substr(0, path.rfind('/'))) {
        if (std::ranges::binary_search(closed, path)) return true;
      }
      return false;
    };
    for (const FileGrant& grant : grants_) {
      if (!is_closed(grant.base)) continue;
      open_way_to(grant, is_closed);
      open_grant(grant);
      std::vector<const HeldPath*> inside;
      for_each_held(grant.base, [&](const std::string& path, std::size_t index) {
        if (path != grant.base) inside.push_back(&held_[index]);
      });
      std::ranges::sort(inside);  // in the order of the grants
      close(inside);
      pin(grant);
    }
  }

  template <typename IsClosed>
  void open_way_to(const FileGrant& grant, const IsClosed& is_closed) {
    Filters way;
    for (const std::string& above : ancestors_of(grant.base)) {
      if (is_closed(above)) way.push_back(literal(directory(above)));
    }
    if (grant.is_entries()) way.push_back(literal(directory(grant.base)));
    file_.because(grant.granted->origins);
    rule("allow", metadata_operations, way);
  }

  const Input& input_;
  const core::Policy& policy_;
  const Programs& programs_;
  const std::vector<Socket>& sockets_;
  std::vector<FileGrant> grants_;
  std::vector<HeldPath> held_;
  std::vector<std::pair<std::string, std::size_t>> in_tree_;  // paths of held_ with their index
  Parameters parameters_;
  FileBuilder file_{profile_name};
};

}  // namespace

std::string Parameters::reference(std::string_view prefix, std::string_view value) {
  auto& known = numbers_[std::string(prefix)];
  const auto [number, is_new] = known.try_emplace(std::string(value), known.size() + 1);
  const std::string key = format("{}_{}", prefix, number->second);
  if (is_new) items_.emplace_back(key, value);
  return format("(param \"{}\")", key);
}

Profile make_profile(const Input& input, const Programs& programs,
                     const std::vector<Socket>& sockets) {
  return ProfileWriter(input, programs, sockets).write();
}

}  // namespace capgate::lower::seatbelt
