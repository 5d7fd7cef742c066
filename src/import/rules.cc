#include "import/rules.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/ranges.h"
#include "base/text.h"
#include "core/grammar.h"
#include "core/scope.h"

namespace capgate::imports {
namespace {

using core::Capability;
using core::PathPattern;
using text::Kind;
using text::Member;
using text::Value;

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
  out_.chosen();
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

core::FsActions Rules::actions_of(Access access) {
  if (access == Access::read) return {core::FsAction::read};
  return {core::FsAction::write};
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

}  // namespace capgate::imports
