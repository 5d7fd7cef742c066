#include "import/rules.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/render.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/scope.h"
#include "core/sensitive.h"

namespace capgate::imports {
namespace {

using core::Capability;
using core::PathPattern;
using text::Kind;
using text::Member;
using text::Value;

// Denies are weighed against grants pair by pair; nobody writes a thousand of either.
constexpr std::size_t most_rules = 1024;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::number: return "a number";
    case Kind::string: return "a text";
    case Kind::array: return "a list";
    case Kind::object: return "a mapping";
  }
  return "";
}

bool is_clean(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, is_control);
}

core::FsActions actions_of(Access access) {
  if (access == Access::read) return {core::FsAction::read};
  return {core::FsAction::write};
}

bool writes(Access access) { return access != Access::read; }

// A variable stands for one directory: inside a path it is a component that no path has.
constexpr std::string_view stand_in = "/..variable..";
// The variable of relative paths where nobody knows what they start from.
constexpr std::string_view working_directory = "WORKING_DIRECTORY";

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

Span whole(Value item) { return item.locate(0, item.text().size()); }

bool has_member(Value object, std::string_view key, Kind kind) {
  if (!object.is(Kind::object)) return false;
  const auto value = object.find(key);
  return value && value->is(kind);
}

// ---- mistakes ---------------------------------------------------------------------------------

void Rules::add(Diagnostic mistake) {
  if (mistake.help.empty()) mistake.help = "write it as the format's own documentation says";
  if (mistakes_.size() < text::most_mistakes) mistakes_.push_back(std::move(mistake));
}

void Rules::complain(Span where, std::string message, std::string help) {
  add({.code = Code::import_shape,
       .where = where,
       .message = std::move(message),
       .help = std::move(help)});
}

void Rules::refuse(Span where, std::string message, std::string help) {
  add({.code = Code::import_refused,
       .where = where,
       .message = std::move(message),
       .help = std::move(help)});
}

// ---- shape --------------------------------------------------------------------------------------

void Rules::check_keys(Value object, std::span<const std::string_view> known,
                       std::string_view what) {
  for (const Member member : object.members()) {
    const std::string_view key = member.key.text();
    if (contains(known, key)) continue;
    const auto meant = closest(key, known);
    complain(member.key.span(), format("{} has no {}", what, quoted(key)),
             meant ? format("did you mean {}?", *meant)
                   : "it may grant or restrict something, so it is not passed over: remove it from "
                     "a copy of the file if it does neither");
  }
}

std::optional<Value> Rules::member(Value object, std::string_view key, Kind kind) {
  const auto value = object.find(key);
  if (!value || value->is(Kind::null)) return {};
  if (value->is(kind)) return value;
  complain(value->span(), format("{} is {}", key, name_of(kind)),
           format("write {} there, or leave {} out", name_of(kind), key));
  return {};
}

bool Rules::flag(Value object, std::string_view key) {
  const auto value = member(object, key, Kind::boolean);
  return value && value->text() == "true";
}

std::string_view Rules::text(Value object, std::string_view key) {
  const auto value = member(object, key, Kind::string);
  if (!value) return {};
  if (is_clean(value->text())) return value->text();
  if (!value->text().empty()) {
    complain(value->span(), format("control character in {}", key), "write it without");
  }
  return {};
}

std::vector<Value> Rules::texts(Value object, std::string_view key) {
  std::vector<Value> out;
  const auto list = member(object, key, Kind::array);
  if (!list) return out;
  for (const Value item : list->elements()) {
    if (item.is(Kind::string) && is_clean(item.text())) {
      out.push_back(item);
    } else {
      complain(item.span(), format("{} is a list of texts", key),
               format("write {}: [\"...\"], each of them in one line and not empty", key));
    }
  }
  return out;
}

std::optional<Member> Rules::choose(Value servers, std::string_view what) {
  std::string names;
  std::size_t count = 0;
  std::optional<Member> chosen;
  for (const Member server : servers.members()) {
    if (place_.server.empty() || server.key.text() == place_.server) chosen = server;
    if (++count <= 10) names += format("{}{}", count > 1 ? ", " : "", quoted(server.key.text()));
  }
  if (count > 10) names += ", ...";
  const Span where = Span::at(servers.span().begin, servers.span().begin);
  if (count == 0) {
    complain(where, format("there is no {} in it", what), "import a file that has one");
    return {};
  }
  if (place_.server.empty() && count > 1) {
    complain(where, format("there are {} of them: {}", count, names),
             format("say which {} with --server NAME", what));
    return {};
  }
  if (!chosen) {
    complain(where, format("there is no {} {}", what, quoted(place_.server)),
             format("there are: {}", names));
  }
  return chosen;
}

// ---- rules --------------------------------------------------------------------------------------

std::optional<Rules::Item> Rules::plain(Value value, std::string_view subject) {
  if (value.text().contains("${")) {
    complain(whole(value), format("{} has no variables", subject), "write it out");
    return {};
  }
  return Item{.text = std::string(value.text()), .where = whole(value), .subject = subject};
}

bool Rules::has_room(std::size_t rules, Span where) {
  if (rules < most_rules) return true;
  if (!std::exchange(is_full_, true)) {
    refuse(where, format("there are more than {} rules of one kind", most_rules),
           "name directories and domains instead of each file and host");
  }
  return false;
}

Result<Rules::PathRule> Rules::resolve(Access access, const Item& item) const {
  PathRule rule{.access = access,
                .path = {},
                .variable = {},
                .where = item.where,
                .subject = std::string(item.subject),
                .text = item.text};
  std::string path = item.text;
  if (path.starts_with("${")) {
    const std::size_t end = path.find('}');
    rule.variable = path.substr(2, end == std::string::npos ? end : end - 2);
    path.replace(0, end == std::string::npos ? end : end + 1, stand_in);
  }
  if (path.contains("${") || path.contains(stand_in.substr(1)) != !rule.variable.empty()) {
    return fail(Code::import_shape, item.where, "a variable stands at the start of a path only",
                "write the path out");
  }
  if (path == "~" || path.starts_with("~/")) {
    if (place_.home.empty()) {
      return fail(Code::import_shape, item.where, "the home directory is not known",
                  "write the path in full");
    }
    path = place_.home + path.substr(1);
  } else if (!path.starts_with('/')) {
    if (path.starts_with('~') || (program_.empty() && place_.directory.empty())) {
      return fail(Code::import_shape, item.where, "the path is not absolute",
                  "write the path from the root");
    }
    if (!program_.empty()) rule.variable = working_directory;
    path = format("{}/{}", program_.empty() ? place_.directory : stand_in, path);
  }
  auto pattern = core::parse_path(path);
  if (!pattern) {
    Diagnostic mistake = std::move(pattern).error();
    mistake.where = item.where;
    return std::unexpected(std::move(mistake));
  }
  rule.path = *std::move(pattern);
  if (path.ends_with('/') && rule.path.shape == PathPattern::Shape::node) {
    rule.path.shape = PathPattern::Shape::tree;
  }
  return rule;
}

void Rules::allow_path(Access access, const Item& item) {
  if (!has_room(paths_.size(), item.where)) return;
  auto rule = resolve(access, item);
  if (!rule) return add(std::move(rule).error());
  const core::FsCapability fs{.actions = actions_of(access), .path = rule->path};
  if (auto allowed = check_scope(Capability(fs), place_.home); !allowed) {
    Diagnostic mistake = std::move(allowed).error();
    mistake.where = item.where;
    if (mistake.code == Code::cap_needs_unsafe) {
      mistake.help =
          "leave it out of the source; where it is really meant, add it to the manifest "
          "by hand, with ?unsafe=true";
    }
    return add(std::move(mistake));
  }
  paths_.push_back(*std::move(rule));
}

void Rules::allow_base(const Item& item) {
  if (!has_room(paths_.size(), item.where)) return;
  auto rule = resolve(Access::read, item);
  if (!rule) return add(std::move(rule).error());
  rule->is_base = true;
  paths_.push_back(*std::move(rule));
}

void Rules::deny_path(Access access, const Item& item) {
  if (!has_room(denied_paths_.size(), item.where)) return;
  // "/a/**/x" and "*.pem" are below the directory before the first component with a wildcard.
  std::string_view text = item.text;
  bool is_vague = false;
  const std::size_t start = text.starts_with("${") ? text.find('}') : 0;
  if (start == std::string_view::npos)
    return complain(item.where, "a variable has no end", "write }");
  const std::size_t wild = find_any(text, "*?[]{}", text.starts_with("${") ? start + 1 : 0);
  if (wild != std::string_view::npos) {
    const std::size_t slash = text.substr(0, wild).find_last_of('/');
    is_vague = slash == std::string_view::npos || text.substr(slash + 1) != "**";
    text = slash == std::string_view::npos ? "." : slash == 0 ? "/" : text.substr(0, slash);
  }
  auto rule =
      resolve(access, {.text = std::string(text), .where = item.where, .subject = item.subject});
  if (!rule) return add(std::move(rule).error());
  rule->is_vague = is_vague;
  rule->text = item.text;
  denied_paths_.push_back(*std::move(rule));
}

void Rules::deny_reading_for_good(const Item& item) {
  const std::size_t before = denied_paths_.size();
  deny_path(Access::read, item);
  if (denied_paths_.size() > before) denied_paths_.back().is_final = true;
}

void Rules::start_is_unknown(std::string_view program) {
  program_ = program;
  out_.reserve(working_directory);
}

std::optional<core::Endpoint> Rules::endpoint(const Item& item) {
  auto parsed = core::parse_endpoint(item.text);
  if (parsed) return *std::move(parsed);
  Diagnostic mistake = std::move(parsed).error();
  mistake.where = item.where;
  add(std::move(mistake));
  return {};
}

void Rules::allow_host(const Item& item) {
  if (auto parsed = endpoint(item)) allow_endpoint(*std::move(parsed), item);
}

void Rules::allow_endpoint(core::Endpoint endpoint, const Item& item) {
  if (!has_room(hosts_.size(), item.where)) return;
  hosts_.push_back({.endpoint = std::move(endpoint),
                    .where = item.where,
                    .subject = std::string(item.subject),
                    .text = item.text});
}

void Rules::deny_host(const Item& item) {
  if (!has_room(denied_hosts_.size(), item.where)) return;
  if (auto parsed = endpoint(item)) {
    denied_hosts_.push_back({.endpoint = *std::move(parsed),
                             .where = item.where,
                             .subject = std::string(item.subject),
                             .text = item.text});
  }
}

void Rules::allow(std::string_view capability, const Item& item) {
  auto parsed = core::parse_capability(capability, {});
  if (parsed) {
    const auto allowed = check_scope(parsed->front(), place_.home);
    if (!allowed) parsed = std::unexpected(allowed.error());
  }
  if (!parsed) {
    Diagnostic mistake = std::move(parsed).error();
    mistake.where = item.where;
    if (mistake.code == Code::cap_needs_unsafe) {
      mistake.help =
          "leave it out of the source; where it is really meant, add it to the manifest "
          "by hand, with ?unsafe=true";
    }
    return add(std::move(mistake));
  }
  out_.grant(parsed->front(), item.subject);
}

void Rules::allow_variable(core::EnvCapability::Action action, const Item& item) {
  if (!std::ranges::all_of(item.text, [](char c) { return is_alnum(c) || c == '_'; })) {
    return add({.code = Code::cap_env_name,
                .where = item.where,
                .message = format("{} is not a variable name", quoted(item.text)),
                .help = "use upper-case letters, digits and underscores, for example API_TOKEN"});
  }
  const bool reads = action == core::EnvCapability::Action::read;
  allow(format("env:{}:{}", reads ? "read" : "inject", item.text), item);
}

void Rules::allow_fixed_variable(const Item& item) {
  if (!out_.keep_fixed_env(item.text, item.subject)) return;
  allow_variable(core::EnvCapability::Action::read, item);
  out_.tell_fixed_env(item.text, item.subject);
}

void Rules::allow_program(const Item& item) {
  if (find_any(item.text, ":?$\"") != std::string_view::npos) {
    return add({.code = Code::cap_exec_name,
                .where = item.where,
                .message = format("{} is not a program's name", quoted(item.text)),
                .help = "name the program alone, for example git"});
  }
  allow(format("exec:spawn:{}", item.text), item);
}

// ---- denies -------------------------------------------------------------------------------------

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
  return std::ranges::none_of(paths_, [&](const PathRule& rule) {
    return writes(rule.access) && core::startup_at(rule.path.base, place_.home) != nullptr;
  });
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
  return std::ranges::any_of(paths_, [&](const PathRule& rule) {
    // A pattern opens what it matches, not all that lies in the directory.
    if (rule.path.shape == PathPattern::Shape::entries && &rule != &allow) return false;
    return rule.access == Access::read && rule.variable == allow.variable &&
           core::is_at_or_below(allow.path.base, rule.path.base) &&
           (rule.variable != deny.variable || core::is_at_or_below(rule.path.base, deny.path.base));
  });
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
